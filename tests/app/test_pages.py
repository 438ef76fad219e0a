"""Pages: empty, filled, live and with something away; none shows a traceback, all keep the view in the address."""

from __future__ import annotations

from dataclasses import replace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import data
from app.bootstrap import Services
from core.errors import Unavailable
from core.model import RunState
from core.usecases import SubmitInput
from tests.app.conftest import Open, measured, node, queued, said
from tests.reports import BASELINE, CONTENDER, NODE, report

EVIL = "<img src=http://h/x onerror=alert(1)> :material/bug: $x$ **b** [l](http://h)"
VIEWS = ("overview", "compare", "runs", "new_run", "builds", "nodes")


def test_every_page_opens_on_an_empty_database(open_page: Open) -> None:
    first = {
        "overview": "Nothing is measured yet.",
        "compare": "Nothing is measured yet.",
        "runs": "No run is waiting or running.",
        "new_run": "No worker has reported.",
        "builds": "No build is installed.",
        "nodes": "No worker has reported.",
    }
    for view in VIEWS:
        test = open_page(view)
        assert not test.exception, view
        assert f"<h1>{first[view]}</h1>" in said(test), view


def test_every_page_opens_on_measurements(open_page: Open, services: Services) -> None:
    measured(services)
    for view in VIEWS:
        test = open_page(view)
        assert not test.exception, view
        assert "fp-banner" not in said(test), view


def test_compare_says_the_verdict_and_writes_its_view_into_the_address(open_page: Open, services: Services) -> None:
    measured(services)
    test = open_page("compare")
    assert '<span class="slower">Slower in 2</span>, <span class="faster">faster in 2</span> of 8 comparisons.' in said(
        test
    )
    address = {name: test.query_params[name] for name in ("baseline", "contender", "node", "show")}
    assert address == {"baseline": BASELINE, "contender": CONTENDER, "node": NODE, "show": "all"}
    table = test.dataframe[0].value
    assert list(table["verdict"])[:2] == ["↑ 36.2\u00a0% slower", "↑ 12.4\u00a0% slower"]
    assert set(table["verdict"][-2:]) == {"× failed", "/ unsupported"}
    assert table["reason"].str.contains("LLVM").any()


def test_compare_follows_the_address_and_the_address_follows_the_controls(open_page: Open, services: Services) -> None:
    measured(services)
    test = open_page("compare", baseline=CONTENDER, contender=BASELINE, show="changed")
    assert test.selectbox(key="compare-baseline").value == CONTENDER
    assert "Slower in 2" in said(test) and "rows filtered out" in said(test)
    test.selectbox(key="compare-baseline").set_value(BASELINE)
    test.selectbox(key="compare-contender").set_value(CONTENDER).run()
    assert test.query_params["baseline"] == BASELINE
    assert not test.exception


def test_compare_keeps_the_selected_row_in_the_address(open_page: Open, services: Services) -> None:
    measured(services)
    row = "cpu-fusion/swish[n=65536] · eager"
    test = open_page("compare", row=row)
    assert f"Why: {row}" in said(test)
    assert test.query_params["row"] == row
    assert "fp-banner" not in said(test)


@pytest.mark.parametrize(("name", "value"), [("show", "qq"), ("tab", "qq"), ("row", "qq"), ("node", "qq")])
def test_what_the_address_asks_and_is_not_there_is_said(
    name: str, value: str, open_page: Open, services: Services
) -> None:
    measured(services)
    test = open_page("compare", **{name: value})
    assert f"There is no {'measured ' * (name == 'node')}{name} &#x27;qq&#x27; here" in said(test)
    assert "of 8 comparisons." in said(test) and not test.exception


def test_compare_says_what_else_differs(open_page: Open, services: Services) -> None:
    measured(services)
    assert "Besides PyTorch, Python (3.9.18 against 3.11.9) differs." in said(open_page("compare"))


def test_builds_and_nodes_say_all_that_is_known_of_one(open_page: Open, services: Services) -> None:
    measured(services)
    assert "<dt>Revision</dt><dd>1abcdef</dd>" in said(open_page("builds"))
    assert "<dt>Kernel</dt><dd>6.1</dd>" in said(open_page("nodes"))


