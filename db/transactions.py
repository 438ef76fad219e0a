"""Transactions for reading and for writing, the database's clock, and its failures as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import URL, Connection, Engine, exc, func, literal_column, select

from core.errors import Unavailable

WRITE = "flashpoint_write"  # the execution option that tells the SQLite engine to take the write lock at once
SECRETS = ("password", "sslpassword")  # options of an address that its driver may repeat in an error


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that only reads. Raises Unavailable when the database does not answer."""
    with explained(engine), engine.connect() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that writes, committed at the end or rolled back as a whole. Raises Unavailable.

    On SQLite it takes the write lock at its start: one that reads first and writes later could not wait for it.
    """
    with explained(engine), engine.execution_options(**{WRITE: True}).begin() as connection:
        yield connection


def database_now(connection: Connection) -> datetime:
    """The database's clock, aware in UTC: leases age by it, whatever the clocks of the workers say."""
    if connection.dialect.name == "sqlite":
        text = connection.scalar(select(func.strftime("%Y-%m-%d %H:%M:%f", literal_column("'now'"))))
        return datetime.fromisoformat(str(text)).replace(tzinfo=UTC)
    now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now.astimezone(UTC)


@contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """Turns a database that cannot be reached, is locked or has no room into Unavailable; other errors are bugs."""
    try:
        yield
    except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError) as error:
        raise _unavailable(engine, error) from error
    except exc.DBAPIError as error:
        damaged = type(error) is exc.DatabaseError  # SQLite's "malformed" and "not a database" are of no narrower class
        if damaged or error.connection_invalidated:
            raise _unavailable(engine, error) from error
        raise


def _unavailable(engine: Engine, error: exc.SQLAlchemyError) -> Unavailable:
    url = engine.url
    cause = (str(getattr(error, "orig", None) or error).strip().splitlines() or ["no answer"])[0]
    for secret in (url.password, *(value for name in SECRETS for value in _values(url, name))):
        cause = cause.replace(str(secret), "***") if secret else cause
    return Unavailable(
        f"The database {_place(url)} does not answer ({cause.rstrip('.')}); check that it runs and has room."
    )


def _values(url: URL, name: str) -> tuple[str, ...]:
    given = url.query.get(name, ())
    return (given,) if isinstance(given, str) else given


def _place(url: URL) -> str:
    """Kind, host, port and name: user, password and options stay away, where they are and where they were misread."""
    kind = url.get_backend_name()
    if kind == "sqlite":
        return f"sqlite:///{url.database or ''}"
    host = f"[{url.host}]" if ":" in (url.host or "") else url.host or ""
    port = f":{url.port}" if url.port is not None else ""
    place = f"{host}{port}/{url.database or ''}"
    return f"{kind}://{place.rpartition('@')[2]}"  # a password with an @ in it runs on into the host
