"""Runs: the list, and one page a run that follows it live."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import address, data
from app.views import run as one_run
from app.widgets.answer import answer, banner
from app.widgets.buttons import go
from app.widgets.guard import guarded
from app.widgets.sheet import section
from app.widgets.table import ROW, height_of
from core import numerals, sentences
from core.errors import NotFound
from core.model import RunState, RunView
from core.sentences import Answer, Span


def page() -> None:
    """One run when the address names it, else the list."""
    asked = st.query_params.get("run")
    if asked is None:
        _list()
        return
    number = address.number("run")
    if number is None:
        banner(f"{asked[:40]!r} is no number of a run; choose one from the list.")
        _list()
    else:
        try:
            one_run.page(number)
        except NotFound:
            banner(f"There is no run {number}; choose one from the list.")
            _list()


def _list() -> None:
    runs, counts = data.runs(), data.run_counts()
    sentence = sentences.runs_counted(counts)
    if not runs:
        answer(Answer("", (Span("No run is waiting or running."),), (Span("Nothing was ever queued here."),)))
        if st.button("New run", type="primary", key="runs-new"):
            go("new_run")
        return
    total = sum(counts.values())
    answer(Answer("", sentence, (Span("Select a run to open it."),)))
    live = [r for r in runs if not r.state.final]
    done = [r for r in runs if r.state.final]
    ordered = [*reversed(live), *done]
    section(
        "All runs" if total <= len(runs) else f"The newest {len(runs)} of {total} runs", "live ones first, times in UTC"
    )
    found = st.dataframe(
        pd.DataFrame([_row(r) for r in ordered]),
        hide_index=True,
        key="runs-table",
        row_height=ROW,
        height=height_of(len(ordered)),
        placeholder="",
        alt="Runs",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "Run": st.column_config.NumberColumn(width=60, format="%d"),
            "State": st.column_config.TextColumn(width=200),
            "Suite": st.column_config.TextColumn(width=150),
            "Builds": st.column_config.TextColumn(width=240),
            "Node": st.column_config.TextColumn(width=130),
            "Queued": st.column_config.TextColumn(width=160),
            "Took": st.column_config.TextColumn(width=100),
            "Reason": st.column_config.TextColumn(width=320),
        },
    )
    rows = found["selection"]["rows"]
    if rows and rows[0] < len(ordered):
        st.query_params["run"] = str(ordered[rows[0]].id)
        st.rerun()


def _row(run: RunView) -> dict[str, object]:
    return {
        "Run": run.id,
        "State": _state(run),
        "Suite": run.plan.suite,
        "Builds": " → ".join(run.builds),
        "Node": run.node,
        "Queued": numerals.moment(run.queued_at),
        "Took": sentences.took_words(run),
        "Reason": " ".join(run.reason.split()),
    }


def _state(run: RunView) -> str:
    p = run.progress
    match run.state:
        case RunState.RUNNING:
            return f"running, {numerals.share(p.round, p.rounds or run.plan.rounds, 'round')}"
        case RunState.PREPARING:
            return f"preparing, {p.environments_ready} of {p.environments or len(run.builds)} ready"
        case RunState.QUEUED:
            return "queued, next" if run.position in (None, 1) else f"queued, number {run.position}"
    return str(run.state)


if __name__ == "__main__":
    guarded(page)