def test_the_overview_leaves_out_rows_without_a_number_only_where_they_push_changes_out(
    open_page: Open, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(services)
    assert "not drawn: 1 same" in said(open_page("overview"))
    made = report()
    gone = next(c for c in made.comparisons if c.verdict is None)
    many = (*made.comparisons, *(replace(gone, case=f"cpu-fusion/gone{k}[n=1]") for k in range(10)))
    monkeypatch.setattr(data, "newest_report", lambda: replace(made, comparisons=many))
    test = open_page("overview")
    assert "not drawn: 1 same, 12 without a number" in said(test)
    assert said(test).count("12 have no number:") == 1


def test_compare_of_a_build_with_itself_is_a_sentence(open_page: Open, services: Services) -> None:
    measured(services)
    test = open_page("compare", baseline=BASELINE, contender=BASELINE)
    assert "Both builds are 1.10.2+cpu; choose two different ones." in said(test)


def test_foreign_names_in_the_address_are_said_and_shown_literally(open_page: Open, services: Services) -> None:
    measured(services)
    test = open_page("compare", baseline=EVIL, node="../etc")
    assert "There is no measured node" in said(test)
    assert "<img" not in said(test) and "&lt;img" in said(test)
    assert not test.exception


@pytest.mark.parametrize("number", ["0", "-1", "abc", "9" * 30, "1e3", "٣", "99", ""])
def test_a_wrong_run_number_shows_the_list(number: str, open_page: Open, services: Services) -> None:
    measured(services)
    test = open_page("runs", run=number)
    assert not test.exception
    assert "fp-banner" in said(test) and "1 finished." in said(test)


def test_a_finished_run_says_what_it_found(open_page: Open, services: Services) -> None:
    run = measured(services)
    test = open_page("runs", run=str(run))
    assert "of 8 comparisons." in said(test) and "What it found" in said(test)
    assert test.button(key="run-compare").label == "Compare these builds"
    assert "round 1 starts" in test.code[0].value


def test_a_failed_run_says_its_reason_literally(open_page: Open, services: Services) -> None:
    run = measured(services, RunState.FAILED, rename=lambda text: f"{text} {EVIL}")
    test = open_page("runs", run=str(run))
    assert "Failed at" in said(test) and "no space left &lt;img" in said(test)
    assert "<img" not in said(test)
    assert EVIL in test.code[0].value


def test_a_live_run_shows_progress_and_can_be_cancelled(open_page: Open, services: Services) -> None:
    run = measured(services, RunState.RUNNING)
    test = open_page("runs", run=str(run))
    assert "Running: 13 of 13 rounds done." in said(test)
    assert 'aria-label="13 of 13 rounds done"' in said(test)
    test.button(key="run-cancel").click().run()
    assert services.queries.run(run).cancel_requested
    assert not test.exception


def test_a_queued_run_is_cancelled_at_once(open_page: Open, services: Services) -> None:
    run = queued(services)
    test = open_page("runs", run=str(run))
    assert "Queued: next on epyc-01." in said(test)
    test.button(key="run-cancel").click().run()
    assert services.queries.run(run).state is RunState.CANCELLED


def _chosen(open_page: Open) -> AppTest:
    return open_page("new_run", suite="cpu-fusion", build=["1.10.2", "2.13.0"], case="*chain*")


def test_new_run_says_what_will_happen(open_page: Open, services: Services) -> None:
    node(services)
    test = _chosen(open_page)
    assert test.multiselect(key="queue-builds").value == ["1.10.2", "2.13.0"]
    assert "cases × 2 builds on " in said(test) and "decided at 10" in said(test)
    assert not test.button(key="queue-submit").disabled


def test_queue_makes_one_request_however_often_it_is_clicked(open_page: Open, services: Services) -> None:
    node(services)
    test = _chosen(open_page)
    test.button(key="queue-submit").click()
    test.run()
    assert len(services.queries.runs()) == 1
    assert "queue-key" not in test.session_state, "leaving the page ends the request's key"
    assert "Saved, waiting for the broker" in said(test)
    assert test.query_params["run"] == str(services.queries.runs()[0].id)


def test_the_choices_of_a_new_run_outlive_the_page(open_page: Open, services: Services) -> None:
    node(services)
    test = _chosen(open_page)
    test.switch_page("views/nodes.py").run()
    test.query_params.clear()
    test.switch_page("views/new_run.py").run()
    assert test.multiselect(key="queue-builds").value == ["1.10.2", "2.13.0"]
    assert test.text_input(key="queue-cases").value == "*chain*"


def test_the_same_key_twice_is_one_request(services: Services) -> None:
    node(services)
    given = SubmitInput(suites=("cpu-fusion",), case_glob=None, builds=("2.13.0",), node=NODE, key="one")
    first, note = services.submit(given)
    second, _ = services.submit(given)
    assert (first.run_ids, first.created, second.created) == (second.run_ids, True, False)
    assert "broker" in note


def test_a_wrong_spec_is_one_sentence_and_nothing_is_queued(open_page: Open, services: Services) -> None:
    node(services)
    test = open_page("new_run", suite="cpu-fusion", build="--index-url=http://h")
    assert "fp-banner" in said(test) and "index-url" in said(test)
    assert test.button(key="queue-submit").disabled
    assert services.queries.runs() == ()


def test_a_database_that_is_away_is_a_banner_on_every_page(
    open_page: Open, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(services)

    def away(*_: object, **__: object) -> None:
        raise Unavailable("The database does not answer: connection refused.")

    for name in ("runs", "run", "nodes", "builds", "measured_nodes", "run_counts"):
        monkeypatch.setattr(type(services.queries), name, away)
    for view in VIEWS:
        st.cache_resource.clear()
        test = open_page(view)
        assert not test.exception, view
        assert "does not answer" in said(test) and 'class="fp-banner"' in said(test), view


def test_a_bug_is_a_sentence_and_not_a_traceback(
    open_page: Open, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("secret detail")

    monkeypatch.setattr(data, "nodes", broken)
    test = open_page("nodes")
    assert not test.exception
    assert "This part of the page failed (KeyError)" in said(test) and "secret detail" not in said(test)
