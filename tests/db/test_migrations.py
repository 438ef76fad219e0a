"""The schema: from nothing, again, by many at once, with a copy first, and as a whole or not at all."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import CheckConstraint, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from core.errors import UserError
from db import engine as engines
from db.engine import SCRIPTS, Migration, head_revision, make_engine, migrate, schema_revision
from db.queries import Queries
from db.store import Store
from db.tables import Row
from db.transactions import writing
from tests.db.scenes import NODE, bound, record

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"


def upgrade() -> None:
    with op.batch_alter_table("nodes") as batch:
        batch.add_column(sa.Column("rack", sa.String(), nullable=False, server_default="r1"))
        batch.alter_column("cpu", existing_type=sa.String(), nullable=True)
    {then}
"""


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The migrations of a later Flashpoint, which rebuilds a table that others refer to."""
    return scripts(tmp_path / "newer", "")


def scripts(folder: Path, then: str) -> Path:
    shutil.copytree(SCRIPTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "9999_next.py").write_text(NEXT.format(head=head_revision(), then=then))
    return folder


def test_from_empty_and_again(empty_engine: Engine) -> None:
    assert schema_revision(empty_engine) == ""
    assert migrate(empty_engine) == Migration("", head_revision(), None)
    assert migrate(empty_engine) == Migration(head_revision(), head_revision(), None)
    assert schema_revision(empty_engine) == head_revision() != ""


def test_models_and_migrations_agree(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, Row.metadata) == []


def test_the_check_constraints_are_those_of_the_models(engine: Engine) -> None:
    """Alembic's comparison does not look at CHECK constraints."""
    for table in Row.metadata.sorted_tables:
        wanted = {str(one.name) for one in table.constraints if isinstance(one, CheckConstraint)}
        assert {one["name"] for one in inspect(engine).get_check_constraints(table.name)} == wanted


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [("runs", "state", "asleep"), ("measurements", "outcome", "nan"), ("measurements", "median", None)],
)
def test_words_that_are_none_are_refused_by_the_database(
    engine: Engine, store: Store, table: str, column: str, value: str | None
) -> None:
    claim = bound(store)
    store.save_measurements(claim.run_id, claim.token, [record()])
    with pytest.raises(DBAPIError, match=r"ck_\w+|CHECK"), engine.begin() as connection:
        connection.execute(text(f"UPDATE {table} SET {column} = :value"), {"value": value})


def test_down_and_up_again(engine: Engine) -> None:
    config = engines._config(SCRIPTS)
    with writing(engine) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert set(inspect(engine).get_table_names()) == {"alembic_version"}
    assert migrate(engine).before == ""


def test_many_migrators_at_once_migrate_once(empty_url: str) -> None:
    everybody = Barrier(4)

    def race(_: int) -> Migration:
        own = make_engine(empty_url)
        try:
            everybody.wait(30)
            return migrate(own)
        finally:
            own.dispose()

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(race, range(4)))
    assert sorted(one.before for one in done) == ["", *[head_revision()] * 3]


def test_an_upgrade_keeps_every_row_and_a_copy_of_the_file(engine: Engine, store: Store, newer: Path) -> None:
    claim = bound(store)
    store.save_measurements(claim.run_id, claim.token, [record()])
    before = Queries(engine).measurements(with_samples=True)
    done = migrate(engine, scripts=newer)
    assert (done.before, done.after, schema_revision(engine)) == (head_revision(), "9999", "9999")
    assert Queries(engine).measurements(with_samples=True) == before
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT rack FROM nodes")) == "r1"
    if engine.dialect.name != "sqlite":
        assert done.backup is None
        return
    assert done.backup and head_revision() in done.backup.name
    copy = make_engine(f"sqlite:///{done.backup}")
    assert schema_revision(copy) == head_revision()
    assert Queries(copy).measurements(with_samples=True) == before
    copy.dispose()
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1


def test_a_failed_upgrade_leaves_everything_as_it_was(engine: Engine, store: Store, tmp_path: Path) -> None:
    store.register_node(NODE)
    before = Queries(engine).nodes()
    with pytest.raises(ZeroDivisionError):
        migrate(engine, scripts=scripts(tmp_path / "broken", "1 / 0"))
    assert schema_revision(engine) == head_revision()
    assert "rack" not in {column["name"] for column in inspect(engine).get_columns("nodes")}
    seen = Queries(engine).nodes()
    assert [node.name for node in seen] == [node.name for node in before]


def test_the_schema_of_a_newer_flashpoint_is_refused(engine: Engine, newer: Path) -> None:
    migrate(engine, scripts=newer)
    with pytest.raises(UserError, match="'9999' of a newer Flashpoint"):
        migrate(engine)


def test_the_database_of_another_program_is_refused(empty_engine: Engine) -> None:
    with empty_engine.begin() as connection:
        connection.execute(text("CREATE TABLE runs (id INTEGER)"))
    with pytest.raises(UserError, match="'runs' that Flashpoint did not make"):
        migrate(empty_engine)
    assert inspect(empty_engine).get_table_names() == ["runs"]
