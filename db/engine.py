"""The engine for SQLite and PostgreSQL, and bringing a database to the newest schema."""

from __future__ import annotations

import importlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, exc, inspect, text
from sqlalchemy.engine import make_url

from core.errors import Unavailable, UserError
from db.tables import Row
from db.transactions import WRITE, explained, reading, writing

log = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 30
SCRIPTS = Path(__file__).parent / "migrations"
_ALEMBIC = threading.Lock()  # Alembic keeps its context in a module: one upgrade at a time in a process
_ADVISORY_LOCK = 0x466C6173  # "Flas": a number that no other program on the server should use


def make_engine(url: str) -> Engine:
    """An engine for ``sqlite:///FILE`` or ``postgresql+psycopg://...``, as ``Settings.database_url`` holds them.

    Makes the folder of a SQLite file. Connects at first use; a connection made before a fork is not used after it.
    Raises UserError when the folder cannot be made or the address is of another kind.
    """
    try:
        address = make_url(url)
    except exc.ArgumentError:
        raise UserError(
            "The address of the database cannot be read; write sqlite:///FILE or postgresql://..."
        ) from None
    if address.get_backend_name() == "sqlite" and address.database:
        engine = _sqlite_engine(url, Path(address.database))
    elif address.get_backend_name() == "postgresql":
        server = address.set(drivername="postgresql+psycopg")
        engine = create_engine(server, pool_pre_ping=True, connect_args={"connect_timeout": 10})
    else:
        raise UserError(f"The database {address.drivername!r} is not known; use sqlite:///FILE or postgresql://...")
    _forget_after_fork(engine)
    return engine


def sqlite_module() -> ModuleType:
    """pysqlite3, which brings a SQLite without the WAL-reset race, else the standard library's."""
    try:
        return importlib.import_module("pysqlite3")
    except ImportError:
        return sqlite3


def wal_is_safe(version: tuple[int, ...]) -> bool:
    """Whether this SQLite is free of the WAL-reset race, fixed in 3.51.3, 3.50.7 and 3.44.6."""
    return version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)


def _sqlite_engine(url: str, file: Path) -> Engine:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"The database's folder '{file.parent}' cannot be made ({error.strerror}); choose another."
        ) from error
    module = sqlite_module()
    safe = wal_is_safe(module.sqlite_version_info)
    if not safe:
        log.warning(
            "SQLite %s may damage a file in WAL mode, so the slower rollback journal is used; install pysqlite3.",
            module.sqlite_version,
        )
    engine = create_engine(url, module=module, connect_args={"timeout": BUSY_TIMEOUT_S})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own: begin() does
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000}")
        _set_journal(connection, "wal" if safe else "delete", module)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _set_journal(connection: Any, mode: str, module: ModuleType) -> None:
    """Waits by itself: changing the mode does not heed busy_timeout while another process opens the new file."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchall() != [(mode,)]:
                connection.execute(f"PRAGMA journal_mode={mode}").fetchall()
            return
        except module.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _forget_after_fork(engine: Engine) -> None:
    """Gives a forked process connections of its own, as sharing the parent's would mix two conversations."""

    @event.listens_for(engine, "connect")
    def remember(_connection: object, record: Any) -> None:
        record.info["pid"] = os.getpid()

    @event.listens_for(engine, "checkout")
    def check(_connection: object, record: Any, proxy: Any) -> None:
        if record.info["pid"] != os.getpid():
            record.dbapi_connection = proxy.dbapi_connection = None
            raise exc.DisconnectionError("the connection belongs to the process before the fork")


@dataclass(frozen=True)
class Migration:
    """What ``migrate`` did: the schema before ("" = an empty database) and after, and the copy of a SQLite file."""

    before: str
    after: str
    backup: Path | None


def head_revision(scripts: Path = SCRIPTS) -> str:
    """The newest revision of the schema that this Flashpoint knows."""
    return ScriptDirectory.from_config(_config(scripts)).get_current_head() or ""


def schema_revision(engine: Engine) -> str:
    """The revision of the database's schema, "" when it is empty. Raises Unavailable."""
    with reading(engine) as connection:
        return _revision(connection)


def migrate(engine: Engine, *, scripts: Path = SCRIPTS) -> Migration:
    """Bring the database to the newest revision in ``scripts``; does nothing when it is there already.

    One transaction, which a second migrator waits for: a failed upgrade leaves everything as it was. A SQLite file with
    content is copied beside itself first. Raises UserError for the schema of a newer Flashpoint or of another program,
    Unavailable when the database or the copy fails.
    """
    config, head = _config(scripts), head_revision(scripts)
    if schema_revision(engine) == head:
        return Migration(head, head, None)
    with _alone(engine) as connection:
        before = _revision(connection)
        if before == head:
            return Migration(head, head, None)
        _refuse_foreign(connection, config, before)
        backup = _copy(engine, before) if before and engine.dialect.name == "sqlite" else None
        config.attributes["connection"] = connection
        with _ALEMBIC:
            command.upgrade(config, "head")
        if connection.dialect.name == "sqlite":
            orphan = connection.execute(text("PRAGMA foreign_key_check")).first()
            if orphan:
                raise RuntimeError(f"the migration to {head} leaves a row of {orphan[0]!r} without its parent")
    return Migration(before, head, backup)


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A transaction that other migrators wait for; on SQLite without foreign keys, as rebuilding a table needs."""
    if engine.dialect.name != "sqlite":
        with writing(engine) as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
            yield connection
        return
    with explained(engine), engine.execution_options(**{WRITE: True}).connect() as connection:
        driver: Any = connection.connection.dbapi_connection
        driver.execute("PRAGMA foreign_keys=OFF")  # has no effect once a transaction has begun
        try:
            with connection.begin():
                yield connection
        finally:
            driver.execute("PRAGMA foreign_keys=ON")


def _config(scripts: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    return config


def _revision(connection: Connection) -> str:
    return MigrationContext.configure(connection).get_current_revision() or ""


def _refuse_foreign(connection: Connection, config: Config, before: str) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if before and before not in known:
        raise UserError(
            f"The database has the schema {before[:40]!r} of a newer Flashpoint; update this one or restore a copy."
        )
    ours = set(Row.metadata.tables) & set(inspect(connection).get_table_names())
    if not before and ours:
        raise UserError(
            f"The database holds a table {min(ours)!r} that Flashpoint did not make; choose an empty database."
        )


def _copy(engine: Engine, before: str) -> Path:
    """A copy of the committed state beside the file; under another name until it is complete."""
    file = Path(engine.url.database or "")
    target = file.with_name(f"{file.stem}-before-upgrade-{before}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.db")
    partial = target.with_suffix(".partial")
    module = sqlite_module()
    try:
        source, copy = module.connect(file), module.connect(partial)
        try:
            source.backup(copy)
        finally:
            copy.close()
            source.close()
        partial.rename(target)
    except (module.Error, OSError) as error:
        partial.unlink(missing_ok=True)
        raise Unavailable(f"The copy '{target}' before the upgrade failed ({error}); nothing was changed.") from error
    return target
