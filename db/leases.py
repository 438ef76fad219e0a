"""Who may write about a run: claim, renew, hold, release, reap. Functions over a writing transaction.

Locks are always taken in the order device, run, node, so two transactions never wait for each other. A lease that ran
out ends when somebody takes it (the reaper, or the next claim on the device), not by the clock alone: a worker that was
paused while nobody else came may go on.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, or_, select, true, update
from sqlalchemy.dialects import postgresql, sqlite

from core.errors import NotFound, Stopped
from core.model import RunState
from db.codecs import plan_from_json
from db.records import Claim, Reaped, clean
from db.tables import device_locks, nodes, run_builds, run_log, runs
from db.transactions import database_now

LIVE = (RunState.PREPARING.value, RunState.RUNNING.value)
QUEUED = RunState.QUEUED.value
LOSSES = 1  # how many lost workers a run survives: it is queued again once


def insert_for(connection: Connection, table: Any) -> Any:
    """An INSERT that knows ON CONFLICT, in the dialect of the connection."""
    return (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)


def node_id_of(connection: Connection, name: str) -> int:
    """Raises NotFound when no node of that name has registered."""
    found = connection.scalar(select(nodes.c.id).where(nodes.c.name == name))
    if found is None:
        raise NotFound(f"No node is called {name[:80]!r}; start a worker there or choose one from `flashpoint nodes`.")
    return int(found)


def no_run(run_id: int) -> NotFound:
    return NotFound(f"There is no run {run_id}; see `flashpoint runs`.")


def is_id(number: int) -> bool:
    """Whether a row can have this id at all; a database refuses to compare others with an error of its own."""
    return 1 <= number < 2**31


def claim(
    connection: Connection, node_id: int, device: str, owner: str, lease_s: float, run_id: int | None = None
) -> Claim | None:
    """The oldest run that is due, or only ``run_id``, with the device's lock; None when busy or nothing is queued."""
    connection.execute(
        insert_for(connection, device_locks)
        .values(node_id=node_id, device=device, run_id=None, token=0, until=None)
        .on_conflict_do_nothing()
    )
    lock = _lock_device(connection, node_id, device)
    now = database_now(connection)
    if lock["run_id"] is not None:
        if lock["until"] > now:
            return None
        reap_run(connection, lock["run_id"], now)
    oldest = (
        select(runs.c.id)
        .where(runs.c.node_id == node_id, runs.c.device == device, runs.c.state == QUEUED)
        .where(or_(runs.c.not_before.is_(None), runs.c.not_before <= now))
        .where(true() if run_id is None else runs.c.id == run_id)
        .order_by(runs.c.queued_at, runs.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    until = now + timedelta(seconds=lease_s)
    row = connection.execute(
        update(runs)
        .where(runs.c.id == oldest, runs.c.state == QUEUED)
        .values(
            state=RunState.PREPARING.value,
            reason="",
            lease_owner=clean(owner),
            lease_token=runs.c.lease_token + 1,
            lease_until=until,
            heartbeat_at=now,
            prepared_at=now,
        )
        .returning(runs.c.id, runs.c.lease_token, runs.c.plan, runs.c.attempt)
    ).one_or_none()
    if row is None:
        return None
    connection.execute(
        update(device_locks)
        .where(device_locks.c.node_id == node_id, device_locks.c.device == device)
        .values(run_id=row.id, token=row.lease_token, until=until)
    )
    return Claim(row.id, row.lease_token, plan_from_json(row.plan), row.attempt)


def hold(connection: Connection, run_id: int, token: int) -> RowMapping:
    """The run's row, locked until the end of the transaction. Raises Stopped when the token is not the run's now."""
    held = connection.execute(
        update(runs)
        .where(runs.c.id == run_id, runs.c.lease_token == token, runs.c.state.in_(LIVE))
        .values(heartbeat_at=database_now(connection))
        .returning(*runs.c)
    )
    row = held.mappings().one_or_none()
    if row is None:
        raise Stopped(f"Run {run_id} is no longer held by this worker (lease {token}); nothing was written.")
    return row


def renew(connection: Connection, run_id: int, token: int, lease_s: float) -> bool:
    """Prolong the lease and the device's lock, tell that the node lives; whether a cancel is wanted. Raises Stopped."""
    until = database_now(connection) + timedelta(seconds=lease_s)
    connection.execute(_lock_of(run_id, token).values(until=until))
    row = hold(connection, run_id, token)
    connection.execute(update(runs).where(runs.c.id == run_id).values(lease_until=until))
    connection.execute(update(nodes).where(nodes.c.id == row["node_id"]).values(heartbeat_at=database_now(connection)))
    return bool(row["cancel_requested"])


def finish(connection: Connection, run_id: int, token: int, state: RunState, reason: str) -> None:
    """Give the run its final state and free the device. Raises Stopped.

    A second call with the same token and state changes nothing: whoever did not hear the answer may ask again.
    """
    known = connection.scalar(select(runs.c.state).where(runs.c.id == run_id, runs.c.lease_token == token))
    if known == state.value:
        return
    release(connection, run_id, token)
    hold(connection, run_id, token)
    connection.execute(
        update(runs)
        .where(runs.c.id == run_id)
        .values(state=state.value, reason=clean(reason), finished_at=database_now(connection), lease_until=None)
    )


def release(connection: Connection, run_id: int, token: int) -> None:
    connection.execute(_lock_of(run_id, token).values(run_id=None, until=None))


def expired(connection: Connection) -> list[int]:
    """Runs whose lease ran out, in the order of their devices so that two reapers do not wait for each other."""
    found = connection.scalars(
        select(runs.c.id)
        .where(runs.c.state.in_(LIVE), runs.c.lease_until < database_now(connection))
        .order_by(runs.c.node_id, runs.c.device, runs.c.id)
    )
    return list(found)


def reap_run(connection: Connection, run_id: int, now: datetime) -> Reaped | None:
    """End the lease of one run if it ran out before ``now``; None when it did not (any more)."""
    place = connection.execute(select(runs.c.node_id, runs.c.device).where(runs.c.id == run_id)).one()
    _lock_device(connection, place.node_id, place.device)
    row = connection.execute(
        select(runs)
        .where(runs.c.id == run_id, runs.c.state.in_(LIVE), runs.c.lease_until < now)
        .with_for_update(key_share=True)
    ).one_or_none()
    if row is None:
        return None
    owner = f"The worker {row.lease_owner!r} stopped answering"
    if row.cancel_requested:
        state, reason = RunState.CANCELLED, f"{owner} after the run was to be cancelled."
    elif row.losses < LOSSES:
        state, reason = RunState.QUEUED, f"{owner}; the run was queued again (attempt {row.attempt + 1})."
    else:
        state, reason = RunState.LOST, f"{owner} in attempt {row.attempt}; check the node, then retry the run."
    release(connection, run_id, row.lease_token)
    if state is RunState.QUEUED:
        enqueue(connection, run_id, row.attempt + 1, row.queued_at, reason, losses=row.losses + 1)
    else:
        connection.execute(
            update(runs)
            .where(runs.c.id == run_id)
            .values(state=state.value, reason=reason, finished_at=now, lease_until=None)
        )
    connection.execute(run_log.insert().values(run_id=run_id, at=now, text=reason))
    return Reaped(run_id, state, reason)


def give_back(connection: Connection, run_id: int, token: int, reason: str) -> None:
    """Put a held run back where it stood in the queue and free the device: its worker leaves in good order. Stopped."""
    release(connection, run_id, token)
    row = hold(connection, run_id, token)
    enqueue(connection, run_id, row["attempt"] + 1, row["queued_at"], reason, losses=row["losses"])
    connection.execute(run_log.insert().values(run_id=run_id, at=database_now(connection), text=clean(reason)))


def enqueue(
    connection: Connection, run_id: int, attempt: int, queued_at: datetime, reason: str, *, losses: int = 0
) -> None:
    """Put a run back into the queue as if it had not begun; its builds are resolved anew."""
    connection.execute(
        update(runs)
        .where(runs.c.id == run_id)
        .values(
            state=QUEUED,
            reason=reason,
            attempt=attempt,
            losses=losses,
            cancel_requested=False,
            lease_until=None,
            progress={},
            queued_at=queued_at,
            prepared_at=None,
            started_at=None,
            finished_at=None,
        )
    )
    connection.execute(
        update(run_builds).where(run_builds.c.run_id == run_id).values(build_id=None, environment_id=None)
    )


def _lock_device(connection: Connection, node_id: int, device: str) -> RowMapping:
    found = connection.execute(
        select(device_locks)
        .where(device_locks.c.node_id == node_id, device_locks.c.device == device)
        .with_for_update(key_share=True)
    )
    return found.mappings().one()


def _lock_of(run_id: int, token: int) -> Any:
    return update(device_locks).where(device_locks.c.run_id == run_id, device_locks.c.token == token)
