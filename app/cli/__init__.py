"""The command ``flashpoint``. Exit codes: 0 done, 1 a regression with --fail-on-regression, 2 wrong usage, 3 a run
failed.

JSON goes to standard output alone; progress and errors go to standard error.
"""

from __future__ import annotations

import sys

import typer

from app.cli import inventory, measure, queue, serve
from app.cli.console import RunsFailed, Slower
from core.errors import FlashpointError, RunFailed, Unavailable, UserError

__all__ = ["application", "main"]


def application() -> typer.Typer:
    """The command with all its subcommands."""
    app = typer.Typer(
        name="flashpoint",
        help="Benchmarks PyTorch builds side by side and says what changed, by how much and how surely.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for module in (serve, measure, queue, inventory):
        module.add_to(app)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Entry point: turns every error that carries a sentence into that sentence and an exit code."""
    try:
        application()(args=arguments, standalone_mode=True)
    except UserError as error:
        fail(str(error), 2)
    except (RunFailed, Unavailable, RunsFailed) as error:
        log = getattr(error, "log", "")
        fail(str(error) + (f"\n{log}" if log else ""), 3)
    except Slower as error:
        fail(str(error), 1)
    except FlashpointError as error:
        fail(str(error), 3)


def fail(sentence: str, code: int) -> None:
    """Says what went wrong on standard error and ends the process."""
    print(f"error: {sentence}" if code > 1 else sentence, file=sys.stderr)
    raise SystemExit(code)
