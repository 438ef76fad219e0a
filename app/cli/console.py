"""What commands share: options, the services, printing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app import bootstrap
from app.bootstrap import Services
from core.settings import settings_from

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output instead of a table.")]


class Slower(Exception):
    """With --fail-on-regression: something became slower or worse."""


class RunsFailed(Exception):
    """Runs ended without results."""


def services() -> Services:
    """Settings from the environment, the database at the newest schema. Raises UserError, Unavailable."""
    bootstrap.configure(settings_from(os.environ))
    return bootstrap.services()


def say(line: str) -> None:
    """Progress, on standard error."""
    print(line, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON value on standard output."""
    json.dump(value, sys.stdout, allow_nan=False, ensure_ascii=False, indent=2, default=str)
    sys.stdout.write("\n")


def print_table(heads: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[str] = ()) -> None:
    """A plain table; names stay whole where the terminal is wide enough, and nothing in a cell is markup."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    wide = None if sys.stdout.isatty() else 220
    Console(width=wide, highlight=False).print(table)
