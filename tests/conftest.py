"""Databases for tests: every test that takes ``engine``, ``store`` or ``queries`` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine, text
from sqlalchemy.engine import make_url

from db.engine import make_engine, migrate
from db.queries import Queries
from db.store import Store
from tests import postgres

_numbers = itertools.count(1)

# A test never asserts on speed: on a busy machine a deadline would fail at random.
settings.register_profile("flashpoint", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.load_profile("flashpoint")


@pytest.fixture(scope="session")
def missing() -> Callable[[str], None]:
    """Call it with what a test lacks: skips on a laptop, fails where FLASHPOINT_REQUIRE_ALL=1 demands everything."""

    def give_up(what: str) -> None:
        if os.environ.get("FLASHPOINT_REQUIRE_ALL") == "1":
            pytest.fail(f"{what}, and FLASHPOINT_REQUIRE_ALL=1 demands it")
        pytest.skip(what)

    return give_up


@pytest.fixture(scope="session")
def postgresql_server(missing: Callable[[str], None]) -> Iterator[str]:
    """The address of a running server's maintenance database."""
    programs = postgres.find_programs()
    if programs is None:
        missing("PostgreSQL is not installed (on Debian: apt install postgresql)")
        raise AssertionError("missing() returns never")
    with postgres.server(programs) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a new database without tables, once for each kind of database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'flashpoint.db'}"
        return
    server = make_url(request.getfixturevalue("postgresql_server"))
    name = f"test_{os.getpid()}_{next(_numbers)}"
    admin = make_engine(server.render_as_string(hide_password=False)).execution_options(isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield server.set(database=name).render_as_string(hide_password=False)
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


@pytest.fixture
def empty_engine(empty_url: str) -> Iterator[Engine]:
    """An engine for a database without tables."""
    engine = make_engine(empty_url)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(empty_engine: Engine) -> Engine:
    """An engine for a database of the newest schema, without rows."""
    migrate(empty_engine)
    return empty_engine


@pytest.fixture
def store(engine: Engine) -> Store:
    return Store(engine)


@pytest.fixture
def queries(engine: Engine) -> Queries:
    return Queries(engine)
