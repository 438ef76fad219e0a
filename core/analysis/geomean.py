"""The geometric mean of ratios over cases, with an interval from the rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np

from core.analysis.sides import Judged
from core.model import Geomean

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; the normal one from there on is 2 % smaller.
T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def geomean(rows: Sequence[Judged]) -> Geomean:
    """Over the rows that have a ratio; ``measured`` of ``cases`` rows have one.

    The interval says how well the mean of *these* cases is known, not how other cases would differ. Cases of one
    round share their processes, and with them the processes' bias, so the round stays the unit: within a run the
    deviations of all its cases are averaged by round, their standard error over rounds is the run's, and independent
    runs are added by their numbers of cases. Student's t with the degrees of freedom of the shortest run. None when a
    row is unpaired or a run has fewer than three rounds.
    """
    counted = [row for row in rows if row.ratio is not None]
    if not counted:
        return Geomean(None, None, None, 0, len(rows))
    mean = sum(log(row.ratio) for row in counted if row.ratio) / len(counted)
    low = high = None
    by_run: dict[int | None, list[Judged]] = defaultdict(list)
    for row in counted:
        by_run[row.run_id].append(row)
    runs = [_standard_error(group) for group in by_run.values()]
    if all(row.paired and row.shifts for row in counted) and all(rounds >= 3 for _, rounds in runs):
        shares = [len(group) / len(counted) for group in by_run.values()]
        error = sqrt(sum((share * one) ** 2 for share, (one, _) in zip(shares, runs, strict=True)))
        freedom = min(rounds for _, rounds in runs) - 1
        reach = T95[min(freedom, len(T95)) - 1] * error
        low, high = exp(mean - reach), exp(mean + reach)
    return Geomean(exp(mean), low, high, len(counted), len(rows))


def _standard_error(group: Sequence[Judged]) -> tuple[float, int]:
    """Standard error of the group's mean log ratio, and the number of rounds it comes from."""
    by_round: dict[int, list[float]] = defaultdict(list)
    for row in group:
        middle = float(np.median(list(row.shifts.values()))) if row.shifts else 0.0
        for number, shift in row.shifts.items():
            by_round[number].append(shift - middle)
    means = [sum(values) / len(values) for values in by_round.values()]
    if len(means) < 2:
        return 0.0, len(means)
    return float(np.std(means, ddof=1)) / sqrt(len(means)), len(means)
