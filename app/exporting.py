"""A report as a file in any export format; pages and the command line share it. No Streamlit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app import frames, theme
from app.charts.forest import MOST, forest, name_room
from core import provenance, sentences
from core.exports import export_data, export_figure, format_named
from core.model import ComparisonView, Report

_WIDTH = 860  # pixels of a figure
_PLOT = 500  # pixels of it for the plot, the verdicts and the values


def compare_file(
    report: Report,
    name: str,
    permalink: str = "",
    mode: theme.Mode = "light",
    drawn: Sequence[ComparisonView] | None = None,
) -> bytes:
    """The comparisons of a report as png, svg, pdf, html (the forest plot in its frame), md, csv or json.

    ``drawn`` are the rows of a picture, all of metric ``time`` by default; a data format always holds everything.
    Raises UserError for a format that does not exist.
    """
    if format_named(name).kind == "data":
        return export_data(report, name)
    every = sentences.of_metric(report.comparisons)
    rows = every if drawn is None else drawn
    lines = facts(report, drawn=True)
    if len(rows) < len(every):
        lines.append(f"Drawn: {len(rows)} of {len(every)}")
    frame = frames.forest_rows(rows)
    # A figure is read away from its page, so names are whole and the picture as wide as they need.
    room = name_room(frame["label"].head(MOST))
    width = max(_WIDTH, room + _PLOT)
    share = (room + 1) / width
    chart = forest(frame, mode, report.margin, step=30, rest="in the data", share=share)
    below = 34 if len(rows) <= MOST else 52
    framed = theme.figure(chart, sentences.compare(report).text, lines, permalink, mode, width, below)
    return export_figure(framed.to_dict(), name)


def facts(report: Report, *, drawn: bool = False) -> list[str]:
    """What, where, how, when; ``drawn`` for the lines under a figure's title."""
    overall = "".join(s.text for s in sentences.overall(report)).strip()
    missing = sentences.missing_line(sentences.of_metric(report.comparisons))
    cpu = f" ({report.node_cpu})" if report.node_cpu else ""
    lines = [
        f"{report.contender} against {report.baseline} on {report.node}{cpu}, preset {report.preset}",
        f"{provenance.method(report)}; 95 % intervals; {provenance.band(report.margin, drawn=drawn)}",
        overall,
        missing,
    ]
    return [line for line in lines if line]


def file_name(report: Report, name: str) -> str:
    """A file name of harmless characters: ``2.13.0_against_1.10.2_on_epyc-01.csv``."""
    stem = f"{report.contender}_against_{report.baseline}_on_{report.node}"
    return f"{re.sub(r'[^A-Za-z0-9._+-]+', '-', stem)[:120]}.{format_named(name).suffix}"
