"""Effect forest: what many variants of one case gain, a group of lines for each variant."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from app.charts.effect import tips
from app.charts.forest import domain
from app.theme import CONDENSED, SANS, Mode, fold, folding_ticks, styled, tokens, verdict_colour

HEAD, LINE, GAP = 22, 19, 7  # pixels: a variant's name, a build's line, the room below a group
_INDENT = 12
_LETTER = 5.6  # the mean width in pixels of a letter of 12 px condensed
_SHAPES = ("square", "triangle-up")
_REST = "cross"


def effect_forest(
    rows: pd.DataFrame, baseline: str, contender: str, mode: Mode = "page", margin: float = 0.03
) -> alt.LayerChart:
    """One case: a group a variant, in it a line a build with the ratio to the reference variant on a log axis.

    ``rows`` as for ``app.charts.effect.effect``; the variant that gains most comes first. Every line is named, so there
    is no legend: the baseline is a grey dot, the contender a petrol diamond, two more builds have a colour and a shape
    of their own, further ones share one. What has no number is said in words at its line's end.
    """
    t = tokens(mode)
    d, heads = _placed(rows)
    low, high = domain(rows, margin)
    names = min(200, max(96, round(int(d["build"].str.len().max()) * _LETTER) + _INDENT + 14)) if len(d) else 96
    height = int(heads["bottom"].max()) if len(heads) else LINE
    on_x: dict[str, Any] = {
        "scale": alt.Scale(
            type="log",
            domain=[low, high],
            nice=False,
            range=[fold(names, min(names, 104)), fold("width - 262", "width - 118")],
        ),
        "axis": alt.Axis(
            values=folding_ticks(low, high),
            orient="top",
            gridOpacity=fold(1, 0.45),
            labelExpr="format(datum.value, '~') + '×'",
            labelOverlap="greedy",
            labelSeparation=8,
            title="← faster\u2003·\u2003variant / reference\u2003·\u2003slower →",
        ),
    }
    on_y: dict[str, Any] = {"scale": alt.Scale(domain=[0, height], range=[0, height]), "axis": None}
    edge = alt.Chart(pd.DataFrame({"a": [1 / (1 + margin)], "b": [1 + margin], "one": [1.0]}))
    at = alt.Chart(d).encode(y=alt.Y("y:Q", **on_y))
    head = alt.Chart(heads).encode(y=alt.Y("head:Q", **on_y), text="variant:N")
    halo: dict[str, Any] = {"stroke": t.surface, "strokeWidth": 4, "strokeJoin": "round"}
    named: dict[str, Any] = {"align": "left", "font": CONDENSED}
    layers = [
        edge.mark_rect(color=t.sunken).encode(x=alt.X("a:Q", **on_x), x2="b:Q"),
        edge.mark_rule(color=t.ink3).encode(x=alt.X("one:Q")),
        alt.Chart(heads.iloc[1:]).mark_rule(color=t.line).encode(y=alt.Y("top:Q", **on_y)),
        head.mark_text(x=0, fontSize=13, limit=alt.ExprRef("width"), **named, **halo),
        *_marks(at, _looks(rows, baseline, contender, mode)),
        head.mark_text(x=0, fontSize=13, fontWeight=600, color=t.ink, limit=alt.ExprRef("width"), **named),
        at.mark_text(
            x=_INDENT, fontSize=12, limit=fold(names - 18, min(names, 104) - 16), color=t.ink2, **named
        ).encode(text="build:N", tooltip=tips()),
        *_ends(at, mode),
    ]
    return styled(alt.layer(*layers).resolve_scale(color="independent", shape="independent"), mode, height)


def _placed(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The lines with ``y`` in pixels, and one row a variant with the places of its name and its edges."""
    mean = np.log(rows["ratio"]).groupby(rows["variant"], sort=False).mean()
    variants = list(mean.sort_values(kind="stable", na_position="last").index)
    lines, heads, top = [], [], 0
    for variant in variants:
        of = rows[rows["variant"] == variant]
        bottom = top + HEAD + LINE * len(of) + GAP
        heads.append({"variant": variant, "top": top, "head": top + HEAD - 9, "bottom": bottom})
        lines.append(of.assign(y=[top + HEAD + LINE * (k + 0.5) for k in range(len(of))]))
        top = bottom
    placed = pd.concat(lines) if lines else rows.assign(y=0.0)
    return placed, pd.DataFrame(heads, columns=["variant", "top", "head", "bottom"])


def _looks(rows: pd.DataFrame, baseline: str, contender: str, mode: Mode) -> tuple[list[str], list[str], list[str]]:
    """Builds with their colours and shapes."""
    t = tokens(mode)
    builds = list(dict.fromkeys(rows["build"]))
    others = [b for b in builds if b not in (baseline, contender)]
    look = {baseline: (t.ink3, "circle"), contender: (t.accent, "diamond")}
    for k, build in enumerate(others):
        look[build] = (t.series[k + 1], _SHAPES[k]) if k < len(_SHAPES) else (t.ink2, _REST)
    return builds, [look[b][0] for b in builds], [look[b][1] for b in builds]


def _marks(at: alt.Chart, looks: tuple[list[str], list[str], list[str]]) -> list[alt.Chart]:
    builds, colours, shapes = looks
    known = at.transform_filter("isValid(datum.ratio)")
    colour = alt.Color("build:N", legend=None, sort=builds, scale=alt.Scale(domain=builds, range=colours))
    shape = alt.Shape("build:N", legend=None, sort=builds, scale=alt.Scale(domain=builds, range=shapes))
    return [
        known.mark_rule(strokeWidth=2.2, strokeCap="round").encode(
            x="low:Q", x2="high:Q", color=colour, tooltip=tips()
        ),
        known.mark_point(size=80, opacity=1, filled=True).encode(
            x="ratio:Q", color=colour, shape=shape, tooltip=tips()
        ),
    ]


def _ends(at: alt.Chart, mode: Mode) -> list[alt.Chart]:
    """Verdict and raw values at the end of a line; a narrow chart leaves the raw values to the table."""
    ink2 = tokens(mode).ink2
    words = at.mark_text(
        align=fold("'left'", "'right'"), x=fold("width - 250", "width"), fontWeight=500, fontSize=12.5
    ).encode(
        text="said:N",
        tooltip=tips(),
        color=alt.condition("indexof(['slower', 'faster'], datum.verdict) >= 0", verdict_colour(mode), alt.value(ink2)),
    )
    raw = at.mark_text(
        align="right", x=alt.ExprRef("width"), fontSize=12.5, color=ink2, opacity=fold(1, 0), font=SANS
    ).encode(text="text:N", tooltip=tips())
    return [words, raw]
