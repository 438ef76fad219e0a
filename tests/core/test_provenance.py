"""How a comparison was measured: true for one run, several, none and a mixture."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core import provenance
from core.model import BuildView, Report
from tests.reports import AT, report


def _of(*rows: tuple[int | None, bool, int]) -> Report:
    """A report whose compared rows have these runs, kinds and numbers of rounds."""
    made = report()
    one = next(c for c in made.comparisons if c.verdict)
    compared = [replace(one, run_id=run, paired=paired, processes=rounds) for run, paired, rounds in rows]
    return replace(made, comparisons=tuple(compared))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, True, 8), (1, True, 8)], "Same run, 8 interleaved rounds, "),
        ([(1, True, 8), (2, True, 8)], "Runs 1 and 2, each pair in the same run, 8 interleaved rounds, "),
        ([(1, True, 8), (2, True, 13)], "Runs 1 and 2, each pair in the same run, 8 to 13 interleaved rounds, "),
        ([(k, True, 8) for k in range(1, 7)], "Runs 1, 2, 3, 4 and 2 more, each pair in the same run, "),
        ([(None, False, 8)], "Different runs, so the weaker kind of comparison, "),
        ([(4, True, 8), (None, False, 8)], "Run 4, 1 of 2 pairs in the same run (8 interleaved rounds), the others"),
    ],
)
def test_the_method_names_the_runs_that_were_compared(rows: list[tuple[int | None, bool, int]], said: str) -> None:
    assert provenance.method(_of(*rows)).startswith(said)


def test_where_nothing_is_compared_nothing_is_said_about_runs() -> None:
    none = replace(report(), comparisons=tuple(c for c in report().comparisons if c.verdict is None))
    assert "run" not in provenance.method(none) and "round" not in provenance.method(none)
    assert provenance.method(replace(none, measured_from=None, measured_to=None)) == ""


def _build(label: str, python: str, flavour: str, **details: str) -> BuildView:
    return BuildView(1, label, label, "release", "abc", flavour, python, "e", "ready", 1, details, AT, None)


def test_what_else_differs_is_said() -> None:
    old, new = _build("1.10.2+cu102", "3.9.18", "cu102"), _build("2.13.0+cpu", "3.11.7", "cpu")
    both = "Besides PyTorch, Python (3.9.18 against 3.11.7) and the flavour (cu102 against cpu) differ."
    assert provenance.builds_differ(old, new) == both
    assert provenance.builds_differ(old, replace(new, flavour="cu102")).endswith("(3.9.18 against 3.11.7) differs.")
    assert provenance.builds_differ(old, replace(old, label="x")) == ""
    assert provenance.builds_differ(None, new) == ""
    probed = replace(old, python="", details={"python": "3.9.18"})
    assert provenance.builds_differ(probed, new) == both


def test_measured_builds_between_are_named() -> None:
    builds = ("2.13.0", "2.0.1", "1.12.1", "1.10.2")
    assert provenance.between(builds, "1.10.2", "1.12.1") == ""
    assert "2.0.1 and 1.12.1, between them, were" in provenance.between(builds, "1.10.2", "2.13.0")
    assert "2.0.1, between them, was" in provenance.between(builds, "2.13.0", "1.12.1")
    assert provenance.between(builds, "1.10.2", "unknown") == ""
    assert "4 builds between" in provenance.between(("f", *builds, "a"), "f", "a")


def test_the_ratio_is_explained_for_both_kinds() -> None:
    assert "adjacent turns" in provenance.ratio_meaning(True)
    assert "adjacent turns" not in provenance.ratio_meaning(False)
