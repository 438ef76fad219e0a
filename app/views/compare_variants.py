"""What the variants of a case gain in each build: the second tab of Compare."""

from __future__ import annotations

import streamlit as st

from app import address, data, frames
from app.charts.effect import MOST, effect
from app.charts.effect_forest import effect_forest
from app.widgets.answer import empty
from app.widgets.sheet import section, sheet
from app.widgets.table import ROW, height_of, width_of
from core import numerals
from core.model import Report


def variants(report: Report) -> str:
    """One case as a chart, all effects as a table. Returns the case shown, "" when there is none."""
    effects = [e for e in data.effects(report.baseline, report.contender, report.node) if e.metric == "time"]
    if not effects:
        empty(
            "No case has more than its reference variant.",
            "Effects set a variant against the reference variant of its build.",
        )
        return ""
    cases = sorted({e.case for e in effects})
    farthest = max(effects, key=lambda e: max(e.ratio, 1 / e.ratio) if e.ratio else 0.0).case
    address.take("case", "compare-case", cases, farthest)
    case = st.selectbox("Case", cases, key="compare-case", width=420, filter_mode="contains")
    of_case = [e for e in effects if e.case == case]
    section(
        "What a variant gains",
        f"time of each variant against {of_case[0].reference} in the same build; below 1× is faster",
    )
    rows = frames.effect_rows(of_case)
    few = rows["variant"].nunique() <= MOST
    chart = (
        effect(rows, margin=report.margin)
        if few
        else effect_forest(rows, report.baseline, report.contender, margin=report.margin)
    )
    sheet("effect", chart, f"Effects of {numerals.count(rows['variant'].nunique(), 'variant')}, build by build")
    section(f"All {len(effects)} effects", "95 % intervals")
    st.dataframe(
        frames.effect_table(effects),
        hide_index=True,
        key="effects-table",
        row_height=ROW,
        height=height_of(len(effects)),
        placeholder="",
        alt="Variant effects",
        column_config={
            "verdict": st.column_config.TextColumn("Verdict", width=130),
            "case": st.column_config.TextColumn("Case", width=width_of(cases, 140, 375)),
            "name": st.column_config.TextColumn("Variant", width=width_of((e.variant for e in effects), 80, 180)),
            "build": st.column_config.TextColumn("Build", width=width_of((e.build for e in effects), 80, 180)),
            "reference": st.column_config.TextColumn("Reference", width=90, alignment="right"),
            "variant": st.column_config.TextColumn("Value", width=90, alignment="right"),
            "ratio": st.column_config.NumberColumn("Ratio", format="%.3f", width=70),
            "interval": st.column_config.TextColumn("95 % interval", width=125),
            "reason": st.column_config.TextColumn("Reason", width=300),
        },
    )
    return str(case)
