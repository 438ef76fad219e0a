"""``flashpoint suites | submit | compare``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from app import reports
from app.bootstrap import Services
from app.cli import payload
from app.cli.console import Json, RunsFailed, Slower, print_json, print_table, say, services
from core import numerals, sentences, usecases
from core.errors import NotFound, UserError
from core.model import Report, RunState, RunView
from core.usecases import SubmitInput

POLL_S = 0.5


def add_to(app: typer.Typer) -> None:
    app.command("suites")(suites)
    app.command("submit")(submit)
    app.command("compare")(compare)


def suites(as_json: Json = False) -> None:
    """List suites, cases, variants and needs."""
    known = usecases.catalog()
    if as_json:
        print_json(
            [
                {
                    "suite": s.name,
                    "question": s.question,
                    "revision": s.revision,
                    "reference": s.reference,
                    "needs": s.needs,
                    "cases": [
                        {"id": c.id, "axes": c.axes, "variants": list(c.variants), "quick": c.quick} for c in s.cases
                    ],
                }
                for s in known
            ]
        )
        return
    for suite in known:
        print(f"{suite.name}  (revision {suite.revision}; needs {suite.needs})\n  {suite.question}")
        for case in suite.cases:
            print(f"  {case.id}{'  quick' if case.quick else ''}\n      {', '.join(case.variants)}")


def submit(
    suite: Annotated[list[str], typer.Option("--suite", help="A suite; may be repeated.")],
    build: Annotated[
        list[str], typer.Option("--build", help="A build such as 2.13.0; may be repeated; the first is the baseline.")
    ],
    case: Annotated[str | None, typer.Option("--case", help="Only cases that match this glob (* and ?).")] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="The build to compare with.")] = None,
    node: Annotated[
        str | None, typer.Option("--node", help="The node that measures; needed when there are several.")
    ] = None,
    preset: Annotated[str, typer.Option("--preset", help="quick, standard or thorough.")] = "quick",
    inline: Annotated[bool, typer.Option("--inline", help="Perform the runs in this process, with no broker.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end and print the verdicts.")] = False,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit with 1 when something became slower.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Queue cases on builds and, with --wait, print what changed."""
    from app import operate

    begun = time.monotonic()
    s = services()
    if inline:
        local = operate.register_node(s)
        if node not in (None, local):
            raise UserError(
                f"--inline measures on this machine, which is {local}, not on {str(node)[:80]!r}; leave --node out."
            )
        node = local
    given = SubmitInput(tuple(suite), case, tuple(build), baseline, node, preset)
    if inline:
        done = usecases.submit(s.store, s.queries, s.catalog, given)
        say("\n".join([*done.notes, f"Request {done.request_id}: {_runs_in_words(done.run_ids)}, in line."]))
        operate.perform_inline(s, done.run_ids, say)
    else:
        done, note = s.submit(given)
        queued = f"Request {done.request_id}: {_runs_in_words(done.run_ids)} queued. {note}".strip()
        say("\n".join([*done.notes, queued]))
        if wait or fail_on_regression:
            _wait(s, done.run_ids)
    runs = [s.queries.run(run_id) for run_id in done.run_ids]
    if as_json:
        print_json(payload.of_runs(s, done.request_id, runs, time.monotonic() - begun))
    elif wait or inline:
        for run in runs:
            _print_run(s, run)
    _judge(s, runs, fail_on_regression, waited=wait or inline or fail_on_regression)


def _runs_in_words(ids: tuple[int, ...]) -> str:
    return f"run {ids[0]}" if len(ids) == 1 else f"runs {', '.join(map(str, ids))}"


def _wait(s: Services, run_ids: tuple[int, ...]) -> None:
    """Waits for all runs to end and says, once each, what they are doing."""
    said: dict[int, str] = {}
    while True:
        runs = [s.queries.run(run_id) for run_id in run_ids]
        for run in runs:
            p = run.progress
            what = f"round {p.round} of {p.rounds}" if p.phase == "measuring" and p.round else p.detail or ""
            line = f"Run {run.id}: {run.state}" + (f", {what}" if what and not run.state.final else "")
            if said.get(run.id) != line:
                said[run.id] = line
                say(line)
        if all(run.state.final for run in runs):
            return
        time.sleep(POLL_S)


def _judge(s: Services, runs: list[RunView], fail_on_regression: bool, waited: bool) -> None:
    bad = [run for run in runs if run.state.final and run.state is not RunState.FINISHED]
    if waited and bad:
        raise RunsFailed(" ".join(f"Run {run.id} is {run.state}: {run.reason}" for run in bad))
    if fail_on_regression:
        worse = payload.slower([r for run in runs for r in reports.of_run(s.queries, s.catalog, run)])
        if worse:
            more = f" and {len(worse) - 3} more" if len(worse) > 3 else ""
            raise Slower(f"{numerals.count(len(worse), 'comparison')} became slower: {'; '.join(worse[:3])}{more}.")


