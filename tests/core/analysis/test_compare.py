from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.analysis.compare import Comparison, compare
from core.model import Verdict

RULE = {"alpha": 0.05, "margin": 0.10}
OTHER_SIDE = {
    Verdict.SLOWER: Verdict.FASTER,
    Verdict.FASTER: Verdict.SLOWER,
    Verdict.SAME: Verdict.SAME,
    Verdict.UNSURE: Verdict.UNSURE,
}
# Coarse values make ties and zero differences common; fine ones make them rare.
coarse = st.integers(1, 12).map(float)
fine = st.floats(1e-7, 1e-3)


def pairs(low: int = 1, high: int = 14) -> st.SearchStrategy[list[tuple[float, float]]]:
    return st.one_of(
        st.lists(st.tuples(coarse, coarse), min_size=low, max_size=high),
        st.lists(st.tuples(fine, fine), min_size=low, max_size=high),
    )


@given(pairs(), st.booleans())
def test_swapping_the_sides_inverts_ratio_interval_and_verdict(rounds: list[tuple[float, float]], paired: bool) -> None:
    b, c = zip(*rounds, strict=True)
    there, back = compare(b, c, paired=paired, **RULE), compare(c, b, paired=paired, **RULE)
    assert there.ratio * back.ratio == pytest.approx(1)
    assert back.p_value == pytest.approx(there.p_value)
    assert back.verdict is OTHER_SIDE[there.verdict]
    if math.isfinite(there.ci_high):
        assert there.ci_low * back.ci_high == pytest.approx(1)


@given(pairs(), st.integers(-30, 30), st.booleans())
def test_scaling_both_sides_changes_nothing(rounds: list[tuple[float, float]], power: int, paired: bool) -> None:
    b, c = np.array(rounds).T
    one, other = compare(b, c, paired=paired, **RULE), compare(b * 2.0**power, c * 2.0**power, paired=paired, **RULE)
    assert one == other


@given(pairs(), st.booleans())
def test_the_interval_holds_the_ratio_and_p_is_a_probability(rounds: list[tuple[float, float]], paired: bool) -> None:
    b, c = zip(*rounds, strict=True)
    found = compare(b, c, paired=paired, **RULE)
    assert found.ci_low <= found.ratio <= found.ci_high
    assert 0 < found.p_value <= 1
    assert found.rounds == len(rounds)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(3, 20))
