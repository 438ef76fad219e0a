"""Sizes of tables: columns as wide as their texts, at most twenty rows before a table scrolls inside itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

ROW = 30
MOST_ROWS = 20
_LETTER = 7.2  # the mean width in pixels of a letter in a cell


def width_of(texts: Iterable[str], least: int, most: int) -> int:
    """The width in pixels of a column that shows these texts uncut, within limits."""
    longest = max((len(text) for text in texts), default=0)
    return min(most, max(least, round(longest * _LETTER) + 22))


def height_of(rows: int) -> int | Literal["content"]:
    """The height in pixels of a table with so many rows."""
    return "content" if rows <= MOST_ROWS else MOST_ROWS * ROW + 35
