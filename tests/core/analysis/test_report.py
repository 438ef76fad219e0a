from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
import pytest
from scipy import stats

from bench_suites.kit.metrics import METRICS, Metric
from core.analysis.geomean import T95
from core.analysis.report import Rule, build_effects, build_report, build_reports_for_run
from core.model import PRESETS, ComparisonView, MeasurementView, Outcome, Report, Sample, Verdict

NODE, OLD, NEW = "epyc-01", "1.10.2", "2.13.0"
START = datetime(2026, 11, 30, 3, 40, tzinfo=UTC)
RULE = PRESETS["quick"]
REFERENCES = {"fusion": "eager"}
_ids = count(1)


def measured(
    variant: str = "eager",
    build: str = OLD,
    value: float = 1e-3,
    *,
    case: str = "fusion/chain[n=256]",
    metric: str = "time",
    run: int = 1,
    rounds: int = 8,
    jitter: float = 0.0,
    seed: int = 0,
    outcome: Outcome = Outcome.OK,
    reason: str = "",
    revision: int = 1,
    node: str = NODE,
) -> MeasurementView:
    ok = outcome is Outcome.OK
    noise = np.exp(np.random.default_rng(seed).normal(0, jitter, rounds)) if jitter else np.ones(rounds)
    sample = Sample(
        tuple(range(1, rounds + 1)), tuple((value * n, value * n * 1.5, value * n * 0.9) for n in noise.tolist())
    )
    return MeasurementView(
        id=(number := next(_ids)),
        run_id=run,
        case=case,
        suite=case.split("/")[0],
        revision=revision,
        variant=variant,
        metric=metric,
        unit="s",
        build=build,
        node=node,
        outcome=outcome,
        reason=reason,
        value=value if ok else None,
        ci_low=None,
        ci_high=None,
        n=rounds if ok else 0,
        samples=3 * rounds if ok else 0,
        evidence={},
        measured_at=START + timedelta(minutes=number),
        sample=sample if ok else None,
    )


def report(*measurements: MeasurementView) -> Report:
    return build_report(
        measurements, baseline=OLD, contender=NEW, node=NODE, rule=RULE, references=REFERENCES, node_cpu="EPYC"
    )


def only(*measurements: MeasurementView) -> ComparisonView:
    (comparison,) = report(*measurements).comparisons
    return comparison


def test_a_pair_of_one_run_is_compared_with_both_values() -> None:
    found = only(measured(value=2e-3), measured(value=1e-3, build=NEW))
    assert (found.baseline_value, found.contender_value, found.ratio) == (2e-3, 1e-3, pytest.approx(0.5))
    assert (found.verdict, found.outcome, found.reason) == (Verdict.FASTER, "ok", "")
    assert (found.processes, found.samples, found.run_id, found.paired, found.reference) == (8, 48, 1, True, True)
    assert found.p_value == pytest.approx(2 / 2**8)


def test_drift_of_the_machine_does_not_show_in_a_paired_comparison() -> None:
    found = only(measured(jitter=0.5), measured(jitter=0.5, build=NEW, value=1.2e-3))
    assert (found.ci_low, found.ci_high) == (pytest.approx(1.2), pytest.approx(1.2))


def test_builds_of_different_runs_are_the_weaker_kind() -> None:
    found = report(measured(jitter=0.01, seed=1), measured(value=2e-3, build=NEW, run=2, jitter=0.01, seed=2))
    assert found.comparisons[0].verdict is Verdict.SLOWER
    assert (found.comparisons[0].paired, found.comparisons[0].run_id, found.paired, found.runs) == (
        False,
        None,
        False,
        (1, 2),
    )
    assert found.geomean.ratio == pytest.approx(2, rel=0.02)
    assert found.geomean.ci_low is None


def test_the_newest_run_that_has_both_builds_counts() -> None:
    found = only(
        measured(run=1), measured(run=1, build=NEW, value=2e-3),
        measured(run=2), measured(run=2, build=NEW, value=3e-3),
        measured(run=3, build=NEW, value=9e-3),
    )  # fmt: skip
    assert (found.run_id, found.ratio) == (2, pytest.approx(3))


