"""Agreement of plain outputs; tensors are tried on real builds, where the suites' own variants must agree."""

from __future__ import annotations

import math

import pytest

from bench_suites.kit.agree import close


class NoTorch:
    """Stands where torch would: no output here is a tensor."""

    class Tensor:
        pass


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("want", "got", "agrees"),
    [
        (1.0, 1.0 + 1e-6, True),
        (1.0, 1.1, False),
        (INF, 1.0, False),
        (1.0, INF, False),
        (INF, INF, True),
        (INF, -INF, False),
        (NAN, NAN, True),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [1, 2, 3], False),
        ((1.0, "a"), (1.0, "a"), True),
        ((1.0, "a"), (1.0, "b"), False),
        ({"x": 1.0}, {"x": 1.0}, True),
        ({"x": 1.0}, {"y": 1.0}, False),
        (None, None, True),
        (None, 0, False),
        ("a", 1, False),
    ],
)
def test_plain_outputs(want: object, got: object, agrees: bool) -> None:
    found = close()(NoTorch, want, got)
    assert (found is None) is agrees, found
