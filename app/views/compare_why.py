"""Why one row of Compare says what it says: its rounds, its numbers, and the command that measures it again."""

from __future__ import annotations

import shlex

import streamlit as st

from app import data, frames
from app.charts.distribution import distribution
from app.widgets.answer import note
from app.widgets.figures import pairs
from app.widgets.sheet import section, sheet
from core import numerals, provenance, sentences
from core.model import ComparisonView, Report


def why(report: Report, row: ComparisonView) -> None:
    """The rounds of both builds left, the evidence and the command right."""
    section(f"Why: {sentences.row_label(row)}", frames.verdict_words(row))
    left, right = st.columns([1.35, 1], gap="medium")
    sides = [
        m
        for build in (report.baseline, report.contender)
        for m in report.measurements
        if (m.case, m.variant, m.metric, m.build) == (row.case, row.variant, row.metric, build) and m.sample
    ]
    with left:
        rounds, unit = frames.round_rows(sides, report.baseline)
        if len(rounds):
            said = f"Rounds of {numerals.count(rounds['build'].nunique(), 'build')}, one dot a round"
            sheet("rounds", distribution(rounds, unit=unit), said)
            if row.ratio:
                note(provenance.ratio_meaning(row.paired) + ".")
        else:
            note("There are no rounds to draw: neither build has a number here.")
    with right:
        pairs(
            ("Verdict", frames.verdict_words(row)),
            ("Values", numerals.old_new(row.baseline_value, row.contender_value, row.unit)),
            ("Ratio", _ratio(row)),
            ("Reason", row.reason),
            ("Method", _method(row)),
            ("CPU time", _cpu_time(report, row)),
            ("Spread", _spread(report, row)),
        )
        note("Measure it again:")
        st.code(_command(report, row), language=None, wrap_lines=True)


def _ratio(row: ComparisonView) -> str:
    if row.ratio is None:
        return ""
    ends = numerals.interval(row.ci_low, row.ci_high)
    if ends:
        return f"{numerals.times(row.ratio)}, 95 % interval {ends}"
    return f"{numerals.times(row.ratio)}; a 95 % interval needs {'six rounds' if row.paired else 'more rounds'}"


def _method(row: ComparisonView) -> str:
    if row.ratio is None:
        return ""
    how = (
        "same run, both builds took turns in every round"
        if row.paired
        else "different runs, the weaker kind of comparison"
    )
    run = f"run {row.run_id}: " if row.run_id else ""
    return f"{run}{how}; {numerals.count(row.processes, 'round')}, {numerals.count(row.samples, 'value')}"


def _cpu_time(report: Report, row: ComparisonView) -> str:
    """The second witness: what the thread's own clock says."""
    same = (row.case, row.variant)
    cpu = next((c for c in report.comparisons if (c.case, c.variant) == same and c.metric == "cpu_time"), None)
    if cpu is None or cpu.ratio is None:
        return ""
    return f"{numerals.old_new(cpu.baseline_value, cpu.contender_value, cpu.unit)}, {frames.verdict_words(cpu)}"


def _spread(report: Report, row: ComparisonView) -> str:
    said = [
        f"{m.build} {numerals.quantity(m.ci_low, m.unit)} to {numerals.quantity(m.ci_high, m.unit)}"
        for m in report.measurements
        if (m.case, m.variant, m.metric) == (row.case, row.variant, row.metric) and m.ci_low is not None
    ]
    return "; ".join(said)


def _command(report: Report, row: ComparisonView) -> str:
    case = row.case.removeprefix(row.suite + "/")
    words = [
        ("--suite", row.suite),
        ("--case", case),
        ("--build", data.spec_of(report.baseline)),
        ("--build", data.spec_of(report.contender)),
        ("--node", report.node),
        ("--preset", report.preset),
    ]
    return "flashpoint submit " + " \\\n  ".join(f"{option} {shlex.quote(value)}" for option, value in words)
