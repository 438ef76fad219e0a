"""The composition root of the dashboard: settings, engine, store, queries and the doorbell, made once a process at
first use.

The only file of ``app`` that knows the workers, and of them only the doorbell.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy import Engine

from core import usecases
from core.errors import Unavailable
from core.model import RunState, SuiteInfo
from core.settings import Settings, settings_from
from core.usecases import Planned, Submission, SubmitInput
from db.engine import make_engine, migrate, schema_revision
from db.queries import Queries
from db.store import Store
from workers.client import ring

WAITING = "Saved, waiting for the broker: it does not answer now, and the run starts by itself when it is back."


@dataclass(frozen=True)
class Services:
    """What pages and commands work with."""

    settings: Settings
    engine: Engine

    @cached_property
    def store(self) -> Store:
        return Store(self.engine)

    @cached_property
    def queries(self) -> Queries:
        return Queries(self.engine)

    @cached_property
    def catalog(self) -> tuple[SuiteInfo, ...]:
        return usecases.catalog()

    def plan(self, given: SubmitInput) -> Planned:
        """What a request would do; writes nothing. Raises UserError, Unavailable."""
        return usecases.plan(self.queries, self.catalog, given)

    def submit(self, given: SubmitInput) -> tuple[Submission, str]:
        """Queue a request and ring its node; the note is empty, or says that the bell was not heard.

        Raises UserError, Unavailable.
        """
        done = usecases.submit(self.store, self.queries, self.catalog, given)
        queued = [self.queries.run(i) for i in done.run_ids]
        return done, self._ring({(run.node, run.plan.device) for run in queued})

    def retry(self, run_id: int) -> str:
        """Queue a run again and ring; the note as for ``submit``. Raises UserError, Unavailable."""
        self.store.retry(run_id)
        run = self.queries.run(run_id)
        return self._ring({(run.node, run.plan.device)})

    def cancel(self, run_id: int) -> RunState:
        """Ask for the end of a run. Raises UserError, Unavailable."""
        return self.store.request_cancel(run_id)

    def _ring(self, doors: set[tuple[str, str]]) -> str:
        try:
            for node, device in sorted(doors):
                ring(self.settings, node, device)
        except Unavailable:
            return WAITING
        return ""


_lock = threading.Lock()
_settings: Settings | None = None
_services: Services | None = None


def configure(settings: Settings) -> None:
    """Use these settings from now on; services already made are closed."""
    global _settings, _services
    with _lock:
        if _services is not None:
            _services.engine.dispose()
        _settings, _services = settings, None


def services() -> Services:
    """The services of this process; makes them, and brings the database to the newest schema, at first use.

    Raises Unavailable when the database does not answer; the next call tries again. Raises UserError for wrong
    settings.
    """
    global _services
    with _lock:
        if _services is None:
            settings = _settings or settings_from(os.environ)
            engine = make_engine(settings.database_url)
            migrate(engine)
            _services = Services(settings, engine)
        return _services


def check_database() -> None:
    """Raises Unavailable when the database does not answer now."""
    schema_revision(services().engine)