def test_older_revisions_of_a_suite_and_other_nodes_are_left_aside() -> None:
    found = report(
        measured(revision=1, value=9.0), measured(revision=2), measured(revision=2, build=NEW, value=2e-3),
        measured(node="elsewhere", build=NEW, value=5.0, revision=2),
    )  # fmt: skip
    assert found.comparisons[0].ratio == pytest.approx(2)
    assert len(found.measurements) == 2


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
@pytest.mark.parametrize("silent", [OLD, NEW])
def test_a_side_without_a_number_says_why_and_is_no_number(outcome: Outcome, silent: str) -> None:
    other = NEW if silent == OLD else OLD
    found = only(measured(build=silent, outcome=outcome, reason="no LLVM back end"), measured(build=other))
    assert (found.outcome, found.reason) == (outcome.value, "no LLVM back end")
    assert (found.ratio, found.ci_low, found.p_value, found.verdict) == (None, None, None, None)
    assert (found.baseline_value is None) == (silent == OLD)
    assert (found.contender_value is None) == (silent == NEW)


def test_a_build_that_was_not_measured_is_not_run() -> None:
    found = only(measured())
    assert (found.outcome, found.verdict, found.contender_value) == ("not run", None, None)
    assert "2.13.0 has no measurement" in found.reason


def test_both_reasons_are_told_when_they_differ() -> None:
    no, bad = Outcome.UNSUPPORTED, Outcome.FAILED
    found = only(measured(outcome=no, reason="too old."), measured(build=NEW, outcome=bad, reason="it broke."))
    assert (found.outcome, found.reason) == ("failed", "1.10.2: too old. 2.13.0: it broke.")
    same = only(measured(outcome=no, reason="no GPU."), measured(build=NEW, outcome=no, reason="no GPU."))
    assert (same.outcome, same.reason) == ("unsupported", "no GPU.")
    half = only(measured(outcome=no, reason="no GPU."))
    assert (half.outcome, half.reason) == ("unsupported", "no GPU.")


def test_a_variant_that_failed_explains_all_its_metrics() -> None:
    found = report(
        measured(), measured(metric="cpu_time"),
        measured(build=NEW, outcome=Outcome.TIMED_OUT, reason="It took longer than 60 s."),
    )  # fmt: skip
    assert [(c.metric, c.outcome) for c in found.comparisons] == [("cpu_time", "timed out"), ("time", "timed out")]


def test_a_case_that_failed_before_its_variants_were_known_explains_them() -> None:
    broken = measured(variant="", build=NEW, outcome=Outcome.FAILED, reason="ImportError")
    assert [(c.variant, c.outcome) for c in report(measured(), measured("nnc"), broken).comparisons] == [
        ("eager", "failed"),
        ("nnc", "failed"),
    ]
    alone = only(broken)
    assert (alone.variant, alone.outcome) == ("", "failed")


def test_sorted_slower_faster_unsure_same_missing_then_by_p() -> None:
    rows = [("same", 1.0), ("faster", 0.5), ("slower", 2.0), ("slower-too", 2.0)]
    pairs = [
        m
        for name, ratio in rows
        for m in (measured(case=f"fusion/{name}"), measured(case=f"fusion/{name}", build=NEW, value=1e-3 * ratio))
    ]
    unsure = [
        measured(case="fusion/unsure", jitter=0.6, seed=1, run=1),
        measured(case="fusion/unsure", jitter=0.6, seed=2, build=NEW),
    ]
    weaker = [
        measured(case="fusion/slower-six", rounds=6),
        measured(case="fusion/slower-six", rounds=6, build=NEW, value=2e-3),
    ]
    found = report(*pairs, measured(case="fusion/a-missing"), *unsure, *weaker)
    assert [c.case.split("/")[1] for c in found.comparisons] == [
        "slower", "slower-too", "slower-six", "faster", "unsure", "same", "a-missing",
    ]  # fmt: skip


