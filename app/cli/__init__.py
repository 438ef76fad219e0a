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
        code = application()(args=arguments, standalone_mode=False)
    except UserError as error:
        fail(str(error), 2)
    except (RunFailed, Unavailable, RunsFailed) as error:
        fail(str(error), 3)
    except Slower as error:
        fail(str(error), 1)
    except FlashpointError as error:
        fail(str(error), 3)
    except KeyboardInterrupt:
        fail("Interrupted.", 130)
    except Exception as error:
        sentence = usage_error(error)
        if sentence is None:
            raise
        fail(sentence, 2)
    else:
        raise SystemExit(code if isinstance(code, int) else 0)


def usage_error(error: Exception) -> str | None:
    """The sentence of an error in how the command was written, None for any other.

    By its shape: some versions of typer use click, others carry their own copy of it.
    """
    context = getattr(error, "ctx", None)
    if getattr(error, "exit_code", None) is None or not hasattr(error, "format_message"):
        return None
    said = str(error.format_message()).strip()
    if "\n" in said:
        return said  # the whole help, where a command was given no words
    return said.rstrip(".") + (f"; see `{context.command_path} --help`." if context else ".")


def fail(sentence: str, code: int) -> None:
    """Says what went wrong on standard error and ends the process."""
    print(f"error: {sentence}" if code > 1 else sentence, file=sys.stderr)
    raise SystemExit(code)
