"""Who may write about a run: claims, renewals, stale tokens, the reaper."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier

import pytest
from sqlalchemy import Engine, select

from core.errors import NotFound, Stopped
from core.model import Progress, RunState
from db.engine import make_engine
from db.queries import Queries
from db.records import Claim
from db.store import Store
from db.tables import device_locks, runs
from db.transactions import database_now, reading
from tests.db.scenes import NEW, NODE, PLAN, bound, claimed, expire, queue, record, spec


def holder(engine: Engine, device: str = "cpu") -> int | None:
    with reading(engine) as connection:
        return connection.scalar(select(device_locks.c.run_id).where(device_locks.c.device == device))


def test_a_claim_takes_the_oldest_run_with_the_lock_of_its_device(
    store: Store, queries: Queries, engine: Engine
) -> None:
    first, second = queue(store, PLAN, replace(PLAN, seed=8))
    claim = store.claim(NODE.name, "cpu", "w1", 30)
    assert claim == Claim(first, 1, PLAN, 1)
    run = queries.run(first)
    assert (run.state, run.position) == (RunState.PREPARING, None)
    assert run.lease_until and run.heartbeat_at and run.lease_until - run.heartbeat_at == timedelta(seconds=30)
    assert run.prepared_at == run.heartbeat_at
    assert holder(engine) == first
    assert queries.node(NODE.name).running == first
    assert queries.run(second).state is RunState.QUEUED


def test_a_busy_device_gives_nothing_and_another_device_does(store: Store) -> None:
    queue(store, PLAN, PLAN, replace(PLAN, device="cuda:0"))
    assert store.claim(NODE.name, "cpu", "w1")
    assert store.claim(NODE.name, "cpu", "w2") is None
    other = store.claim(NODE.name, "cuda:0", "w3")
    assert other and other.plan.device == "cuda:0"


def test_one_run_can_be_claimed_out_of_turn(store: Store) -> None:
    first, second = queue(store, PLAN, PLAN)
    assert store.claim(NODE.name, "cpu", "w1", run_id=second + 1) is None
    claim = store.claim(NODE.name, "cpu", "w1", run_id=second)
    assert claim and claim.run_id == second
    assert store.claim(NODE.name, "cpu", "w2", run_id=first) is None


def test_an_empty_queue_gives_nothing_and_an_unknown_node_is_said(store: Store) -> None:
    store.register_node(NODE)
    assert store.claim(NODE.name, "cpu", "w1") is None
    with pytest.raises(NotFound, match="'nowhere'"):
        store.claim("nowhere", "cpu", "w1")


def test_a_run_that_is_not_due_waits(store: Store, engine: Engine) -> None:
    store.register_node(NODE)
    with reading(engine) as connection:
        now = database_now(connection)
    store.submit(spec("later"), [PLAN], not_before=now + timedelta(hours=1))
    assert store.claim(NODE.name, "cpu", "w1") is None
    assert store.queued_devices() == ()
    due = store.submit(spec("due"), [PLAN], not_before=now - timedelta(seconds=1))
    assert store.queued_devices() == ((NODE.name, "cpu"),)
    claim = store.claim(NODE.name, "cpu", "w1")
    assert claim and claim.run_id == due.run_ids[0]


@pytest.mark.parametrize("queued", [1, 6])
def test_of_many_claimers_exactly_one_gets_the_device(store: Store, engine: Engine, queued: int) -> None:
    ids = queue(store, *[PLAN] * queued)
    everybody = Barrier(6)

    def race(number: int) -> Claim | None:
        own = make_engine(engine.url.render_as_string(hide_password=False))
        try:
            everybody.wait(30)
            return Store(own).claim(NODE.name, "cpu", f"w{number}")
        finally:
            own.dispose()

    with ThreadPoolExecutor(6) as pool:
        got = [claim for claim in pool.map(race, range(6)) if claim]
    assert [claim.run_id for claim in got] == [ids[0]]


def test_claimers_of_many_devices_do_not_stand_in_each_others_way(store: Store, engine: Engine) -> None:
    devices = [f"cuda:{number}" for number in range(6)]
    ids = queue(store, *[replace(PLAN, device=device) for device in devices])
    everybody = Barrier(6)

    def race(device: str) -> Claim | None:
        everybody.wait(30)
        return store.claim(NODE.name, device, "w")

    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(race, devices))
    assert [claim and claim.run_id for claim in got] == list(ids)


def test_a_renewal_prolongs_lease_lock_and_the_nodes_life(store: Store, queries: Queries, engine: Engine) -> None:
    claim = claimed(store)
    expire(engine, claim.run_id)
    before = queries.node(NODE.name).heartbeat_at
    renewal = store.renew(claim.run_id, claim.token, 60)
    assert (renewal.held, renewal.cancel_requested) == (True, False)
    run = queries.run(claim.run_id)
    after = queries.node(NODE.name).heartbeat_at
    assert run.lease_until and run.heartbeat_at and run.lease_until > run.heartbeat_at
    assert before and after and after > before
    with reading(engine) as connection:
        assert connection.scalar(select(device_locks.c.until)) == run.lease_until
    assert store.reap() == ()


def test_a_cancel_reaches_the_worker_by_its_renewal(store: Store) -> None:
    claim = claimed(store)
    store.request_cancel(claim.run_id)
    assert store.renew(claim.run_id, claim.token).cancel_requested


def test_a_stale_token_is_refused_everywhere_and_changes_nothing(
    store: Store, queries: Queries, engine: Engine
) -> None:
    old = bound(store)
    run_id = old.run_id
    store.save_measurements(run_id, old.token, [record(value=1.0)])
    expire(engine, run_id)
    fresh = store.claim(NODE.name, "cpu", "w2")
    assert fresh and (fresh.run_id, fresh.token, fresh.attempt) == (run_id, old.token + 1, 2)
    seen = queries.run(run_id), queries.run_log(run_id), queries.measurements([run_id], with_samples=True)
    build = store.record_build(replace(NEW, label="other"))
    writes: tuple[Callable[[], None], ...] = (
        lambda: store.set_state(run_id, old.token, RunState.RUNNING),
        lambda: store.set_progress(run_id, old.token, Progress(phase="measuring")),
        lambda: store.log(run_id, old.token, ["late"]),
        lambda: store.bind_build(run_id, old.token, 0, build),
        lambda: store.save_measurements(run_id, old.token, [record(value=5.0)]),
        lambda: store.finish(run_id, old.token, RunState.FINISHED, ""),
    )
    for write in writes:
        with pytest.raises(Stopped, match=f"Run {run_id} is no longer held"):
            write()
    assert not store.renew(run_id, old.token).held
    assert (queries.run(run_id), queries.run_log(run_id), queries.measurements([run_id], with_samples=True)) == seen
    assert holder(engine) == run_id
    assert store.renew(run_id, fresh.token).held


def test_a_finished_run_frees_its_device(store: Store, queries: Queries, engine: Engine) -> None:
    first, second = queue(store, PLAN, PLAN)
    claim = store.claim(NODE.name, "cpu", "w1")
    assert claim
    store.set_state(first, claim.token, RunState.RUNNING)
    store.set_state(first, claim.token, RunState.RUNNING)
    assert queries.run(first).state is RunState.RUNNING and queries.run(first).started_at
    store.finish(first, claim.token, RunState.FAILED, "torch 1.10.2 does not import.")
    run = queries.run(first)
    assert (run.state, run.reason, run.lease_until) == (RunState.FAILED, "torch 1.10.2 does not import.", None)
    assert run.finished_at and holder(engine) is None
    following = store.claim(NODE.name, "cpu", "w1")
    assert following and following.run_id == second


def test_finishing_twice_is_once(store: Store, queries: Queries) -> None:
    claim = claimed(store)
    store.finish(claim.run_id, claim.token, RunState.FINISHED, "done")
    run = queries.run(claim.run_id)
    store.finish(claim.run_id, claim.token, RunState.FINISHED, "done again")
    assert queries.run(claim.run_id) == run
    with pytest.raises(Stopped):
        store.finish(claim.run_id, claim.token, RunState.FAILED, "no")
    with pytest.raises(Stopped):
        store.set_state(claim.run_id, claim.token, RunState.RUNNING)


@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.PREPARING, RunState.RUNNING, RunState.LOST])
def test_only_final_states_end_a_run(store: Store, state: RunState) -> None:
    claim = claimed(store)
    with pytest.raises(ValueError, match="finished, failed or cancelled"):
        store.finish(claim.run_id, claim.token, state)
    if state is not RunState.RUNNING:
        with pytest.raises(ValueError, match="can become running"):
            store.set_state(claim.run_id, claim.token, state)


def test_the_reaper_queues_again_once_and_then_gives_up(store: Store, queries: Queries, engine: Engine) -> None:
    claim = bound(store)
    assert store.reap() == ()
    expire(engine, claim.run_id)
    (reaped,) = store.reap()
    assert (reaped.run_id, reaped.state) == (claim.run_id, RunState.QUEUED)
    run = queries.run(claim.run_id)
    assert (run.state, run.attempt, run.reason, run.position) == (RunState.QUEUED, 2, reaped.reason, 1)
    assert run.builds == PLAN.builds and run.prepared_at is None and run.lease_until is None
    assert holder(engine) is None and store.reap() == ()
    again = store.claim(NODE.name, "cpu", "w2")
    assert again and again.attempt == 2 and queries.run(claim.run_id).reason == ""
    expire(engine, claim.run_id)
    (reaped,) = store.reap()
    run = queries.run(claim.run_id)
    assert run.state is reaped.state is RunState.LOST
    assert "'w2' stopped answering" in run.reason and run.finished_at and holder(engine) is None
    assert [line.text for line in queries.run_log(claim.run_id)][-1] == run.reason


def test_a_run_to_be_cancelled_whose_worker_died_is_cancelled(store: Store, queries: Queries, engine: Engine) -> None:
    claim = claimed(store)
    assert store.request_cancel(claim.run_id) is RunState.PREPARING
    expire(engine, claim.run_id)
    assert [one.state for one in store.reap()] == [RunState.CANCELLED]
    assert queries.run(claim.run_id).state is RunState.CANCELLED


def test_two_reapers_reap_once(store: Store, engine: Engine) -> None:
    claim = claimed(store)
    expire(engine, claim.run_id)
    everybody = Barrier(4)

    def reap(_: int) -> int:
        everybody.wait(30)
        return len(store.reap())

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(reap, range(4))) == 1


def test_renewals_and_reapers_and_claims_never_deadlock(store: Store, engine: Engine) -> None:
    """Every thread takes the same rows in its own order of work; a deadlock would end one with an error."""
    claim = claimed(store)
    queue(store, PLAN, PLAN, key="more")
    everybody = Barrier(4)

    def work(number: int) -> None:
        everybody.wait(30)
        for _ in range(10):
            if number == 0:
                store.renew(claim.run_id, claim.token, 30)
            elif number == 1:
                expire(engine, claim.run_id)
            elif number == 2:
                store.reap()
            else:
                store.claim(NODE.name, "cpu", "w9")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    with reading(engine) as connection:
        live = connection.execute(select(runs.c.id).where(runs.c.state.in_(["preparing", "running"]))).all()
    assert len(live) <= 1


def test_a_run_given_back_stands_where_it_stood_and_loses_nothing(
    store: Store, queries: Queries, engine: Engine
) -> None:
    first, second = queue(store, PLAN, PLAN)
    claim = store.claim(NODE.name, "cpu", "w1")
    assert claim and claim.run_id == first
    store.give_back(first, claim.token, "The worker was stopped; the run was queued again.")
    run = queries.run(first)
    assert (run.state, run.position, run.attempt) == (RunState.QUEUED, 1, 2)
    assert queries.run(second).position == 2 and holder(engine) is None
    again = store.claim(NODE.name, "cpu", "w2")
    assert again and again.run_id == first
    with pytest.raises(Stopped):
        store.give_back(first, claim.token, "late")
    expire(engine, first)
    (reaped,) = store.reap()
    assert reaped.state is RunState.QUEUED  # leaving in good order was no loss: the one loss is still allowed


def test_a_person_who_retries_allows_another_loss(store: Store, queries: Queries, engine: Engine) -> None:
    claim = bound(store)
    for state in (RunState.QUEUED, RunState.LOST):
        expire(engine, claim.run_id)
        (reaped,) = store.reap()
        assert reaped.state is state
        store.claim(NODE.name, "cpu", "w")
    store.retry(claim.run_id)
    assert store.claim(NODE.name, "cpu", "w")
    expire(engine, claim.run_id)
    (reaped,) = store.reap()
    assert reaped.state is RunState.QUEUED
