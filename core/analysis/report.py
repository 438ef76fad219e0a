"""Measurements of builds on one node -> comparisons, effects and their geometric mean: the one read path to a verdict.

Every page, export and command gets its numbers from here. Metrics of kind ``timed`` are judged by statistics over
rounds, those of kind ``exact`` by equality and margin, and a ``note`` is only listed among the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from bench_suites.kit.metrics import METRICS
from core.analysis.geomean import geomean
from core.analysis.sides import NOT_RUN, Judged, Table, judge
from core.model import ComparisonView, EffectView, MeasurementView, Preset, Report, Verdict

ORDER = {
    Verdict.SLOWER: 0,
    Verdict.WORSE: 0,
    Verdict.FASTER: 1,
    Verdict.BETTER: 1,
    Verdict.UNSURE: 2,
    Verdict.SAME: 3,
    None: 4,
}


@dataclass(frozen=True)
class Rule:
    """What a verdict is held to: the preset's name, two-sided error level, equivalence margin."""

    preset: str
    alpha: float
    margin: float

    @classmethod
    def of(cls, preset: Preset) -> Rule:
        return cls(preset.name, preset.alpha, preset.margin)


def build_report(
    measurements: Sequence[MeasurementView],
    *,
    baseline: str,
    contender: str,
    node: str,
    rule: Rule | Preset,
    references: Mapping[str, str],
    node_cpu: str = "",
) -> Report:
    """Everything known about two builds (labels) on one node.

    ``measurements`` hold the samples of both builds, from one run or several; those of other builds and nodes are left
    aside, and so are suites that only one of them was asked for. Of a case measured several times the newest run that
    has both builds counts, and it is a paired comparison; where no run has both, the newest of each build are compared
    unpaired. Of a suite with several revisions only the newest counts. Runs and times are those of cases that both
    have. ``references`` names the reference variant of each suite.

    Raises ValueError when an ok measurement was loaded without its sample.
    """
    rule = Rule.of(rule) if isinstance(rule, Preset) else rule
    used = shared([m for m in newest_revisions(measurements) if m.node == node], baseline, contender)
    table = Table(used)
    judged: list[tuple[ComparisonView, Judged]] = []
    for case, variant, metric in table.rows():
        found = judge(table, (case, variant, baseline), (case, variant, contender), metric, rule.alpha, rule.margin)
        judged.append((_comparison(found, table, case, variant, metric, baseline, contender, references), found))
    judged.sort(key=lambda pair: sort_key(pair[0]))
    comparisons = tuple(view for view, _ in judged)
    timed = [found for view, found in judged if view.metric == "time"]
    judged_rows = [c for c in comparisons if c.verdict is not None]
    rests_on = side_by_side(used, baseline, contender)
    runs = {m.run_id for m in rests_on}
    return Report(
        baseline=baseline,
        contender=contender,
        node=node,
        node_cpu=node_cpu,
        preset=rule.preset,
        margin=rule.margin,
        alpha=rule.alpha,
        rounds=max((c.processes for c in comparisons), default=0),
        paired=bool(judged_rows) and all(c.paired for c in judged_rows),
        comparisons=comparisons,
        effects=build_effects(used, builds=(baseline, contender), rule=rule, references=references),
        measurements=tuple(used),
        geomean=geomean(timed),
        runs=tuple(sorted(runs)),
        measured_from=min((m.measured_at for m in rests_on), default=None),
        measured_to=max((m.measured_at for m in rests_on), default=None),
    )


def build_reports_for_run(
    measurements: Sequence[MeasurementView],
    builds: Sequence[str],
    *,
    node: str,
    rule: Rule | Preset,
    references: Mapping[str, str],
    node_cpu: str = "",
) -> tuple[Report, ...]:
    """One report for each contender of a run against its baseline, which is the first of ``builds`` (labels)."""
    return tuple(
        build_report(
            measurements,
            baseline=builds[0],
            contender=contender,
            node=node,
            rule=rule,
            references=references,
            node_cpu=node_cpu,
        )
        for contender in dict.fromkeys(builds[1:])
        if contender != builds[0]
    )


