"""Markdown: the sentence, how it was measured, and the table, ready for an issue or a chat."""

from __future__ import annotations

import re

from core import numerals, provenance, sentences
from core.model import ComparisonView, Report

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&]|:(?=\w+:))")
_SPACE = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def text(value: str) -> str:
    """Text that shows literally: control characters become spaces, Markdown and HTML lose their meaning."""
    return _SPECIAL.sub(r"\\\1", _SPACE.sub(" ", value))


def code(value: str) -> str:
    """A name as a code span inside a table cell."""
    value = _SPACE.sub(" ", value).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", value)), default=0))
    edge = " " if len(fence) > 1 else ""
    return f"{fence}{edge}{value}{edge}{fence}"


def _row(c: ComparisonView) -> str:
    known = c.ratio is not None and c.verdict is not None
    word = numerals.said(c.ratio, c.verdict) if c.ratio is not None and c.verdict is not None else ""
    cells = [
        code(c.case),
        code(c.variant),
        word if known else numerals.outcome_said(c.outcome if c.outcome != "ok" else "not run"),
        numerals.old_new(c.baseline_value, c.contender_value, c.unit) if known else text(c.reason),
        numerals.times(c.ratio),
        numerals.interval(c.ci_low, c.ci_high),
        "" if c.p_value is None else f"{c.p_value:.2g}",
    ]
    return "| " + " | ".join(cells) + " |"


def write(report: Report) -> bytes:
    """The comparisons of the metric ``time`` as a table under their sentence."""
    rows = sentences.of_metric(report.comparisons)
    answer = sentences.compare(report)
    lines = [
        f"**{text(answer.text)}**",
        "",
        text("".join(s.text for s in answer.more)),
        "",
        f"{text(answer.eyebrow)}. 95 % intervals; {provenance.band(report.margin, drawn=False)}.",
        "",
        "| case | variant | verdict | baseline → contender | ratio | 95 % interval | p |",
        "| --- | --- | --- | --- | ---: | --- | ---: |",
        *map(_row, rows),
    ]
    return "\n".join(lines).encode() + b"\n"
