"""Celery's beat with its own scheduler: it reads SQL and has no other memory.

Every few seconds it ends or requeues runs whose lease ran out (reaper) and rings again for queued runs that nobody rang
for (reconciler). It runs beside the workers, so a long benchmark never holds it up.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from celery import Celery
from celery.beat import Scheduler

from core.errors import FlashpointError, Unavailable
from core.settings import Settings
from db.engine import make_engine
from db.store import Store
from workers.client import ring

log = logging.getLogger("flashpoint.beat")
REAP_S = 10.0
RING_S = 30.0


class Keeper:
    """Keeps the queue moving; one call of ``tick`` does what is due now."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = Store(make_engine(settings.database_url))
        self.reaped_at = self.rung_at = float("-inf")

    def tick(self) -> None:
        now = time.monotonic()
        try:
            if now - self.reaped_at >= REAP_S:
                self.reaped_at = now
                for reaped in self.store.reap():
                    log.warning("run %s is %s: %s", reaped.run_id, reaped.state, reaped.reason)
                    self.rung_at = float("-inf")
            if now - self.rung_at >= RING_S:
                self.rung_at = now
                for node, device in self.store.queued_devices():
                    ring(self.settings, node, device)
        except Unavailable as error:
            log.warning("%s", error)  # the next tick tries again


def run_beat(app: Celery, settings: Settings) -> None:
    """Runs beat until the process is told to stop."""
    keeper = Keeper(settings)

    class SqlScheduler(Scheduler):  # type: ignore[misc]
        """Asks the keeper instead of a schedule file."""

        def setup_schedule(self) -> None:
            self.install_default_entries({})

        def tick(self, *_: Any, **__: Any) -> float:
            try:
                keeper.tick()
            except FlashpointError as error:
                log.error("%s", error)
            return 2.0

    app.Beat(scheduler_cls=SqlScheduler, max_interval=2, loglevel="INFO", working_directory=str(settings.data)).run()
