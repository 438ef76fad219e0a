"""The one function that decides a verdict: contender against baseline over rounds.

The round is the unit of independence; forks, turns and samples within a round are never passed in here as if they were.
A fixed number of rounds is judged; nothing here looks at the data to decide whether to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, inf, isfinite, log1p

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.analysis.exact import doubled_ranks, rank_sum_cut, rank_sum_null, signed_rank_cut, signed_rank_null
from core.model import Verdict

Floats = NDArray[np.float64]

CONFIDENCE = 0.95  # of every interval, whatever alpha the test uses
PAIRED_LIMIT = 500  # rounds; the exact distribution takes 0.1 s there
UNPAIRED_LIMIT = 100  # values a side; 1 s there
TIE = 12  # decimals of a log ratio: two that agree so far differ by rounding error only


@dataclass(frozen=True)
class Comparison:
    """Contender / baseline: ``ratio`` with its 95 % interval, two-sided ``p_value``, ``verdict``, number of ``rounds``.

    With too few rounds for a 95 % interval the interval is the trivial one, from 0 to infinity. ``rounds`` is the
    smaller side's where the sides are not paired.
    """

    ratio: float
    ci_low: float
    ci_high: float
    p_value: float
    verdict: Verdict
    rounds: int


def compare(
    baseline: Sequence[float] | ArrayLike,
    contender: Sequence[float] | ArrayLike,
    *,
    paired: bool,
    alpha: float,
    margin: float,
    minimum_effect: float = 0.005,
) -> Comparison:
    """Compare two sequences of one positive value per round, in the metric's unit.

    ``paired``: both have equal length and position i is the same round; the test is Wilcoxon's signed-rank over the
    log ratios (zeros by Pratt's method), the size the Hodges-Lehmann median of Walsh averages. Otherwise: Mann-Whitney
    and the median of all differences. All distributions are exact, with ties too.

    The verdict is *slower* (ratio above 1) or *faster* when p <= ``alpha`` and the ratio lies beyond
    ``minimum_effect``. That goes first: a significant shift is reported even where its whole interval lies inside the
    margin. *Same* when the interval lies inside ``[1 / (1 + margin), 1 + margin]``. Otherwise *unsure*, and always
    unsure with so few rounds that no data could reach ``alpha`` (2 / 2**n for n pairs). Where a metric is better when
    higher, the caller turns the words.

    Raises ValueError with one sentence for input that has no answer.
    """
    b, c = _checked("baseline", baseline), _checked("contender", contender)
    for name, value in (("alpha", alpha), ("margin", margin), ("minimum_effect", minimum_effect)):
        if not (isfinite(value) and value >= 0 and (name != "alpha" or 0 < value < 1)):
            raise ValueError(
                f"{name} is {value!r}; it must be {'between 0 and 1' if name == 'alpha' else 'at least 0'}."
            )
    if paired:
        shift, low, high, p, reach = _signed_rank(b, c)
    else:
        shift, low, high, p, reach = _rank_sum(b, c)
    if abs(shift) > 700:
        raise ValueError("Baseline and contender are too far apart to be a ratio; check the unit of both.")
    within = log1p(margin)
    if reach > alpha:
        verdict = Verdict.UNSURE
    elif p <= alpha and abs(shift) > log1p(minimum_effect):
        verdict = Verdict.SLOWER if shift > 0 else Verdict.FASTER
    elif -within <= low and high <= within:
        verdict = Verdict.SAME
    else:
        verdict = Verdict.UNSURE
    return Comparison(exp(shift), _exp(low), _exp(high), p, verdict, min(len(b), len(c)))


def _checked(name: str, values: Sequence[float] | ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"The {name} needs one value per round, but has the shape {array.shape}.")
    bad = array[~(np.isfinite(array) & (array > 0))]
    if len(bad):
        raise ValueError(f"The {name} holds {float(bad[0])!r}; every value must be a positive, finite number.")
    return array


def _exp(value: float) -> float:
    return exp(value) if value < 709 else inf


def log_ratio(b: Floats, c: Floats) -> Floats:
    """``log(c / b)``: exactly negated when the sides swap, exactly equal when both are scaled by a power of 2."""
    small, large = np.minimum(b, c), np.maximum(b, c)
    with np.errstate(over="ignore"):
        quotient = large / small
    size = np.where(np.isfinite(quotient), np.log(quotient), np.log(large) - np.log(small))
    return np.where(c >= b, size, -size)


def _signed_rank(b: Floats, c: Floats) -> tuple[float, float, float, float, float]:
    """Shift of the logs, its interval, p, and the smallest p that so many rounds can reach."""
    n = len(b)
    if n != len(c):
        raise ValueError(f"The baseline has {n} rounds and the contender {len(c)}; paired values need equal numbers.")
    if n > PAIRED_LIMIT:
        raise ValueError(f"{n} rounds are too many for an exact test; pass at most {PAIRED_LIMIT}.")
    d = log_ratio(b, c)
    steps = np.round(d, TIE)
    ranks = doubled_ranks(np.abs(steps))[steps != 0]  # Pratt: zeros are ranked first and then left out
    up = int(ranks[steps[steps != 0] > 0].sum())
    null = signed_rank_null(ranks)
    p = min(1.0, 2 * float(null[: min(up, int(ranks.sum()) - up) + 1].sum()))
    walsh = np.sort(((d[:, None] + d[None, :]) / 2)[np.triu_indices(n)])
    low, high = _interval(walsh, signed_rank_cut(n, 1 - CONFIDENCE))
    return float(np.median(walsh)), low, high, p, 2.0 ** (1 - n)


def _rank_sum(b: Floats, c: Floats) -> tuple[float, float, float, float, float]:
    n, m = len(b), len(c)
    if max(n, m) > UNPAIRED_LIMIT:
        raise ValueError(f"{max(n, m)} values a side are too many for an exact test; pass at most {UNPAIRED_LIMIT}.")
    differences = np.sort(log_ratio(np.repeat(b, m), np.tile(c, n)))
    ranks = doubled_ranks(np.concatenate([b, c]))
    wins = int(ranks[n:].sum()) - m * (m + 1)  # doubled U of the contender
    null = rank_sum_null(ranks, m)[m * (m + 1) :]  # index: doubled U
    p = min(1.0, 2 * min(float(null[: wins + 1].sum()), float(null[wins:].sum())))
    low, high = _interval(differences, rank_sum_cut(n, m, 1 - CONFIDENCE))
    return float(np.median(differences)), low, high, p, 2 / comb(n + m, m)


def _interval(ordered: Floats, cut: int | None) -> tuple[float, float]:
    if cut is None:
        return -inf, inf
    return float(ordered[cut]), float(ordered[len(ordered) - 1 - cut])
