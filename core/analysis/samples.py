"""Raw samples to one value per round, and a measurement's summary.

A round's value is the median of its turns, or for two sides that took turns the median log ratio of adjacent turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from core.model import Sample

Floats = NDArray[np.float64]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Summary:
    """``n`` rounds, ``samples`` raw values; ``median`` of the rounds' medians with its 95 % interval, and their spread.

    All in the metric's unit. The interval is None below six rounds, the spread below two. ``spread`` is the robust
    standard deviation, 1.4826 times the median absolute deviation.
    """

    n: int
    samples: int
    median: float
    ci_low: float | None
    ci_high: float | None
    spread: float | None


def round_medians(sample: Sample) -> Floats:
    """The median of each round that has a turn, in round order; shape ``(rounds,)``."""
    return np.array([np.median(turns) for turns in sample.rounds if turns], dtype=np.float64)


def summarise(sample: Sample) -> Summary:
    """Summary of one measurement; ValueError when it holds no value or one that is not finite."""
    medians = np.sort(round_medians(sample))
    if not len(medians):
        raise ValueError("The sample holds no value; a measurement without numbers has an outcome instead.")
    if not all(np.isfinite(turns).all() for turns in sample.rounds):
        raise ValueError("The sample holds a value that is not a finite number.")
    n, median = len(medians), float(np.median(medians))
    cut = _median_cut(n)
    return Summary(
        n=n,
        samples=sum(len(turns) for turns in sample.rounds),
        median=median,
        ci_low=None if cut is None else float(medians[cut]),
        ci_high=None if cut is None else float(medians[n - 1 - cut]),
        spread=None if n < 2 else 1.4826 * float(np.median(np.abs(medians - median))),
    )


def paired_rounds(baseline: Sample, contender: Sample) -> tuple[Floats, Floats]:
    """One value a side for each round that both have; two arrays of shape ``(shared rounds,)``, possibly empty.

    Turn i of both sides happened one after the other, so drift cancels in their ratio: the round's ratio is the
    exponential of the median over turns of ``log(contender / baseline)``. The first value is the median of the
    baseline's turns, the second that times the ratio. Where one side has more turns, those without a partner are left
    out.

    Raises ValueError when a turn is not a positive, finite number.
    """
    theirs = dict(zip(contender.numbers, contender.rounds, strict=True))
    left, right = [], []
    for number, turns in zip(baseline.numbers, baseline.rounds, strict=True):
        shared = min(len(turns), len(theirs.get(number, ())))
        if not shared:
            continue
        b, c = np.asarray(turns[:shared], dtype=np.float64), np.asarray(theirs[number][:shared], dtype=np.float64)
        both = np.concatenate([b, c])
        if not (np.isfinite(both) & (both > 0)).all():
            raise ValueError(f"Round {number} holds a value that is not a positive, finite number.")
        middle = float(np.median(b))
        left.append(middle)
        right.append(middle * float(np.exp(np.median(np.log(c) - np.log(b)))))
    return np.array(left, dtype=np.float64), np.array(right, dtype=np.float64)


@lru_cache(maxsize=256)
def _median_cut(n: int) -> int | None:
    """How many of ``n`` ordered values to leave out at each end for a 95 % interval of their median.

    Order statistics: the tail of a binomial with probability one half stays below 2.5 % on each side.
    """
    left_out, tail = -1, 0
    while (tail := tail + comb(n, left_out + 1)) <= (1 - CONFIDENCE) / 2 * 2**n:
        left_out += 1
    return left_out if left_out >= 0 else None
