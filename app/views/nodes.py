"""Nodes: which machines measure, and whether they answer."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import data
from app.widgets.answer import answer, empty
from app.widgets.guard import guarded
from app.widgets.table import ROW, height_of
from core import numerals, sentences
from core.model import NodeView
from core.sentences import Answer, Span


def page() -> None:
    """One row a node."""
    nodes = data.nodes()
    if not nodes:
        empty("No worker has reported.", "Start one on the machine that is to measure; it appears here within seconds.")
        st.code("flashpoint worker", language=None)
        return
    busy = sum(n.running is not None for n in nodes)
    more = f"{numerals.count(busy, 'run')} under way. A node that was not heard for 45 s counts as silent."
    answer(Answer("", (Span(sentences.nodes(nodes)),), (Span(more),)))
    st.dataframe(
        pd.DataFrame([_row(n) for n in nodes]),
        hide_index=True,
        key="nodes-table",
        row_height=ROW,
        height=height_of(len(nodes)),
        placeholder="",
        alt="Nodes",
        column_config={
            "Node": st.column_config.TextColumn(width=160),
            "State": st.column_config.TextColumn(width=190),
            "Heard": st.column_config.TextColumn(width=260),
            "Processor": st.column_config.TextColumn(width=250),
            "Threads": st.column_config.NumberColumn(width=70),
            "Memory": st.column_config.TextColumn(width=85),
            "Devices": st.column_config.TextColumn(width=110),
            "Versions": st.column_config.TextColumn(width=300),
        },
    )


def _row(node: NodeView) -> dict[str, object]:
    state = "answers" if node.alive else "silent"
    if node.running is not None:
        state += f", measuring run {node.running}"
    return {
        "Node": node.name,
        "State": state,
        "Heard": f"{numerals.moment(node.heartbeat_at)} ({numerals.ago(node.heartbeat_at, data.now())})",
        "Processor": node.cpu,
        "Threads": node.threads,
        "Memory": numerals.quantity(float(node.memory_bytes), "B"),
        "Devices": ", ".join(node.devices),
        "Versions": ", ".join(f"{k} {v}" for k, v in node.versions.items()),
    }


if __name__ == "__main__":
    guarded(page)
