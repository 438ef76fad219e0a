"""Bounded cached reads for the pages. What is cached is frozen, so all sessions share it; nothing is older than a few
seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from app import exporting, reports
from app.bootstrap import services
from core.errors import NotFound
from core.model import BuildView, ComparisonView, EffectView, LogLine, NodeView, Report, RunState, RunView, SuiteInfo

RUNS_SHOWN = 100
LOG_SHOWN = 200


def now() -> datetime:
    """The present moment, aware in UTC."""
    return datetime.now(UTC)


def catalog() -> tuple[SuiteInfo, ...]:
    """All suites; read once a process."""
    return services().catalog


@st.cache_resource(ttl=1, max_entries=4, show_spinner=False)
def runs() -> tuple[RunView, ...]:
    """The newest ``RUNS_SHOWN`` runs, newest first."""
    return services().queries.runs(limit=RUNS_SHOWN)


@st.cache_resource(ttl=1, max_entries=1, show_spinner=False)
def run_counts() -> dict[RunState, int]:
    """How many runs there are in each state."""
    return services().queries.run_counts()


@st.cache_resource(ttl=1, max_entries=64, show_spinner=False)
def run(run_id: int) -> RunView:
    """One run. Raises NotFound."""
    return services().queries.run(run_id)


@st.cache_resource(ttl=1, max_entries=64, show_spinner=False)
def run_log(run_id: int) -> tuple[LogLine, ...]:
    """The last ``LOG_SHOWN`` lines of a run."""
    return services().queries.run_log(run_id, LOG_SHOWN)


@st.cache_resource(ttl=2, max_entries=1, show_spinner=False)
def nodes() -> tuple[NodeView, ...]:
    """All nodes by name."""
    return services().queries.nodes()


@st.cache_resource(ttl=2, max_entries=16, show_spinner=False)
def builds() -> tuple[BuildView, ...]:
    """All builds, newest version first."""
    return services().queries.builds()


def spec_of(label: str) -> str:
    """What to write to have this build measured again; the label itself when the build is not known."""
    return next((b.spec for b in builds() if b.label == label), label)


@st.cache_resource(ttl=3, max_entries=4, show_spinner=False)
def measured_nodes() -> tuple[str, ...]:
    """Nodes with measurements, the one measured last first."""
    return services().queries.measured_nodes()


@st.cache_resource(ttl=3, max_entries=32, show_spinner=False)
def measured_builds(node: str) -> tuple[str, ...]:
    """Labels of the builds measured on a node, newest version first."""
    return services().queries.measured_builds(node)


@st.cache_resource(ttl=5, max_entries=32, show_spinner=False)
def pair(baseline: str, contender: str, node: str) -> Report:
    """Everything known about two builds on a node."""
    s = services()
    return reports.of_pair(s.queries, s.catalog, baseline, contender, node)


@st.cache_resource(ttl=5, max_entries=16, show_spinner=False)
def effects(baseline: str, contender: str, node: str) -> tuple[EffectView, ...]:
    """Variant effects in every build of the runs behind ``pair``."""
    s = services()
    return reports.effects_of(s.queries, s.catalog, pair(baseline, contender, node))


@st.cache_resource(ttl=60, max_entries=32, show_spinner=False)
def run_reports(run_id: int, state: RunState, rounds: int) -> tuple[Report, ...]:
    """What a run says; ``state`` and ``rounds`` done are part of the key, so that progress is a new read."""
    s = services()
    return reports.of_run(s.queries, s.catalog, s.queries.run(run_id))


def newest_report() -> Report | None:
    """The two builds of the newest finished run, on its node, over everything measured; None when nothing is."""
    for one in services().queries.runs(limit=20, states=[RunState.FINISHED]):
        if len(one.builds) > 1:
            try:
                found = pair(one.builds[0], one.builds[-1], one.node)
            except NotFound:
                continue
            if found.comparisons:
                return found
    return None


@st.cache_resource(ttl=600, max_entries=24, show_spinner=False)
def exported(
    key: tuple[str, ...], _report: Report, name: str, permalink: str, _drawn: Sequence[ComparisonView]
) -> bytes:
    """A file of a report, drawn once for the same numbers; ``key`` says which numbers and which rows."""
    return exporting.compare_file(_report, name, permalink, drawn=_drawn)
