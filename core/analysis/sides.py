"""Two sides of a comparison, found among measurements and judged: a ratio where both have numbers, else why not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, isfinite, log, log1p

import numpy as np
from numpy.typing import NDArray

from bench_suites.kit.metrics import METRICS
from core.analysis.compare import compare, log_ratio
from core.analysis.samples import paired_rounds, round_medians
from core.model import MeasurementView, Outcome, Sample, Verdict

Floats = NDArray[np.float64]
Side = tuple[str, str, str]  # case, variant, build

NOT_RUN = "not run"


@dataclass(frozen=True)
class Judged:
    """What two measurements say about each other; ``shifts`` are the log ratios by round of a paired one."""

    left: float | None
    right: float | None
    outcome: str
    reason: str
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    verdict: Verdict | None = None
    paired: bool = True
    rounds: int = 0
    samples: int = 0
    run_id: int | None = None
    shifts: dict[int, float] = field(default_factory=dict)


class Table:
    """Measurements by side and metric, the newest last."""

    def __init__(self, measurements: Sequence[MeasurementView]) -> None:
        self._by_key: dict[tuple[Side, str], list[MeasurementView]] = defaultdict(list)
        self._by_side: dict[Side, list[MeasurementView]] = defaultdict(list)
        self._suites: dict[str, str] = {}
        self._rows: dict[tuple[str, str, str], None] = {}
        for m in sorted(measurements, key=lambda m: (m.measured_at, m.id)):
            side = (m.case, m.variant, m.build)
            self._by_key[side, m.metric].append(m)
            self._by_side[side].append(m)
            self._suites[m.case] = m.suite
        named = {m.case for m in measurements if m.variant}
        for m in measurements:
            # A case that failed before its variants were known has none, but it stays in every count.
            if m.variant or m.case not in named:
                known = METRICS.get(m.metric, METRICS["time"] if m.outcome is not Outcome.OK else None)
                if known is not None and known.kind != "note":
                    self._rows[m.case, m.variant, known.name] = None
        self._cases = {(case, build) for case, _, build in self._by_side}

    def rows(self) -> list[tuple[str, str, str]]:
        """Case, variant and metric of everything that can be judged, in the order given."""
        return list(self._rows)

    def variants(self) -> set[tuple[str, str]]:
        return {(case, variant) for case, variant, _ in self._by_side}

    def suite(self, case: str) -> str:
        return self._suites[case]

    def has(self, case: str, build: str) -> bool:
        return (case, build) in self._cases

    def candidates(self, side: Side, metric: str) -> list[MeasurementView]:
        """Measurements of that metric; else those that say why the variant, or the whole case, gave no number."""
        if found := self._by_key.get((side, metric)):
            return found
        case, _, build = side
        for place in (side, (case, "", build)):
            if without := [m for m in self._by_side.get(place, ()) if m.outcome is not Outcome.OK]:
                return without
        return []


def judge(table: Table, left: Side, right: Side, metric: str, alpha: float, margin: float) -> Judged:
    """Right against left in one metric; ValueError when an ok measurement came without its sample."""
    lefts, rights = table.candidates(left, metric), table.candidates(right, metric)
    # A run that measured both is paired; among several the newest. Else the newest of each, the weaker kind.
    both = {m.run_id for m in lefts} & {m.run_id for m in rights}
    ok = {m.run_id for m in lefts if m.outcome is Outcome.OK} & {m.run_id for m in rights if m.outcome is Outcome.OK}
    newest = [m.run_id for m in rights if m.run_id in (ok or both)]
    if newest:
        lefts, rights = ([m for m in side if m.run_id == newest[-1]] for side in (lefts, rights))
    a, b = (_preferred(side) for side in (lefts, rights))
    if a is None or b is None or a.outcome is not Outcome.OK or b.outcome is not Outcome.OK:
        return _without(a, b, left, right)
    paired = a.run_id == b.run_id
    base = Judged(
        left=a.value,
        right=b.value,
        outcome=str(Outcome.OK),
        reason="",
        paired=paired,
        samples=a.samples + b.samples,
        run_id=b.run_id if paired else None,
    )
    try:
        if METRICS[metric].kind == "exact":
            return _exact(base, a, b, metric, margin)
        return _timed(base, _sample(a), _sample(b), metric, alpha, margin)
    except _Unusable as error:
        return replace(base, outcome=str(Outcome.FAILED), reason=str(error))


class _Unusable(Exception):
    """A stored sample holds what no measurement of this metric can be."""


def _preferred(side: list[MeasurementView]) -> MeasurementView | None:
    """The newest with numbers, else the newest."""
    ok = [m for m in side if m.outcome is Outcome.OK]
    return ok[-1] if ok else side[-1] if side else None


def _sample(m: MeasurementView) -> Sample:
    if m.sample is None:
        raise ValueError(f"Measurement {m.id} of {m.case} was loaded without its sample.")
    return m.sample


def _without(a: MeasurementView | None, b: MeasurementView | None, left: Side, right: Side) -> Judged:
    """The outcome and reason of the side without a number; when neither has one, the right side's, with both
    reasons.
    """
    sides = [(m, side) for m, side in ((a, left), (b, right)) if m is None or m.outcome is not Outcome.OK]
    telling = [(m, side) for m, side in sides if m is not None]
    if not telling or (len(sides) == 1 and sides[0][0] is None):
        case, variant, build = sides[-1][1]
        outcome, reason = NOT_RUN, f"{build} has no measurement of {variant or case} here."
    else:
        outcome = str(telling[-1][0].outcome)
        reason = telling[-1][0].reason
        if len({m.reason for m, _ in telling}) > 1:
            named = 2 if left[2] != right[2] else 1  # what tells the sides apart: the build, else the variant
            reason = " ".join(f"{side[named]}: {m.reason}" for m, side in telling)
    values = [m.value if m is not None and m.outcome is Outcome.OK else None for m in (a, b)]
    present = [m for m in (a, b) if m is not None]
    return Judged(
        left=values[0],
        right=values[1],
        outcome=outcome,
        reason=reason,
        samples=sum(m.samples for m in present),
        run_id=present[-1].run_id if present else None,
    )


def _timed(base: Judged, a: Sample, b: Sample, metric: str, alpha: float, margin: float) -> Judged:
    shifts: dict[int, float] = {}
    try:
        left, right = paired_rounds(a, b) if base.paired else (np.empty(0), np.empty(0))
        if base.paired and len(left):
            shifts = dict(zip(_shared(a, b), log_ratio(left, right).tolist(), strict=True))
        else:  # one run whose sides share no round is no better than two runs
            base = replace(base, paired=False)
            left, right = round_medians(a), round_medians(b)
        found = compare(left, right, paired=base.paired, alpha=alpha, margin=margin)
    except ValueError as error:
        raise _Unusable(str(error)) from error
    bounded = isfinite(found.ci_high)
    return replace(
        base,
        ratio=found.ratio,
        ci_low=found.ci_low if bounded else None,
        ci_high=found.ci_high if bounded else None,
        p_value=found.p_value,
        verdict=worded(found.verdict, metric),
        rounds=found.rounds,
        shifts=shifts,
    )


def _shared(a: Sample, b: Sample) -> list[int]:
    full = {number for number, turns in zip(b.numbers, b.rounds, strict=True) if turns}
    return [number for number, turns in zip(a.numbers, a.rounds, strict=True) if turns and number in full]


def _exact(base: Judged, a: MeasurementView, b: MeasurementView, metric: str, margin: float) -> Judged:
    """One round says all: the same inside the margin. A ratio with zero does not exist; its verdict does."""
    left, right = a.value, b.value
    if left is None or right is None or not (isfinite(left) and isfinite(right)) or left < 0 or right < 0:
        raise _Unusable(f"{left!r} against {right!r} cannot be compared; both must be finite and not negative.")
    if left == right:
        shift = 0.0
    else:
        shift = log(right) - log(left) if left > 0 and right > 0 else inf if right > left else -inf
    ratio = exp(shift) if isfinite(shift) else None
    verdict = Verdict.SAME if abs(shift) <= log1p(margin) else Verdict.SLOWER if shift > 0 else Verdict.FASTER
    return replace(
        base,
        ratio=ratio,
        ci_low=ratio,
        ci_high=ratio,
        verdict=worded(verdict, metric),
        rounds=min(a.n, b.n),
    )


def worded(verdict: Verdict, metric: str) -> Verdict:
    """The word for this metric of a verdict that says slower for a ratio above 1: times are slower, the rest worse."""
    if verdict in (Verdict.SAME, Verdict.UNSURE):
        return verdict
    row = METRICS[metric]
    if row.unit == "s" and row.better == "lower":
        return verdict
    return Verdict.WORSE if (verdict is Verdict.SLOWER) == (row.better == "lower") else Verdict.BETTER
