"""From records to the frames that charts and tables draw. Pure: no Streamlit, no SQL; pages and the command line
share it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import pandas as pd

from core import numerals
from core.model import ComparisonView, EffectView, MeasurementView
from core.sentences import row_label

_FOREST = ["label", "short", "ratio", "low", "high", "verdict", "p", "said", "raw", "interval", "p_said", "reason"]
_EFFECT = ["build", "variant", "ratio", "low", "high", "verdict", "said", "outcome", "text", "reason"]


def verdict_words(c: ComparisonView | EffectView) -> str:
    """The verdict with its sign and amount, or the outcome that is no number."""
    if c.ratio is None or c.verdict is None:
        return numerals.outcome_said(c.outcome if c.outcome != "ok" else "not run")
    return numerals.said(c.ratio, c.verdict)


def forest_rows(comparisons: Iterable[ComparisonView]) -> pd.DataFrame:
    """The frame of ``app.charts.forest``: one row a case and variant; the short name leaves out what all rows share."""
    every = list(comparisons)
    rows = [
        {
            "label": row_label(c),
            "short": _short(c, every),
            "ratio": c.ratio,
            "low": c.ci_low,
            "high": c.ci_high,
            "verdict": None if c.verdict is None else str(c.verdict),
            "p": c.p_value,
            "said": verdict_words(c),
            "raw": numerals.old_new(c.baseline_value, c.contender_value, c.unit) if c.verdict else "",
            "interval": _interval(c),
            "p_said": "" if c.p_value is None else f"{c.p_value:.2g}",
            "reason": c.reason,
        }
        for c in every
    ]
    frame = pd.DataFrame(rows, columns=_FOREST)
    return frame.astype({"ratio": float, "low": float, "high": float, "p": float})


def _short(c: ComparisonView, among: Sequence[ComparisonView]) -> str:
    if len(among) > 1 and c.variant and len({(o.suite, o.case) for o in among}) == 1:
        return c.variant
    return row_label(c).removeprefix(c.suite + "/") if len({o.suite for o in among}) == 1 else row_label(c)


def _interval(c: ComparisonView) -> str:
    if c.ratio is None:
        return ""
    ends = numerals.interval(c.ci_low, c.ci_high)
    return f"{numerals.times(c.ratio)} ({ends})" if ends else f"{numerals.times(c.ratio)} (no interval yet)"


def compare_table(comparisons: Sequence[ComparisonView]) -> pd.DataFrame:
    """The table of Compare, in the order given; numbers stay numbers so that a reader can sort.

    The verdict comes first: beside names of any length it would be off a narrow screen.
    """
    return pd.DataFrame(
        {
            "verdict": [verdict_words(c) for c in comparisons],
            "case": [c.case for c in comparisons],
            "variant": [c.variant for c in comparisons],
            "baseline": [numerals.quantity(c.baseline_value, c.unit) for c in comparisons],
            "contender": [numerals.quantity(c.contender_value, c.unit) for c in comparisons],
            "ratio": pd.Series([c.ratio for c in comparisons], dtype=float),
            "interval": [numerals.interval(c.ci_low, c.ci_high) for c in comparisons],
            "p": pd.Series([c.p_value for c in comparisons], dtype=float),
            "rounds": pd.Series([c.processes or None for c in comparisons], dtype="Int64"),
            "reason": [c.reason for c in comparisons],
        }
    )


def effect_rows(effects: Iterable[EffectView]) -> pd.DataFrame:
    """The frame of ``app.charts.effect``; give it the effects of one case."""
    rows = [
        {
            "build": e.build,
            "variant": e.variant,
            "ratio": e.ratio,
            "low": e.ci_low,
            "high": e.ci_high,
            "verdict": None if e.verdict is None else str(e.verdict),
            "said": verdict_words(e),
            "outcome": e.outcome if e.outcome != "ok" else "",
            "text": numerals.old_new(e.reference_value, e.variant_value, e.unit),
            "reason": e.reason,
        }
        for e in effects
    ]
    frame = pd.DataFrame(rows, columns=_EFFECT)
    return frame.astype({"ratio": float, "low": float, "high": float})


def effect_table(effects: Sequence[EffectView]) -> pd.DataFrame:
    """All variant effects as a table."""
    return pd.DataFrame(
        {
            "verdict": [verdict_words(e) for e in effects],
            "case": [e.case for e in effects],
            "name": [e.variant for e in effects],
            "build": [e.build for e in effects],
            "reference": [numerals.quantity(e.reference_value, e.unit) for e in effects],
            "variant": [numerals.quantity(e.variant_value, e.unit) for e in effects],
            "ratio": pd.Series([e.ratio for e in effects], dtype=float),
            "interval": [numerals.interval(e.ci_low, e.ci_high) for e in effects],
            "reason": [e.reason for e in effects],
        }
    )


def round_rows(measurements: Sequence[MeasurementView], baseline: str) -> tuple[pd.DataFrame, str]:
    """The frame of ``app.charts.distribution`` and its unit: one value a round, the median of the round's turns.

    ``baseline`` is the label of the build that is called so, whether or not it has values.
    """
    values = {m.build: [median(turns) for turns in m.sample.rounds if turns] if m.sample else [] for m in measurements}
    units = {m.build: m.unit for m in measurements}
    every = [v for vs in values.values() for v in vs]
    if not every:
        return pd.DataFrame(columns=["build", "baseline", "value", "said"]), ""
    factor, unit = numerals.scale(max(every), next(iter(units.values())))
    parts = [
        pd.DataFrame(
            {
                "build": build + (" (baseline)" if build == baseline else ""),
                "baseline": build == baseline,
                "value": [v / factor for v in vs],
                "said": f"{numerals.count(len(vs), 'round')}, median {numerals.quantity(median(vs), units[build])}",
            }
        )
        for build, vs in values.items()
        if vs
    ]
    return pd.concat(parts, ignore_index=True), unit
