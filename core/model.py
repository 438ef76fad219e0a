"""The words of Flashpoint as frozen dataclasses; these cross the layers, table rows do not.

Times are aware ``datetime`` in UTC. Durations and values of the metric ``time`` are seconds (float).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class RunState(StrEnum):
    """The states of a run. The last four are final."""

    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def final(self) -> bool:
        return self in (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED, RunState.LOST)


class Outcome(StrEnum):
    """What became of one measurement; only ``ok`` has numbers."""

    OK = "ok"
    SKIPPED = "skipped"
    UNSUPPORTED = "unsupported"
    MISMATCH = "mismatch"
    FAILED = "failed"
    TIMED_OUT = "timed out"


class Verdict(StrEnum):
    """The judgement of a comparison."""

    SLOWER = "slower"
    FASTER = "faster"
    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    UNSURE = "unsure"


@dataclass(frozen=True)
class Preset:
    """How long a run measures and how sure a verdict must be.

    ``alpha`` is the two-sided error level, ``margin`` the relative equivalence margin, ``rounds`` the number of rounds.
    """

    name: str
    alpha: float
    margin: float
    rounds: int
    sentence: str


PRESETS: dict[str, Preset] = {
    "quick": Preset("quick", 0.05, 0.10, 8, "Changes of 10 % and more, in two to four minutes a suite."),
    "standard": Preset("standard", 0.01, 0.03, 13, "Changes of 3 %, about ten minutes a suite."),
    "thorough": Preset("thorough", 0.001, 0.015, 22, "Changes of 1.5 %, half an hour a suite and more."),
}


@dataclass(frozen=True)
class CaseInfo:
    """One case of the catalog: ``id`` is ``suite/benchmark[axis=value,...]``."""

    id: str
    suite: str
    benchmark: str
    axes: dict[str, str | int | float | bool]
    variants: tuple[str, ...]
    quick: bool  # measured by the preset quick
    reference: str = ""  # the variant that the others must agree with


@dataclass(frozen=True)
class SuiteInfo:
    """One suite of the catalog."""

    name: str
    question: str
    revision: int
    reference: str
    needs: str  # in words: "cpu", "cuda, torch >= 1.10"
    device: str  # "cpu" | "cuda" | "any"
    torch: str  # a version range, "" when any
    cases: tuple[CaseInfo, ...]
    child_seconds: float = 0.4  # what one child typically takes in a round


@dataclass(frozen=True)
class RequestSpec:
    """What a person asked for, after expansion. ``builds`` holds canonical specs, the baseline first."""

    suites: tuple[str, ...]
    case_glob: str | None
    builds: tuple[str, ...]
    node: str
    preset: str
    key: str  # the same key twice is one request


@dataclass(frozen=True)
class RunPlan:
    """What one run measures: some cases of one suite on one node, all builds (baseline first)."""

    suite: str
    revision: int
    cases: tuple[str, ...]
    builds: tuple[str, ...]
    preset: str
    rounds: int
    seed: int
    estimate_s: float
    device: str = "cpu"


@dataclass(frozen=True)
class Progress:
    """Where a live run is; written by the worker as it goes, shown by the page."""

    phase: str = ""  # one of: environments, measuring, storing, ""
    detail: str = ""  # a sentence: "Installing torch 1.10.2"
    case: str = ""
    round: int = 0  # rounds done
    rounds: int = 0  # rounds in all
    cases_done: int = 0  # of the present round
    cases: int = 0
    environments_ready: int = 0
    environments: int = 0
    seconds_left: float | None = None


@dataclass(frozen=True)
class NodeView:
    id: int
    name: str
    cpu: str
    threads: int
    memory_bytes: int
    devices: tuple[str, ...]
    versions: dict[str, str]  # kernel, driver, python, flashpoint
    fingerprint: str
    heartbeat_at: datetime | None
    alive: bool  # heard within the last 45 s
    running: int | None  # the id of its live run


@dataclass(frozen=True)
class BuildView:
    """One Build with its environments on disk; ``label`` is what pages and charts call it (``2.13.0+cpu``)."""

    id: int
    label: str
    spec: str
    channel: str
    git_revision: str
    flavour: str  # cpu, cu118, ...
    python: str
    environment: str  # name of the environment, "" when none is on disk
    state: str  # ready | removed | failed
    size_bytes: int
    details: dict[str, str]
    created_at: datetime
    last_measured_at: datetime | None


@dataclass(frozen=True)
class LogLine:
    at: datetime
    text: str


@dataclass(frozen=True)
class RunView:
    """One run as pages and commands show it. ``builds`` are labels in plan order, the baseline first."""

    id: int
    request_id: int
    plan: RunPlan
    node: str
    state: RunState
    reason: str
    progress: Progress
    builds: tuple[str, ...]
    attempt: int
    cancel_requested: bool
    queued_at: datetime
    prepared_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    heartbeat_at: datetime | None
    lease_until: datetime | None
    position: int | None  # place in the node's queue, 1 = next, None when not queued


@dataclass(frozen=True)
class Sample:
    """All raw values of one measurement: one tuple of turn values per round, in turn order.

    ``rounds[i]`` belongs to round number ``numbers[i]``; values are in the metric's unit.
    """

    numbers: tuple[int, ...]
    rounds: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class MeasurementView:
    """What one run says about one case, variant, build and metric."""

    id: int
    run_id: int
    case: str
    suite: str
    revision: int
    variant: str
    metric: str
    unit: str
    build: str  # label
    node: str
    outcome: Outcome
    reason: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int  # rounds
    samples: int  # raw values
    evidence: dict[str, str]
    measured_at: datetime
    sample: Sample | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ComparisonView:
    """Contender against baseline for one case, variant and metric, with both raw values.

    When either side has no number, ``ratio`` and what follows are None, ``verdict`` is None and ``outcome`` and
    ``reason`` say why. ``paired`` is False for the weaker kind (different runs).
    """

    case: str
    suite: str
    variant: str
    reference: bool  # the variant is the suite's reference variant
    metric: str
    unit: str
    better: str  # lower | higher
    baseline: str
    contender: str
    baseline_value: float | None
    contender_value: float | None
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    verdict: Verdict | None
    outcome: str  # ok, an Outcome value, or "not run"
    reason: str
    paired: bool
    processes: int  # rounds
    samples: int
    run_id: int | None


@dataclass(frozen=True)
class EffectView:
    """A variant against the reference variant of the same build: what the feature gains (ratio variant / reference)."""

    case: str
    suite: str
    variant: str
    reference: str
    build: str
    metric: str
    unit: str
    reference_value: float | None
    variant_value: float | None
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    verdict: Verdict | None
    outcome: str
    reason: str
    run_id: int | None


@dataclass(frozen=True)
class Geomean:
    """Geometric mean of the ratios over the cases that have one; ``measured`` of ``cases``."""

    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    measured: int
    cases: int


@dataclass(frozen=True)
class Report:
    """Everything known about one pair of builds on one node: what Compare shows and ``flashpoint compare`` prints."""

    baseline: str
    contender: str
    node: str
    node_cpu: str
    preset: str
    margin: float
    alpha: float
    rounds: int
    paired: bool
    comparisons: tuple[ComparisonView, ...]  # metric time and others, sorted by verdict then p
    effects: tuple[EffectView, ...]
    measurements: tuple[MeasurementView, ...]
    geomean: Geomean  # of metric time
    runs: tuple[int, ...]
    measured_from: datetime | None
    measured_to: datetime | None
