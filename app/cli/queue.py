"""``flashpoint runs | cancel | retry``."""

from __future__ import annotations

from typing import Annotated

import typer

from app.bootstrap import Services
from app.cli import payload
from app.cli.console import Json, print_json, print_table, say, services
from core import numerals
from core.errors import UserError
from core.model import RunState, RunView

RunId = Annotated[str, typer.Argument(metavar="ID", help="The number of the run.")]


def add_to(app: typer.Typer) -> None:
    app.command("runs")(runs)
    app.command("cancel")(cancel)
    app.command("retry")(retry)


def runs(
    run: Annotated[str | None, typer.Argument(metavar="[ID]", help="Only this run, with its log.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """List runs, or show one."""
    s = services()
    if run is not None:
        _print_one(s, number(run), as_json)
        return
    found = s.queries.runs(limit=limit)
    if as_json:
        print_json([payload.run_record(run) for run in found])
        return
    if not found:
        print("No run is waiting or running; queue one with `flashpoint submit`.")
        return
    print_table(
        ["run", "suite", "builds", "node", "preset", "queued", "state"],
        [
            (
                run.id,
                run.plan.suite,
                " ".join(run.builds),
                run.node,
                run.plan.preset,
                numerals.moment(run.queued_at),
                _state(run),
            )
            for run in found
        ],
        right=["run"],
    )


def number(text: str) -> int:
    """The id that a person wrote. Raises UserError."""
    if not (text.isascii() and text.lstrip("-").isdigit() and len(text) < 30):
        raise UserError(f"{text[:40]!r} is no number of a run; `flashpoint runs` lists them.")
    return int(text)


def _print_one(s: Services, run_id: int, as_json: bool) -> None:
    run = s.queries.run(run_id)
    log = s.queries.run_log(run_id, 1000)
    if as_json:
        lines = [{"at": line.at.isoformat(), "text": line.text} for line in log]
        print_json({**payload.run_record(run), "log": lines})
        return
    print(f"Run {run.id}: {_state(run)}\n{run.plan.suite}, {', '.join(run.builds)}, on {run.node}")
    for line in log:
        print(f"{line.at:%H:%M:%S} {line.text}")


def _state(run: RunView) -> str:
    progress = run.progress
    if run.state is RunState.RUNNING:
        return f"running, {progress.round} of {progress.rounds} rounds"
    if run.state is RunState.QUEUED and run.position:
        return f"queued, number {run.position} on its node"
    return f"{run.state}{': ' + run.reason if run.reason else ''}"


def cancel(run_id: RunId) -> None:
    """Cancel a run: at once when it waits, within seconds when it runs."""
    state = services().cancel(number(run_id))
    say(f"Run {run_id} is cancelled." if state is RunState.CANCELLED else f"Run {run_id} is asked to stop.")


def retry(run_id: RunId) -> None:
    """Queue a failed, cancelled or lost run again."""
    note = services().retry(number(run_id))
    say(f"Run {run_id} is queued again." + (f" {note}" if note else ""))
