"""A dashboard on a SQLite file: empty, or filled through the store as a worker fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import bootstrap
from app.bootstrap import Services
from core.analysis.samples import summarise
from core.model import MeasurementView, Outcome, Progress, RequestSpec, RunPlan, RunState
from core.settings import settings_from
from db.records import BuildFacts, EnvironmentFacts, MeasurementRecord, NodeFacts
from db.tables import EnvironmentState
from tests.reports import BASELINE, CONTENDER, NODE, measurements

MAIN = Path(bootstrap.__file__).with_name("main.py")
Open = Callable[..., AppTest]


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Services on an empty database; no broker answers."""
    bootstrap.configure(
        settings_from({"FLASHPOINT_DATA": str(tmp_path), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)})
    )
    st.cache_resource.clear()
    made = bootstrap.services()
    yield made
    made.engine.dispose()


@pytest.fixture
def open_page(services: Services) -> Open:
    """Open a page by its file in ``app/views`` and the parameters of its address."""

    def go(view: str = "overview", **query: str | list[str]) -> AppTest:
        test = AppTest.from_file(str(MAIN), default_timeout=30)
        if view == "new_run":
            test.run()  # only after a run does Streamlit know a page whose path is not its file's name
        test.switch_page(f"views/{view}.py")
        for name, value in query.items():
            test.query_params[name] = value
        return test.run()

    return go


def said(test: AppTest) -> str:
    """All HTML that the page wrote, without its styles."""
    found = [str(getattr(element, "value", "")) for element in test.get("html")]
    return "\n".join(text for text in found if not text.lstrip().startswith("<style"))


def node(services: Services) -> None:
    services.store.register_node(NodeFacts(NODE, "AMD EPYC", 8, 2**34, {"cpu": "AMD EPYC"}, {"kernel": "6.1"}))


def queued(services: Services, key: str = "k", rounds: int = 13) -> int:
    """A queued run of the cases in ``tests.reports``."""
    node(services)
    cases = tuple(dict.fromkeys(m.case for m in measurements(rounds)))
    plan = RunPlan("cpu-fusion", 1, cases, ("1.10.2", "2.13.0"), "standard", rounds, 1, 300.0)
    return services.store.submit(
        RequestSpec(("cpu-fusion",), None, plan.builds, NODE, "standard", key), [plan]
    ).run_ids[0]


def measured(
    services: Services, state: RunState = RunState.FINISHED, key: str = "k", rename: Callable[[str], str] = str
) -> int:
    """A run with the measurements of ``tests.reports``, ended or still running; ``rename`` changes the reasons."""
    store, run_id = services.store, queued(services, key)
    claim = store.claim(NODE, "cpu", "w1", lease_s=3600)
    assert claim is not None and claim.run_id == run_id
    for position, (label, spec) in enumerate(((BASELINE, "1.10.2"), (CONTENDER, "2.13.0"))):
        facts = BuildFacts(label, spec, spec, "release", f"{position}abcdef", "cpu")
        build = store.record_build(facts)
        made = EnvironmentFacts(
            f"e{position}", build, NODE, spec, ("3.9.18", "3.11.9")[position], EnvironmentState.READY, "", {}, 10**9
        )
        store.bind_build(run_id, claim.token, position, build, store.record_environment(made))
    store.set_state(run_id, claim.token, RunState.RUNNING)
    store.save_measurements(run_id, claim.token, [_record(m, rename) for m in measurements()])
    store.log(run_id, claim.token, ["round 1 starts", rename("a line of the log")])
    store.set_progress(run_id, claim.token, Progress("measuring", "", "", 13, 13, 0, 7, 2, 2))
    if state is not RunState.RUNNING:
        store.finish(run_id, claim.token, state, rename("no space left") if state is RunState.FAILED else "")
    return run_id


def _record(m: MeasurementView, rename: Callable[[str], str]) -> MeasurementRecord:
    summary = summarise(m.sample) if m.sample else None
    bare = MeasurementRecord(
        position=0 if m.build == BASELINE else 1,
        case=m.case,
        variant=m.variant,
        metric=m.metric,
        outcome=m.outcome,
        reason=rename(m.reason) if m.outcome is not Outcome.OK else "",
        value=summary.median if summary else None,
        sample=m.sample,
    )
    return replace(bare, ci_low=summary.ci_low, ci_high=summary.ci_high, spread=summary.spread) if summary else bare
