"""The heartbeat of a held run: renews the lease and learns whether to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from core.errors import Stopped, Unavailable
from db.records import Claim
from db.store import LEASE_S, Store

RENEW_S = 3.0
OUTAGE_S = 600.0
T = TypeVar("T")


class Lease:
    """Renews a claim's lease every few seconds in a thread; a context manager around the work on the run.

    ``stopping()`` is true once a person cancelled (``cancelled``), the lease went to somebody else (``lost``), or
    ``leaving`` says that this worker is being stopped.
    """

    def __init__(
        self, store: Store, claim: Claim, lease_s: float = LEASE_S, leaving: threading.Event | None = None
    ) -> None:
        self.leaving = leaving or threading.Event()
        self.store = store
        self.claim = claim
        self.lease_s = lease_s
        self.cancelled = threading.Event()
        self.lost = threading.Event()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def stopping(self) -> bool:
        return self.cancelled.is_set() or self.lost.is_set() or self.leaving.is_set()

    def _renew(self) -> None:
        while not self.over.wait(RENEW_S):
            try:
                renewal = self.store.renew(self.claim.run_id, self.claim.token, self.lease_s)
            except Unavailable:
                continue  # the database is away; nobody else can claim the run there either
            if not renewal.held:
                self.lost.set()
                return
            if renewal.cancel_requested:
                self.cancelled.set()

    def patiently(self, write: Callable[[], T]) -> T:
        """Performs a write, waiting out an outage of the database of up to ten minutes. Raises Unavailable, Stopped."""
        deadline = time.monotonic() + OUTAGE_S
        pause = 0.2
        while True:
            try:
                return write()
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
                if self.lost.wait(pause):
                    raise Stopped("the lease was lost") from None
                pause = min(5.0, pause * 2)

    def __enter__(self) -> Lease:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self.thread.join(timeout=10)
