"""Forest plot: what changed, worst first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import altair as alt
import pandas as pd

from app.theme import (
    CONDENSED,
    SANS,
    SHAPES,
    VERDICTS,
    Mode,
    fold,
    folding_ticks,
    styled,
    tokens,
    verdict_colour,
    verdict_fill,
)

SHARE = 0.42  # of a wide chart's width that names may take

#: More rows than this are not drawn; a line says how many.
MOST = 40
_RANK = {"slower": 0, "worse": 0, "faster": 1, "better": 1, "unsure": 2, "same": 3}
_WORDS = 122  # pixels that the verdict of a folded row takes
_LETTER = 5.9  # the mean width in pixels of a letter of 13 px condensed


def ordered(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows by verdict, then p; what has no number comes last."""
    rank = rows["verdict"].map(_RANK).fillna(9)
    return rows.assign(rank=rank).sort_values(["rank", "p"], kind="stable")


def domain(rows: pd.DataFrame, margin: float) -> tuple[float, float]:
    """The ends of the ratio axis: all intervals with room, at least twice the margin to either side."""
    least = 1 + max(2 * margin, 0.12)
    # Early rounds have a ratio and no interval yet; an interval may be open to one side.
    ends = rows[["low", "ratio", "high"]].replace([math.inf, -math.inf, 0.0], math.nan)
    known = [float(end) for end in ends.to_numpy(dtype=float).ravel() if math.isfinite(end)] or [1.0]
    low, high = min(known), max(known)
    # Room in proportion to the span; a far effect on one side keeps a little of the other, so that 1x never sits on
    # the edge.
    room = max(1.06, (high / low) ** 0.06)
    reach = max(1 / low, high) ** 0.15
    return min(low / room, 1 / least, 1 / reach), max(high * room, least, reach)


def name_room(labels: Iterable[str]) -> int:
    """The width in pixels that these row names take on a wide chart."""
    longest = max((len(label) for label in labels), default=0)
    return min(500, max(190, round(longest * _LETTER) + 26))


def forest(
    rows: pd.DataFrame,
    mode: Mode = "page",
    margin: float = 0.03,
    step: int = 36,
    most: int = MOST,
    rest: str = "in the table",
    share: float = SHARE,
) -> alt.LayerChart:
    """Ratios with their 95 % intervals on a log axis.

    ``rows``: label, short (for narrow charts), ratio, low, high, verdict (NaN where there is no number), p, said (the
    words at the end), raw (both values), interval and p_said (in words), reason. ``margin`` is drawn as the band that
    counts as the same; ``step`` is a row's height in pixels. Beyond ``most`` rows a last line says how many are not
    drawn and, in ``rest``, where they are. Names take at most ``share`` of the width; where that cuts the full ones,
    the short ones are drawn.
    """
    d = ordered(rows)
    hidden = len(d) - most
    d = d.head(most)
    t = tokens(mode)
    names = name_room(d["label"])
    crowded = bool(len(d)) and int(d["short"].str.len().max()) > 36
    low, high = domain(d, margin)
    on_x: dict[str, Any] = {
        "scale": alt.Scale(
            type="log",
            domain=[low, high],
            nice=False,
            range=[fold(f"min({names}, width * {share})", 4), fold("width - 250", "width - 118")],
        ),
        "axis": alt.Axis(
            values=folding_ticks(low, high),
            orient="top",
            gridOpacity=fold(1, 0.45),
            labelExpr="format(datum.value, '~') + '×'",
            labelOverlap="greedy",
            labelSeparation=8,
            title="← faster\u2003·\u2003time ratio\u2003·\u2003slower →",
        ),
    }
    y = alt.Y("label:N", sort=list(d["label"]), axis=None, scale=alt.Scale(paddingInner=0, paddingOuter=0.15))
    base = alt.Chart(d).encode(y=y)
    edge = alt.Chart(pd.DataFrame({"a": [1 / (1 + margin)], "b": [1 + margin], "one": [1.0]}))
    layers = [
        edge.mark_rect(color=t.sunken).encode(x=alt.X("a:Q", **on_x), x2="b:Q"),
        edge.mark_rule(color=t.ink3).encode(x=alt.X("one:Q")),
        *_names(base, mode, names, share, crowded, halo=True),
        *_marks(base, mode),
        *_names(base, mode, names, share, crowded, halo=False),
        *_ends(base, mode, crowded),
    ]
    height = step * max(1, len(d))
    if hidden > 0:
        more = alt.Chart(pd.DataFrame({"text": [f"and {hidden} more {rest}"]}))
        layers.append(
            more.mark_text(align="left", x=0, y=height + 14, font=CONDENSED, fontSize=13, color=t.ink2).encode(
                text="text:N"
            )
        )
    return styled(alt.layer(*layers).resolve_scale(color="shared", fill="shared"), mode, height)


