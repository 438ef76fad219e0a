"""The view in the address, both ways: widgets start from it, and it follows the widgets.

A widget takes its value from the address when the page is opened or when the address was changed from outside (a
link, the browser's back button); otherwise the widget is right and the address is written after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st


def take(name: str, key: str, options: Sequence[str], default: str | None) -> str | None:
    """Set the widget ``key`` from the parameter ``name``. Returns what was asked for when ``options`` do not hold
    it."""
    asked = st.query_params.get(name)
    fresh = asked is not None and asked != st.session_state.get(_seen(name))
    if key not in st.session_state or fresh:
        st.session_state[key] = asked if asked in options else default
    elif st.session_state[key] not in options:
        st.session_state[key] = default
    return asked if fresh and asked not in options else None


def take_many(name: str, key: str, options: Sequence[str] | None, default: Sequence[str]) -> tuple[str, ...]:
    """The same for a widget that holds a list; ``options`` None takes any text. Returns what ``options`` do not
    hold."""
    asked = st.query_params.get_all(name)
    fresh = bool(asked) and asked != st.session_state.get(_seen(name))
    if key not in st.session_state or fresh:
        known = [a for a in dict.fromkeys(asked) if options is None or a in options]
        st.session_state[key] = known or list(default)
    return tuple(a for a in asked if options is not None and a not in options) if fresh else ()


def take_text(name: str, key: str) -> None:
    """The same for a text field."""
    asked = st.query_params.get(name)
    if key not in st.session_state or (asked is not None and asked != st.session_state.get(_seen(name))):
        st.session_state[key] = asked or ""


def put(values: Mapping[str, str | Sequence[str] | None]) -> None:
    """Write the parameters of this page; empty ones are left out."""
    wanted = {name: value if isinstance(value, str) else list(value or ()) for name, value in values.items() if value}
    current = {name: st.query_params.get_all(name) for name in st.query_params}
    if current != {name: [value] if isinstance(value, str) else value for name, value in wanted.items()}:
        st.query_params.from_dict(wanted)
    for name, value in wanted.items():
        st.session_state[_seen(name)] = value


def keep(page: str) -> None:
    """Remember this page's address in the session."""
    st.session_state[f"address-kept:{page}"] = {name: st.query_params.get_all(name) for name in st.query_params}


def recall(page: str) -> None:
    """Give a page that was opened with none of its parameters the address it had.

    The browser's back button leaves parameters out, or brings those of the page that was left.
    """
    kept = st.session_state.get(f"address-kept:{page}")
    if kept and not any(name in kept for name in st.query_params):
        st.query_params.from_dict(kept)


def number(name: str) -> int | None:
    """A parameter that is an id: a whole number from 1 to 2**53, else None."""
    text = st.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) <= 15 and int(text) > 0 else None


def _seen(name: str) -> str:
    return f"address:{name}"
