"""Distribution of rounds: is one number honest."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.theme import CONDENSED, Mode, fold, styled, tokens


def distribution(
    rounds: pd.DataFrame, mode: Mode = "page", unit: str = "µs", bins: int = 44, row: int = 136
) -> alt.LayerChart:
    """One dot a round, one row a build, a triangle at each median.

    ``rounds``: build, baseline (whether it is the one), value (in ``unit``), said (one line about the build). ``row``
    is the height of a build in pixels.
    """
    t = tokens(mode)
    lo, hi = float(rounds["value"].min()), float(rounds["value"].max())
    width = (hi - lo) / bins or abs(hi) / bins or 1.0
    d = rounds.assign(bin=((rounds["value"] - lo) / width).round() * width + lo)
    order = {b: i for i, b in enumerate(dict.fromkeys(d["build"]))}
    d = d.assign(k=d.groupby(["build", "bin"]).cumcount(), row=d["build"].map(order))
    pitch = min(9.0, (row - 68) / (int(d["k"].max()) + 1))
    d = d.assign(top=[(r + 1) * row - 22 - pitch * k for r, k in zip(d["row"], d["k"], strict=True)])
    builds = (
        d.groupby("build", sort=False)
        .agg(median=("value", "median"), row=("row", "first"), said=("said", "first"), baseline=("baseline", "first"))
        .reset_index()
    )
    builds = builds.assign(base=(builds["row"] + 1) * row - 16, head=builds["row"] * row + 12)
    x = alt.X(
        "bin:Q",
        scale=alt.Scale(domain=[lo - 3 * width, hi + 3 * width], nice=False),
        axis=alt.Axis(title=None, labelExpr=f"datum.label + ' {unit}'", tickCount=fold(9, 4), gridOpacity=0.6),
    )
    ends = [0, row * len(builds)]
    px: dict[str, Any] = {"scale": alt.Scale(domain=ends, range=ends), "axis": None}
    others = iter((t.accent, *t.series[1:]))
    palette = [t.ink3 if baseline else next(others) for baseline in builds["baseline"]]
    colour = alt.Color("build:N", sort=None, legend=None, scale=alt.Scale(domain=list(builds["build"]), range=palette))
    base = alt.Chart(builds)
    layers = [
        base.mark_rule(color=t.line).encode(y=alt.Y("base:Q", **px)),
        alt.Chart(d)
        .mark_circle(size=52, opacity=0.95)
        .encode(
            x=x,
            y=alt.Y("top:Q", **px),
            color=colour,
            tooltip=[alt.Tooltip("build:N"), alt.Tooltip("value:Q", format=".4g", title=f"round, {unit}")],
        ),
        base.mark_point(shape="triangle-up", size=75, filled=True, opacity=1, yOffset=7).encode(
            x="median:Q",
            y=alt.Y("base:Q", **px),
            color=colour,
            tooltip=[alt.Tooltip("build:N"), alt.Tooltip("median:Q", format=".4g", title=f"median, {unit}")],
        ),
        base.mark_text(align="left", x=0, fontWeight=500).encode(y=alt.Y("head:Q", **px), text="build:N", color=colour),
        base.mark_text(align="left", x=0, dy=17, color=t.ink2, font=CONDENSED, fontSize=12.5).encode(
            y=alt.Y("head:Q", **px), text="said:N"
        ),
    ]
    return styled(alt.layer(*layers), mode, row * len(builds))
