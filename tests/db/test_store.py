"""Nodes, builds, environments, requests, cancel and retry."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from sqlalchemy import Engine, event

from core.errors import NotFound, RunFailed, UserError
from core.model import Progress, RunState
from db.queries import Queries
from db.records import TEXT_LIMIT, Submitted
from db.store import Store
from db.tables import EnvironmentState
from tests.db.scenes import GIB, NEW, NODE, OLD, PLAN, bound, claimed, environment, queue, record, spec


def test_a_node_registers_and_beats(store: Store, queries: Queries) -> None:
    node_id = store.register_node(NODE)
    assert store.register_node(NODE) == node_id
    (node,) = queries.nodes()
    assert (node.id, node.name, node.cpu, node.threads, node.memory_bytes) == (
        node_id,
        "epyc-01",
        NODE.cpu,
        8,
        31 * GIB,
    )
    assert (node.devices, node.versions, node.fingerprint) == (("cpu",), {"kernel": "6.1"}, NODE.fingerprint)
    assert node.alive and node.running is None
    store.beat_node(NODE.name)
    after = queries.node(NODE.name).heartbeat_at
    assert node.heartbeat_at and after and after >= node.heartbeat_at
    with pytest.raises(NotFound, match="'x'"):
        store.beat_node("x")
    with pytest.raises(NotFound, match="'x'"):
        queries.node("x")


def test_new_hardware_leaves_a_note_and_a_new_kernel_does_not(store: Store, engine: Engine) -> None:
    store.register_node(NODE)
    store.register_node(replace(NODE, versions={"kernel": "6.5"}, memory_bytes=NODE.memory_bytes - 9_000_000))
    assert note(engine) == ""
    store.register_node(replace(NODE, threads=16, devices={"cpu": NODE.cpu, "cuda:0": "NVIDIA L4"}))
    assert "threads 8 became 16" in note(engine) and "cuda:0 NVIDIA L4" in note(engine)


def note(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.exec_driver_sql("SELECT note FROM nodes").scalar_one())


def test_a_submitted_request_is_queued_as_a_whole(store: Store, queries: Queries) -> None:
    store.register_node(NODE)
    plans = [replace(PLAN, seed=seed) for seed in range(3)]
    request_id, run_ids, created = store.submit(spec(), plans)
    assert created and queries.request(request_id) == run_ids == tuple(sorted(run_ids))
    views = [queries.run(run_id) for run_id in run_ids]
    assert [view.plan for view in views] == plans
    assert [view.position for view in views] == [1, 2, 3]
    for view in views:
        assert (view.state, view.reason, view.attempt, view.node) == (RunState.QUEUED, "", 1, NODE.name)
        assert (view.builds, view.progress, view.cancel_requested) == (PLAN.builds, Progress(), False)
    assert store.queued_devices() == ((NODE.name, "cpu"),)


def test_the_same_key_is_one_request(store: Store, queries: Queries) -> None:
    store.register_node(NODE)
    first = store.submit(spec(), [PLAN, PLAN])
    assert store.submit(spec(), [PLAN]) == Submitted(first.request_id, first.run_ids, False)
    assert queries.run_counts()[RunState.QUEUED] == 2
    assert store.submit(spec("k2"), [PLAN]).request_id != first.request_id


def test_the_same_key_from_many_at_once_is_one_request(store: Store, queries: Queries) -> None:
    store.register_node(NODE)
    everybody = Barrier(5)

    def press(_: int) -> Submitted:
        everybody.wait(30)
        return store.submit(spec(), [PLAN, PLAN])

    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(press, range(5)))
    assert len({(one.request_id, one.run_ids) for one in answers}) == 1
    assert sum(one.created for one in answers) == 1
    assert queries.run_counts()[RunState.QUEUED] == 2


def test_a_request_that_fails_half_way_leaves_nothing(store: Store, queries: Queries, engine: Engine) -> None:
    store.register_node(NODE)

    def fail(*arguments: object) -> None:
        if "INSERT INTO run_builds" in str(arguments[2]):
            raise RuntimeError("the power is cut here")

    event.listen(engine, "before_cursor_execute", fail)
    with pytest.raises(RuntimeError, match="power"):
        store.submit(spec(), [PLAN])
    event.remove(engine, "before_cursor_execute", fail)
    assert queries.runs() == ()
    assert store.submit(spec(), [PLAN]).created


def test_requests_that_cannot_be_are_refused(store: Store, queries: Queries) -> None:
    with pytest.raises(NotFound, match="'epyc-01'"):
        store.submit(spec(), [PLAN])
    with pytest.raises(UserError, match="no runs"):
        store.submit(spec(), [])
    for number in (1, 0, -1, 2**31, 10**30):
        with pytest.raises(NotFound, match=f"no request {number}"):
            queries.request(number)


def test_a_thousand_runs_are_one_request(store: Store, queries: Queries) -> None:
    ids = queue(store, *[replace(PLAN, seed=seed) for seed in range(1000)])
    assert len(set(ids)) == 1000
    assert [queries.run(ids[at]).plan.seed for at in (0, 1, 499, 999)] == [0, 1, 499, 999]
    assert queries.run(ids[-1]).position == 1000


def test_builds_are_refreshed_under_their_label(store: Store, queries: Queries) -> None:
    build_id = store.record_build(OLD)
    assert store.record_build(replace(OLD, details={"blas": "mkl"}, git_revision="")) == build_id
    (view,) = queries.builds()
    assert (view.id, view.label, view.spec, view.git_revision) == (build_id, "1.10.2+cpu", "1.10.2", "71f889c")
    assert (view.details, view.state, view.environment, view.size_bytes) == ({"blas": "mkl"}, "removed", "", 0)
    with pytest.raises(UserError, match="two builds need two labels"):
        store.record_build(replace(OLD, git_revision="other"))


def test_environments_come_and_go(store: Store, queries: Queries) -> None:
    store.register_node(NODE)
    build_id = store.record_build(OLD)
    first = store.record_environment(environment(build_id))
    assert store.record_environment(environment(build_id)) == first
    (view,) = queries.builds(NODE.name)
    assert (view.environment, view.state, view.python, view.size_bytes) == ("e1", "ready", "3.9.18", 900)
    store.record_environment(environment(build_id, "e2", EnvironmentState.FAILED))
    assert queries.builds()[0].environment == "e1"
    store.environment_removed(NODE.name, "e1")
    (view,) = queries.builds()
    assert (view.environment, view.size_bytes) == ("", 0)
    with pytest.raises(NotFound, match="'e9'"):
        store.environment_removed(NODE.name, "e9")
    with pytest.raises(NotFound, match="'x'"):
        store.record_environment(replace(environment(build_id), node="x"))


def test_a_queued_run_is_cancelled_at_once_and_a_live_one_is_asked(store: Store, queries: Queries) -> None:
    first, second = queue(store, PLAN, PLAN)
    assert store.request_cancel(second) is RunState.CANCELLED
    assert queries.run(second).reason == "Cancelled before it began." and queries.run(second).finished_at
    claim = store.claim(NODE.name, "cpu", "w1")
    assert claim and claim.run_id == first
    assert store.request_cancel(first) is RunState.PREPARING
    assert queries.run(first).cancel_requested and not queries.run(first).state.final
    store.finish(first, claim.token, RunState.CANCELLED, "Cancelled while it measured.")
    for run_id in (first, second):
        with pytest.raises(UserError, match=f"Run {run_id} is cancelled already"):
            store.request_cancel(run_id)


@pytest.mark.parametrize("run_id", [0, -3, 99, 2**31, 10**30])
def test_a_run_that_does_not_exist(store: Store, queries: Queries, run_id: int) -> None:
    for act in (store.request_cancel, store.retry, queries.run):
        with pytest.raises(NotFound, match=f"no run {run_id}"):
            act(run_id)
    assert queries.run_log(run_id) == ()
    assert queries.measurements([run_id]) == ()


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELLED])
def test_a_run_that_did_not_finish_can_be_retried(store: Store, queries: Queries, state: RunState) -> None:
    claim = bound(store)
    store.set_progress(claim.run_id, claim.token, Progress(phase="measuring", round=3))
    store.request_cancel(claim.run_id)
    store.finish(claim.run_id, claim.token, state, "why")
    store.retry(claim.run_id)
    run = queries.run(claim.run_id)
    assert (run.state, run.reason, run.attempt, run.position) == (RunState.QUEUED, "", 2, 1)
    assert (run.cancel_requested, run.progress, run.finished_at, run.builds) == (False, Progress(), None, PLAN.builds)
    again = store.claim(NODE.name, "cpu", "w2")
    assert again and (again.run_id, again.token, again.attempt) == (claim.run_id, claim.token + 1, 2)


def test_what_cannot_be_retried(store: Store) -> None:
    claim = claimed(store)
    with pytest.raises(UserError, match="is preparing; only failed, cancelled and lost runs"):
        store.retry(claim.run_id)
    store.finish(claim.run_id, claim.token, RunState.FINISHED)
    with pytest.raises(UserError, match="is finished; only"):
        store.retry(claim.run_id)


def test_two_specs_that_are_one_build_are_said(store: Store) -> None:
    claim = claimed(store, replace(PLAN, builds=("2.13.0", "latest")))
    build_id = store.record_build(NEW)
    store.bind_build(claim.run_id, claim.token, 0, build_id)
    store.bind_build(claim.run_id, claim.token, 0, build_id)
    with pytest.raises(RunFailed, match="'latest' are the same build 2"):
        store.bind_build(claim.run_id, claim.token, 1, build_id)


def test_progress_and_log_are_shown(store: Store, queries: Queries) -> None:
    claim = claimed(store)
    progress = Progress("measuring", "Round 2", PLAN.cases[0], 1, 8, 3, 9, 2, 2, 41.5)
    store.set_progress(claim.run_id, claim.token, progress)
    assert queries.run(claim.run_id).progress == progress
    store.log(claim.run_id, claim.token, [])
    store.log(claim.run_id, claim.token, ["one", "two"])
    store.log(claim.run_id, claim.token, ["three"])
    assert [line.text for line in queries.run_log(claim.run_id)] == ["one", "two", "three"]
    assert [line.text for line in queries.run_log(claim.run_id, limit=2)] == ["two", "three"]
    assert all(line.at.utcoffset() is not None for line in queries.run_log(claim.run_id))


def test_any_output_of_a_child_can_be_stored(store: Store, queries: Queries) -> None:
    claim = bound(store)
    ugly = "NUL \x00 surrogate \ud800 escape \x1b[31m C1 \x9b turned \u202e\u2066\u200f tab \t two\r\nlines"
    ugly += " <b>bold</b> ' \" \\ ☃ %s :name"
    tame = ugly.replace("\ud800", "?").replace("\r\n", "\n")
    for sign in "\x00\x1b\x9b\u202e\u2066\u200f":
        tame = tame.replace(sign, "\ufffd")
    store.log(claim.run_id, claim.token, [ugly, "x" * 1_000_000])
    store.set_progress(claim.run_id, claim.token, Progress(detail=ugly, seconds_left=float("inf")))
    store.save_measurements(claim.run_id, claim.token, [record(value=None, reason=ugly, evidence={ugly: ugly})])
    first, second = queries.run_log(claim.run_id)
    assert first.text == tame and len(second.text) == TEXT_LIMIT
    assert queries.run(claim.run_id).progress == Progress(detail=tame, seconds_left=None)
    (found,) = queries.measurements()
    assert (found.reason, found.evidence) == (tame, {tame: tame})
    store.finish(claim.run_id, claim.token, RunState.FAILED, ugly)
    assert queries.run(claim.run_id).reason == tame
