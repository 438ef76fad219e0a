"""The first schema: nodes, builds, environments, requests, runs with their leases, measurements with their samples.

Revision: 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

JSON_VALUE = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    _things()
    _queue()
    _results()


def downgrade() -> None:
    for table in (
        "samples",
        "run_log",
        "run_builds",
        "measurements",
        "device_locks",
        "runs",
        "environments",
        "series",
        "requests",
        "nodes",
        "builds",
    ):
        op.drop_table(table)


def _things() -> None:
    op.create_table(
        "builds",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("spec", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("git_revision", sa.String(), nullable=False),
        sa.Column("flavour", sa.String(), nullable=False),
        sa.Column("details", JSON_VALUE, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_builds")),
        sa.UniqueConstraint("label", name=op.f("uq_builds_label")),
    )
    op.create_table(
        "nodes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("cpu", sa.String(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("devices", JSON_VALUE, nullable=False),
        sa.Column("versions", JSON_VALUE, nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("registered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_nodes")),
        sa.UniqueConstraint("name", name=op.f("uq_nodes_name")),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("spec", JSON_VALUE, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requests")),
        sa.UniqueConstraint("key", name=op.f("uq_requests_key")),
    )
    op.create_table(
        "series",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("case_id", sa.String(), nullable=False),
        sa.Column("suite", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("variant", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("node_class", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint(
            "case_id",
            "revision",
            "variant",
            "metric",
            "node_class",
            name=op.f("uq_series_case_id_revision_variant_metric_node_class"),
        ),
    )
    op.create_index(op.f("ix_series_suite"), "series", ["suite"])

    op.create_table(
        "environments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("build_id", sa.Integer(), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("spec", sa.String(), nullable=False),
        sa.Column("python", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("lock", sa.String(), nullable=False),
        sa.Column("probe", JSON_VALUE, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state IN ('ready', 'removed', 'failed')", name=op.f("ck_environments_state")),
        sa.ForeignKeyConstraint(["build_id"], ["builds.id"], name=op.f("fk_environments_build_id_builds")),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("fk_environments_node_id_nodes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environments")),
        sa.UniqueConstraint("node_id", "name", name=op.f("uq_environments_node_id_name")),
    )
    op.create_index(op.f("ix_environments_build_id"), "environments", ["build_id"])


def _queue() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.Integer(), nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("suite", sa.String(), nullable=False),
        sa.Column("plan", JSON_VALUE, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=False),
        sa.Column("lease_token", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("progress", JSON_VALUE, nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("prepared_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'preparing', 'running', 'finished', 'failed', 'cancelled', 'lost')",
            name=op.f("ck_runs_state"),
        ),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("fk_runs_node_id_nodes")),
        sa.ForeignKeyConstraint(["request_id"], ["requests.id"], name=op.f("fk_runs_request_id_requests")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_node_id_device_state_queued_at"), "runs", ["node_id", "device", "state", "queued_at"])
    op.create_index(op.f("ix_runs_request_id"), "runs", ["request_id"])
    op.create_index(op.f("ix_runs_state_lease_until"), "runs", ["state", "lease_until"])

    op.create_table(
        "device_locks",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("fk_device_locks_node_id_nodes")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_device_locks_run_id_runs")),
        sa.PrimaryKeyConstraint("node_id", "device", name=op.f("pk_device_locks")),
    )


def _results() -> None:
    op.create_table(
        "measurements",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("series_id", sa.Integer(), nullable=False),
        sa.Column("build_id", sa.Integer(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("median", sa.Float(), nullable=True),
        sa.Column("ci_low", sa.Float(), nullable=True),
        sa.Column("ci_high", sa.Float(), nullable=True),
        sa.Column("spread", sa.Float(), nullable=True),
        sa.Column("evidence", JSON_VALUE, nullable=False),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("(outcome = 'ok') = (median IS NOT NULL)", name=op.f("ck_measurements_numbers")),
        sa.CheckConstraint(
            "outcome IN ('ok', 'skipped', 'unsupported', 'mismatch', 'failed', 'timed out')",
            name=op.f("ck_measurements_outcome"),
        ),
        sa.ForeignKeyConstraint(["build_id"], ["builds.id"], name=op.f("fk_measurements_build_id_builds")),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environments.id"], name=op.f("fk_measurements_environment_id_environments")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_measurements_run_id_runs")),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_measurements_series_id_series")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurements")),
        sa.UniqueConstraint("run_id", "series_id", "build_id", name=op.f("uq_measurements_run_id_series_id_build_id")),
    )
    op.create_index(op.f("ix_measurements_build_id_measured_at"), "measurements", ["build_id", "measured_at"])
    op.create_index(
        op.f("ix_measurements_series_id_build_id_run_id"), "measurements", ["series_id", "build_id", "run_id"]
    )

    op.create_table(
        "run_builds",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("spec", sa.String(), nullable=False),
        sa.Column("build_id", sa.Integer(), nullable=True),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["build_id"], ["builds.id"], name=op.f("fk_run_builds_build_id_builds")),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environments.id"], name=op.f("fk_run_builds_environment_id_environments")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_builds_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "position", name=op.f("pk_run_builds")),
        sa.UniqueConstraint("run_id", "build_id", name=op.f("uq_run_builds_run_id_build_id")),
    )
    op.create_index(op.f("ix_run_builds_build_id"), "run_builds", ["build_id"])

    op.create_table(
        "run_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_log_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_log")),
    )
    op.create_index(op.f("ix_run_log_run_id_id"), "run_log", ["run_id", "id"])

    op.create_table(
        "samples",
        sa.Column("measurement_id", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["measurement_id"], ["measurements.id"], name=op.f("fk_samples_measurement_id_measurements")
        ),
        sa.PrimaryKeyConstraint("measurement_id", name=op.f("pk_samples")),
    )
