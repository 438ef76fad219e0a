"""Overview: what the newest result says, what is running, how the nodes are."""

from __future__ import annotations

import streamlit as st

from app import data, frames
from app.charts.forest import forest
from app.widgets.answer import answer
from app.widgets.buttons import go
from app.widgets.figures import facts, tally
from app.widgets.guard import guarded
from app.widgets.sheet import row_step, section, sheet
from core import numerals, provenance, sentences
from core.model import ComparisonView, NodeView, Report, RunState, RunView, Verdict
from core.sentences import Answer, Span

DRAWN = 12  # rows of "What changed"


def page() -> None:
    """The newest finished run's verdict, or what to do first."""
    runs, nodes = data.runs(), data.nodes()
    report = data.newest_report()
    if report is None:
        _nothing_yet(runs, nodes)
        return
    answer(sentences.overview(report, data.now()))
    rows = sentences.of_metric(report.comparisons)
    tally(sentences.tally(rows))
    if st.button("Compare these builds", type="primary", key="overview-compare"):
        go("compare", baseline=report.baseline, contender=report.contender, node=report.node)
    facts(*_facts(report, runs, nodes))
    _changed(report, rows)


def _changed(report: Report, rows: tuple[ComparisonView, ...]) -> None:
    """What changed or is unsure; what has no number only where it pushes nothing of that out."""
    told = [c for c in rows if c.verdict is not None and c.verdict is not Verdict.SAME]
    if not told:
        return
    gone = [c for c in rows if c.verdict is None]
    drawn = [*told, *gone] if len(told) + len(gone) <= DRAWN else told
    same = sentences.tally(rows).same
    hidden = [f"{same} same"] * bool(same) + [f"{len(gone)} without a number"] * (
        len(drawn) == len(told) and bool(gone)
    )
    rest = f"; not drawn: {', '.join(hidden)}" if hidden else ""
    rounds = numerals.count(report.rounds, "round")
    section("What changed", f"95 % intervals over {rounds}; {provenance.band(report.margin, drawn=True)}{rest}")
    chart = forest(frames.forest_rows(drawn), margin=report.margin, step=row_step(), most=DRAWN, rest="in Compare")
    sheet("overview", chart, f"Forest plot: {sentences.tally(drawn).words}")


def _nothing_yet(runs: tuple[RunView, ...], nodes: tuple[NodeView, ...]) -> None:
    live = next((r for r in reversed(runs) if not r.state.final), None)
    failed = next((r for r in runs if r.state is RunState.FAILED), None)
    if live is not None:
        said = sentences.run(live, (), data.now())
        more = (Span(f"Run {live.id} is on its way. "), *said.sentence)
        answer(Answer("", (Span("Nothing is measured yet."),), more))
        if st.button("Watch it run", type="primary", key="overview-watch"):
            go("runs", run=str(live.id))
    else:
        more = (Span("Pick two builds and a suite; the quick preset takes about two minutes."),)
        if failed is not None:
            more = (Span(f"Run {failed.id} failed: {failed.reason} "), *more)
        answer(Answer("", (Span("Nothing is measured yet."),), more))
        if st.button("New run", type="primary", key="overview-new"):
            go("new_run")
    facts(_node_fact(nodes), ("Runs", _queue_words(runs), ""))


def _facts(report: Report, runs: tuple[RunView, ...], nodes: tuple[NodeView, ...]) -> list[tuple[str, str, str]]:
    n = sentences.tally(sentences.of_metric(report.comparisons))
    return [
        (
            "Measured",
            numerals.moment(report.measured_to),
            numerals.ago(report.measured_to, data.now()),
        ),
        ("Coverage", f"{n.measured} of {n.total}", "have a number in both builds"),
        ("Runs", _queue_words(runs), "see Runs"),
        _node_fact(nodes),
    ]


def _queue_words(runs: tuple[RunView, ...]) -> str:
    live = [r for r in runs if not r.state.final]
    return "".join(s.text for s in sentences.runs(live)).removesuffix(".")


def _node_fact(nodes: tuple[NodeView, ...]) -> tuple[str, str, str]:
    return "Nodes" if len(nodes) != 1 else "Node", sentences.nodes(nodes).removesuffix("."), _node_note(nodes)


def _node_note(nodes: tuple[NodeView, ...]) -> str:
    silent = [n for n in nodes if not n.alive]
    if not nodes:
        return "start one: flashpoint worker"
    if not silent:
        return nodes[0].cpu if len(nodes) == 1 else ", ".join(n.name for n in nodes)
    if len(nodes) == 1:
        return f"since {numerals.moment(nodes[0].heartbeat_at) or 'its start'}"
    return ", ".join(f"{n.name} silent since {numerals.moment(n.heartbeat_at) or 'its start'}" for n in silent)


if __name__ == "__main__":
    guarded(page)