def build_effects(
    measurements: Sequence[MeasurementView],
    *,
    builds: Sequence[str],
    rule: Rule | Preset,
    references: Mapping[str, str],
) -> tuple[EffectView, ...]:
    """Each variant against the reference variant of the same build, for every build of ``builds`` (in that order).

    Both are forks of one zygote that took turns, so they are paired whenever one run measured both.
    """
    rule = Rule.of(rule) if isinstance(rule, Preset) else rule
    table = Table(newest_revisions(measurements))
    effects = []
    for case, variant, metric in table.rows():
        reference = reference_of(references, case, table.suite(case))
        if not reference or variant == reference or (case, reference) not in table.variants():
            continue
        for build in dict.fromkeys(builds):
            found = judge(table, (case, reference, build), (case, variant, build), metric, rule.alpha, rule.margin)
            if found.outcome != NOT_RUN or table.has(case, build):
                effects.append(_effect(found, table, case, variant, reference, metric, build))
    return tuple(effects)


def reference_of(references: Mapping[str, str], case: str, suite: str) -> str:
    """The reference variant of a case: its own, else its suite's, else none."""
    return references.get(case) or references.get(suite, "")


def newest_revisions(measurements: Iterable[MeasurementView]) -> list[MeasurementView]:
    """Without those of older suite revisions: a series ends where the measured work changed."""
    kept = list(measurements)
    newest: dict[str, int] = {}
    for m in kept:
        newest[m.suite] = max(m.revision, newest.get(m.suite, m.revision))
    return [m for m in kept if m.revision == newest[m.suite]]


def shared(measurements: Sequence[MeasurementView], baseline: str, contender: str) -> list[MeasurementView]:
    """Those of both builds, of suites that both were asked for.

    A case of such a suite that only one of them has is *not run* on the other; a suite that only one of them was ever
    asked for says nothing about the pair. Where they share no suite, everything is kept, to say what each of them has.
    """
    of_pair = [m for m in measurements if m.build in (baseline, contender)]
    asked = [{m.suite for m in of_pair if m.build == build} for build in (baseline, contender)]
    return [m for m in of_pair if m.suite in asked[0] & asked[1]] or of_pair


def side_by_side(measurements: Sequence[MeasurementView], baseline: str, contender: str) -> list[MeasurementView]:
    """Those of cases that both builds have: what a comparison can rest on."""
    have = [{m.case for m in measurements if m.build == build} for build in (baseline, contender)]
    return [m for m in measurements if m.case in have[0] & have[1]]


def sort_key(view: ComparisonView) -> tuple[int, float, float, str, str, str]:
    """Slower, faster, unsure, same, then those without a number; within each by p, then the largest change first."""
    size = abs(log(view.ratio)) if view.ratio else 0.0
    p = 1.0 if view.p_value is None else view.p_value
    return (ORDER[view.verdict], p, -size, view.case, view.variant, view.metric)


def _comparison(
    found: Judged,
    table: Table,
    case: str,
    variant: str,
    metric: str,
    baseline: str,
    contender: str,
    references: Mapping[str, str],
) -> ComparisonView:
    suite = table.suite(case)
    return ComparisonView(
        case=case,
        suite=suite,
        variant=variant,
        reference=variant == reference_of(references, case, suite),
        metric=metric,
        unit=METRICS[metric].unit,
        better=METRICS[metric].better,
        baseline=baseline,
        contender=contender,
        baseline_value=found.left,
        contender_value=found.right,
        ratio=found.ratio,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p_value=found.p_value,
        verdict=found.verdict,
        outcome=found.outcome,
        reason=found.reason,
        paired=found.paired,
        processes=found.rounds,
        samples=found.samples,
        run_id=found.run_id,
    )


def _effect(
    found: Judged, table: Table, case: str, variant: str, reference: str, metric: str, build: str
) -> EffectView:
    return EffectView(
        case=case,
        suite=table.suite(case),
        variant=variant,
        reference=reference,
        build=build,
        metric=metric,
        unit=METRICS[metric].unit,
        reference_value=found.left,
        variant_value=found.right,
        ratio=found.ratio,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p_value=found.p_value,
        verdict=found.verdict,
        outcome=found.outcome,
        reason=found.reason,
        run_id=found.run_id,
    )