def test_p_agrees_with_scipy_where_nothing_is_tied(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    b, c = np.exp(rng.normal(0, 0.1, n)), np.exp(rng.normal(0.05, 0.1, n))
    expected = stats.wilcoxon(np.log(c) - np.log(b), method="exact").pvalue
    assert compare(b, c, paired=True, **RULE).p_value == pytest.approx(expected)
    longer = np.exp(rng.normal(0.05, 0.1, n + 3))
    expected = stats.mannwhitneyu(b, longer, method="exact").pvalue
    assert compare(b, longer, paired=False, **RULE).p_value == pytest.approx(expected)


@settings(max_examples=60)
@given(st.lists(st.tuples(coarse, coarse), min_size=1, max_size=9))
def test_p_with_ties_is_that_of_all_sign_patterns(rounds: list[tuple[float, float]]) -> None:
    b, c = np.array(rounds).T
    d = np.round(np.log(c / b), 12)
    ranks = stats.rankdata(np.abs(d))[d != 0]
    up = ranks[d[d != 0] > 0].sum()
    sums = [0.0]
    for rank in ranks:
        sums = [s + extra for s in sums for extra in (0.0, rank)]
    by_hand = min(1.0, 2 * min(np.mean(np.array(sums) <= up), np.mean(np.array(sums) >= up)))
    assert compare(b, c, paired=True, **RULE).p_value == pytest.approx(by_hand)


def test_p_of_tied_unpaired_sides_is_that_of_all_splits() -> None:
    from itertools import combinations

    b, c = [1.0, 1.0, 2.0, 3.0], [2.0, 3.0, 3.0]
    ranks = stats.rankdata(b + c)
    sums = np.array([sum(chosen) for chosen in combinations(ranks, 3)])
    seen = ranks[4:].sum()
    by_hand = 2 * min(np.mean(sums <= seen), np.mean(sums >= seen))
    assert compare(b, c, paired=False, **RULE).p_value == pytest.approx(by_hand)


def test_the_paired_interval_is_that_of_the_walsh_averages() -> None:
    # n = 10: 8 of the 55 averages are left out at each end (Hollander & Wolfe, table of the signed-rank statistic).
    d = np.array([0.01, 0.04, -0.02, 0.09, 0.16, 0.025, 0.36, -0.049, 0.64, 0.081])
    walsh = sorted((d[i] + d[j]) / 2 for i in range(10) for j in range(i, 10))
    found = compare(np.ones(10), np.exp(d), paired=True, **RULE)
    assert math.log(found.ratio) == pytest.approx(walsh[27])
    assert (math.log(found.ci_low), math.log(found.ci_high)) == pytest.approx((walsh[8], walsh[46]))


def verdict(ratios: list[float], *, alpha: float = 0.05, margin: float = 0.10) -> Verdict:
    return compare([1.0] * len(ratios), ratios, paired=True, alpha=alpha, margin=margin).verdict


def test_verdicts() -> None:
    assert verdict([1.12 + i / 1000 for i in range(8)]) is Verdict.SLOWER
    assert verdict([0.12 + i / 1000 for i in range(8)]) is Verdict.FASTER
    assert verdict([1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99]) is Verdict.SAME
    assert verdict([1.5, 0.6, 1.4, 0.7, 1.6, 0.5, 1.2, 0.9]) is Verdict.UNSURE


def test_a_significant_shift_below_the_minimum_effect_is_not_slower() -> None:
    assert verdict([1.002 + i / 10000 for i in range(8)]) is Verdict.SAME


def test_a_significant_shift_inside_the_margin_is_reported() -> None:
    assert verdict([1.02 + i / 10000 for i in range(8)]) is Verdict.SLOWER


def test_too_few_rounds_are_unsure_however_large_the_change() -> None:
    assert verdict([10.0, 11.0, 12.0, 13.0, 14.0]) is Verdict.UNSURE  # 2 / 2**5 = .0625
    assert verdict([10.0, 11.0, 12.0, 13.0, 14.0, 15.0]) is Verdict.SLOWER
    assert verdict([1.0] * 7, alpha=0.01) is Verdict.UNSURE
    few = compare([1.0, 1.0], [2.0, 2.0], paired=True, **RULE)
    assert (few.ci_low, few.ci_high) == (0.0, math.inf)
    assert compare([1.0, 2.0], [9.0, 9.5], paired=False, **RULE).verdict is Verdict.UNSURE


def test_no_difference_at_all_is_the_same() -> None:
    assert compare([3.0] * 8, [3.0] * 8, paired=True, **RULE) == Comparison(1.0, 1.0, 1.0, 1.0, Verdict.SAME, 8)


@pytest.mark.parametrize(
    ("baseline", "contender", "paired", "said"),
    [
        ([1.0, math.nan], [1.0, 1.0], True, "nan"),
        ([1.0, 1.0], [1.0, math.inf], True, "inf"),
        ([1.0, 0.0], [1.0, 1.0], False, "0.0"),
        ([1.0, 1.0], [-1.0, 1.0], True, "-1.0"),
        ([1.0, 1.0], [1.0], True, "equal numbers"),
        ([], [], True, "one value per round"),
        ([[1.0]], [[1.0]], True, "one value per round"),
        ([1e-308] * 8, [1e308] * 8, True, "too far apart"),
        ([1.0] * 501, [1.0] * 501, True, "at most 500"),
        ([1.0] * 101, [1.0], False, "at most 100"),
    ],
)
def test_input_without_an_answer_is_refused_in_one_sentence(
    baseline: list[float], contender: list[float], paired: bool, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        compare(baseline, contender, paired=paired, **RULE)


@pytest.mark.parametrize(
    "rule", [{"alpha": 0.0, "margin": 0.1}, {"alpha": math.nan, "margin": 0.1}, {"alpha": 0.05, "margin": -1.0}]
)
def test_a_rule_without_meaning_is_refused(rule: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        compare([1.0], [1.0], paired=True, **rule)


@pytest.mark.parametrize("paired", [True, False])
def test_unchanged_builds_raise_alarms_at_the_nominal_rate(paired: bool) -> None:
    rng, alpha, runs = np.random.default_rng(20261130), 0.05, 2000
    alarms = 0
    for _ in range(runs):
        b, c = np.exp(rng.normal(0, 0.02, (2, 10)))
        alarms += compare(b, c, paired=paired, alpha=alpha, margin=0.0001).verdict in (Verdict.SLOWER, Verdict.FASTER)
    # An exact test never exceeds alpha; five standard errors allow for the simulation. It must not be dead either.
    assert 0.02 < alarms / runs < alpha + 5 * math.sqrt(alpha * (1 - alpha) / runs)


def test_a_true_change_is_found_and_the_interval_covers_it() -> None:
    rng, found, covered = np.random.default_rng(7), 0, 0
    for _ in range(300):
        b = np.exp(rng.normal(0, 0.2, 13))  # drift that both sides share
        c = b * 1.03 * np.exp(rng.normal(0, 0.015, 13))
        result = compare(b, c, paired=True, alpha=0.01, margin=0.03)
        found += result.verdict is Verdict.SLOWER
        covered += result.ci_low <= 1.03 <= result.ci_high
    assert found / 300 > 0.9
    assert covered / 300 > 0.92
