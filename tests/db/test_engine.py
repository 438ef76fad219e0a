"""Connections: pragmas, errors in one sentence, forks, the clock."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, exc, text

from core.errors import Unavailable, UserError
from db.engine import make_engine, sqlite_module, wal_is_safe
from db.queries import Queries
from db.store import Store
from db.tables import nodes
from db.transactions import database_now, explained, reading, writing
from tests.db.scenes import NODE


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'deep' / 'er' / 'f.db'}"


def test_sqlite_is_durable_and_holds_its_references(sqlite_url: str) -> None:
    engine = make_engine(sqlite_url)
    with engine.connect() as connection:
        seen = {
            name: connection.scalar(text(f"PRAGMA {name}")) for name in ("synchronous", "foreign_keys", "busy_timeout")
        }
        journal = connection.scalar(text("PRAGMA journal_mode"))
    engine.dispose()
    assert seen == {"synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}
    assert journal == ("wal" if wal_is_safe(sqlite_module().sqlite_version_info) else "delete")


def test_an_old_sqlite_gets_the_rollback_journal_and_it_is_said(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("db.engine.wal_is_safe", lambda version: False)
    engine = make_engine(sqlite_url)
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "delete"
    engine.dispose()
    assert "install pysqlite3" in caplog.text


def test_opening_waits_for_a_writer_of_the_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite refuses to change the journal's mode at once, whatever busy_timeout says."""
    writer = sqlite_module().connect(tmp_path / "f.db", isolation_level=None)
    writer.execute("CREATE TABLE t (x)")
    writer.execute("BEGIN IMMEDIATE")
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        writer.execute("ROLLBACK")

    monkeypatch.setattr("db.engine.time.sleep", wait)
    engine = make_engine(f"sqlite:///{tmp_path / 'f.db'}")
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM t")) == 0
    engine.dispose()
    writer.close()
    assert len(waits) == 1


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        *(((3, 40, 1), False), ((3, 44, 5), False), ((3, 44, 6), True), ((3, 45, 0), False), ((3, 50, 6), False)),
        *(((3, 50, 7), True), ((3, 51, 2), False), ((3, 51, 3), True), ((3, 53, 4), True)),
    ],
)
def test_which_sqlite_is_free_of_the_race(version: tuple[int, ...], safe: bool) -> None:
    assert wal_is_safe(version) is safe


def test_a_write_that_fails_leaves_nothing(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError), writing(engine) as connection:
        connection.execute(text("INSERT INTO requests (key, spec, created_at) VALUES ('k', '{}', '2026-01-01')"))
        _ = 1 / 0
    with reading(engine) as connection:
        assert connection.scalar(text("SELECT count(*) FROM requests")) == 0


def test_readers_do_not_wait_for_a_writer(engine: Engine, store: Store, queries: Queries) -> None:
    store.register_node(NODE)
    with writing(engine) as connection:
        connection.execute(nodes.update().values(cpu="changed"))
        assert queries.node(NODE.name).cpu == NODE.cpu
    assert queries.node(NODE.name).cpu == "changed"


def test_the_clock_is_the_databases(engine: Engine) -> None:
    with reading(engine) as connection:
        now = database_now(connection)
    assert now.utcoffset() == timedelta(0)
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=5)  # one machine: no other zone, no other day


def test_a_forked_process_makes_connections_of_its_own(engine: Engine, store: Store, queries: Queries) -> None:
    store.register_node(NODE)
    with reading(engine) as connection:
        mine = connection.connection.dbapi_connection
        assert mine is not None
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with reading(engine) as connection:
            other = connection.connection.dbapi_connection is not mine
            os.write(write, b"own" if other and connection.scalar(text("SELECT count(*) FROM nodes")) == 1 else b"bad")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(read, 3) == b"own"
    assert queries.node(NODE.name).name == NODE.name


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("me:secret@/flashpoint?host={nowhere}", "postgresql:///flashpoint"),
        ("/flashpoint?host={nowhere}&user=me&password=secret", "postgresql:///flashpoint"),
        ("me:x@secret@127.0.0.1:1/flashpoint", "postgresql://127.0.0.1:1/flashpoint"),
        ("me:x@y/secret@127.0.0.1:1/flashpoint", "postgresql://127.0.0.1:1/flashpoint"),
        ("me:sec%40ret@127.0.0.1:1/flashpoint", "postgresql://127.0.0.1:1/flashpoint"),
    ],
)
def test_a_database_that_is_away_is_said_in_one_sentence_without_its_password(
    url: str, shown: str, tmp_path: Path
) -> None:
    away = make_engine("postgresql+psycopg://" + url.format(nowhere=tmp_path)).execution_options()
    failed = exc.OperationalError("", None, Exception("wrong password secret or sec@ret\nand more"))
    with pytest.raises(Unavailable) as caught, explained(away):
        raise failed
    sentence = str(caught.value)
    assert sentence.startswith(f"The database {shown} does not answer (")
    assert "\n" not in sentence and "me:" not in sentence and "?" not in sentence
    if "x@" not in url:  # a password that was misread is not known to anybody; the settings refuse it
        assert ("sec@ret" if "%40" in url else "secret") not in sentence


def test_a_server_that_is_away_is_unavailable(tmp_path: Path) -> None:
    away = make_engine(f"postgresql+psycopg://me:secret@/flashpoint?host={tmp_path}")
    with pytest.raises(Unavailable) as caught:
        Queries(away).nodes()
    assert "secret" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_locked_sqlite_file_is_unavailable_not_a_bug(sqlite_url: str) -> None:
    engine = make_engine(sqlite_url)
    with writing(engine), engine.connect() as second:
        second.execute(text("PRAGMA busy_timeout=0"))
        second.close()
        impatient = make_engine(sqlite_url)
        with impatient.connect() as connection:
            connection.execute(text("PRAGMA busy_timeout=0"))
        with pytest.raises(Unavailable, match="locked"), writing(impatient):
            pass
        impatient.dispose()
    engine.dispose()


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "f.db").write_bytes(b"not a database" * 100)
    engine = make_engine(f"sqlite:///{tmp_path / 'f.db'}")
    with pytest.raises(Unavailable, match="not a database"):
        Store(engine).beat_node("n")


@pytest.mark.parametrize("url", ["mysql://root@h/db", "sqlite://", "rubbish", "sqlite:////dev/null/x/f.db"])
def test_addresses_that_cannot_be_are_refused(url: str) -> None:
    with pytest.raises(UserError):
        make_engine(url)
