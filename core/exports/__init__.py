"""Exports: what a format is called, and the one function a format needs. Records and Vega-Lite dictionaries in,
bytes out.

A data format is one file with ``write(report) -> bytes`` and one line in ``FORMATS``; a figure format is one line in
``FORMATS`` and one in ``core.exports.figure``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from core.errors import UserError
from core.exports import as_csv, as_json, as_markdown, figure
from core.model import Report

SHOWN = 40  # characters of a wrong name that a sentence repeats


@dataclass(frozen=True)
class Format:
    """One export format; ``kind`` says whether it holds the records or a picture of them."""

    name: str
    label: str
    suffix: str
    media_type: str
    kind: Literal["data", "figure"]


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("png", "PNG", "png", "image/png", "figure"),
        Format("svg", "SVG", "svg", "image/svg+xml", "figure"),
        Format("pdf", "PDF", "pdf", "application/pdf", "figure"),
        Format("html", "HTML", "html", "text/html", "figure"),
        Format("md", "Markdown", "md", "text/markdown", "data"),
        Format("csv", "CSV", "csv", "text/csv", "data"),
        Format("json", "JSON", "json", "application/json", "data"),
    )
}
_DATA: dict[str, Callable[[Report], bytes]] = {
    "csv": as_csv.write,
    "json": as_json.write,
    "md": as_markdown.write,
}


def format_named(name: str) -> Format:
    """The format of that name. Raises UserError naming those that exist."""
    try:
        return FORMATS[name.lower()]
    except KeyError:
        shown = name if len(name) <= SHOWN else f"{name[:SHOWN]}…"
        raise UserError(f"There is no export format {shown!r}; choose one of {', '.join(FORMATS)}.") from None


def export_data(report: Report, name: str) -> bytes:
    """The records of a report as csv, json or md. Raises UserError for a format that holds no records."""
    wanted = format_named(name)
    if wanted.kind != "data":
        raise UserError(f"{wanted.label} is a picture and holds no records; choose one of {', '.join(_DATA)}.")
    return _DATA[wanted.name](report)


def export_figure(spec: dict[str, Any], name: str) -> bytes:
    """A Vega-Lite specification as png, svg, pdf or html. Raises UserError for a format that is no picture."""
    wanted = format_named(name)
    if wanted.kind != "figure":
        raise UserError(f"{wanted.label} holds records and is no picture; choose one of {', '.join(figure.RENDERERS)}.")
    return figure.render(spec, wanted.name)
