"""Charts: their structure is held, and no text from data becomes part of a specification's logic."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from app import frames, theme
from app.charts.distribution import distribution
from app.charts.effect import effect
from app.charts.effect_forest import GAP, HEAD, LINE, effect_forest
from app.charts.forest import MOST, domain, forest
from core.exports import export_figure
from core.sentences import of_metric
from tests.reports import BASELINE, CONTENDER, report

MODES: tuple[theme.Mode, ...] = ("page", "light", "dark")
EVIL = "</script><img src=http://h/x onerror=alert(1)> datum.x) :material/bug: $x$ **b** \"'\\"


def _forest_rows() -> pd.DataFrame:
    return frames.forest_rows(of_metric(report().comparisons))


def _effect_rows() -> pd.DataFrame:
    made = [e for e in report().effects if e.metric == "time"]
    return frames.effect_rows(made)


def _round_rows() -> tuple[pd.DataFrame, str]:
    first = report().measurements[:2]
    return frames.round_rows(first, BASELINE)


def _charts(mode: theme.Mode) -> dict[str, dict[str, Any]]:
    rounds, unit = _round_rows()
    return {
        "forest": forest(_forest_rows(), mode).to_dict(),
        "effect": effect(_effect_rows(), mode).to_dict(),
        "effect_forest": effect_forest(_effect_rows(), BASELINE, CONTENDER, mode).to_dict(),
        "distribution": distribution(rounds, mode, unit=unit).to_dict(),
    }


def _marks(spec: dict[str, Any]) -> list[str]:
    return [layer["mark"]["type"] for layer in spec["layer"]]


def test_the_forest_has_its_layers_in_order() -> None:
    spec = forest(_forest_rows()).to_dict()
    assert _marks(spec) == ["rect", "rule", "text", "text", "rule", "point", "text", "text", "text", "text"]
    assert spec["height"] == 36 * len(_forest_rows())
    assert spec["width"] == "container"
    scale = spec["layer"][0]["encoding"]["x"]["scale"]
    low, high = scale["domain"]
    assert scale["type"] == "log" and low < 0.12 and high > 1.37


def test_the_forest_keeps_the_order_of_verdicts_and_what_has_no_number_at_the_bottom() -> None:
    spec = forest(_forest_rows().sample(frac=1, random_state=1)).to_dict()
    rows = next(d for d in spec["datasets"].values() if len(d) == len(_forest_rows()))
    rank = {"slower": 0, "faster": 1, "unsure": 2, "same": 3, None: 4}
    ranks = {r["label"]: rank[r["verdict"]] for r in rows}
    order = [ranks[label] for label in spec["layer"][2]["encoding"]["y"]["sort"]]
    assert order == sorted(order) and set(order) == {0, 1, 2, 3, 4}


def test_the_margin_is_drawn_as_it_was_used() -> None:
    spec = forest(_forest_rows(), margin=0.1).to_dict()
    band = next(d for d in spec["datasets"].values() if "one" in d[0])[0]
    assert band == {"a": pytest.approx(1 / 1.1), "b": pytest.approx(1.1), "one": 1.0}


def test_a_long_forest_says_what_it_does_not_draw() -> None:
    one = _forest_rows().head(1)
    many = pd.concat([one.assign(label=f"c{i}") for i in range(MOST + 12)])
    spec = forest(many).to_dict()
    assert spec["height"] == 36 * MOST
    assert {"text": "and 12 more in the table"} in [d[0] for d in spec["datasets"].values()]


def test_a_forest_without_any_number_still_draws_its_rows() -> None:
    gone = _forest_rows()
    gone = gone[gone["ratio"].isna()]
    assert len(gone) == 2
    assert domain(gone, 0.03)[0] < 1 < domain(gone, 0.03)[1]
    assert export_figure(
        theme.figure(forest(gone, "light"), "t", ["f"], "http://x", below=30).to_dict(), "svg"
    ).startswith(b"<svg")


def test_the_effect_chart_keeps_the_place_of_a_build_that_lacks_the_variant() -> None:
    spec = effect(_effect_rows()).to_dict()
    x = spec["layer"][2]["encoding"]["x"]
    assert x["scale"]["domain"] == ["1.10.2+cpu", "2.13.0+cpu"]
    assert any("unsupported" in json.dumps(d) for d in spec["datasets"].values())


def _many(variants: int, builds: tuple[str, ...] = (BASELINE, CONTENDER), **fields: object) -> pd.DataFrame:
    one = next(e for e in report().effects if e.metric == "time" and e.verdict)
    made = [replace(one, variant=f"v{k}", build=b, **fields) for k in range(variants) for b in builds]  # type: ignore[arg-type]
    return frames.effect_rows(made)


def test_many_variants_have_a_named_line_for_each_build_and_no_colour_twice() -> None:
    builds = (BASELINE, CONTENDER, "2.0.1", "1.12.1")
    spec = effect_forest(_many(9, builds), BASELINE, CONTENDER, "light").to_dict()
    assert spec["height"] == 9 * (HEAD + 4 * LINE + GAP)
    encoding = next(la["encoding"] for la in spec["layer"] if "shape" in la["encoding"])
    look = {
        name: dict(zip(encoding[name]["scale"]["domain"], encoding[name]["scale"]["range"], strict=True))
        for name in ("color", "shape")
    }
    assert (look["color"][BASELINE], look["shape"][BASELINE]) == (theme.LIGHT.ink3, "circle")
    assert (look["color"][CONTENDER], look["shape"][CONTENDER]) == (theme.LIGHT.accent, "diamond")
    assert len(set(look["color"].values())) == len(set(look["shape"].values())) == 4


def test_the_largest_gain_comes_first_and_what_has_no_number_last() -> None:
    rows = _many(3).assign(ratio=[0.9, 0.9, float("nan"), float("nan"), 0.2, 0.3])
    spec = effect_forest(rows, BASELINE, CONTENDER).to_dict()
    heads = next(d for d in spec["datasets"].values() if "head" in d[0] and len(d) == 3)
    assert [h["variant"] for h in heads] == ["v2", "v0", "v1"]


@pytest.mark.parametrize("ends", [(None, None), (0.9, float("inf"))])
def test_effects_that_have_no_interval_yet_are_drawn_in_their_size(ends: tuple[float | None, float | None]) -> None:
    rows = _many(3, ratio=0.95, ci_low=ends[0], ci_high=ends[1])
    spec = effect(rows, "light").to_dict()
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert 0.5 < low < 0.95 < high < 2 and spec["height"] == 300
    many = effect_forest(rows, BASELINE, CONTENDER, "light").to_dict()
    low, high = many["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert 0.5 < low < 0.95 < high < 2
    for drawn in (spec, many):
        assert export_figure(drawn | {"width": 700}, "svg").startswith(b"<svg")


def test_large_effects_of_a_build_do_not_write_over_each_other() -> None:
    rows = _many(3, (BASELINE,)).assign(ratio=[0.2, 0.201, 0.4])
    spec = effect(rows).to_dict()
    words = {row["variant"] for d in spec["datasets"].values() if "above" in d[0] for row in d}
    assert words == {"v0", "v2"}


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.12), (0.08, 1.4), (0.5, 300), (0.97, 1.03)])
def test_a_narrow_axis_keeps_its_one(low: float, high: float) -> None:
    wide, narrow = re.findall(r"\[.*?\]", str(theme.folding_ticks(low, high).to_dict()["expr"]))
    assert 1 in json.loads(narrow) and len(json.loads(narrow)) <= 5
    assert set(json.loads(narrow)) <= set(json.loads(wide))


def test_the_distribution_has_one_dot_a_round() -> None:
    rounds, unit = _round_rows()
    assert unit == "µs" and len(rounds) == 26
    spec = distribution(rounds, unit=unit).to_dict()
    assert _marks(spec) == ["rule", "circle", "point", "text", "text"]
    assert 26 in [len(d) for d in spec["datasets"].values()]


def test_the_contender_alone_is_not_called_the_baseline() -> None:
    only = [m for m in report().measurements if m.build == CONTENDER and m.sample][:1]
    rounds, unit = frames.round_rows(only, BASELINE)
    assert set(rounds["build"]) == {CONTENDER} and not rounds["baseline"].any()
    colour = distribution(rounds, "light", unit=unit).to_dict()["layer"][1]["encoding"]["color"]["scale"]
    assert colour["domain"] == [CONTENDER] and colour["range"] == [theme.LIGHT.accent]


def test_rows_of_several_suites_keep_their_suite_and_rows_of_one_case_are_named_by_variant() -> None:
    rows = of_metric(report().comparisons)
    assert not frames.forest_rows(rows)["short"].str.contains("cpu-fusion").any()
    mixed = [*rows, replace(rows[0], suite="parametrizations", case="parametrizations/linear[size=64]")]
    assert frames.forest_rows(mixed)["short"].str.contains("/").all()
    one_case = [replace(rows[0], variant=v) for v in ("a", "b")]
    assert list(frames.forest_rows(one_case)["short"]) == ["a", "b"]


def test_equal_rounds_do_not_divide_by_zero() -> None:
    same = pd.DataFrame({"build": ["a"] * 8, "baseline": True, "value": [4.0] * 8, "said": "8 rounds"})
    assert export_figure(distribution(same, "light").to_dict() | {"width": 400}, "svg").startswith(b"<svg")


@pytest.mark.parametrize("mode", MODES)
def test_pages_use_variables_and_exports_use_colours(mode: theme.Mode) -> None:
    for name, spec in _charts(mode).items():
        text = json.dumps(spec)
        assert ("var(--" in text) is (mode == "page"), name
        assert ("#AD4108" in text or "#F7995C" in text or name != "forest") or mode == "page"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_figure_carries_sentence_facts_and_permalink(mode: theme.Mode) -> None:
    chart = theme.figure(
        forest(_forest_rows(), mode),
        "Slower in 2.",
        ["on epyc-01"],
        "http://127.0.0.1:8501/compare?x=1",
        mode,
        below=30,
    )
    spec = chart.to_dict()
    assert spec["title"]["text"] == "Slower in 2." and spec["title"]["subtitle"] == ["on epyc-01"]
    assert spec["width"] == 860 and "autosize" not in spec
    assert any(d == [{"link": "http://127.0.0.1:8501/compare?x=1"}] for d in spec["datasets"].values())
    drawn = export_figure(spec, "svg").decode()
    assert "Slower in 2." in drawn and "slower" in drawn


def test_text_from_data_stays_data() -> None:
    """Names appear in datasets, domains and sort lists, never in an expression, and an SVG holds them escaped."""
    rows = _forest_rows().assign(label=[f"{EVIL}{i}" for i in range(len(_forest_rows()))], reason=EVIL)
    spec = forest(rows, "light").to_dict()
    spec.pop("datasets")
    for layer in spec["layer"]:
        layer["encoding"].get("y", {}).pop("sort", None)
    assert "onerror" not in json.dumps(spec)
    drawn = export_figure(theme.figure(forest(rows, "light"), EVIL, [EVIL], EVIL, below=30).to_dict(), "svg").decode()
    assert "<img" not in drawn and "&lt;img" in drawn
    page = export_figure(theme.figure(forest(rows, "light"), EVIL, [EVIL], EVIL, below=30).to_dict(), "html").decode()
    assert "</script><img" not in page


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.12), (0.08, 1.4), (0.001, 1000), (0.97, 1.03)])
def test_ratio_axes_have_few_labels_and_always_one(low: float, high: float) -> None:
    ticks = theme.ratio_ticks(low, high)
    assert 1 in ticks and len(ticks) <= 15
    assert all(low <= t <= high for t in ticks)
