"""Child processes of ``flashpoint up``: started with a log each, started again when they die, ended together."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_PDEATHSIG = 1
QUICK_S = 20.0
TRIES = 3


@dataclass
class Child:
    """One process: its name, its command, and how it has fared."""

    name: str
    command: list[str]
    log: Path
    environ: Mapping[str, str]
    patience_s: float
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    quick_deaths: int = 0
    deaths: list[int] = field(default_factory=list)

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.environ),
                start_new_session=True,  # Ctrl-C in the terminal reaches the parent alone, which ends all in order
                preexec_fn=_die_with_parent,  # noqa: PLW1509 (a prctl and nothing else)
            )
        self.started = time.monotonic()

    def died(self) -> int | None:
        """The exit code of a process that is gone, else None."""
        assert self.process is not None
        return self.process.poll()

    def hopeless(self, code: int) -> bool:
        """Whether it died young too often to be started again; counts this death."""
        self.deaths.append(code)
        young = time.monotonic() - self.started < QUICK_S
        self.quick_deaths = self.quick_deaths + 1 if young else 0
        return self.quick_deaths >= TRIES

    def last_lines(self, count: int = 6) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-count:])

    def stop(self) -> None:
        """Asks it to end, waits, and ends its whole process group."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(self.patience_s)
            except subprocess.TimeoutExpired:
                print(f"{self.name} did not end in {self.patience_s:g} s and is killed", file=sys.stderr)
        with suppress(ProcessLookupError):  # the whole group may have ended
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _die_with_parent() -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
