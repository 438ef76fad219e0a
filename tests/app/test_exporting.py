"""Files of a report: pictures draw what is shown, data hold everything, names are harmless."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from app import exporting, frames, theme
from app.bootstrap import Services
from app.charts.forest import forest
from app.reports import effects_of, of_pair, of_run
from core.catalog import catalog
from core.errors import NotFound, UserError
from core.sentences import of_metric
from tests.app.conftest import measured
from tests.reports import BASELINE, CONTENDER, NODE, report


@pytest.mark.parametrize("name", ["png", "svg", "pdf", "html"])
def test_a_picture_of_a_real_report_is_drawn(name: str) -> None:
    assert len(exporting.compare_file(report(), name, "http://127.0.0.1/compare")) > 5000


def test_a_picture_draws_what_is_shown_and_says_so_while_data_hold_everything() -> None:
    made = report()
    two = of_metric(made.comparisons)[:2]
    drawn = exporting.compare_file(made, "svg", drawn=two).decode()
    assert "Drawn: 2 of 8" in drawn and "36.2" in drawn and "failed<" not in drawn
    rows = list(csv.DictReader(io.StringIO(exporting.compare_file(made, "csv", drawn=two).decode())))
    assert len(rows) == len(made.comparisons)


def test_the_figure_says_the_facts() -> None:
    lines = " ".join(exporting.facts(report()))
    for part in (BASELINE, CONTENDER, NODE, "AMD EPYC", "13 interleaved rounds", "UTC", "±3", "over the 6 of 8"):
        assert part in lines


def test_a_figure_names_its_rows_in_full_and_wraps_its_facts() -> None:
    long = "cpu-fusion/" + "a_benchmark_with_a_name" + "[size=64,mode=forward_backward]"
    made = [replace(c, case=long) for c in of_metric(report().comparisons)[:2]]
    drawn = exporting.compare_file(report(), "svg", drawn=made).decode()
    full, short = f"{long} · {made[0].variant}", made[0].variant
    shown = {
        text: float(opacity)
        for opacity, text in re.findall(r'<text[^>]*?opacity="([01])"[^>]*>([^<]*)</text>', drawn)
        if text in (full, short)
    }
    assert shown == {full: 1.0, short: 0.0}
    lines = theme.figure(forest(frames.forest_rows(made)), "t", ["word " * 60], "http://x").to_dict()["title"]
    assert len(lines["subtitle"]) > 1 and max(map(len, lines["subtitle"])) * 6 < 860


def test_only_a_figure_speaks_of_grey() -> None:
    assert "(grey)" in " ".join(exporting.facts(report(), drawn=True))
    assert "grey" not in " ".join(exporting.facts(report()))
    assert "grey" not in exporting.compare_file(report(), "md").decode()


def test_file_names_hold_no_path_and_no_surprise() -> None:
    strange = replace(report(), contender="../../etc/passwd\x00 <b>")
    assert exporting.file_name(strange, "csv") == "..-..-etc-passwd-b-_against_1.10.2+cpu_on_epyc-01.csv"
    assert exporting.file_name(report(), "md").endswith(".md")


def test_the_distribution_frame_holds_the_median_of_each_round() -> None:
    sides = report().measurements[:2]
    rounds, unit = frames.round_rows(sides, BASELINE)
    assert unit == "µs" and list(rounds["build"].unique()) == [f"{BASELINE} (baseline)", CONTENDER]
    assert sides[0].sample is not None
    assert rounds["value"][0] == pytest.approx(sides[0].sample.rounds[0][1] * 1e6)


def test_reports_read_the_store(services: Services) -> None:
    run = measured(services)
    q = services.queries
    pair = of_pair(q, catalog(), BASELINE, CONTENDER, NODE)
    (alone,) = of_run(q, catalog(), q.run(run))
    assert [c.verdict for c in pair.comparisons] == [c.verdict for c in alone.comparisons]
    assert (pair.preset, pair.margin, len(pair.comparisons)) == ("standard", 0.03, 8)
    assert {e.build for e in effects_of(q, catalog(), pair)} == {BASELINE, CONTENDER}
    with pytest.raises(UserError, match="choose two different ones"):
        of_pair(q, catalog(), BASELINE, BASELINE, NODE)
    with pytest.raises(NotFound):
        of_pair(q, catalog(), BASELINE, CONTENDER, "nowhere")