def _tips() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("label:N", title="case"),
        alt.Tooltip("said:N", title="verdict"),
        alt.Tooltip("raw:N", title="baseline → contender"),
        alt.Tooltip("interval:N", title="ratio, 95 % interval"),
        alt.Tooltip("p_said:N", title="p"),
        alt.Tooltip("reason:N"),
    ]


def _marks(base: alt.Chart, mode: Mode) -> list[alt.Chart]:
    known = base.transform_filter("isValid(datum.ratio)")
    down = fold(0, 9)
    return [
        known.mark_rule(strokeWidth=2.2, strokeCap="round", yOffset=down).encode(
            x="low:Q", x2="high:Q", color=verdict_colour(mode), tooltip=_tips()
        ),
        known.mark_point(size=95, opacity=1, strokeWidth=2, yOffset=down).encode(
            x="ratio:Q",
            color=verdict_colour(mode),
            tooltip=_tips(),
            shape=alt.Shape("verdict:N", legend=None, scale=alt.Scale(domain=VERDICTS, range=SHAPES)),
            fill=verdict_fill(mode),
        ),
    ]


def _names(base: alt.Chart, mode: Mode, room: int, share: float, crowded: bool, *, halo: bool) -> list[alt.Chart]:
    """Row names: the full one where it fits beside the plot, else the short one (no suite); a halo keeps grid lines
    away."""
    t = tokens(mode)
    look: dict[str, Any] = {"stroke": t.surface, "strokeWidth": 4, "strokeJoin": "round"} if halo else {"color": t.ink}
    fits = f"width >= 720 && width * {share} >= {room}"
    out = []
    for field, seen in (("label:N", (1, 0)), ("short:N", (0, 1))):
        mark = base.mark_text(
            align="left",
            x=0,
            dy=fold(0, -8),
            font=CONDENSED,
            fontSize=13,
            # a folded row's first line is shared with the verdict, unless the names are long
            limit=fold(f"min({room}, width * {share}) - 10", "width - 2" if crowded else f"width - {_WORDS}"),
            opacity=alt.ExprRef(f"{fits} ? {seen[0]} : {seen[1]}"),
            **look,
        )
        out.append(mark.encode(text=field) if halo else mark.encode(text=field, tooltip=_tips()))
    return out


def _ends(base: alt.Chart, mode: Mode, crowded: bool) -> list[alt.Chart]:
    """Verdict and raw values at the end of a row. On a narrow chart they share the row's two lines with the name;
    where names are long the words move to the second line and the raw values are left to the table."""
    t = tokens(mode)
    words = base.mark_text(
        align=fold("'left'", "'right'"),
        dy=fold(0, 9 if crowded else -8),
        fontWeight=500,
        fontSize=12.5,
        x=fold("width - 238", "width"),
    ).encode(
        text="said:N",
        tooltip=_tips(),
        color=alt.condition(
            "indexof(['slower', 'faster', 'worse', 'better'], datum.verdict) >= 0",
            verdict_colour(mode),
            alt.value(t.ink2),
        ),
    )
    raw = base.mark_text(
        align="right",
        x=alt.ExprRef("width"),
        dy=fold(0, 9),
        fontSize=fold(12.5, 11.5),
        color=t.ink2,
        opacity=fold(1, 0 if crowded else 1),
        font=fold(f"'{SANS}'", f"'{CONDENSED}'"),
    ).encode(text="raw:N", tooltip=_tips())
    return [words, raw]
