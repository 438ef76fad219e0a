"""Reports for pages and commands: reads from the database, verdicts from the engine. No Streamlit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from core.analysis.report import build_effects, build_report, build_reports_for_run
from core.catalog import references
from core.errors import UserError
from core.model import PRESETS, EffectView, MeasurementView, Preset, Report, RunView, SuiteInfo
from db.queries import Queries


def of_pair(
    queries: Queries, catalog: Sequence[SuiteInfo], baseline: str, contender: str, node: str, suite: str | None = None
) -> Report:
    """Everything known about two builds (labels) on a node, held to the preset that most of its rows were measured by.

    Raises NotFound for the node, UserError when both builds are the same, Unavailable.
    """
    if baseline == contender:
        raise UserError(f"Both builds are {baseline}; choose two different ones.")
    found = queries.latest_measurements((baseline, contender), node, suite)
    return build_report(
        found,
        baseline=baseline,
        contender=contender,
        node=node,
        rule=_usual(queries, found),
        references=references(catalog),
        node_cpu=queries.node(node).cpu,
    )


def of_run(queries: Queries, catalog: Sequence[SuiteInfo], run: RunView) -> tuple[Report, ...]:
    """What one run says so far, one report a contender; empty while nothing is measured. Raises Unavailable."""
    found = queries.measurements([run.id], with_samples=True)
    if not found:
        return ()
    return build_reports_for_run(
        found,
        run.builds,
        node=run.node,
        rule=_preset(run),
        references=references(catalog),
        node_cpu=queries.node(run.node).cpu,
    )


def effects_of(queries: Queries, catalog: Sequence[SuiteInfo], report: Report) -> tuple[EffectView, ...]:
    """Variant effects in every build that the report's runs measured, oldest build first. Raises Unavailable."""
    found = queries.measurements(report.runs, with_samples=True)
    measured = {m.build for m in found}
    builds = [b for b in reversed(queries.measured_builds(report.node)) if b in measured]
    rule = PRESETS.get(report.preset, PRESETS["standard"])
    return build_effects(found, builds=builds, rule=rule, references=references(catalog))


def _usual(queries: Queries, found: Sequence[MeasurementView]) -> Preset:
    """The preset of most measurements, among equals that of the newest run."""
    of_run = Counter(m.run_id for m in found)
    votes: Counter[str] = Counter()
    for run_id in sorted(of_run, reverse=True):
        votes[queries.run(run_id).plan.preset] += of_run[run_id]
    name = votes.most_common(1)[0][0] if votes else "standard"
    return PRESETS.get(name, PRESETS["standard"])


def effects_of_run(queries: Queries, catalog: Sequence[SuiteInfo], run: RunView) -> tuple[EffectView, ...]:
    """Variant effects in every build of one run, in the order of its plan. Raises Unavailable."""
    found = queries.measurements([run.id], with_samples=True)
    return build_effects(found, builds=run.builds, rule=_preset(run), references=references(catalog))


def _preset(run: RunView) -> Preset:
    return PRESETS.get(run.plan.preset, PRESETS["standard"])
