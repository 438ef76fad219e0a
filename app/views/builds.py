"""Builds: which exact PyTorch is installed where, and when it was last measured."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import data
from app.widgets.answer import answer, empty
from app.widgets.figures import pairs
from app.widgets.guard import guarded
from app.widgets.sheet import section
from app.widgets.table import ROW, height_of, width_of
from core import numerals
from core.model import BuildView
from core.sentences import Answer, Span


def page() -> None:
    """One row an environment, in the order of releases."""
    builds = data.builds()
    if not builds:
        empty(
            "No build is installed.",
            "A run installs the builds that it needs by itself; to have one ready before, add it:",
        )
        st.code("flashpoint builds add 2.13.0", language=None)
        return
    ready = [b for b in builds if b.state == "ready" and b.environment]
    size = numerals.quantity(float(sum(b.size_bytes for b in ready)), "B")
    newest = max(builds, key=lambda b: b.created_at)
    noun = "builds are" if len(ready) != 1 else "build is"
    more = f"{newest.label} came last, on {numerals.moment(newest.created_at)}. The environments take {size}."
    answer(Answer("", (Span(f"{len(ready)} {noun} installed."),), (Span(more),)))
    found = st.dataframe(
        pd.DataFrame([_row(b) for b in builds]),
        hide_index=True,
        key="builds-table",
        row_height=ROW,
        height=height_of(len(builds)),
        placeholder="",
        alt="Builds",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "Build": st.column_config.TextColumn(width=width_of((b.label for b in builds), 110, 260)),
            "State": st.column_config.TextColumn(width=80),
            "Channel": st.column_config.TextColumn(width=80),
            "Flavour": st.column_config.TextColumn(width=70),
            "Python": st.column_config.TextColumn(width=80),
            "Revision": st.column_config.TextColumn(width=110),
            "Size": st.column_config.TextColumn(width=90),
            "Last measured": st.column_config.TextColumn(width=170),
        },
    )
    selected = found["selection"]["rows"]
    _facts(builds[selected[0] if selected and selected[0] < len(builds) else 0])
    section("Add one", "a release, a release with its flavour, or a Python that has torch already")
    st.code(
        "flashpoint builds add 2.13.0\nflashpoint builds add existing:/path/to/python", language=None, wrap_lines=True
    )


def _row(build: BuildView) -> dict[str, object]:
    return {
        "Build": build.label,
        "State": build.state,
        "Channel": build.channel,
        "Flavour": build.flavour,
        "Python": build.python,
        "Revision": build.git_revision[:12],
        "Size": numerals.quantity(float(build.size_bytes), "B") if build.size_bytes else "",
        "Last measured": numerals.moment(build.last_measured_at) or "never",
    }


def _facts(build: BuildView) -> None:
    """What is known about one build, a line each."""
    section(build.label, "what its probe found; select a row above for another build")
    pairs(
        ("Written as", build.spec),
        ("Revision", build.git_revision),
        ("Environment", build.environment),
        ("First seen", numerals.moment(build.created_at)),
        *((name[:1].upper() + name[1:], value) for name, value in build.details.items()),
    )


if __name__ == "__main__":
    guarded(page)
