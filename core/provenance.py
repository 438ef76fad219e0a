"""How a comparison was measured, and what else tells its two sides apart, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from core import numerals
from core.model import BuildView, ComparisonView, Report

_RUNS_NAMED = 4


def band(margin: float, *, drawn: bool) -> str:
    """What counts as the same; ``drawn`` where the reader sees it as the grey band of a forest plot.

    A certain change is told even when it is smaller than the band.
    """
    grey = " (grey)" if drawn else ""
    return f"an interval inside ±{numerals.percent(margin)}{grey} is the same, unless the change is certain"


def ratio_meaning(paired: bool) -> str:
    """Why a ratio may differ from the quotient of the values beside it."""
    how = "the ratios of adjacent turns" if paired else "all quotients of a round of one and a round of the other"
    return f"A ratio is the median over {how}, so it may differ from the quotient of both medians"


def method(report: Report) -> str:
    """How it was measured: *Same run, 13 interleaved rounds, 2026-11-30 03:40 to 04:12 UTC*, or *Runs 1 and 2, each
    pair in the same run, 8 to 13 interleaved rounds, ...*. Only the time where nothing is compared."""
    when = numerals.span(report.measured_from, report.measured_to)
    return ", ".join(
        part for part in (_how([c for c in report.comparisons if c.metric == "time" and c.verdict]), when) if part
    )


def _how(compared: Sequence[ComparisonView]) -> str:
    paired = [c for c in compared if c.paired]
    if not compared:
        return ""
    if not paired:
        return "Different runs, so the weaker kind of comparison"
    runs = sorted({c.run_id for c in paired if c.run_id is not None})
    few, many = min(c.processes for c in paired), max(c.processes for c in paired)
    rounds = numerals.count(many, "interleaved round") if few == many else f"{few} to {many} interleaved rounds"
    if len(paired) < len(compared):
        apart = f"{len(paired)} of {len(compared)} pairs in the same run"
        return f"{_listed(runs)}, {apart} ({rounds}), the others in different runs, the weaker kind of comparison"
    return f"Same run, {rounds}" if len(runs) < 2 else f"{_listed(runs)}, each pair in the same run, {rounds}"


def _listed(runs: Sequence[int]) -> str:
    """*Run 4*, *Runs 1 and 2*, *Runs 1, 2, 3, 4 and 7 more*."""
    named = [str(run) for run in runs[:_RUNS_NAMED]]
    if len(runs) > _RUNS_NAMED:
        named.append(f"{len(runs) - _RUNS_NAMED} more")
    return f"Run {named[0]}" if len(named) == 1 else f"Runs {', '.join(named[:-1])} and {named[-1]}"


def builds_differ(baseline: BuildView | None, contender: BuildView | None) -> str:
    """*Besides PyTorch, Python (3.9.18 against 3.11.7) and the flavour (cu102 against cpu) differ.*

    In the order baseline against contender; empty when nothing else differs, or when a build is not known any more.
    """
    if baseline is None or contender is None:
        return ""
    pairs = (
        ("Python", _python(baseline), _python(contender)),
        ("the flavour", baseline.flavour, contender.flavour),
        ("the channel", baseline.channel, contender.channel),
    )
    said = [f"{name} ({old} against {new})" for name, old, new in pairs if old and new and old != new]
    if not said:
        return ""
    listed = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
    return f"Besides PyTorch, {listed} differ{'s' if len(said) == 1 else ''}."


def _python(build: BuildView) -> str:
    return build.python or build.details.get("python", "")


def between(builds: Sequence[str], baseline: str, contender: str) -> str:
    """*Not neighbours: 2.0.1+cu117 was measured between them.* ``builds`` are the labels measured on the node, in the
    order of releases, either way round; empty for neighbours."""
    if baseline not in builds or contender not in builds:
        return ""
    first, last = sorted((builds.index(baseline), builds.index(contender)))
    skipped = list(builds[first + 1 : last])
    if not skipped:
        return ""
    if len(skipped) > 3:
        return f"Not neighbours: {len(skipped)} builds between them were measured here."
    listed = skipped[0] if len(skipped) == 1 else f"{', '.join(skipped[:-1])} and {skipped[-1]}"
    return f"Not neighbours: {listed}, between them, {'was' if len(skipped) == 1 else 'were'} measured here too."
