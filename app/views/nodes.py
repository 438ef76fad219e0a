"""Nodes: which machines measure, and whether they answer."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import data
from app.widgets.answer import answer, empty
from app.widgets.figures import pairs
from app.widgets.guard import guarded
from app.widgets.sheet import section
from app.widgets.table import ROW, height_of, width_of
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
    rows = [_row(n) for n in nodes]
    found = st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="nodes-table",
        row_height=ROW,
        height=height_of(len(nodes)),
        placeholder="",
        alt="Nodes",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "Node": st.column_config.TextColumn(width=width_of((n.name for n in nodes), 60, 160)),
            "State": st.column_config.TextColumn(width=width_of((str(r["State"]) for r in rows), 70, 190)),
            "Heard": st.column_config.TextColumn(width=150),
            "Processor": st.column_config.TextColumn(width=250),
            "Threads": st.column_config.NumberColumn(width=70),
            "Memory": st.column_config.TextColumn(width=85),
            "Devices": st.column_config.TextColumn(width=110),
        },
    )
    selected = found["selection"]["rows"]
    _facts(nodes[selected[0] if selected and selected[0] < len(nodes) else 0])


def _row(node: NodeView) -> dict[str, object]:
    state = "answers" if node.alive else "silent"
    if node.running is not None:
        state += f", measuring run {node.running}"
    return {
        "Node": node.name,
        "State": state,
        "Heard": numerals.ago(node.heartbeat_at, data.now()),
        "Processor": node.cpu,
        "Threads": node.threads,
        "Memory": numerals.quantity(float(node.memory_bytes), "B"),
        "Devices": ", ".join(node.devices),
    }


def _facts(node: NodeView) -> None:
    """What is known about one node, a line each."""
    section(node.name, "select a row above for another node")
    pairs(
        ("Processor", node.cpu),
        ("Threads", str(node.threads)),
        ("Memory", numerals.quantity(float(node.memory_bytes), "B")),
        ("Devices", ", ".join(node.devices)),
        ("Heard", numerals.moment(node.heartbeat_at) or "never"),
        *((name[:1].upper() + name[1:], value) for name, value in node.versions.items()),
    )


if __name__ == "__main__":
    guarded(page)
