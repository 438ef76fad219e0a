"""The tables. Rows never leave ``db``: ``queries`` turns them into the frozen views of ``core.model``.

States and outcomes are plain text with CHECK constraints (a native enum would outlive a downgrade on PostgreSQL). JSON
values are replaced as a whole, never changed in place: such a change would not be saved.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from sqlalchemy import JSON, BigInteger, CheckConstraint, Index, MetaData, Table, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from core.model import Outcome, RunState

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class EnvironmentState(StrEnum):
    """Whether an environment is on disk."""

    READY = "ready"
    REMOVED = "removed"
    FAILED = "failed"


class Row(SQLModel):
    """Base of all tables, with metadata of its own."""

    metadata = MetaData(naming_convention=NAMING)


def _key() -> Any:
    return Field(default=None, primary_key=True)


def _json() -> Any:
    return Field(sa_type=JSON().with_variant(JSONB(), "postgresql"))


def _one_of(column: str, words: type[StrEnum]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(word.value) for word in words)})", name=column)


class Node(Row, table=True):
    """A machine. ``devices`` maps device names to models; ``note`` says when and how its hardware changed."""

    __tablename__ = "nodes"

    id: int | None = _key()
    name: str = Field(unique=True)
    fingerprint: str
    cpu: str
    threads: int
    memory_bytes: int = Field(sa_type=BigInteger)
    devices: dict[str, str] = _json()
    versions: dict[str, str] = _json()
    note: str
    registered_at: datetime
    heartbeat_at: datetime | None


class Build(Row, table=True):
    """An exact PyTorch."""

    __tablename__ = "builds"

    id: int | None = _key()
    label: str = Field(unique=True)
    version: str
    spec: str
    channel: str
    git_revision: str
    flavour: str
    details: dict[str, str] = _json()
    created_at: datetime


class Environment(Row, table=True):
    """A virtual environment of a build on a node; ``lock`` lists its packages."""

    __tablename__ = "environments"
    __table_args__ = (
        UniqueConstraint("node_id", "name"),
        Index(None, "build_id"),
        _one_of("state", EnvironmentState),
    )

    id: int | None = _key()
    name: str
    build_id: int = Field(foreign_key="builds.id")
    node_id: int = Field(foreign_key="nodes.id")
    spec: str
    python: str
    state: str
    lock: str
    probe: dict[str, Any] = _json()
    size_bytes: int = Field(sa_type=BigInteger)
    created_at: datetime
    last_used_at: datetime


class Request(Row, table=True):
    """What a person or a schedule asked for; the same key twice is one request."""

    __tablename__ = "requests"

    id: int | None = _key()
    key: str = Field(unique=True)
    spec: dict[str, Any] = _json()
    created_at: datetime


class Run(Row, table=True):
    """The unit of the queue. Each ``*_at`` is the moment the run entered that state of its latest attempt:
    queued, prepared (preparing began), started (measuring began), finished (any final state). ``losses`` counts the
    workers lost since a person last asked for the run."""

    __tablename__ = "runs"
    __table_args__ = (
        _one_of("state", RunState),
        Index(None, "node_id", "device", "state", "queued_at"),
        Index(None, "state", "lease_until"),
        Index(None, "request_id"),
    )

    id: int | None = _key()
    request_id: int = Field(foreign_key="requests.id")
    node_id: int = Field(foreign_key="nodes.id")
    device: str
    suite: str
    plan: dict[str, Any] = _json()
    state: str
    reason: str
    attempt: int
    losses: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    lease_owner: str
    lease_token: int
    lease_until: datetime | None
    heartbeat_at: datetime | None
    cancel_requested: bool
    not_before: datetime | None
    progress: dict[str, Any] = _json()
    queued_at: datetime
    prepared_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None


class RunBuild(Row, table=True):
    """One build of a run: the spec as planned and, once resolved, what it became. Position 0 is the baseline."""

    __tablename__ = "run_builds"
    __table_args__ = (UniqueConstraint("run_id", "build_id"), Index(None, "build_id"))

    run_id: int = Field(foreign_key="runs.id", primary_key=True)
    position: int = Field(primary_key=True)
    spec: str
    build_id: int | None = Field(foreign_key="builds.id")
    environment_id: int | None = Field(foreign_key="environments.id")


class RunLog(Row, table=True):
    """One line of a run's log."""

    __tablename__ = "run_log"
    __table_args__ = (Index(None, "run_id", "id"),)

    id: int | None = _key()
    run_id: int = Field(foreign_key="runs.id")
    at: datetime
    text: str


class DeviceLock(Row, table=True):
    """Who measures on a device now; the row stays when the lock is free, so that claims queue up on it."""

    __tablename__ = "device_locks"

    node_id: int = Field(foreign_key="nodes.id", primary_key=True)
    device: str = Field(primary_key=True)
    run_id: int | None = Field(foreign_key="runs.id")
    token: int
    until: datetime | None


class Series(Row, table=True):
    """Measurements that differ only in build."""

    __tablename__ = "series"
    __table_args__ = (
        UniqueConstraint("case_id", "revision", "variant", "metric", "node_class"),
        Index(None, "suite"),
    )

    id: int | None = _key()
    case_id: str
    suite: str
    revision: int
    variant: str
    metric: str
    unit: str
    node_class: str


class Measurement(Row, table=True):
    """The summary of one measurement; only the outcome ``ok`` has numbers."""

    __tablename__ = "measurements"
    __table_args__ = (
        UniqueConstraint("run_id", "series_id", "build_id"),
        Index(None, "series_id", "build_id", "run_id"),
        Index(None, "build_id", "measured_at"),
        _one_of("outcome", Outcome),
        CheckConstraint("(outcome = 'ok') = (median IS NOT NULL)", name="numbers"),
    )

    id: int | None = _key()
    run_id: int = Field(foreign_key="runs.id")
    series_id: int = Field(foreign_key="series.id")
    build_id: int = Field(foreign_key="builds.id")
    environment_id: int | None = Field(foreign_key="environments.id")
    outcome: str
    reason: str
    n: int
    samples: int
    median: float | None
    ci_low: float | None
    ci_high: float | None
    spread: float | None
    evidence: dict[str, str] = _json()
    measured_at: datetime


class Samples(Row, table=True):
    """All raw values of one measurement, as ``db.samples`` packs them; kept for ever."""

    __tablename__ = "samples"

    measurement_id: int = Field(foreign_key="measurements.id", primary_key=True)
    data: bytes


def _table(row: type[Row]) -> Table:
    return cast(Table, getattr(row, "__table__"))  # noqa: B009  SQLModel does not declare the attribute


nodes = _table(Node)
builds = _table(Build)
environments = _table(Environment)
requests = _table(Request)
runs = _table(Run)
run_builds = _table(RunBuild)
run_log = _table(RunLog)
device_locks = _table(DeviceLock)
series = _table(Series)
measurements = _table(Measurement)
samples = _table(Samples)
