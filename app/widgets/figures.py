"""Counts and facts: the tally over its bar, and the ruled strip of facts."""

from __future__ import annotations

import streamlit as st

from app.widgets.markup import html
from core.sentences import Tally

_MARKS = {"slower": "↑ ", "faster": "↓ ", "unsure": "? ", "same": "= ", "missing": ""}


def tally(counts: Tally) -> None:
    """Verdicts counted in words over a bar to scale; cases without a number are in it."""
    n = {w: getattr(counts, w) for w in _MARKS}
    bar = "".join(f'<span class="is-{w}" style="flex:{k} 1 0"></span>' for w, k in n.items() if k)
    items = "".join(
        f'<li class="{w if w in ("slower", "faster") and k else ""}"><b>{_MARKS[w]}{k}</b> '
        f"{'without a number' if w == 'missing' else w}</li>"
        for w, k in n.items()
        if k or w != "missing"
    )
    st.html(f'<div class="fp-tally" aria-hidden="true">{bar}</div><ul class="fp-counts">{items}</ul>')


def facts(*rows: tuple[str, str, str]) -> None:
    """Two to five facts in one ruled strip: label, figure, what it means."""
    cells = "".join(f"<div><dt>{html(a)}</dt><dd>{html(b)}<small>{html(c)}</small></dd></div>" for a, b, c in rows)
    st.html(f'<dl class="fp-facts">{cells}</dl>')


def pairs(*rows: tuple[str, str]) -> None:
    """Label and text, line by line."""
    cells = "".join(f"<dt>{html(a)}</dt><dd>{html(b)}</dd>" for a, b in rows if b)
    st.html(f'<dl class="fp-why">{cells}</dl>')
