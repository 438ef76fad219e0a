"""The read side: rows become the frozen views of ``core.model``. Every method may raise Unavailable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Select, case, func, select

from core.errors import NotFound
from core.model import BuildView, LogLine, MeasurementView, NodeView, RunState, RunView
from core.versions import in_order
from db import measured
from db.codecs import plan_from_json, progress_from_json
from db.leases import LIVE, is_id, no_run, node_id_of
from db.tables import EnvironmentState, builds, environments, measurements, nodes, requests, run_builds, run_log, runs
from db.transactions import database_now, reading

ALIVE_S = 45  # a node heard within this many seconds is alive


class Queries:
    """The read side of a database that ``db.engine.migrate`` has prepared."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def nodes(self) -> tuple[NodeView, ...]:
        """All nodes by name."""
        with reading(self.engine) as connection:
            return _node_views(connection, select(nodes).order_by(nodes.c.name))

    def node(self, name: str) -> NodeView:
        """Raises NotFound."""
        with reading(self.engine) as connection:
            return _node_views(connection, select(nodes).where(nodes.c.id == node_id_of(connection, name)))[0]

    def builds(self, node: str | None = None) -> tuple[BuildView, ...]:
        """All builds, newest version first, each with its newest ready environment (of ``node``) or else its newest.

        Raises NotFound for the node.
        """
        with reading(self.engine) as connection:
            return _build_views(connection, node_id_of(connection, node) if node else None)

    def build(self, label_or_spec: str, node: str | None = None) -> BuildView | None:
        """The build of that label, else of that spec, else of that version in any flavour; None when there is none.

        Where several fit, one that is on disk comes first, then the newest: ``1.10.2`` finds ``1.10.2+cu102``.
        """
        views = self.builds(node)
        for fits in (
            [view for view in views if view.label == label_or_spec],
            [view for view in views if view.spec == label_or_spec],
            [view for view in views if view.label.partition("+")[0] == label_or_spec],
        ):
            if fits:
                return max(fits, key=lambda view: (view.state == EnvironmentState.READY, view.created_at, view.id))
        return None

    def runs(self, limit: int = 50, offset: int = 0, states: Collection[RunState] | None = None) -> tuple[RunView, ...]:
        """Runs, newest first."""
        wanted = select(runs.c.id).order_by(runs.c.id.desc()).limit(limit).offset(offset)
        if states is not None:
            wanted = wanted.where(runs.c.state.in_([state.value for state in states]))
        with reading(self.engine) as connection:
            return _run_views(connection, list(connection.scalars(wanted)))

    def run(self, run_id: int) -> RunView:
        """Raises NotFound."""
        with reading(self.engine) as connection:
            views = _run_views(connection, [run_id]) if is_id(run_id) else ()
        if not views:
            raise no_run(run_id)
        return views[0]

    def run_counts(self) -> dict[RunState, int]:
        """How many runs there are in each state; every state has its key."""
        with reading(self.engine) as connection:
            found = connection.execute(select(runs.c.state, func.count().label("count")).group_by(runs.c.state))
            counts = {RunState(row.state): row[1] for row in found}
        return {state: counts.get(state, 0) for state in RunState}

    def run_log(self, run_id: int, limit: int = 200) -> tuple[LogLine, ...]:
        """The last ``limit`` lines of a run's log, the newest last."""
        if not is_id(run_id):
            return ()
        newest = select(run_log).where(run_log.c.run_id == run_id).order_by(run_log.c.id.desc()).limit(limit)
        with reading(self.engine) as connection:
            return tuple(LogLine(row.at, row.text) for row in reversed(connection.execute(newest).all()))

    def request(self, request_id: int) -> tuple[int, ...]:
        """The ids of a request's runs, in the order of their plans. Raises NotFound."""
        with reading(self.engine) as connection:
            known = select(requests.c.id).where(requests.c.id == request_id)
            if not is_id(request_id) or connection.scalar(known) is None:
                raise NotFound(f"There is no request {request_id}; see `flashpoint runs`.")
            of_request = select(runs.c.id).where(runs.c.request_id == request_id).order_by(runs.c.id)
            return tuple(connection.scalars(of_request))

    def measurements(
        self,
        run_ids: Collection[int] | None = None,
        *,
        builds: Collection[str] | None = None,
        node: str | None = None,
        suite: str | None = None,
        with_samples: bool = False,
    ) -> tuple[MeasurementView, ...]:
        """Measurements that fit all that is given, in the order they were first stored. ``builds`` are labels."""
        with reading(self.engine) as connection:
            return measured.measurements_by(connection, run_ids, builds, node, suite, with_samples)

    def measured_builds(self, node: str, suite: str | None = None) -> tuple[str, ...]:
        """Labels of the builds with measurements on this node, newest version first."""
        with reading(self.engine) as connection:
            return newest_first(measured.measured_builds(connection, node, suite))

    def measured_nodes(self) -> tuple[str, ...]:
        """Names of the nodes that have measurements, the one measured last first."""
        with reading(self.engine) as connection:
            return measured.measured_nodes(connection)

    def latest_measurements(
        self, builds: tuple[str, str], node: str, suite: str | None = None, *, with_samples: bool = True
    ) -> tuple[MeasurementView, ...]:
        """What to compare two builds by: for each case, variant and metric one measurement of each build that has one.

        The newest finished run that measured both counts; else the newest of any state that measured both; else the
        newest of each, of one revision and one node class, so that what stands side by side is the same work.
        """
        with reading(self.engine) as connection:
            return measured.latest(connection, builds, node, suite, with_samples)


