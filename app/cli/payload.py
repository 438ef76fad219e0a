"""The JSON of ``flashpoint submit --wait --json``: comparisons, measurements and effects of some runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app import reports
from app.bootstrap import Services
from core.exports import records
from core.model import Report, RunView, Verdict

WORSE = (Verdict.SLOWER, Verdict.WORSE)


def run_record(run: RunView) -> dict[str, Any]:
    """One run: state, reason, builds, times in ISO 8601 with zone."""
    return {
        "id": run.id,
        "request": run.request_id,
        "suite": run.plan.suite,
        "node": run.node,
        "device": run.plan.device,
        "preset": run.plan.preset,
        "builds": list(run.builds),
        "cases": len(run.plan.cases),
        "rounds": run.plan.rounds,
        "rounds_done": run.progress.round,
        "state": str(run.state),
        "reason": run.reason,
        "attempt": run.attempt,
        "seed": run.plan.seed,
        **{
            name: None if at is None else at.isoformat()
            for name, at in (
                ("queued_at", run.queued_at),
                ("prepared_at", run.prepared_at),
                ("started_at", run.started_at),
                ("finished_at", run.finished_at),
            )
        },
    }


def of_runs(services: Services, request_id: int, runs: Sequence[RunView], seconds: float) -> dict[str, Any]:
    """What a request found, by the keys that commands promise."""
    found = [report for run in runs for report in reports.of_run(services.queries, services.catalog, run)]
    effects = {(e.case, e.variant, e.build, e.metric, e.run_id): e for report in found for e in report.effects} | {
        (e.case, e.variant, e.build, e.metric, e.run_id): e
        for run in runs
        if len(run.builds) == 1
        for e in reports.effects_of_run(services.queries, services.catalog, run)
    }
    measured = services.queries.measurements([run.id for run in runs]) if runs else ()
    return {
        "request": request_id,
        "runs": [run_record(run) for run in runs],
        "comparisons": [records.of_comparison(c) for report in found for c in report.comparisons],
        "measurements": [records.of_measurement(m) for m in measured],
        "effects": [records.of_effect(e) for e in effects.values()],
        "seconds": round(seconds, 1),
    }


def slower(found: Sequence[Report]) -> list[str]:
    """The cases that became slower or worse, in words."""
    return [
        f"{c.case} · {c.variant} is {c.ratio:.3f}× on {c.contender}"
        for report in found
        for c in report.comparisons
        if c.verdict in WORSE and c.metric != "cpu_time"
    ]
