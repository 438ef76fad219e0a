"""Locks between processes of one machine: a file that the operating system frees when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from core.errors import Stopped

POLL_S = 0.2


class Lock:
    """Holds the lock ``file``; entering waits for it and calls ``waiting`` once if it must. Gives the descriptor.

    The file stays: deleting it would let two holders in. Raises Stopped when ``stop()`` is true while waiting.
    """

    def __init__(self, file: Path, stop: Callable[[], bool], waiting: Callable[[], None]) -> None:
        self.file, self.stop, self.waiting = file, stop, waiting
        self.fd = -1

    def __enter__(self) -> int:
        self.fd = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        told = False
        try:
            while not _taken(self.fd):
                if not told:
                    self.waiting()
                    told = True
                if self.stop():
                    raise Stopped("Stopped while waiting for an environment that is being made.")
                time.sleep(POLL_S)
        except BaseException:
            os.close(self.fd)
            raise
        return self.fd

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)


@contextmanager
def try_lock(file: Path) -> Iterator[int | None]:
    """The descriptor of the held lock, None when somebody else holds it."""
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield fd if _taken(fd) else None
    finally:
        os.close(fd)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
