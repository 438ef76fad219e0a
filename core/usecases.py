"""What people do: plan and submit a request. Verbs over the catalog, the store and the queries, which are handed in."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.catalog import catalog, choose_cases, choose_suites, references
from core.errors import UserError
from core.model import PRESETS, BuildView, CaseInfo, NodeView, Preset, RequestSpec, RunPlan, SuiteInfo
from core.versions import parse_spec, require_supported

__all__ = ["Submission", "SubmitInput", "catalog", "estimate", "plan", "references", "submit"]

IMPORT_S = 3.5  # a fresh process of each of two builds, side by side
MAX_BUILDS = 12


@dataclass(frozen=True)
class SubmitInput:
    """What a person gave. ``builds`` are specs; without ``baseline`` the first is it. ``node`` None means the only
    one.
    """

    suites: tuple[str, ...]
    case_glob: str | None
    builds: tuple[str, ...]
    baseline: str | None = None
    node: str | None = None
    preset: str = "quick"
    key: str | None = None


@dataclass(frozen=True)
class Planned:
    """What would happen: the runs, how long measuring takes in seconds, and in ``notes`` what comes on top."""

    spec: RequestSpec
    runs: tuple[RunPlan, ...]
    cases: int
    estimate_s: float
    preset: Preset
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Submission:
    """The request and its runs; ``created`` is False when the key was known already; ``notes`` as in the plan."""

    request_id: int
    run_ids: tuple[int, ...]
    created: bool
    notes: tuple[str, ...] = ()


class Inventory(Protocol):
    """The part of the queries that a plan needs."""

    def nodes(self) -> Sequence[NodeView]: ...

    def build(self, label_or_spec: str, node: str | None = None) -> BuildView | None: ...


class Requests(Protocol):
    """The part of the store that a submission needs."""

    def submit(self, spec: RequestSpec, plans: Sequence[RunPlan]) -> tuple[int, tuple[int, ...], bool]: ...


def plan(queries: Inventory, suites: Sequence[SuiteInfo], given: SubmitInput) -> Planned:
    """Expands and checks what a person gave, writing nothing. Raises UserError with one sentence."""
    if given.preset not in PRESETS:
        raise UserError(f"There is no preset {given.preset[:40]!r}; choose {', '.join(PRESETS)}.")
    preset = PRESETS[given.preset]
    chosen = choose_suites(suites, given.suites)
    cases = choose_cases(chosen, given.case_glob, preset.name)
    builds = _builds(given)
    node = _node(given.node, queries.nodes())
    seed = random.SystemRandom().randrange(2**31)
    runs = tuple(
        _run(suite, cases[suite.name], builds, preset, seed + number)
        for number, suite in enumerate(chosen)
        if suite.name in cases
    )
    spec = RequestSpec(
        suites=tuple(run.suite for run in runs),
        case_glob=given.case_glob,
        builds=builds,
        node=node.name,
        preset=preset.name,
        key=given.key or uuid.uuid4().hex,
    )
    total = sum(run.estimate_s for run in runs)
    left_out = [
        f"{suite.name} has no case that matches {str(given.case_glob)[:120]!r}, so it is left out."
        for suite in chosen
        if suite.name not in cases
    ]
    notes = (*left_out, *_notes(queries, builds, node.name))
    return Planned(spec, runs, sum(len(run.cases) for run in runs), total, preset, notes)


def submit(store: Requests, queries: Inventory, suites: Sequence[SuiteInfo], given: SubmitInput) -> Submission:
    """Queues a request in one transaction; the same key again answers with the first one's runs. Raises UserError."""
    planned = plan(queries, suites, given)
    return Submission(*store.submit(planned.spec, planned.runs), notes=planned.notes)


def estimate(cases: Sequence[CaseInfo], builds: int, rounds: int, child_seconds: float) -> float:
    """Seconds that measuring takes: every round imports torch once a build and gives each child its turns."""
    children = sum(len(case.variants) for case in cases) * builds
    return rounds * (IMPORT_S * max(1.0, builds / 2) + child_seconds * children)


def _run(suite: SuiteInfo, cases: tuple[CaseInfo, ...], builds: tuple[str, ...], preset: Preset, seed: int) -> RunPlan:
    return RunPlan(
        suite=suite.name,
        revision=suite.revision,
        cases=tuple(case.id for case in cases),
        builds=builds,
        preset=preset.name,
        rounds=preset.rounds,
        seed=seed,
        estimate_s=estimate(cases, len(builds), preset.rounds, suite.child_seconds),
    )


def _builds(given: SubmitInput) -> tuple[str, ...]:
    """Canonical specs, the baseline first."""
    if not given.builds:
        raise UserError("No build is chosen; name at least one, such as --build 2.13.0.")
    chosen = [str(require_supported(parse_spec(text))) for text in given.builds]
    if len(set(chosen)) != len(chosen):
        twice = next(build for build in chosen if chosen.count(build) > 1)
        raise UserError(f"The build {twice[:80]!r} is named twice; name two different builds.")
    first = [str(require_supported(parse_spec(given.baseline)))] if given.baseline else []
    specs = list(dict.fromkeys(first + chosen))
    if len(specs) > MAX_BUILDS:
        raise UserError(f"{len(specs)} builds are too many for one run; choose at most {MAX_BUILDS}.")
    return tuple(specs)


def _notes(queries: Inventory, builds: Sequence[str], node: str) -> tuple[str, ...]:
    """What a person should know before queueing: environments that must be built first."""
    notes = []
    for build in builds:
        known = queries.build(build, node)
        if known is None or known.state != "ready":
            notes.append(f"{build} is not installed on {node} yet; if it exists, installing it takes about a minute.")
    return tuple(notes)


def _node(name: str | None, nodes: Sequence[NodeView]) -> NodeView:
    names = ", ".join(node.name for node in nodes)
    if not nodes:
        raise UserError(
            "No worker has reported; start one with `flashpoint worker` or everything with `flashpoint up`."
        )
    if name is None:
        if len(nodes) > 1:
            raise UserError(f"There are {len(nodes)} nodes; choose one with --node: {names}.")
        return nodes[0]
    found = next((node for node in nodes if node.name == name), None)
    if found is None:
        raise UserError(f"There is no node {name[:80]!r}; there are {names}.")
    return found
