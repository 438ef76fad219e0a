"""Runs one program (uv, or an interpreter) to its end: with a deadline, stoppable, its whole process group ended."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import uv

from core.errors import Stopped

_LIBC = ctypes.CDLL(None)
POLL_S = 0.05
TERM_S = 3.0
MAX_OUTPUT = 256 * 1024  # bytes kept of the output, from its end
_CREDENTIALS = re.compile(r"(?<=://)\S+@")  # to the last @: a password may hold @ and / itself
_QUERY = re.compile(r"(://[^\s?]*\?)\S+")
_INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL")


@dataclass(frozen=True)
class Finished:
    """How a program ended: exit code (None when its deadline ended it); output of both streams, credentials removed."""

    code: int | None
    output: str
    seconds: float

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def flat(self) -> str:
        """The output on one line, for matching what uv wraps at will."""
        return " ".join(self.output.split())

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.output.strip().splitlines()[-lines:])


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    deadline_s: float,
    stop: Callable[[], bool],
    keep_open: Sequence[int] = (),
) -> Finished:
    """Run ``command`` in a session of its own until it ends, its deadline passes or ``stop()`` is true.

    ``keep_open``: file descriptors it inherits; with a lock's among them, the lock is held as long as the program
    lives, even when this process is killed. Raises Stopped after ending the process group.
    """
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            list(command),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=tuple(keep_open),
            preexec_fn=die_with_parent,  # noqa: PLW1509 (one prctl: nobody else would keep its deadline)
        )
        try:
            while process.poll() is None and time.monotonic() - begun < deadline_s:
                if stop():
                    raise Stopped("Stopped while an environment was being made.")
                time.sleep(POLL_S)
            code = process.poll()
        finally:
            if process.returncode is None:
                end_group(process)
        output.seek(max(0, output.seek(0, os.SEEK_END) - MAX_OUTPUT))
        text = output.read().decode("utf-8", "replace")
    return Finished(code, redacted(text, env), time.monotonic() - begun)


def die_with_parent() -> None:
    """On Linux: the program is killed when the thread that started it ends: no killed worker leaves a builder."""
    if sys.platform.startswith("linux"):
        _LIBC.prctl(1, signal.SIGKILL)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End the process and all of its group: TERM, and KILL for what is left after a few seconds."""
    for sign, patience in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, TERM_S)):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break  # nobody is left in the group
        until = time.monotonic() + patience
        while time.monotonic() < until and (process.poll() is None or group_lives(process.pid)):
            time.sleep(POLL_S)
    process.wait()


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def redacted(text: str, env: Mapping[str, str] | None = None) -> str:
    """Without the user names, passwords and query strings that addresses may hold, and with ``<index>`` for the
    addresses of the package indexes that ``env`` configures.
    """
    words = " ".join((env or {}).get(name, "") for name in _INDEXES)
    addresses = sorted({found.rstrip("/") for found in re.findall(r"\w+://\S+", words)}, key=len, reverse=True)
    for address in addresses:
        text = text.replace(address, "<index>")
    text = _hidden(text)
    for address in addresses:  # uv itself hides passwords, so that the address is not there letter by letter
        text = text.replace(_hidden(address), "<index>")
    return text


def _hidden(text: str) -> str:
    return _QUERY.sub(r"\1***", _CREDENTIALS.sub("***@", text))


def uv_command(*words: str) -> list[str]:
    """uv with the options that every use here needs: nobody's uv.toml, no progress bars."""
    return [os.fspath(uv.find_uv_bin()), *words, "--no-config", "--no-progress", "--color", "never"]
