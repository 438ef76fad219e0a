"""Writes of what a run found: what its specs became, and its measurements. Functions over a writing transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, select, update

from bench_suites.kit.metrics import METRICS
from core.errors import RunFailed
from core.identity import node_class
from db.leases import hold, insert_for
from db.records import MeasurementRecord, clean, clean_json
from db.samples import pack
from db.tables import builds, environments, measurements, nodes, run_builds, samples, series
from db.transactions import database_now

CHUNK = 500  # rows a statement, below the limits on bound parameters

SeriesKey = tuple[str, str, str]  # case, variant, metric: what differs inside one run


def bind_build(
    connection: Connection, run_id: int, token: int, position: int, build_id: int, environment_id: int | None
) -> None:
    """Say what the spec at this position became. Raises Stopped, or RunFailed when two specs are one build."""
    hold(connection, run_id, token)
    twin = connection.execute(
        select(run_builds.c.spec, builds.c.label)
        .join(builds, builds.c.id == run_builds.c.build_id)
        .where(run_builds.c.run_id == run_id, run_builds.c.build_id == build_id, run_builds.c.position != position)
    ).first()
    bound = connection.execute(
        select(run_builds.c.spec).where(run_builds.c.run_id == run_id, run_builds.c.position == position)
    ).one()
    if twin:
        raise RunFailed(
            f"{twin.spec!r} and {bound.spec!r} are the same build {twin.label}; ask for two different ones."
        )
    connection.execute(
        update(run_builds)
        .where(run_builds.c.run_id == run_id, run_builds.c.position == position)
        .values(build_id=build_id, environment_id=environment_id)
    )
    if environment_id is not None:
        used = update(environments).where(environments.c.id == environment_id)
        connection.execute(used.values(last_used_at=database_now(connection)))


def save_measurements(connection: Connection, run_id: int, token: int, records: Sequence[MeasurementRecord]) -> None:
    """Store summaries and samples; what this run said before about the same series and build is replaced.

    Raises Stopped for a stale token (nothing is written), ValueError for a position whose build is not bound or for a
    measurement that is said twice.
    """
    run = hold(connection, run_id, token)
    if not records:
        return
    bound = {
        row.position: row
        for row in connection.execute(
            select(run_builds).where(run_builds.c.run_id == run_id, run_builds.c.build_id.is_not(None))
        )
    }
    said = [(record.position, *_key(record)) for record in records]
    if len(set(said)) != len(said):
        raise ValueError(f"run {run_id} says a measurement twice: {max(said, key=said.count)}")
    if loose := {record.position for record in records} - set(bound):
        raise ValueError(f"run {run_id} measured the builds {sorted(loose)} before they were bound")
    known = _series_ids(connection, run, records)
    now = database_now(connection)
    rows: list[dict[str, Any]] = [
        {
            "run_id": run_id,
            "series_id": known[_key(record)],
            "build_id": bound[record.position].build_id,
            "environment_id": bound[record.position].environment_id,
            "outcome": record.outcome.value,
            "reason": clean(record.reason),
            "n": record.rounds,
            "samples": record.values,
            "median": record.value,
            "ci_low": record.ci_low,
            "ci_high": record.ci_high,
            "spread": record.spread,
            "evidence": clean_json(record.evidence),
            "measured_at": now,
        }
        for record in records
    ]
    ids = _upsert(connection, rows)
    blobs, bare = [], []
    for record, row in zip(records, rows, strict=True):
        measurement_id = ids[row["series_id"], row["build_id"]]
        if record.sample is None:
            bare.append(measurement_id)
        else:
            blobs.append({"measurement_id": measurement_id, "data": pack(record.sample)})
    _save_samples(connection, blobs, bare)


def _key(record: MeasurementRecord) -> SeriesKey:
    return record.case, record.variant, record.metric


def _series_ids(connection: Connection, run: RowMapping, records: Sequence[MeasurementRecord]) -> dict[SeriesKey, int]:
    """The ids of the records' series, made where they are new; suite and revision are those of the run's plan."""
    fingerprint = connection.execute(select(nodes.c.fingerprint).where(nodes.c.id == run["node_id"])).scalar_one()
    same = {
        "suite": run["suite"],
        "revision": run["plan"]["revision"],
        "node_class": node_class(fingerprint, run["device"]),
    }
    wanted = sorted({_key(record) for record in records})  # sorted: two runs that add the same series never deadlock
    known = _known_series(connection, same, wanted)
    missing = [
        {"case_id": case, "variant": variant, "metric": metric, "unit": METRICS[metric].unit, **same}
        for case, variant, metric in wanted
        if (case, variant, metric) not in known
    ]
    if missing:
        connection.execute(insert_for(connection, series).on_conflict_do_nothing(), missing)
        known = _known_series(connection, same, wanted)
    return known


def _known_series(connection: Connection, same: dict[str, Any], wanted: Sequence[SeriesKey]) -> dict[SeriesKey, int]:
    cases = sorted({case for case, _, _ in wanted})
    known: dict[SeriesKey, int] = {}
    for start in range(0, len(cases), CHUNK):
        found = connection.execute(
            select(series.c.id, series.c.case_id, series.c.variant, series.c.metric).where(
                series.c.case_id.in_(cases[start : start + CHUNK]),
                series.c.revision == same["revision"],
                series.c.node_class == same["node_class"],
            )
        )
        known.update({(row.case_id, row.variant, row.metric): row.id for row in found})
    return known


def _upsert(connection: Connection, rows: Sequence[dict[str, Any]]) -> dict[tuple[int, int], int]:
    """The ids of the measurements by series and build."""
    new = insert_for(connection, measurements)
    key = ("run_id", "series_id", "build_id")
    replaced = {name: new.excluded[name] for name in rows[0] if name not in key}
    upsert = new.on_conflict_do_update(index_elements=key, set_=replaced).returning(
        measurements.c.id, measurements.c.series_id, measurements.c.build_id
    )
    ids: dict[tuple[int, int], int] = {}
    for start in range(0, len(rows), CHUNK):
        found = connection.execute(upsert, rows[start : start + CHUNK])
        ids.update({(row.series_id, row.build_id): row.id for row in found})
    return ids


def _save_samples(connection: Connection, blobs: Sequence[dict[str, Any]], bare: Sequence[int]) -> None:
    new = insert_for(connection, samples)
    upsert = new.on_conflict_do_update(index_elements=["measurement_id"], set_={"data": new.excluded.data})
    if blobs:
        connection.execute(upsert, list(blobs))
    for start in range(0, len(bare), CHUNK):  # a summary never stands beside the samples of another
        connection.execute(delete(samples).where(samples.c.measurement_id.in_(bare[start : start + CHUNK])))
