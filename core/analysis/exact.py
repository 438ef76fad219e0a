"""Exact null distributions of rank statistics, with ties, by dynamic programming.

Ranks are midranks, so they are whole or half numbers; everything here counts in *doubled* ranks, which are whole.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ranks = NDArray[np.int64]


def doubled_ranks(values: Floats) -> Ranks:
    """Midranks of ``values`` (shape ``(n,)``), doubled."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    below = np.cumsum(counts) - counts
    doubled: Ranks = (2 * below + counts + 1)[place].astype(np.int64)
    return doubled


def signed_rank_null(ranks: Ranks) -> Floats:
    """P(W = w) of the sum W of those doubled ranks whose fair coin shows heads; shape ``(sum(ranks) + 1,)``.

    Exact for up to 53 ranks, where a float64 holds every count; beyond that its relative error stays below 1e-13.
    """
    null = np.zeros(int(ranks.sum()) + 1)
    null[0] = 1.0
    top = 0
    for rank in ranks.tolist():
        shifted = null[: top + 1].copy()
        null[: top + 1] *= 0.5
        null[rank : rank + top + 1] += 0.5 * shifted
        top += rank
    return null


def rank_sum_null(ranks: Ranks, chosen: int) -> Floats:
    """P(R = r) of the sum R of ``chosen`` of the doubled ranks, drawn without return; shape ``(sum(ranks) + 1,)``."""
    total = int(ranks.sum())
    ways = np.zeros((chosen + 1, total + 1))
    ways[0, 0] = 1.0
    for rank in ranks.tolist():
        ways[1:, rank:] += ways[:-1, : total + 1 - rank].copy()
    null: Floats = ways[chosen] / comb(len(ranks), chosen)
    return null


@lru_cache(maxsize=256)
def signed_rank_cut(n: int, level: float) -> int | None:
    """How many Walsh averages to leave out at each end for an interval of confidence ``1 - level``.

    None when ``n`` rounds are too few for that confidence (fewer than six at 95 %). Hollander & Wolfe, *Nonparametric
    Statistical Methods*, section 3.3; exact without ties, on the safe side with them.
    """
    null = signed_rank_null(2 * np.arange(1, n + 1, dtype=np.int64))[::2]
    return _cut(null, level)


@lru_cache(maxsize=256)
def rank_sum_cut(n: int, m: int, level: float) -> int | None:
    """The same for the ``n * m`` differences between two samples (Hollander & Wolfe, section 4.3)."""
    null = rank_sum_null(2 * np.arange(1, n + m + 1, dtype=np.int64), m)[::2]
    return _cut(null[m * (m + 1) // 2 :], level)


def _cut(null: Floats, level: float) -> int | None:
    below = np.cumsum(null) <= level / 2 * (1 + 1e-12)
    count = int(below.sum()) if below[0] else 0
    return count - 1 if count else None