def test_notes_are_listed_and_never_judged() -> None:
    found = report(measured(metric="orthogonality_error"), measured(metric="orthogonality_error", build=NEW))
    assert found.comparisons == () and found.effects == ()
    assert len(found.measurements) == 2


@pytest.fixture
def more_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in (
        Metric("state_bytes", "B", "lower", "exact", "optimizer state"),
        Metric("throughput", "1/s", "higher", "timed", "samples per second"),
    ):
        monkeypatch.setitem(METRICS, row.name, row)


@pytest.mark.parametrize(
    ("old", "new", "ratio", "verdict"),
    [
        (32.0, 16.0, 0.5, Verdict.BETTER),
        (16.0, 32.0, 2.0, Verdict.WORSE),
        (16.0, 16.0, 1.0, Verdict.SAME),
        (100.0, 109.0, 1.09, Verdict.SAME),
        (0.0, 0.0, 1.0, Verdict.SAME),
        (0.0, 8.0, None, Verdict.WORSE),
    ],
)
def test_exact_metrics_are_judged_by_equality_and_margin(
    more_metrics: None, old: float, new: float, ratio: float | None, verdict: Verdict
) -> None:
    found = only(
        measured(metric="state_bytes", value=old, rounds=1),
        measured(metric="state_bytes", value=new, build=NEW, rounds=1),
    )
    assert found.verdict is verdict
    assert (found.ratio, found.p_value) == (ratio if ratio is None else pytest.approx(ratio), None)


def test_more_throughput_is_better(more_metrics: None) -> None:
    found = only(measured(metric="throughput", value=10), measured(metric="throughput", value=20, build=NEW))
    assert (found.ratio, found.verdict, found.better) == (pytest.approx(2), Verdict.BETTER, "higher")


def test_a_stored_value_that_cannot_be_is_said_and_hurts_no_other_row() -> None:
    found = report(
        measured(value=-1.0), measured(build=NEW),
        measured(case="fusion/good"), measured(case="fusion/good", build=NEW, value=2e-3),
    )  # fmt: skip
    assert [c.outcome for c in found.comparisons] == ["ok", "failed"]
    assert "positive" in found.comparisons[1].reason


def test_measurements_loaded_without_samples_are_a_bug_of_the_caller() -> None:
    from dataclasses import replace

    with pytest.raises(ValueError, match="without its sample"):
        report(replace(measured(), sample=None), measured(build=NEW))


def test_effects_set_each_variant_against_the_reference_of_its_build() -> None:
    effects = build_effects(
        [measured(value=1e-3), measured("nnc", value=1e-4), measured(build=NEW),
         measured("nnc", build=NEW, outcome=Outcome.UNSUPPORTED, reason="no LLVM")],
        builds=(OLD, NEW), rule=RULE, references=REFERENCES,
    )  # fmt: skip
    assert [(e.build, e.variant, e.reference, e.verdict, e.outcome, e.reason) for e in effects] == [
        (OLD, "nnc", "eager", Verdict.FASTER, "ok", ""),
        (NEW, "nnc", "eager", None, "unsupported", "no LLVM"),
    ]
    assert effects[0].ratio == pytest.approx(0.1)
    assert (effects[1].reference_value, effects[1].variant_value) == (1e-3, None)


def test_a_suite_without_a_known_reference_has_no_effects() -> None:
    assert build_effects([measured(), measured("nnc")], builds=(OLD,), rule=RULE, references={}) == ()


def test_a_run_of_three_builds_gives_each_contender_against_the_baseline() -> None:
    measurements = [measured(), measured(build="1.12.1", value=2e-3), measured(build=NEW, value=4e-3)]
    found = build_reports_for_run(
        measurements, (OLD, "1.12.1", NEW), node=NODE, rule=Rule("quick", 0.05, 0.1), references=REFERENCES
    )
    assert [(r.baseline, r.contender, r.comparisons[0].ratio) for r in found] == [
        (OLD, "1.12.1", pytest.approx(2)),
        (OLD, NEW, pytest.approx(4)),
    ]
    assert build_reports_for_run(measurements, (OLD,), node=NODE, rule=RULE, references=REFERENCES) == ()


