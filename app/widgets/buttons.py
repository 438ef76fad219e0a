"""Links that look like the one primary button of a page, with the view in the address."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_VIEWS = Path(__file__).resolve().parents[1] / "views"


def link(view: str, label: str, **query: str) -> None:
    """A link to a page of this app; ``view`` is the file's name in ``app/views``, ``query`` becomes the address."""
    st.page_link(_VIEWS / f"{view}.py", label=label, query_params=query or None)


def go(view: str, **query: str) -> None:
    """Leave for another page of this app; does not return."""
    st.switch_page(_VIEWS / f"{view}.py", query_params=query or None)