def _print_run(s: Services, run: RunView) -> None:
    from app import frames

    found = reports.of_run(s.queries, s.catalog, run)
    for report in found:
        print_report(report)
    effects = reports.effects_of_run(s.queries, s.catalog, run)
    timed = [e for e in effects if e.metric == "time"]
    if timed:
        print("\nWhat each variant gains within its build")
        print_table(
            ["case · variant", "build", "verdict", "reference → variant", "ratio", "95 % interval", ""],
            [
                (
                    f"{e.case} · {e.variant}",
                    e.build,
                    frames.verdict_words(e),
                    numerals.old_new(e.reference_value, e.variant_value, e.unit) if e.verdict else "",
                    "" if e.ratio is None else f"{e.ratio:.3f}",
                    numerals.interval(e.ci_low, e.ci_high),
                    e.reason,
                )
                for e in timed
            ],
            right=["ratio"],
        )


def print_report(report: Report) -> None:
    """The sentence, how it was measured, and a row for each case and variant."""
    from app import exporting, frames  # the charts' libraries take a second; not every command needs them

    rows = sentences.of_metric(report.comparisons)
    print("\n" + sentences.compare(report).text)
    for line in exporting.facts(report):
        print(line)
    print_table(
        [
            "case · variant",
            "verdict",
            f"{report.baseline} → {report.contender}",
            "ratio",
            "95 % interval",
            "rounds",
            "",
        ],
        [
            (
                sentences.row_label(c),
                frames.verdict_words(c),
                numerals.old_new(c.baseline_value, c.contender_value, c.unit) if c.verdict else "",
                "" if c.ratio is None else f"{c.ratio:.3f}",
                numerals.interval(c.ci_low, c.ci_high),
                c.processes or "",
                c.reason,
            )
            for c in rows
        ],
        right=["ratio", "rounds"],
    )


def compare(
    base: Annotated[str, typer.Argument(help="The baseline build.")],
    contender: Annotated[str, typer.Argument(help="The build to compare with it.")],
    suite: Annotated[str | None, typer.Option("--suite", help="Only this suite.")] = None,
    node: Annotated[str | None, typer.Option("--node", help="The node; the one measured last when left out.")] = None,
    form: Annotated[str, typer.Option("--format", help="table, json, csv, md, html, png, svg or pdf.")] = "table",
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write to this file instead of standard output; - is standard output."),
    ] = None,
) -> None:
    """Compare two measured builds."""
    from app import exporting

    out = None if out == Path("-") else out
    s = services()
    report = _report(s, base, contender, suite, node)
    if form == "table":
        if out is not None:
            raise UserError("A table goes to the terminal only; name a --format such as csv, md or png for the file.")
        print_report(report)
        return
    data = exporting.compare_file(report, form, permalink_command(report))
    if out is None:
        if form in ("png", "pdf") and sys.stdout.isatty():
            raise UserError(f"{form} is not for a terminal; name a file with -o.")
        sys.stdout.buffer.write(data)
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise UserError(f"{str(out)!r} cannot be written: {error.strerror}; name another file with -o.") from error
    say(f"Wrote {len(data):,} bytes to {out}.")


def permalink_command(report: Report) -> str:
    """How to get the same comparison again from a shell."""
    return f"flashpoint compare {report.baseline} {report.contender} --node {report.node}"


def _report(s: Services, base: str, contender: str, suite: str | None, node: str | None) -> Report:
    nodes = s.queries.measured_nodes()
    if not nodes:
        raise NotFound("Nothing is measured yet; queue a run with `flashpoint submit` first.")
    if node is not None and node not in nodes:
        raise NotFound(f"Nothing is measured on {node[:80]!r}; there are results of {', '.join(nodes)}.")
    if suite is not None and suite not in {known.name for known in s.catalog}:
        raise NotFound(f"There is no suite {suite[:80]!r}; there are {', '.join(k.name for k in s.catalog)}.")
    where = node or nodes[0]
    labels = s.queries.measured_builds(where, suite)
    pair = [_label(s, text, where, labels) for text in (base, contender)]
    return reports.of_pair(s.queries, s.catalog, pair[0], pair[1], where, suite)


def _label(s: Services, text: str, node: str, labels: tuple[str, ...]) -> str:
    view = None if text in labels else s.queries.build(text)
    label = text if view is None else view.label
    if label not in labels:
        have = ", ".join(labels) or "none"
        raise NotFound(f"The build {text[:80]!r} is not measured on {node}; measured are: {have}.")
    return label
