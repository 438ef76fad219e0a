"""Reads of measurements. Functions over a reading transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Select, case, exists, func, select

from core.model import MeasurementView, Outcome, RunState
from db.leases import is_id, node_id_of
from db.samples import unpack
from db.tables import builds, measurements, nodes, run_builds, runs, samples, series

CHUNK = 500  # ids a statement, below the limits on bound parameters


def measurements_of(with_samples: bool) -> Select[Any]:
    """Everything a view needs, one row a measurement."""
    m = measurements.c
    wanted = [
        *(c for c in measurements.c if c.name != "samples"),
        m.samples.label("values"),
        series.c.case_id,
        series.c.suite,
        series.c.revision,
        series.c.variant,
        series.c.metric,
        series.c.unit,
        builds.c.label,
        nodes.c.name.label("node"),
    ]
    if with_samples:
        wanted.append(samples.c.data)
    joined = (
        select(*wanted)
        .join(series, series.c.id == m.series_id)
        .join(builds, builds.c.id == m.build_id)
        .join(runs, runs.c.id == m.run_id)
        .join(nodes, nodes.c.id == runs.c.node_id)
    )
    return joined.outerjoin(samples, samples.c.measurement_id == m.id) if with_samples else joined


def measurements_by(
    connection: Connection,
    run_ids: Collection[int] | None,
    labels: Collection[str] | None,
    node: str | None,
    suite: str | None,
    with_samples: bool,
) -> tuple[MeasurementView, ...]:
    """Measurements that fit all that is not None, by id."""
    wanted = measurements_of(with_samples).order_by(measurements.c.id)
    if run_ids is not None:
        wanted = wanted.where(measurements.c.run_id.in_([i for i in run_ids if is_id(i)]))
    if labels is not None:
        wanted = wanted.where(builds.c.label.in_(list(labels)))
    if node is not None:
        wanted = wanted.where(nodes.c.name == node)
    if suite is not None:
        wanted = wanted.where(series.c.suite == suite)
    return tuple(_view(row, with_samples) for row in connection.execute(wanted))


def measured_builds(connection: Connection, node: str, suite: str | None) -> list[str]:
    """Labels of the builds with measurements on the node, in no order."""
    of_run = run_builds.join(runs, runs.c.id == run_builds.c.run_id).join(nodes, nodes.c.id == runs.c.node_id)
    any_measurement = exists().where(
        measurements.c.run_id == run_builds.c.run_id, measurements.c.build_id == run_builds.c.build_id
    )
    wanted = (
        select(builds.c.label)
        .select_from(of_run.join(builds, builds.c.id == run_builds.c.build_id))
        .where(nodes.c.name == node, any_measurement)
        .distinct()
    )
    if suite is not None:
        wanted = wanted.where(runs.c.suite == suite)
    return list(connection.scalars(wanted))


def measured_nodes(connection: Connection) -> tuple[str, ...]:
    """Names of the nodes that have measurements, the one whose newest run has some first."""
    any_measurement = exists().where(measurements.c.run_id == runs.c.id)
    wanted = (
        select(nodes.c.name)
        .join(runs, runs.c.node_id == nodes.c.id)
        .where(any_measurement)
        .group_by(nodes.c.name)
        .order_by(func.max(runs.c.id).desc())
    )
    return tuple(connection.scalars(wanted))


def latest(
    connection: Connection, labels: tuple[str, str], node: str, suite: str | None, with_samples: bool
) -> tuple[MeasurementView, ...]:
    """See ``Queries.latest_measurements``. Raises NotFound for the node."""
    ranked = _ranked(labels, node_id_of(connection, node), suite).subquery()
    best = connection.execute(select(ranked).where(ranked.c.rank == 1)).all()
    sides = Counter(row.series_id for row in best)
    chosen: dict[tuple[str, str, str], tuple[tuple[int, ...], int]] = {}
    for row in best:  # of one case, variant and metric only one series: the same work on the same hardware
        what = (row.case_id, row.variant, row.metric)
        worth = ((row.together, sides[row.series_id], row.revision, row.finished, row.run_id), row.series_id)
        chosen[what] = max(chosen.get(what, worth), worth)
    ids = sorted(row.id for row in best if chosen[row.case_id, row.variant, row.metric][1] == row.series_id)
    wanted = measurements_of(with_samples).order_by(measurements.c.id)
    return tuple(
        _view(row, with_samples)
        for some in _chunks(ids)
        for row in connection.execute(wanted.where(measurements.c.id.in_(some)))
    )


def _ranked(labels: tuple[str, str], node_id: int, suite: str | None) -> Select[Any]:
    """Every measurement of the builds, numbered within its series and build by how well it serves a comparison."""
    m = measurements.c
    finished = case((runs.c.state == RunState.FINISHED.value, 1), else_=0)
    found = (
        select(
            m.id,
            m.series_id,
            m.build_id,
            m.run_id,
            series.c.case_id,
            series.c.variant,
            series.c.metric,
            series.c.revision,
            finished.label("finished"),
            func.count().over(partition_by=(m.series_id, m.run_id)).label("together"),
        )
        .join(series, series.c.id == m.series_id)
        .join(builds, builds.c.id == m.build_id)
        .join(runs, runs.c.id == m.run_id)
        .where(builds.c.label.in_(labels), runs.c.node_id == node_id)
    )
    if suite is not None:
        found = found.where(series.c.suite == suite)
    c = found.subquery().c
    order = (c.together.desc(), c.finished.desc(), c.run_id.desc())
    return select(*c, func.row_number().over(partition_by=(c.series_id, c.build_id), order_by=order).label("rank"))


def _chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]


def _view(row: Any, with_samples: bool) -> MeasurementView:
    return MeasurementView(
        id=row.id,
        run_id=row.run_id,
        case=row.case_id,
        suite=row.suite,
        revision=row.revision,
        variant=row.variant,
        metric=row.metric,
        unit=row.unit,
        build=row.label,
        node=row.node,
        outcome=Outcome(row.outcome),
        reason=row.reason,
        value=row.median,
        ci_low=row.ci_low,
        ci_high=row.ci_high,
        n=row.n,
        samples=row.values,
        evidence=row.evidence,
        measured_at=row.measured_at,
        sample=unpack(row.data) if with_samples and row.data is not None else None,
    )
