"""What is handed to the store and what it answers, as frozen dataclasses that cannot be wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench_suites.kit.metrics import METRICS
from core.identity import node_fingerprint
from core.model import Outcome, RunPlan, RunState, Sample
from db.tables import EnvironmentState

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
TEXT_LIMIT = 4000  # characters of one reason, log line or piece of evidence


@dataclass(frozen=True)
class NodeFacts:
    """A machine as it describes itself. ``devices`` maps ``cpu``, ``cuda:0``, ... to models; ``versions`` is free."""

    name: str
    cpu: str
    threads: int
    memory_bytes: int
    devices: Mapping[str, str]
    versions: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        return node_fingerprint(self.cpu, self.threads, self.memory_bytes, self.devices)


@dataclass(frozen=True)
class BuildFacts:
    """An exact PyTorch as its probe found it; ``label`` is its unique name, ``2.13.0+cpu``."""

    label: str
    version: str
    spec: str
    channel: str
    git_revision: str
    flavour: str
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EnvironmentFacts:
    """A virtual environment on a node; ``name`` is unique there, ``lock`` lists its packages, ``probe`` holds JSON."""

    name: str
    build_id: int
    node: str
    spec: str
    python: str
    state: EnvironmentState
    lock: str
    probe: Mapping[str, Any]
    size_bytes: int


@dataclass(frozen=True)
class MeasurementRecord:
    """What a run found for one case, variant, build (its ``position`` in the plan) and metric.

    ``value``, ``ci_low``, ``ci_high`` and ``spread`` are in the metric's unit; a record that is not ``ok`` has
    none, but may keep the raw values it got to. Raises ValueError for an unknown metric, a number that is not finite,
    an interval the wrong way round, or a sample whose rounds are numbered twice: what cannot be true is not stored.
    """

    position: int
    case: str
    variant: str
    metric: str
    outcome: Outcome
    reason: str = ""
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    spread: float | None = None
    sample: Sample | None = field(default=None, repr=False)
    evidence: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        what = f"{self.case} {self.variant} {self.metric} of build {self.position}"
        numbers = (self.value, self.ci_low, self.ci_high, self.spread)
        if self.metric not in METRICS:
            raise ValueError(f"{what}: the metric is not in the table of metrics")
        if self.outcome is Outcome.OK and self.value is None:
            raise ValueError(f"{what}: it is ok but has no value")
        if self.outcome is not Outcome.OK and any(number is not None for number in numbers):
            raise ValueError(f"{what}: it is {self.outcome} but has numbers")
        if not all(number is None or math.isfinite(number) for number in numbers):
            raise ValueError(f"{what}: {numbers} are not all finite")
        if self.ci_low is not None and self.ci_high is not None and self.ci_low > self.ci_high:
            raise ValueError(f"{what}: the interval {self.ci_low} to {self.ci_high} is the wrong way round")
        if self.sample is not None:
            _check_sample(self.sample, what)

    @property
    def rounds(self) -> int:
        return len(self.sample.rounds) if self.sample else 0

    @property
    def values(self) -> int:
        """How many raw values there are."""
        return sum(len(turns) for turns in self.sample.rounds) if self.sample else 0


def _check_sample(sample: Sample, what: str) -> None:
    if len(sample.numbers) != len(sample.rounds) or len(set(sample.numbers)) != len(sample.numbers):
        raise ValueError(f"{what}: its rounds need one number each, all different")
    if not all(math.isfinite(value) for turns in sample.rounds for value in turns):
        raise ValueError(f"{what}: a raw value is not finite")


class Submitted(NamedTuple):
    """The request and its runs; ``created`` is False when the key was known and nothing was written."""

    request_id: int
    run_ids: tuple[int, ...]
    created: bool


@dataclass(frozen=True)
class Claim:
    """A run that the caller now holds; every write about it carries ``token``."""

    run_id: int
    token: int
    plan: RunPlan
    attempt: int


@dataclass(frozen=True)
class Renewal:
    """``held`` False means: somebody else may have the run; kill everything and write nothing."""

    held: bool
    cancel_requested: bool


@dataclass(frozen=True)
class Reaped:
    """A run whose lease ran out, and what became of it: queued, cancelled or lost."""

    run_id: int
    state: RunState
    reason: str


def clean(text: str) -> str:
    """Text that both databases store and every page, picture and terminal can show, cut where output ran away.

    Lone surrogates become ``?``; control characters but tab and newline, and marks that turn the direction of writing,
    become U+FFFD: a terminal would obey them, a picture's XML may not hold them.
    """
    plain = _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n")).encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= TEXT_LIMIT else plain[: TEXT_LIMIT - 1] + "…"


def clean_json(value: Any) -> Any:
    """The same for all text inside a JSON value; mappings become dicts, sequences lists, NaN and infinity null."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_json(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
