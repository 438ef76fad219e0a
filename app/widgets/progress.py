"""The timeline of a run and the strip of its rounds."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from app.widgets.markup import html
from core import numerals

Step = tuple[str, Literal["done", "now", "later"]]


def steps(*rows: Step) -> None:
    """The states a run went through, where it is, and what is to come."""
    classes = {"done": "", "now": ' class="now" aria-current="step"', "later": ' class="later"'}
    st.html('<ol class="fp-steps">' + "".join(f"<li{classes[how]}>{html(text)}</li>" for text, how in rows) + "</ol>")


def rounds_strip(done: int, total: int, *, live: bool, note: str = "") -> None:
    """One box a round: done, under way, to come. Beyond 60 rounds a box stands for several."""
    share = max(1, -(-total // 60))
    boxes = -(-total // share)
    filled = done // share
    cells = "".join(
        f'<i class="{"done" if k < filled else "now" if live and k == filled else ""}"></i>' for k in range(boxes)
    )
    said = f"{numerals.share(done, total, 'round')} done"
    columns = f"--rounds:{boxes};--narrow:{min(20, boxes)}"
    st.html(
        f'<div class="fp-rounds" role="img" aria-label="{said}" style="{columns}">{cells}</div>'
        f'<p class="fp-scale">{html(note or said)}</p>'
    )
