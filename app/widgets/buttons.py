"""Leaving a page for another one, with the view in the address."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import streamlit as st

_VIEWS = Path(__file__).resolve().parents[1] / "views"


def go(view: str, **query: str | list[str]) -> NoReturn:
    """Leave for a page of this app; ``view`` is its file in ``app/views``, ``query`` becomes the address. Does not
    return."""
    st.switch_page(_VIEWS / f"{view}.py", query_params=dict(query))
