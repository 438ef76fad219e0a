"""Exports: every format is what it says, holds every row, and gives nobody a formula or a fetch."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import FlashpointError, UserError
from core.exports import FORMATS, as_markdown, export_data, export_figure, format_named
from core.exports.as_csv import guarded
from core.exports.figure import FONT_PACKAGES, font_folder
from core.model import Report
from tests.reports import measurement, report

SPEC = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "data": {"values": [{"a": 1, "b": 2}, {"a": 2, "b": 1}]},
    "mark": "point",
    "width": 120,
    "height": 60,
    "title": "A title in Plex",
    "config": {"font": "IBM Plex Sans"},
    "encoding": {"x": {"field": "a", "type": "quantitative"}, "y": {"field": "b", "type": "quantitative"}},
}


def _csv(made: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(export_data(made, "csv").decode())))


def test_csv_holds_every_comparison_with_full_precision() -> None:
    made = report()
    rows = _csv(made)
    assert [(r["case"], r["variant"]) for r in rows] == [(c.case, c.variant) for c in made.comparisons]
    for row, c in zip(rows, made.comparisons, strict=True):
        assert (float(row["ratio"]) if row["ratio"] else None) == c.ratio
        assert row["verdict"] == ("" if c.verdict is None else str(c.verdict))
    assert {r["outcome"] for r in rows if not r["verdict"]} == {"failed", "unsupported"}


def test_csv_of_a_report_without_rows_is_a_header() -> None:
    assert export_data(replace(report(), comparisons=()), "csv").decode().count("\n") == 1


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|x", "-2+3", "@SUM(A1)", "\tx", "\rx", "＝1", "-1.5.2", "-"])
def test_a_cell_that_a_spreadsheet_would_run_is_guarded(cell: str) -> None:
    assert guarded(cell) == "'" + cell


@pytest.mark.parametrize("cell", ["-1.5", "+3e-6", "-.5", "12", "a=b", "cpu-fusion/x[n=1]", "", -1.5, None, True])
def test_numbers_and_harmless_text_stay_as_they_are(cell: object) -> None:
    assert guarded(cell) == cell


def test_a_formula_as_a_reason_is_guarded_in_the_file() -> None:
    made = report()
    rows = tuple(replace(c, reason="=HYPERLINK(1)") if c.verdict is None else c for c in made.comparisons)
    assert {r["reason"] for r in _csv(replace(made, comparisons=rows)) if r["reason"]} == {"'=HYPERLINK(1)"}


def test_json_parses_strictly_and_has_the_promised_keys() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    made = report()
    endless = tuple(replace(c, ci_high=float("inf")) if c.ci_high else c for c in made.comparisons)
    found = json.loads(export_data(replace(made, comparisons=endless), "json"), parse_constant=refuse)
    promised = {"case", "variant", "metric", "unit", "better", "baseline", "contender", "ratio", "ci_low", "ci_high"}
    assert promised | {"verdict", "processes", "samples"} <= set(found["comparisons"][0])
    assert {"case", "variant", "reference", "build", "metric", "ratio", "ci_low", "ci_high", "verdict"} <= set(
        found["effects"][0]
    )
    assert {"case", "variant", "build", "metric", "unit", "value", "outcome", "reason"} <= set(found["measurements"][0])
    assert all(c["ci_high"] is None for c in found["comparisons"])


def test_markdown_is_one_table_of_every_row_whatever_the_names_hold() -> None:
    name = "x/`a`|b[![p](http://h/i.png)]"
    made = report(made=[measurement(name, "eager", b, [1.0] * 8) for b in ("1.10.2+cpu", "2.13.0+cpu")])
    lines = export_data(made, "md").decode().splitlines()
    table = [line for line in lines if line.startswith("| ")]
    assert len(table) == 2 + len(made.comparisons)
    unescaped = [line.replace("\\|", "").count("|") for line in table]
    assert set(unescaped) == {8}
    assert "`` x/`a`\\|b" in table[2]


@given(st.text(max_size=60))
def test_markdown_text_stays_on_one_line_and_opens_no_link(value: str) -> None:
    shown = as_markdown.text(value)
    assert "\n" not in shown and "\r" not in shown
    assert not any(c == "[" and (i == 0 or shown[i - 1] != "\\") for i, c in enumerate(shown))


@pytest.mark.parametrize(
    ("name", "magic"), [("png", b"\x89PNG\r\n"), ("svg", b"<svg"), ("pdf", b"%PDF-"), ("html", b"<!DOCTYPE html>")]
)
def test_a_figure_is_what_its_format_says(name: str, magic: bytes) -> None:
    picture = export_figure(SPEC, name)
    assert picture.startswith(magic)
    assert len(picture) > 1000


def test_an_html_figure_asks_no_other_host() -> None:
    text = export_figure(SPEC, "html").decode()
    assert "<script src" not in text
    assert "cdn." not in text


def test_the_fonts_are_drawn_and_not_replaced() -> None:
    drawn = export_figure(SPEC, "png")
    replaced = export_figure({**SPEC, "config": {"font": "No Such Face"}}, "png")
    assert drawn != replaced
    assert all(list(font_folder(p).glob("*.ttf")) for p in FONT_PACKAGES)


def test_a_wrong_format_is_one_sentence_that_says_what_to_do() -> None:
    with pytest.raises(UserError, match="'docx'; choose one of png, svg, pdf, html, md, csv, json"):
        format_named("docx")
    with pytest.raises(UserError, match="picture"):
        export_data(report(), "png")
    with pytest.raises(UserError, match="records"):
        export_figure(SPEC, "csv")
    assert all(name == f.name for name, f in FORMATS.items())


def test_a_long_wrong_format_is_not_repeated_in_full() -> None:
    with pytest.raises(UserError) as caught:
        format_named("x" * 10_000)
    assert "'" + "x" * 40 + "…'" in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize("name", ["png", "svg", "pdf"])
def test_a_figure_that_cannot_be_drawn_is_one_sentence(name: str) -> None:
    with pytest.raises(FlashpointError) as caught:
        export_figure({**SPEC, "mark": "no such mark"}, name)
    sentence = str(caught.value)
    assert sentence.startswith(f"The figure could not be drawn as {name} (") and "\n" not in sentence
    assert len(sentence) < 300