def test_the_geomean_counts_all_variants_and_says_its_coverage() -> None:
    found = report(
        measured(), measured(build=NEW, value=2e-3), measured("nnc"), measured("nnc", build=NEW, value=0.5e-3),
        measured("jit"), measured(metric="cpu_time"), measured(metric="cpu_time", build=NEW, value=9.0),
    ).geomean  # fmt: skip
    assert found.ratio == pytest.approx(1.0)
    assert (found.measured, found.cases) == (2, 3)
    assert report().geomean.ratio is None


def test_the_interval_of_the_geomean_comes_from_rounds() -> None:
    shared = [
        m
        for case in ("a", "b", "c", "d")
        for m in (measured(case=f"fusion/{case}"), measured(case=f"fusion/{case}", build=NEW, jitter=0.05, seed=5))
    ]
    one, four = report(*shared[:2]).geomean, report(*shared).geomean
    # All four cases carry the same bias of their processes: four of them know no more than one.
    assert four.ci_low == pytest.approx(one.ci_low)
    own = [
        m
        for seed, case in enumerate(("a", "b", "c", "d"))
        for m in (
            measured(case=f"fusion/{case}"),
            measured(case=f"fusion/{case}", build=NEW, jitter=0.05, seed=seed + 20),
        )
    ]
    apart = report(*own).geomean
    assert one.ci_low and one.ci_high and apart.ci_low and apart.ci_high
    assert math.log(apart.ci_high / apart.ci_low) < math.log(one.ci_high / one.ci_low)
    assert report(measured(rounds=2), measured(rounds=2, build=NEW)).geomean.ci_low is None


def test_the_interval_of_the_geomean_covers_the_truth() -> None:
    rng, covered, runs = np.random.default_rng(11), 0, 200
    for _ in range(runs):
        ms = []
        for case, truth in (("a", 1.0), ("b", 1.3)):
            seed = int(rng.integers(2**32))
            ms += [
                measured(case=f"fusion/{case}"),
                measured(case=f"fusion/{case}", build=NEW, value=truth * 1e-3, jitter=0.03, seed=seed),
            ]
        found = report(*ms).geomean
        assert found.ci_low and found.ci_high
        covered += found.ci_low <= math.sqrt(1.3) <= found.ci_high
    assert covered / runs > 0.88


def test_the_table_of_t_is_scipys() -> None:
    assert pytest.approx(stats.t.ppf(0.975, np.arange(1, 31)), abs=6e-4) == T95


def test_the_report_says_when_and_with_what_rule() -> None:
    found = report(measured(), measured(build=NEW))
    assert (found.preset, found.alpha, found.margin, found.rounds, found.node_cpu) == ("quick", 0.05, 0.10, 8, "EPYC")
    assert found.measured_from and found.measured_to and found.measured_from < found.measured_to


def test_a_suite_that_only_one_build_was_asked_for_says_nothing_about_the_pair() -> None:
    foreign = [measured(case="other/case[n=1]", run=9), measured(case="other/case[n=1]", run=9, build="1.12.1")]
    found = report(measured(run=1), measured(run=1, build=NEW), *foreign)
    assert {c.suite for c in found.comparisons} == {"fusion"}
    assert found.runs == (1,)


def test_a_case_of_a_shared_suite_that_one_build_lacks_is_not_run_and_gives_no_time() -> None:
    extra = measured(case="fusion/chain[n=1024]", run=7)
    found = report(measured(run=1), measured(run=1, build=NEW), extra)
    assert {c.case: c.outcome for c in found.comparisons if c.metric == "time"}["fusion/chain[n=1024]"] == "not run"
    assert found.runs == (1,)


def test_nothing_compared_is_not_called_paired() -> None:
    assert not report(measured(run=1)).paired
    assert report(measured(run=1), measured(run=1, build=NEW)).paired
