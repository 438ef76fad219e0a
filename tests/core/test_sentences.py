"""Sentences: the count is right, the tone is on the right words, every state of a run has its words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core import numerals, sentences
from core.model import ComparisonView, Geomean, Progress, RunPlan, RunState, RunView, Verdict
from tests.reports import AT, report


def _rows(*verdicts: str | None) -> list[ComparisonView]:
    one = next(c for c in report().comparisons if c.verdict)
    return [
        replace(one, case=f"s/c{i}", verdict=Verdict(v) if v else None, outcome="ok" if v else "failed")
        for i, v in enumerate(verdicts)
    ]


def _line(*verdicts: str | None) -> str:
    return "".join(s.text for s in sentences.verdict_line(_rows(*verdicts)))


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (("slower", "slower", "faster", "same", None), "Slower in 2, faster in 1 of 5 cases."),
        (("slower", "same"), "Slower in 1 of 2 cases."),
        (("faster",), "Faster in 1 of 1 case."),
        (("same", "same"), "The same in all 2 cases."),
        (("same",), "The same in the one case."),
        (("same", "unsure", None), "Nothing changed that we can see; the same in 1 of 3 cases."),
        (("unsure", None), "Unsure in 1 of 2 cases."),
        ((None, None), "None of 2 cases has a number."),
        ((None,), "The one case has no number."),
        ((), "Nothing is measured yet."),
    ],
)
def test_the_sentence_counts_every_case(verdicts: tuple[str | None, ...], said: str) -> None:
    assert _line(*verdicts) == said


def test_tones_are_on_the_words_that_judge() -> None:
    spans = sentences.verdict_line(_rows("slower", "faster"))
    assert [(s.text, s.tone) for s in spans][:3] == [("Slower in 1", "slower"), (", ", ""), ("faster in 1", "faster")]


def test_rows_of_several_variants_are_called_comparisons() -> None:
    made = report()
    assert "of 8 comparisons." in sentences.compare(made).text
    assert sentences.tally(sentences.of_metric(made.comparisons)).total == 8


def test_the_second_line_names_coverage_interval_and_what_has_no_number() -> None:
    more = "".join(s.text for s in sentences.compare(report()).more)
    assert "over the 6 of 8" in more
    assert "2 have no number: 1 failed, 1 unsupported." in more


def test_rows_without_a_number_of_one_kind_are_said_plainly() -> None:
    gone = [replace(c, outcome="unsupported") for c in _rows(None, None)]
    assert sentences.missing_line(gone) == "2 are unsupported."
    assert sentences.missing_line(gone[:1]) == "1 is unsupported."
    assert sentences.missing_line([]) == ""


@pytest.mark.parametrize(
    ("ratio", "low", "high", "word"),
    [
        (0.942, 0.933, 0.951, "faster"),
        (1.058, 1.049, 1.067, "slower"),
        (1.003, 1.001, 1.005, "= same"),
        (0.99, 0.97, 1.01, "= same"),
        (1.05, 0.95, 1.16, "? unsure"),
    ],
)
def test_the_mean_is_judged_as_single_rows_are(ratio: float, low: float, high: float, word: str) -> None:
    made = replace(report(), margin=0.1, geomean=Geomean(ratio, low, high, 6, 8))
    assert word in "".join(s.text for s in sentences.overall(made))


def test_how_long_a_run_took_counts_from_its_preparation() -> None:
    assert sentences.took_words(_run(RunState.FINISHED)) == "26 min"
    assert sentences.took_words(_run(RunState.CANCELLED, prepared_at=None)) == ""
    assert sentences.took_words(_run(RunState.RUNNING, finished_at=None)) == ""


def test_rows_of_one_case_are_said_to_be_of_it() -> None:
    assert sentences.of_one_case(_rows("same", "same")) == ""
    one = [replace(c, case="s/c") for c in _rows("same", "same")]
    assert sentences.of_one_case(one) == "; all rows are of s/c"
    assert sentences.of_one_case(one[:1]) == sentences.of_one_case([]) == ""


def test_one_of_one_is_singular() -> None:
    assert numerals.share(0, 1, "case") == "0 of 1 case"
    assert numerals.share(1, 5, "case") == "1 of 5 cases"


def test_a_busy_machine_is_not_blamed_on_pytorch() -> None:
    made = report()
    slower = next(c for c in made.comparisons if c.verdict == Verdict.SLOWER)
    witness = replace(slower, metric="cpu_time", verdict=Verdict.SAME)
    more = "".join(s.text for s in sentences.compare(replace(made, comparisons=(*made.comparisons, witness))).more)
    assert "In 1 of the slower ones CPU time did not move" in more


def test_the_worst_is_the_largest_slow_down_else_the_largest_gain() -> None:
    made = report()
    top = sentences.worst(made.comparisons)
    assert top is not None and top.verdict == Verdict.SLOWER
    assert top.ratio == max(c.ratio for c in made.comparisons if c.ratio and c.verdict == Verdict.SLOWER)
    gain = sentences.worst([c for c in made.comparisons if c.verdict != Verdict.SLOWER])
    assert gain is not None and gain.case == "cpu-fusion/layernorm_tail[n=256]"
    assert sentences.worst(_rows("same")) is None


def _run(state: RunState, **fields: object) -> RunView:
    plan = RunPlan("cpu-fusion", 1, ("a", "b"), ("1.10.2", "2.13.0"), "quick", 8, 0, 100.0)
    view = RunView(
        id=7,
        request_id=1,
        plan=plan,
        node="epyc-01",
        state=state,
        reason="",
        progress=Progress(),
        builds=("1.10.2+cpu", "2.13.0+cpu"),
        attempt=1,
        cancel_requested=False,
        queued_at=AT,
        prepared_at=AT + timedelta(seconds=10),
        started_at=None,
        finished_at=AT + timedelta(minutes=26, seconds=10),
        heartbeat_at=AT + timedelta(minutes=12),
        lease_until=None,
        position=None,
    )
    return replace(view, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", list(RunState))
def test_every_state_of_a_run_has_a_sentence_and_a_second_line(state: RunState) -> None:
    said = sentences.run(_run(state, progress=Progress(detail="Installing torch 1.10.2")), (), AT + timedelta(hours=1))
    assert said.text and said.text[0].isupper() and said.text.endswith(".")
    assert "".join(s.text for s in said.more)
    assert "Run 7 on epyc-01, cpu-fusion (2 cases), 2.13.0+cpu against 1.10.2+cpu, quick" in said.eyebrow


def test_the_reason_of_a_failed_run_is_its_second_line() -> None:
    said = sentences.run(_run(RunState.FAILED, reason="no space left on the device"), (), AT)
    assert said.text == "Failed at 04:06 UTC."
    assert said.more[0].text == "no space left on the device."


def test_a_running_run_says_where_it_is() -> None:
    progress = Progress(
        "measuring", case="cpu-fusion/chain[n=1]", round=3, rounds=8, cases_done=2, cases=5, seconds_left=130
    )
    said = sentences.run(_run(RunState.RUNNING, progress=progress), (), AT)
    assert said.text == "Running: 3 of 8 rounds done."
    assert said.more[0].text == "Now cpu-fusion/chain[n=1], 2 of 5 cases of this round. About 2 min left."


def test_a_finished_run_says_the_verdict_and_how_long_it_took() -> None:
    said = sentences.run(_run(RunState.FINISHED), [report()], AT)
    assert said.text.startswith("Slower in 2, faster in 2")
    assert "Finished in 26 min after 8 rounds." in said.more[0].text


@pytest.mark.parametrize(
    ("old", "new", "unit", "said"),
    [
        (412e-6, 463e-6, "s", "412 → 463 µs"),
        (1.93e-3, 2.09e-3, "s", "1.93 → 2.09 ms"),
        (999e-6, 1.2e-3, "s", "0.999 → 1.20 ms"),
        (4.128e-3, 512e-6, "s", "4.13 → 0.512 ms"),
        (4e-6, 41.2e-3, "s", "4.00 µs → 41.2 ms"),
        (0.0, 4.128e-3, "s", "0 → 4.13 ms"),
        (2.0**20, 3 * 2.0**20, "B", "1.00 → 3.00 MiB"),
        (0.0, 0.0, "1", "0 → 0"),
    ],
)
def test_both_values_are_said_in_three_digits_and_one_unit_where_that_reads_well(
    old: float, new: float, unit: str, said: str
) -> None:
    assert numerals.old_new(old, new, unit) == said


@pytest.mark.parametrize(
    ("ratio", "verdict", "said"),
    [
        (1.124, "slower", "↑ 12.4\u00a0% slower"),
        (0.872, "faster", "↓ 12.8\u00a0% faster"),
        (0.1176, "faster", "↓ 8.5× faster"),
        (1.2, "better", "↑ 20.0\u00a0% better"),
        (1.0, "same", "= same"),
        (1.3, "unsure", "? unsure"),
    ],
)
def test_a_verdict_is_said_with_sign_amount_and_word(ratio: float, verdict: str, said: str) -> None:
    assert numerals.said(ratio, verdict) == said


def test_a_run_with_two_contenders_counts_the_comparisons_of_both() -> None:
    assert "of 16 comparisons." in sentences.run(_run(RunState.FINISHED), [report(), report()], AT).text


def test_times_carry_their_zone() -> None:
    assert numerals.span(AT, AT + timedelta(minutes=32)) == "2026-11-30 03:40 to 04:12 UTC"
    assert numerals.span(AT, AT + timedelta(days=1)) == "2026-11-30 03:40 to 2026-12-01 03:40 UTC"
    assert numerals.moment(AT) == "2026-11-30 03:40 UTC"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (51, "51 s"), (1100, "18 min 20 s"), (17280, "4 h 48 min"), (3 * 86400, "3 days")],
)
def test_durations_have_two_units_at_most(seconds: float, said: str) -> None:
    assert numerals.duration(seconds) == said
