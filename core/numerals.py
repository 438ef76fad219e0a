"""Numbers and times as readers see them: three significant digits, one unit for both values, signs that are
typographic.

Every page, chart, command and export says numbers through these functions, so that one number looks the same
everywhere.
"""

from __future__ import annotations

import math
from datetime import datetime

from core.model import Verdict

NO_BREAK = "\u00a0"
MINUS = "\u2212"

#: The sign of a verdict that has no direction, and of an outcome that is no number.
SIGNS = {
    "same": "=",
    "unsure": "?",
    "failed": "×",
    "mismatch": "×",
    "timed out": "×",
    "unsupported": "/",
    "skipped": "–",
    "not run": "·",
}

_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_FRACTION = 0.1  # of a unit; a value below it is said in a smaller one
_BYTE_STEPS = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def scale(value: float, unit: str) -> tuple[float, str]:
    """The factor and the name of the unit in which ``value`` (in ``unit``: s, B or any other) reads best."""
    steps = {"s": _TIME_STEPS, "B": _BYTE_STEPS}.get(unit)
    if steps is None:
        return 1.0, "" if unit == "1" else unit
    for factor, name in steps:
        if abs(value) >= factor * 0.9995:
            return factor, name
    return steps[-1]


def digits(value: float) -> str:
    """Three significant digits, never in powers of ten between 0.0001 and a million: ``412``, ``4.12``, ``12,300``."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = abs(value)
    if size >= 999.5:
        text = f"{size:,.0f}" if size < 1e6 else f"{size:.3g}"
    elif size >= 1e-4:
        text = f"{size:#.3g}".rstrip(".")
    else:
        text = f"{size:.3g}"
    return (MINUS if value < 0 else "") + text


def quantity(value: float | None, unit: str) -> str:
    """One value with its unit, ``412 µs``; an empty string for a missing one."""
    if value is None:
        return ""
    factor, name = scale(value, unit)
    return f"{digits(value / factor)} {name}".rstrip()


def old_new(old: float | None, new: float | None, unit: str) -> str:
    """Both raw values, in the unit of the larger one: ``412 → 463 µs``, ``0.999 → 1.20 ms``.

    Where that would make the smaller one a fraction hard to read, each has its own unit, ``4.00 µs → 41.2 ms``. Empty
    when either is missing.
    """
    if old is None or new is None:
        return ""
    small, large = sorted((abs(old), abs(new)))
    factor, name = scale(large, unit)
    if small and small / factor < _FRACTION and scale(small, unit)[1] != name:
        return f"{quantity(old, unit)} → {quantity(new, unit)}"
    return f"{digits(old / factor)} → {digits(new / factor)} {name}".rstrip()


def amount(ratio: float) -> str:
    """How much a ratio is away from 1: per cent, and from twice on a factor, ``12.4 %`` or ``8.5×``."""
    factor = ratio if ratio >= 1 else 1 / ratio
    if factor >= 2:
        return f"{factor:.2g}×" if factor < 100 else f"{factor:,.0f}×"
    return f"{abs(ratio - 1) * 100:.1f}{NO_BREAK}%"


def percent(share: float) -> str:
    """A share that somebody chose, ``3 %``, ``1.5 %``."""
    return f"{share * 100:g}{NO_BREAK}%"


def said(ratio: float, verdict: Verdict | str) -> str:
    """The verdict at the end of a row: sign, amount, word. The arrow is the way the number moved."""
    word = str(verdict)
    if word in ("same", "unsure"):
        return f"{SIGNS[word]} {word}"
    return f"{'↑' if ratio > 1 else '↓'} {amount(ratio)} {word}"


def outcome_said(outcome: str) -> str:
    """An outcome that is no number, with its sign: ``× failed``, ``/ unsupported``."""
    return f"{SIGNS.get(outcome, '×')} {outcome}"


def times(ratio: float | None) -> str:
    """A ratio, three decimals: ``1.006×``."""
    return "" if ratio is None else f"{ratio:.3f}×" if ratio < 100 else f"{ratio:,.0f}×"


def interval(low: float | None, high: float | None) -> str:
    """An interval of a ratio: ``1.108 to 1.140``."""
    return "" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def duration(seconds: float) -> str:
    """A duration in the two units that matter: ``51 s``, ``18 min 20 s``, ``4 h 48 min``, ``2 days``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min" + (f" {rest} s" if rest and minutes < 30 else "")
    if whole < 2 * 86400:
        hours, rest = divmod(whole, 3600)
        return f"{hours} h" + (f" {rest // 60} min" if rest >= 60 else "")
    return f"{whole // 86400} days"


def about(seconds: float) -> str:
    """An estimated duration, no more precise than it is: ``40 s``, ``26 min``, ``3 h``."""
    if seconds < 90:
        return f"{max(10, round(seconds / 10) * 10)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h".replace(".0 h", " h")


def clock(at: datetime) -> str:
    """``03:40 UTC``."""
    return f"{at:%H:%M} UTC"


def moment(at: datetime | None) -> str:
    """``2026-11-30 03:40 UTC``; empty when there is none."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def span(start: datetime | None, end: datetime | None) -> str:
    """``2026-11-30 03:40 to 04:12 UTC``, with both dates when they differ."""
    if start is None or end is None:
        return moment(start or end)
    if f"{start:%Y%m%d%H%M}" == f"{end:%Y%m%d%H%M}":
        return moment(start)
    last = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M} to {last} UTC"


def ago(at: datetime | None, now: datetime) -> str:
    """How long ago, ``2 s ago``, ``4 h 48 min ago``; ``never`` when there is none."""
    return "never" if at is None else f"{duration((now - at).total_seconds())} ago"


def share(part: int, whole: int, noun: str) -> str:
    """``0 of 1 case``, ``2 of 5 cases``."""
    return f"{part:,} of {count(whole, noun)}"


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 case``, ``12 cases``, ``1,284 series``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
