"""Sections and sheets: a heading with its note, and the surface that holds exactly one chart."""

from __future__ import annotations

import altair as alt
import streamlit as st

from app.widgets.markup import html, visible


def section(title: str, note: str = "") -> None:
    """A heading with a note beside it."""
    st.html(f'<div class="fp-section"><h2>{html(title)}</h2><p>{html(note)}</p></div>')


def sheet(name: str, chart: alt.LayerChart, alt_text: str) -> None:
    """A chart on its sheet. ``name`` gives the classes ``st-key-sheet-NAME`` and ``st-key-NAME-chart``."""
    # A chart without selections gets no class from its own key, so a container carries it.
    with st.container(key=f"sheet-{name}"), st.container(key=f"{name}-chart"):
        st.altair_chart(chart, theme=None, width="stretch", key=f"{name}-vega", alt=visible(alt_text))


def on_phone() -> bool:
    """A hint only: the server never learns the width of the window. Folded rows of a forest want more height."""
    return "Mobi" in (st.context.headers.get("User-Agent") or "")


def row_step() -> int:
    """The height in pixels of a row of a forest for this reader."""
    return 44 if on_phone() else 36
