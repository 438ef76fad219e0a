"""The answer: the first thing on a page, and what stands there when there is nothing or something is away."""

from __future__ import annotations

import streamlit as st

from app.widgets.markup import html, spans
from core.sentences import Answer, Span


def answer(said: Answer) -> None:
    """Eyebrow, sentence and second line."""
    eyebrow = f'<p class="eyebrow">{html(said.eyebrow)}</p>' if said.eyebrow else ""
    more = f'<p class="more">{spans(said.more)}</p>' if any(s.text for s in said.more) else ""
    st.html(f'<div class="fp-answer">{eyebrow}<h1>{spans(said.sentence)}</h1>{more}</div>')


def empty(sentence: str, more: str) -> None:
    """What is not here, why that is and what to do next; a page adds at most one button."""
    answer(Answer("", (Span(sentence),), (Span(more),)))


def banner(sentence: str) -> None:
    """One sentence about something that is away or went wrong, above everything else; never a traceback."""
    st.html(f'<p class="fp-banner" role="alert">{html(sentence)}</p>')


def note(*sentences: str) -> None:
    """Lines of secondary text."""
    st.html("".join(f'<p class="fp-scale">{html(sentence)}</p>' for sentence in sentences))
