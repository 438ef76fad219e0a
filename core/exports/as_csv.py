"""CSV: one row a comparison, numbers in full precision, no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from core.exports.records import of_comparison
from core.model import Report

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?\Z", re.ASCII)
#: Spreadsheets read a cell that starts with one of these as a formula; the last four are the full-width forms.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def guarded(value: Any) -> Any:
    """The cell, with an apostrophe before text that a spreadsheet would take for a formula; ``-1.5`` stays a number."""
    if isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.match(value):
        return "'" + value
    return value


def write(report: Report) -> bytes:
    """All comparisons of a report, UTF-8 with a header line; a missing number is an empty cell."""
    rows = [{**of_comparison(c), "node": report.node} for c in report.comparisons]
    names = list(rows[0]) if rows else ["case", "variant", "metric", "verdict"]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([guarded(row[name]) for name in names] for row in rows)
    return out.getvalue().encode()
