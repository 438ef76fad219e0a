"""Effect chart: what a variant gains in each build."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from app.theme import CONDENSED, Mode, fold, ratio_ticks, styled, tokens

_SHAPES = ["circle", "square", "diamond", "triangle-up"]
#: From this factor on the value is written beside the mark.
_LARGE = 1.5
_WORDS = 40  # pixels that the words beside a mark take

#: More variants than this are drawn by ``app.charts.effect_forest``.
MOST = 4


def effect(rows: pd.DataFrame, mode: Mode = "page", margin: float = 0.03, height: int = 300) -> alt.LayerChart:
    """One case: the ratio of each variant's time to the reference variant's, build by build, below 1x is faster.

    ``rows``: build, variant, ratio (NaN where there is no number), low, high, outcome, text (both raw values). Builds
    and variants are drawn in the order they first appear; a build that lacks a variant keeps its place with an open
    mark and the outcome in words. ``height`` in pixels. At most ``MOST`` variants have a colour and a shape of their
    own.
    """
    t = tokens(mode)
    builds, variants = list(dict.fromkeys(rows["build"])), list(dict.fromkeys(rows["variant"]))
    ok = rows[rows["ratio"].notna()]
    # Early rounds have a ratio and no interval yet; an interval may be open to one side.
    ends = ok[["low", "ratio", "high"]].replace([math.inf, -math.inf, 0.0], math.nan)
    low = min(0.8, 0.62 * float(ends.min().min())) if len(ok) else 0.8
    high = max(1.25, 1.15 * float(ends.max().max())) if len(ok) else 1.25
    on_y: dict[str, Any] = {
        "scale": alt.Scale(type="log", domain=[low, high], nice=False, range=[height - 40, 8]),
        "axis": alt.Axis(values=ratio_ticks(low, high), labelExpr="format(datum.value, '~') + '×'", title=None),
    }
    x = alt.X(
        "build:N",
        sort=builds,
        scale=alt.Scale(type="point", padding=0.4, domain=builds),
        axis=alt.Axis(title=None, grid=False, labelAngle=0, labelFontSize=12, labelColor=t.ink, labelLimit=160),
    )
    colour = alt.Color(
        "variant:N",
        sort=variants,
        scale=alt.Scale(domain=variants, range=list(t.series)),
        legend=alt.Legend(symbolOpacity=1, columns=fold(MOST, 2)),
    )
    shape = alt.Shape("variant:N", sort=variants, scale=alt.Scale(domain=variants, range=_SHAPES))
    edge = alt.Chart(pd.DataFrame({"a": [1 / (1 + margin)], "b": [1 + margin], "one": [1.0]}))
    layers: list[alt.Chart] = [
        edge.mark_rect(color=t.sunken).encode(y=alt.Y("a:Q", **on_y), y2="b:Q"),
        edge.mark_rule(color=t.ink3).encode(y=alt.Y("one:Q", **on_y)),
    ]
    large = _large(ok, (height - 48) / math.log(high / low))
    for k, variant in enumerate(variants):
        shift: dict[str, Any] = {"xOffset": _shift(k, len(variants))}
        base = alt.Chart(ok[ok["variant"] == variant]).encode(x=x, color=colour, tooltip=tips())
        layers += [
            base.mark_line(strokeWidth=1.2, opacity=0.55, **shift).encode(y=alt.Y("ratio:Q", **on_y)),
            base.mark_rule(strokeWidth=2.2, **shift).encode(y=alt.Y("low:Q", **on_y), y2="high:Q"),
            base.mark_point(filled=True, size=85, opacity=1, **shift).encode(y=alt.Y("ratio:Q", **on_y), shape=shape),
        ]
        layers += _values(large[large["variant"] == variant], x, on_y, shift, mode)
    layers += _missing(rows[rows["ratio"].isna()], variants, len(builds), x, colour, shape, height, mode)
    return styled(alt.layer(*layers), mode, height)


def _shift(k: int, of: int) -> int:
    return round((k - (of - 1) / 2) * 13)


def tips() -> list[alt.Tooltip]:
    """What a mark of an effect says when it is pointed at."""
    return [
        alt.Tooltip("build:N"),
        alt.Tooltip("variant:N"),
        alt.Tooltip("ratio:Q", format=".3f"),
        alt.Tooltip("low:Q", format=".3f", title="95 % from"),
        alt.Tooltip("high:Q", format=".3f", title="to"),
        alt.Tooltip("text:N", title="reference → variant"),
    ]


def _large(ok: pd.DataFrame, scale: float) -> pd.DataFrame:
    """Large effects with their words; ``scale`` in pixels per unit of the log ratio. Where two of a build would write
    over each other, the farther one is said and the other is left to the table."""
    far = ok[(ok["ratio"] > _LARGE) | (ok["ratio"] < 1 / _LARGE)]
    said: dict[Any, list[float]] = {}
    kept = []
    for index, build, ratio in sorted(
        zip(far.index, far["build"], far["ratio"], strict=True), key=lambda row: -abs(math.log(row[2]))
    ):
        place = scale * math.log(ratio)
        if all(abs(place - other) > _WORDS for other in said.setdefault(build, [])):
            said[build].append(place)
            kept.append(index)
    far = far[far.index.isin(kept)]
    return far.assign(
        said=[f"{1 / r:.2g}× faster" if r < 1 else f"{r:.2g}× slower" for r in far["ratio"]],
        # the lowest of a build has its words below, the others above
        above=far["ratio"] > far.groupby("build")["ratio"].transform("min"),
    )


def _values(large: pd.DataFrame, x: alt.X, on_y: dict[str, Any], shift: dict[str, Any], mode: Mode) -> list[alt.Chart]:
    t = tokens(mode)
    out: list[alt.Chart] = []
    for above, first, second in ((True, -28, -14), (False, 16, 30)):
        some = large[large["above"] == above]
        if some.empty:
            continue
        here = alt.Chart(some).encode(x=x, y=alt.Y("ratio:Q", **on_y))
        for dy, field, ink in ((first, "said:N", t.ink), (second, "text:N", t.ink2)):
            how: dict[str, Any] = {"dy": dy, "font": CONDENSED, "fontSize": 11.5, "opacity": fold(1, 0), **shift}
            out += [
                here.mark_text(**how, stroke=t.surface, strokeWidth=4, strokeJoin="round").encode(text=field),
                here.mark_text(**how, color=ink).encode(text=field),
            ]
    return out


def _missing(
    gone: pd.DataFrame,
    variants: list[str],
    builds: int,
    x: alt.X,
    colour: alt.Color,
    shape: alt.Shape,
    height: int,
    mode: Mode,
) -> list[alt.Chart]:
    if gone.empty:
        return []
    out = [
        alt.Chart(gone[gone["variant"] == v])
        .mark_point(size=55, strokeWidth=1.6, y=height - 26, xOffset=_shift(k, len(variants)))
        .encode(
            x=x,
            color=colour,
            shape=shape,
            tooltip=["build:N", "variant:N", alt.Tooltip("outcome:N"), alt.Tooltip("reason:N")],
        )
        for k, v in enumerate(variants)
        if (gone["variant"] == v).any()
    ]
    words = gone.groupby("build", sort=False)["outcome"].agg(lambda o: ", ".join(dict.fromkeys(o))).reset_index()
    out.append(
        alt.Chart(words)
        .mark_text(
            y=height - 9,
            font=CONDENSED,
            fontSize=11.5,
            color=tokens(mode).ink2,
            limit=alt.ExprRef(f"width / {builds} - 4"),
        )
        .encode(x=x, text="outcome:N")
    )
    return out
