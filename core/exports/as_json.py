"""JSON: the whole report, keys as the commands promise them."""

from __future__ import annotations

import json

from core.exports.records import of_report
from core.model import Report


def write(report: Report) -> bytes:
    """The report as one indented JSON object in UTF-8; missing numbers are null, there is no NaN."""
    return json.dumps(of_report(report), indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"
