from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.samples import paired_rounds, round_medians, summarise
from core.model import Sample


def sample(*rounds: tuple[float, ...], numbers: tuple[int, ...] | None = None) -> Sample:
    return Sample(numbers or tuple(range(1, len(rounds) + 1)), rounds)


def test_a_summary_is_over_rounds_and_not_over_turns() -> None:
    found = summarise(sample((1.0, 1.0, 9.0), (2.0,), (4.0, 6.0)))
    assert (found.n, found.samples, found.median) == (3, 6, 2.0)
    assert (found.ci_low, found.ci_high) == (None, None)
    assert found.spread == pytest.approx(1.4826)


def test_the_interval_of_the_median_by_the_binomial_table() -> None:
    ten = summarise(sample(*((float(i),) for i in range(1, 11))))
    assert (ten.ci_low, ten.ci_high) == (2.0, 9.0)
    six = summarise(sample(*((float(i),) for i in range(1, 7))))
    assert (six.ci_low, six.ci_high) == (1.0, 6.0)
    assert summarise(sample(*((float(i),) for i in range(1, 6)))).ci_low is None


def test_the_interval_covers_the_true_median() -> None:
    rng, covered = np.random.default_rng(3), 0
    for _ in range(600):
        found = summarise(sample(*((v,) for v in rng.lognormal(0, 0.5, 13).tolist())))
        covered += (found.ci_low or 0) <= 1.0 <= (found.ci_high or 0)
    assert covered / 600 > 0.93


def test_one_round_has_a_median_and_no_spread() -> None:
    assert summarise(sample((3.0, 5.0))).spread is None


def test_a_sample_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="no value"):
        summarise(sample((), ()))
    with pytest.raises(ValueError, match="finite"):
        summarise(sample((1.0, math.nan, 1.0)))


def test_rounds_without_turns_are_left_out() -> None:
    assert round_medians(sample((1.0,), (), (3.0,))).tolist() == [1.0, 3.0]


def test_rounds_are_paired_by_their_number_and_turns_by_position() -> None:
    b = sample((10.0, 20.0, 40.0), (1.0,), (5.0, 5.0), numbers=(1, 2, 4))
    c = sample((11.0, 22.0, 80.0, 7.0), (7.0,), (10.0,), numbers=(1, 3, 4))
    left, right = paired_rounds(b, c)
    assert left.tolist() == [20.0, 5.0]
    assert right.tolist() == pytest.approx([22.0, 10.0])


def test_drift_that_both_sides_share_cancels() -> None:
    drift = [1.0, 1.4, 0.7, 2.0]
    left, right = paired_rounds(sample(tuple(drift)), sample(tuple(1.1 * v for v in drift)))
    assert right / left == pytest.approx([1.1])


def test_no_shared_round_gives_empty_arrays() -> None:
    left, right = paired_rounds(sample((1.0,), numbers=(1,)), sample((1.0,), numbers=(2,)))
    assert left.shape == right.shape == (0,)


@given(
    st.lists(
        st.lists(st.tuples(st.floats(1e-9, 1e3), st.floats(1e-9, 1e3)), min_size=1, max_size=6), min_size=1, max_size=5
    )
)
def test_swapping_the_sides_inverts_every_rounds_ratio(rounds: list[list[tuple[float, float]]]) -> None:
    b = sample(*(tuple(t[0] for t in turns) for turns in rounds))
    c = sample(*(tuple(t[1] for t in turns) for turns in rounds))
    left, right = paired_rounds(b, c)
    other, back = paired_rounds(c, b)
    assert (right / left) * (back / other) == pytest.approx(np.ones(len(rounds)))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_turn_that_is_no_positive_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="Round 2"):
        paired_rounds(sample((1.0,), (1.0,)), sample((1.0,), (bad,)))
