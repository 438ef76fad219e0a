"""Flashpoint's chart look: tokens, one Altair configuration, and the frame of an exported figure.

On a page a chart has no title (the page has one) and fills its container; ``figure`` adds title, facts and permalink
and a fixed width, for export.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import pandas as pd

Mode = Literal["page", "light", "dark"]

# Whole stacks, because an SVG or HTML export is opened where the first name is not installed.
SANS = "IBM Plex Sans, Liberation Sans, Arial, sans-serif"
CONDENSED = "IBM Plex Sans Condensed, Liberation Sans Narrow, Arial Narrow, sans-serif"
MONO = "IBM Plex Mono, Liberation Mono, monospace"


_LETTER = 6.8  # at least the mean width in pixels of a letter of an exported figure's facts


@dataclass(frozen=True)
class Tokens:
    """The colours of one mode; what each is for is in ``static/look.css``."""

    paper: str
    surface: str
    sunken: str
    line: str
    ink: str
    ink2: str
    ink3: str
    accent: str
    slower: str
    faster: str
    slower_tint: str
    faster_tint: str
    series: tuple[str, ...]


LIGHT = Tokens(
    paper="#F3F6F5",
    surface="#FFFFFF",
    sunken="#E6ECEB",
    line="#D0DAD9",
    ink="#14252A",
    ink2="#44575B",
    ink3="#566A6E",
    accent="#0B6259",
    slower="#AD4108",
    faster="#1558A6",
    slower_tint="#FBE5D8",
    faster_tint="#DFEAF8",
    series=("#0B6259", "#5D2E8A", "#B66B88", "#768926", "#42330F", "#193E50"),
)
DARK = Tokens(
    paper="#0C1618",
    surface="#132023",
    sunken="#1D2D31",
    line="#2C4045",
    ink="#E3ECEB",
    ink2="#AABABB",
    ink3="#8FA3A5",
    accent="#58C2B2",
    slower="#F7995C",
    faster="#80B8F7",
    slower_tint="#43271A",
    faster_tint="#1A3350",
    series=("#58C2B2", "#B578D0", "#B36872", "#BBDC7A", "#BC9F43", "#AADFFC"),
)
# On a page the tokens are CSS variables: Streamlit draws Vega as SVG, so charts follow a change of theme without a
# rerun and one cached chart serves both themes. Exports need real colours: "light" or "dark".
PAGE = Tokens(
    paper="var(--paper)",
    surface="var(--surface)",
    sunken="var(--sunken)",
    line="var(--line)",
    ink="var(--ink)",
    ink2="var(--ink2)",
    ink3="var(--ink3)",
    accent="var(--accent)",
    slower="var(--slower)",
    faster="var(--faster)",
    slower_tint="var(--slower-tint)",
    faster_tint="var(--faster-tint)",
    series=tuple(f"var(--series-{n})" for n in range(1, 7)),
)

#: The domain of every verdict scale; worse and better are drawn as slower and faster are.
VERDICTS = ["slower", "faster", "same", "unsure", "worse", "better"]
SHAPES = ["triangle-right", "triangle-left", "square", "circle", "triangle-right", "triangle-left"]
_LADDER = (
    0.001,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    0.67,
    0.8,
    0.9,
    0.95,
    1,
    1.05,
    1.1,
    1.25,
    1.5,
    2,
    5,
    10,
    20,
    50,
    100,
    1000,
)
_COARSE = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10, 20, 100, 1000)


def tokens(mode: Mode) -> Tokens:
    """The colours of a mode."""
    return {"light": LIGHT, "dark": DARK, "page": PAGE}[mode]


def fold(wide: object, narrow: object) -> alt.ExprRef:
    """One value for a wide chart, another for a narrow one; Vega decides in the browser, again whenever the width
    changes."""
    return alt.ExprRef(f"width >= 720 ? {wide} : {narrow}")


def config(mode: Mode) -> dict[str, Any]:
    """The Altair configuration; passed to each chart, never registered globally (two readers may use two modes)."""
    t = tokens(mode)
    return {
        "font": SANS,
        "background": t.surface,
        "view": {"stroke": None},
        "axis": {
            "labelColor": t.ink2,
            "titleColor": t.ink2,
            "labelFont": CONDENSED,
            "titleFont": SANS,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "gridColor": t.line,
            "gridWidth": 1,
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
            "titlePadding": 8,
        },
        "legend": {
            "labelColor": t.ink2,
            "titleColor": t.ink2,
            "labelFont": SANS,
            "labelFontSize": 12,
            "orient": "top",
            "symbolSize": 70,
            "title": None,
            "offset": 4,
        },
        "text": {"color": t.ink, "font": SANS, "fontSize": 12},
        "title": {
            "color": t.ink,
            "subtitleColor": t.ink2,
            # the renderer of exports draws a variable face in its regular weight only; Condensed has a static SemiBold
            "font": SANS if mode == "page" else CONDENSED,
            "subtitleFont": SANS,
            "fontSize": 17 if mode == "page" else 19,
            "fontWeight": 600,
            "subtitleFontSize": 12.5,
            "subtitleLineHeight": 17,
            "subtitlePadding": 6,
            "anchor": "start",
            "frame": "group",
            "offset": 14,
            "lineHeight": 22,
        },
        "range": {"category": list(t.series)},
    }


def styled(chart: alt.LayerChart | alt.FacetChart, mode: Mode, height: int) -> alt.LayerChart:
    """Size, padding and configuration of a chart that fills its container; ``height`` in pixels."""
    # padding at the top level: without it Streamlit adds 20 px below the chart
    sized = chart.properties(
        width="container",
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 2, "right": 2, "top": 4, "bottom": 2},
        usermeta={"embedOptions": {"actions": False}},
    )
    styled_: alt.LayerChart = sized.configure(**config(mode))
    return styled_


def figure(
    chart: alt.LayerChart,
    title: str,
    facts: list[str],
    permalink: str,
    mode: Mode = "light",
    width: int = 860,
    below: int = 48,
) -> alt.LayerChart:
    """A chart to be pasted elsewhere: the sentence, the facts under it, the way back to the data at the bottom.

    ``below`` is the room in pixels between the chart and the permalink; 30 where the axis is on top.
    """
    foot = (
        alt.Chart(pd.DataFrame({"link": [permalink]}))
        .mark_text(align="left", baseline="bottom", font=MONO, fontSize=11, color=tokens(mode).ink3)
        .encode(text="link:N", x=alt.value(0))
    )
    body = chart.copy(deep=True)
    for name in ("usermeta", "autosize", "padding"):
        setattr(body, name, alt.Undefined)
    body.layer.append(foot.encode(y=alt.value(body.height + below)))
    letters = int(width / _LETTER)
    lines = [line for fact in facts for line in textwrap.wrap(fact, letters, break_long_words=False)]
    return body.properties(width=width, title=alt.TitleParams(title, subtitle=lines), padding=20)


def verdict_colour(mode: Mode) -> alt.Color:
    """The colour of a mark by its verdict; everything that is not worse or better is ink."""
    return alt.Color("verdict:N", legend=None, scale=_verdict_scale(mode))


def verdict_fill(mode: Mode) -> Any:
    """Filled marks are decided, hollow ones are not."""
    decided = alt.Fill("verdict:N", legend=None, scale=_verdict_scale(mode))
    return alt.condition("datum.verdict == 'unsure'", alt.value(tokens(mode).surface), decided)


def _verdict_scale(mode: Mode) -> alt.Scale:
    t = tokens(mode)
    return alt.Scale(domain=VERDICTS, range=[t.slower, t.faster, t.ink2, t.ink2, t.slower, t.faster])


def folding_ticks(low: float, high: float) -> alt.ExprRef:
    """The labels of a horizontal ratio axis: 1 and what has room around it of ``ratio_ticks``."""
    return fold(_apart(low, high, 8), _apart(low, high, 4.5))


def _apart(low: float, high: float, most: float) -> list[float]:
    """Of the labels those that stand at least a share 1 / ``most`` of the axis apart, counted from 1 to both sides."""
    ticks, least = ratio_ticks(low, high), math.log(high / low) / most
    kept = [1.0]
    for side in ([v for v in ticks if v > 1], [v for v in reversed(ticks) if v < 1]):
        last = 1.0
        for value in side:
            if abs(math.log(value / last)) >= least:
                kept.append(value)
                last = value
    return sorted(kept)


def ratio_ticks(low: float, high: float) -> list[float]:
    """Where a ratio axis is labelled: at most nine round values between ``low`` and ``high``."""
    inside = [v for v in _LADDER if low <= v <= high]
    return inside if len(inside) <= 9 else [v for v in inside if v in _COARSE]
