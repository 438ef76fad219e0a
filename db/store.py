"""The guarded writes. Each method is one transaction: it happens as a whole or not at all.

Every method may raise Unavailable. Those with a ``token`` raise Stopped, and write nothing, when the run is no longer
held under that token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection, Engine, func, or_, select, update

from core.errors import Stopped, UserError
from core.model import Progress, RequestSpec, RunPlan, RunState
from db import inventory, leases, results
from db.codecs import plan_to_json, progress_to_json, spec_to_json
from db.records import (
    BuildFacts,
    Claim,
    EnvironmentFacts,
    MeasurementRecord,
    NodeFacts,
    Reaped,
    Renewal,
    Submitted,
    clean,
)
from db.tables import nodes, requests, run_builds, run_log, runs
from db.transactions import database_now, reading, writing

LEASE_S = 30.0  # renewed every 5 s


class Store:
    """The write side of a database that ``db.engine.migrate`` has prepared."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def register_node(self, facts: NodeFacts) -> int:
        """Add the node or take over what it says now; its id. A changed fingerprint leaves a note."""
        with writing(self.engine) as connection:
            return inventory.register_node(connection, facts)

    def beat_node(self, name: str) -> None:
        """Note that the node lives. Raises NotFound."""
        with writing(self.engine) as connection:
            inventory.beat_node(connection, name)

    def record_build(self, facts: BuildFacts) -> int:
        """Add the build or refresh it; its id. Raises UserError when its label belongs to another git revision."""
        with writing(self.engine) as connection:
            return inventory.record_build(connection, facts)

    def record_environment(self, facts: EnvironmentFacts) -> int:
        """Add the environment or give the known one its new state; its id. Raises NotFound for the node."""
        with writing(self.engine) as connection:
            return inventory.record_environment(connection, facts)

    def environment_removed(self, node: str, name: str) -> None:
        """Note that the environment is no longer on disk. Raises NotFound."""
        with writing(self.engine) as connection:
            inventory.environment_removed(connection, node, name)

    def submit(self, spec: RequestSpec, plans: Sequence[RunPlan], not_before: datetime | None = None) -> Submitted:
        """Queue a request with all its runs. The same key again writes nothing and answers with the first one's runs.

        Raises NotFound for the node, UserError when there is nothing to run.
        """
        if not plans:
            raise UserError("The request has no runs; choose at least one case that the node can measure.")
        with writing(self.engine) as connection:
            node_id, now = leases.node_id_of(connection, spec.node), database_now(connection)
            new = leases.insert_for(connection, requests).values(key=spec.key, spec=spec_to_json(spec), created_at=now)
            request_id = connection.scalar(new.on_conflict_do_nothing().returning(requests.c.id))
            if request_id is None:
                return _known_request(connection, spec.key)
            rows = [_queued_run(plan, request_id, node_id, now, not_before) for plan in plans]
            added = connection.scalars(runs.insert().returning(runs.c.id, sort_by_parameter_order=True), rows)
            run_ids = tuple(added)
            connection.execute(
                run_builds.insert(),
                [
                    {"run_id": run_id, "position": position, "spec": build, "build_id": None, "environment_id": None}
                    for run_id, plan in zip(run_ids, plans, strict=True)
                    for position, build in enumerate(plan.builds)
                ],
            )
            return Submitted(request_id, run_ids, True)

    def claim(
        self, node: str, device: str, owner: str, lease_s: float = LEASE_S, run_id: int | None = None
    ) -> Claim | None:
        """Take the oldest run that is due on this device, or only ``run_id``; None when busy or nothing is queued.

        A run whose lease ran out on the device is reaped on the way. Raises NotFound for the node.
        """
        with writing(self.engine) as connection:
            return leases.claim(connection, leases.node_id_of(connection, node), device, owner, lease_s, run_id)

    def renew(self, run_id: int, token: int, lease_s: float = LEASE_S) -> Renewal:
        """Prolong the lease and tell that the node lives; never raises Stopped, the answer says whether it is held."""
        try:
            with writing(self.engine) as connection:
                return Renewal(True, leases.renew(connection, run_id, token, lease_s))
        except Stopped:
            return Renewal(False, False)

    def set_state(self, run_id: int, token: int, state: RunState) -> None:
        """Go on from preparing to running; again is no change. Raises ValueError for other states: see ``finish``."""
        if state is not RunState.RUNNING:
            raise ValueError(f"a held run can become running, not {state}; final states are given by finish()")
        with writing(self.engine) as connection:
            row = leases.hold(connection, run_id, token)
            if row["state"] != state.value:
                values = {"state": state.value, "started_at": database_now(connection)}
                connection.execute(update(runs).where(runs.c.id == run_id).values(**values))

    def set_progress(self, run_id: int, token: int, progress: Progress) -> None:
        with writing(self.engine) as connection:
            leases.hold(connection, run_id, token)
            connection.execute(update(runs).where(runs.c.id == run_id).values(progress=progress_to_json(progress)))

    def log(self, run_id: int, token: int, lines: Iterable[str]) -> None:
        with writing(self.engine) as connection:
            leases.hold(connection, run_id, token)
            now = database_now(connection)
            rows = [{"run_id": run_id, "at": now, "text": clean(line)} for line in lines]
            if rows:
                connection.execute(run_log.insert(), rows)

    def bind_build(
        self, run_id: int, token: int, position: int, build_id: int, environment_id: int | None = None
    ) -> None:
        """Say what the spec at this position of the plan became. Raises RunFailed when two specs are the same build."""
        with writing(self.engine) as connection:
            results.bind_build(connection, run_id, token, position, build_id, environment_id)

    def save_measurements(self, run_id: int, token: int, records: Sequence[MeasurementRecord]) -> None:
        """Store summaries and samples, replacing what this run said before about the same series and build.

        Raises ValueError for a build that is not bound or a measurement that is said twice.
        """
        with writing(self.engine) as connection:
            results.save_measurements(connection, run_id, token, records)

    def finish(self, run_id: int, token: int, state: RunState, reason: str = "") -> None:
        """Give the run its final state (finished, failed or cancelled) and free the device; again is no change."""
        if state not in (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED):
            raise ValueError(f"a worker ends a run as finished, failed or cancelled, not {state}")
        with writing(self.engine) as connection:
            leases.finish(connection, run_id, token, state, reason)

    def give_back(self, run_id: int, token: int, reason: str) -> None:
        """Queue a held run again, in its old place: its worker is being stopped, which counts as no loss."""
        with writing(self.engine) as connection:
            leases.give_back(connection, run_id, token, reason)

    def request_cancel(self, run_id: int) -> RunState:
        """Cancel a queued run at once, ask the worker of a live one to stop; the state after that.

        Raises NotFound, or UserError when the run has ended.
        """
        with writing(self.engine) as connection:
            state = _state_for_change(connection, run_id)
            if state.final:
                raise UserError(f"Run {run_id} is {state} already; only queued and live runs can be cancelled.")
            change = update(runs).where(runs.c.id == run_id)
            if state is RunState.QUEUED:
                reason, now = "Cancelled before it began.", database_now(connection)
                connection.execute(change.values(state=RunState.CANCELLED.value, reason=reason, finished_at=now))
                return RunState.CANCELLED
            connection.execute(change.values(cancel_requested=True))
            return state

    def retry(self, run_id: int) -> None:
        """Queue a failed, cancelled or lost run again. Raises NotFound, or UserError in any other state."""
        with writing(self.engine) as connection:
            state = _state_for_change(connection, run_id)
            if not state.final or state is RunState.FINISHED:
                raise UserError(f"Run {run_id} is {state}; only failed, cancelled and lost runs can be retried.")
            attempt = connection.execute(select(runs.c.attempt).where(runs.c.id == run_id)).scalar_one()
            leases.enqueue(connection, run_id, attempt + 1, database_now(connection), "")

    def reap(self) -> tuple[Reaped, ...]:
        """End every lease that ran out: queued again once, else lost; a run that was to be cancelled is cancelled."""
        with reading(self.engine) as connection:
            candidates = leases.expired(connection)
        reaped = []
        for run_id in candidates:  # one transaction each: a run that cannot be reaped holds up no other
            with writing(self.engine) as connection:
                reaped.append(leases.reap_run(connection, run_id, database_now(connection)))
        return tuple(one for one in reaped if one is not None)

    def queued_devices(self) -> tuple[tuple[str, str], ...]:
        """Nodes and devices with runs that are due: whom to ring."""
        with reading(self.engine) as connection:
            due = or_(runs.c.not_before.is_(None), runs.c.not_before <= database_now(connection))
            found = connection.execute(
                select(nodes.c.name, runs.c.device)
                .join(nodes, nodes.c.id == runs.c.node_id)
                .where(runs.c.state == RunState.QUEUED.value, due)
                .group_by(nodes.c.name, runs.c.device)
                .order_by(func.min(runs.c.queued_at))
            )
            return tuple((row.name, row.device) for row in found)


def _known_request(connection: Connection, key: str) -> Submitted:
    request_id = connection.execute(select(requests.c.id).where(requests.c.key == key)).scalar_one()
    known = connection.scalars(select(runs.c.id).where(runs.c.request_id == request_id).order_by(runs.c.id))
    return Submitted(request_id, tuple(known), False)


def _queued_run(
    plan: RunPlan, request_id: int, node_id: int, now: datetime, not_before: datetime | None
) -> dict[str, object]:
    return {
        "request_id": request_id,
        "node_id": node_id,
        "device": plan.device,
        "suite": plan.suite,
        "plan": plan_to_json(plan),
        "state": RunState.QUEUED.value,
        "reason": "",
        "attempt": 1,
        "losses": 0,
        "lease_owner": "",
        "lease_token": 0,
        "cancel_requested": False,
        "not_before": not_before,
        "progress": {},
        "queued_at": now,
    }


def _state_for_change(connection: Connection, run_id: int) -> RunState:
    wanted = select(runs.c.state).where(runs.c.id == run_id).with_for_update(key_share=True)
    state = connection.scalar(wanted) if leases.is_id(run_id) else None
    if state is None:
        raise leases.no_run(run_id)
    return RunState(state)
