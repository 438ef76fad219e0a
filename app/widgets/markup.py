"""Where text that came from data is made harmless: nowhere else.

``html`` is for ``st.html``; ``plain`` is for everything that Streamlit reads as Markdown (button labels, tabs,
captions).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from core.sentences import Span

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~$:&-])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
_TONES = {"slower": '<span class="slower">{}</span>', "faster": '<span class="faster">{}</span>', "strong": "<b>{}</b>"}


def visible(text: str) -> str:
    """The text with control characters and marks that turn the reading direction shown as ``\\x..`` and ``\\u....``."""
    return _CONTROL.sub(lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 256 else f"\\u{ord(m[0]):04x}", text)


def html(text: str) -> str:
    """Text for ``st.html``, literally."""
    return escape(visible(text), quote=True)


def plain(text: str) -> str:
    """Text for a Markdown context, literally: no emphasis, link, picture, formula, icon or directive."""
    return _MARKDOWN.sub(r"\\\1", visible(text).replace("\n", " "))


def spans(parts: Iterable[Span]) -> str:
    """A sentence as HTML."""
    return "".join(_TONES.get(p.tone, "{}").format(html(p.text)) for p in parts)