def newest_first(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels of builds, newest first, as ``core.versions`` orders them."""
    return tuple(reversed(in_order(labels)))


def _node_views(connection: Connection, wanted: Select[Any]) -> tuple[NodeView, ...]:
    heard = database_now(connection) - timedelta(seconds=ALIVE_S)
    live = select(runs.c.node_id, func.min(runs.c.id).label("run_id")).where(runs.c.state.in_(LIVE))
    running = {row.node_id: row.run_id for row in connection.execute(live.group_by(runs.c.node_id))}
    return tuple(
        NodeView(
            id=row.id,
            name=row.name,
            cpu=row.cpu,
            threads=row.threads,
            memory_bytes=row.memory_bytes,
            devices=tuple(sorted(row.devices)),
            versions=row.versions,
            fingerprint=row.fingerprint,
            heartbeat_at=row.heartbeat_at,
            alive=row.heartbeat_at is not None and row.heartbeat_at >= heard,
            running=running.get(row.id),
        )
        for row in connection.execute(wanted)
    )


def _build_views(connection: Connection, node_id: int | None) -> tuple[BuildView, ...]:
    ready = case((environments.c.state == EnvironmentState.READY.value, 0), else_=1)
    on_disk = select(environments).order_by(ready.desc(), environments.c.created_at, environments.c.id)
    if node_id is not None:
        on_disk = on_disk.where(environments.c.node_id == node_id)
    best = {row.build_id: row for row in connection.execute(on_disk)}  # the last of each build wins
    last = select(func.max(measurements.c.measured_at)).where(measurements.c.build_id == builds.c.id).scalar_subquery()
    rows = {row.label: row for row in connection.execute(select(builds, last.label("last_measured_at")))}
    return tuple(_build_view(rows[label], best.get(rows[label].id)) for label in newest_first(rows))


def _build_view(build: Any, environment: Any | None) -> BuildView:
    state = EnvironmentState(environment.state) if environment else EnvironmentState.REMOVED
    on_disk = state is EnvironmentState.READY
    return BuildView(
        id=build.id,
        label=build.label,
        spec=build.spec,
        channel=build.channel,
        git_revision=build.git_revision,
        flavour=build.flavour,
        python=environment.python if environment else "",
        environment=environment.name if on_disk and environment else "",
        state=state.value,
        size_bytes=environment.size_bytes if on_disk and environment else 0,
        details=build.details,
        created_at=build.created_at,
        last_measured_at=build.last_measured_at,
    )


def _run_views(connection: Connection, run_ids: Sequence[int]) -> tuple[RunView, ...]:
    """The views of these runs, in this order; ids that do not exist are left out."""
    wanted = select(runs, nodes.c.name.label("node")).join(nodes, nodes.c.id == runs.c.node_id)
    rows = {row.id: row for row in connection.execute(wanted.where(runs.c.id.in_(run_ids)))}
    names = _build_names(connection, run_ids)
    waiting = any(row.state == RunState.QUEUED.value for row in rows.values())
    places = _places(connection, run_ids) if waiting else {}
    return tuple(_run_view(rows[i], names.get(i, ()), places.get(i)) for i in run_ids if i in rows)


def _run_view(row: Any, names: tuple[str, ...], place: int | None) -> RunView:
    return RunView(
        id=row.id,
        request_id=row.request_id,
        plan=plan_from_json(row.plan),
        node=row.node,
        state=RunState(row.state),
        reason=row.reason,
        progress=progress_from_json(row.progress),
        builds=names,
        attempt=row.attempt,
        cancel_requested=row.cancel_requested,
        queued_at=row.queued_at,
        prepared_at=row.prepared_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        heartbeat_at=row.heartbeat_at,
        lease_until=row.lease_until,
        position=place,
    )


def _build_names(connection: Connection, run_ids: Sequence[int]) -> Mapping[int, tuple[str, ...]]:
    """Labels in the order of the plan; the spec stands in for a build that is not resolved yet."""
    names: dict[int, tuple[str, ...]] = {}
    label = func.coalesce(builds.c.label, run_builds.c.spec).label("label")
    for row in connection.execute(
        select(run_builds.c.run_id, label)
        .outerjoin(builds, builds.c.id == run_builds.c.build_id)
        .where(run_builds.c.run_id.in_(run_ids))
        .order_by(run_builds.c.run_id, run_builds.c.position)
    ):
        names[row.run_id] = (*names.get(row.run_id, ()), row.label)
    return names


def _places(connection: Connection, run_ids: Sequence[int]) -> Mapping[int, int]:
    """Places in the queue of the run's node and device, 1 = next: the order in which claims take them."""
    order = func.row_number().over(partition_by=(runs.c.node_id, runs.c.device), order_by=(runs.c.queued_at, runs.c.id))
    queue = select(runs.c.id, order.label("place")).where(runs.c.state == RunState.QUEUED.value).subquery()
    return {row.id: row.place for row in connection.execute(select(queue).where(queue.c.id.in_(run_ids)))}
