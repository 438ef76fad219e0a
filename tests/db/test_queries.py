"""The read side: orders, pages, and which measurements two builds are compared by."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NotFound
from core.model import MeasurementView, RunPlan, RunState
from db.queries import Queries, newest_first
from db.records import BuildFacts, MeasurementRecord
from db.store import Store
from db.tables import EnvironmentState
from tests.db.scenes import CASE, NEW, NODE, OLD, PLAN, bound, environment, queue, record

BOTH = (OLD.label, NEW.label)


def ran(
    store: Store,
    *records: MeasurementRecord,
    key: str,
    state: RunState = RunState.FINISHED,
    plan: RunPlan = PLAN,
    builds: tuple[BuildFacts, ...] = (OLD, NEW),
) -> int:
    """The id of a run that stored these records and ended."""
    claim = bound(store, plan, key, builds)
    store.save_measurements(claim.run_id, claim.token, list(records))
    store.finish(claim.run_id, claim.token, state, "" if state is RunState.FINISHED else "stopped")
    return claim.run_id


def chosen(views: tuple[MeasurementView, ...]) -> dict[tuple[str, str], int]:
    return {(view.variant, view.build): view.run_id for view in views}


def test_runs_come_newest_first_in_pages_and_by_state(store: Store, queries: Queries) -> None:
    ids = queue(store, *[PLAN] * 5)
    store.request_cancel(ids[1])
    assert [run.id for run in queries.runs()] == list(reversed(ids))
    assert [run.id for run in queries.runs(limit=2, offset=1)] == [ids[3], ids[2]]
    assert [run.id for run in queries.runs(states=[RunState.CANCELLED])] == [ids[1]]
    assert queries.runs(states=[]) == ()
    assert queries.run_counts() == {**dict.fromkeys(RunState, 0), RunState.QUEUED: 4, RunState.CANCELLED: 1}
    assert [queries.run(run_id).position for run_id in ids] == [1, None, 2, 3, 4]


def test_a_run_shows_labels_once_its_builds_are_resolved(store: Store, queries: Queries) -> None:
    claim = bound(store, builds=(OLD,))
    assert queries.run(claim.run_id).builds == ("1.10.2+cpu", "2.13.0")


def test_builds_come_newest_first_with_what_is_on_disk(store: Store, queries: Queries) -> None:
    store.register_node(NODE)
    for label in ("1.9.1+cpu", "1.10.2+cpu", "2.13.0.dev20261130+cpu", "mine"):
        store.record_build(replace(NEW, label=label, spec=label))
    old = store.record_build(replace(OLD, label="1.10.2+cu102", flavour="cu102"))
    labels = [view.label for view in queries.builds()]
    assert labels == ["mine", "2.13.0.dev20261130+cpu", "1.10.2+cu102", "1.10.2+cpu", "1.9.1+cpu"]
    store.record_environment(environment(old, "e1"))
    store.record_environment(environment(old, "e2", EnvironmentState.REMOVED))
    assert {view.label: view.environment for view in queries.builds()}["1.10.2+cu102"] == "e1"
    with pytest.raises(NotFound, match="'x'"):
        queries.builds("x")


def test_a_build_is_found_by_label_spec_or_version(store: Store, queries: Queries) -> None:
    store.register_node(NODE)
    cpu = store.record_build(replace(OLD, spec="existing:/opt/python"))
    store.record_build(replace(OLD, label="1.10.2+cu102", spec="1.10.2+cu102", flavour="cu102"))

    def label(text: str) -> str | None:
        found = queries.build(text)
        return found.label if found else None

    assert label("1.10.2+cpu") == label("existing:/opt/python") == "1.10.2+cpu"
    assert label("1.10.2") == "1.10.2+cu102"
    store.record_environment(environment(cpu))
    assert label("1.10.2") == "1.10.2+cpu"
    assert label("1.10") is label("") is label("2.0.1") is None


@given(st.lists(st.sampled_from(["1.9.1", "1.10.2", "2.0.1+cpu", "2.0.1+cu118", "2.13.0rc1", "2.13.0", "mine", "x y"])))
def test_the_order_of_labels_does_not_hang_on_the_order_given(labels: list[str]) -> None:
    assert newest_first(labels) == newest_first(reversed(labels))
    assert sorted(newest_first(labels)) == sorted(labels)


def test_measurements_are_found_by_run_build_node_and_suite(store: Store, queries: Queries) -> None:
    one = ran(store, record(0), record(1), key="a")
    other = replace(PLAN, suite="parametrizations", cases=("parametrizations/weight_norm",))
    two = ran(store, record(0, case=other.cases[0]), key="b", plan=other)
    assert len(queries.measurements()) == 3
    assert {view.run_id for view in queries.measurements([one])} == {one}
    assert queries.measurements([]) == ()
    assert [view.build for view in queries.measurements(builds=["2.13.0+cpu"])] == ["2.13.0+cpu"]
    assert [view.run_id for view in queries.measurements(suite="parametrizations")] == [two]
    assert queries.measurements(node="other") == ()
    assert queries.builds()[0].last_measured_at == queries.measurements(builds=["2.13.0+cpu"])[0].measured_at


def test_which_builds_and_nodes_were_measured(store: Store, queries: Queries) -> None:
    assert queries.measured_nodes() == () and queries.measured_builds(NODE.name) == ()
    ran(store, record(0), key="a")
    assert queries.measured_builds(NODE.name) == ("1.10.2+cpu",)  # 2.13.0 was bound but has no measurement
    ran(store, record(1), key="b")
    assert queries.measured_builds(NODE.name) == ("2.13.0+cpu", "1.10.2+cpu")
    assert queries.measured_builds(NODE.name, "parametrizations") == queries.measured_builds("other") == ()
    assert queries.measured_nodes() == (NODE.name,)


def test_the_newest_finished_run_with_both_builds_counts(store: Store, queries: Queries) -> None:
    ran(store, record(0), record(1), key="a")
    pair = ran(store, record(0), record(1), key="b")
    ran(store, record(0), key="c")
    ran(store, record(0), record(1), key="d", state=RunState.CANCELLED)
    found = queries.latest_measurements(BOTH, NODE.name)
    assert chosen(found) == {("eager", BOTH[0]): pair, ("eager", BOTH[1]): pair}
    assert all(view.sample for view in found)
    assert not any(view.sample for view in queries.latest_measurements(BOTH, NODE.name, with_samples=False))


def test_a_cancelled_run_with_both_counts_where_no_other_has_both(store: Store, queries: Queries) -> None:
    ran(store, record(0), key="a")
    pair = ran(store, record(0), record(1), key="b", state=RunState.CANCELLED)
    ran(store, record(1), key="c")
    assert set(chosen(queries.latest_measurements(BOTH, NODE.name)).values()) == {pair}


def test_without_a_common_run_the_newest_of_each_counts(store: Store, queries: Queries) -> None:
    ran(store, record(0), key="a")
    base = ran(store, record(0), key="b")
    contender = ran(store, record(1), key="c")
    found = queries.latest_measurements(BOTH, NODE.name)
    assert chosen(found) == {("eager", BOTH[0]): base, ("eager", BOTH[1]): contender}


def test_every_case_variant_and_metric_is_chosen_by_itself(store: Store, queries: Queries) -> None:
    first = ran(store, record(0), record(1), record(0, variant="nnc"), record(1, None, variant="nnc"), key="a")
    second = ran(store, record(0), record(1), record(0, metric="cpu_time"), key="b")
    found = queries.latest_measurements(BOTH, NODE.name)
    assert len(found) == 5
    assert chosen(found)["nnc", BOTH[1]] == first and chosen(found)["eager", BOTH[1]] == second


def test_only_the_same_work_on_the_same_hardware_stands_side_by_side(store: Store, queries: Queries) -> None:
    old_revision = ran(store, record(0), record(1), key="a")
    revised = replace(PLAN, revision=2)
    ran(store, record(1), key="b", plan=revised)
    found = queries.latest_measurements(BOTH, NODE.name)
    assert set(chosen(found).values()) == {old_revision} and {view.revision for view in found} == {1}
    new_revision = ran(store, record(0), record(1), key="c", plan=revised)
    found = queries.latest_measurements(BOTH, NODE.name)
    assert set(chosen(found).values()) == {new_revision} and {view.revision for view in found} == {2}


def test_two_builds_of_an_older_revision_serve_better_than_one_of_the_newest(store: Store, queries: Queries) -> None:
    base, contender = ran(store, record(0), key="a"), ran(store, record(1), key="b")
    ran(store, record(1), key="c", plan=replace(PLAN, revision=2))
    found = queries.latest_measurements(BOTH, NODE.name)
    assert chosen(found) == {("eager", BOTH[0]): base, ("eager", BOTH[1]): contender}


def test_what_two_builds_are_compared_by_is_limited_to_them(store: Store, queries: Queries) -> None:
    third = BuildFacts("2.0.1+cpu", "2.0.1", "2.0.1", "release", "cc", "cpu")
    three = replace(PLAN, builds=("1.10.2", "2.13.0", "2.0.1"))
    ran(store, record(0), record(1), record(2), key="a", plan=three, builds=(OLD, NEW, third))
    assert {view.build for view in queries.latest_measurements(BOTH, NODE.name)} == set(BOTH)
    assert queries.latest_measurements(("no", "such"), NODE.name) == ()
    assert queries.latest_measurements(BOTH, NODE.name, "parametrizations") == ()
    assert len(queries.latest_measurements(BOTH, NODE.name, "cpu-fusion")) == 2
    assert {view.case for view in queries.latest_measurements(BOTH, NODE.name)} == {CASE}
    with pytest.raises(NotFound, match="'x'"):
        queries.latest_measurements(BOTH, "x")
