"""A report as a file in any export format; pages and the command line share it. No Streamlit."""

from __future__ import annotations

import re

from app import frames, theme
from app.charts.forest import forest
from core import numerals, sentences
from core.exports import export_data, export_figure, format_named
from core.model import Report


def compare_file(report: Report, name: str, permalink: str = "", mode: theme.Mode = "light") -> bytes:
    """The comparisons of a report as png, svg, pdf, html (the forest plot in its frame), md, csv or json.

    Raises UserError for a format that does not exist.
    """
    if format_named(name).kind == "data":
        return export_data(report, name)
    rows = sentences.of_metric(report.comparisons)
    chart = forest(frames.forest_rows(rows), mode, report.margin, step=30)
    framed = theme.figure(chart, sentences.compare(report).text, facts(report), permalink, mode, below=34)
    return export_figure(framed.to_dict(), name)


def facts(report: Report) -> list[str]:
    """The lines under an exported figure's title: what, where, how, when."""
    overall = "".join(s.text for s in sentences.compare(report).more)
    cpu = f" ({report.node_cpu})" if report.node_cpu else ""
    return [
        f"{report.contender} against {report.baseline} on {report.node}{cpu}, preset {report.preset}",
        f"{sentences.method(report)}; 95 % intervals; ±{numerals.percent(report.margin)} counts as the same",
        *([overall] if overall else []),
    ]


def file_name(report: Report, name: str) -> str:
    """A file name of harmless characters: ``2.13.0_against_1.10.2_on_epyc-01.csv``."""
    stem = f"{report.contender}_against_{report.baseline}_on_{report.node}"
    return f"{re.sub(r'[^A-Za-z0-9._+-]+', '-', stem)[:120]}.{format_named(name).suffix}"
