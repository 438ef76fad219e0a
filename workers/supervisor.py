"""The parent of everything that a run starts. Runs by itself (standard library only) and outlives neither its run nor
its worker.

Commands come as JSON lines on standard input: ``{"start": NAME, "argv": [...], "env": {...}, "cwd": DIR, "log": FILE}``
and ``{"stop": true}``. It answers with ``{"started": NAME, "pid": N}``, ``{"exited": NAME, "code": N}`` and, at the
end, ``{"stopped": true, "survivors": [PID, ...]}``. The end of standard input (the worker died) means stop. On Linux it
is the subreaper of its descendants, so that grandchildren in sessions of their own are found and ended too.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

PR_SET_CHILD_SUBREAPER = 36
TERM_S = 2.0
KILL_S = 8.0
MAX_FILE_BYTES = 1 << 30
MAX_OUTPUT_BYTES = 1 << 20


class Pump:
    """The output of one process on its way to the log: the first megabyte is kept, the rest is dropped."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.left = MAX_OUTPUT_BYTES

    def take(self, chunk: bytes) -> None:
        if self.left <= 0:
            return
        kept = chunk[: self.left]
        self.left -= len(kept)
        if self.left <= 0:
            kept += b"\n... further output of this process was dropped\n"
        try:
            with self.log.open("ab") as file:
                file.write(kept)
        except OSError:
            self.left = 0  # a full disk costs the log, never a measurement


class Supervisor:
    """Starts processes, reports their ends, and ends all of them."""

    def __init__(self, out: IO[str]) -> None:
        self.out = out
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.groups: set[int] = set()
        self.pumps: dict[int, Pump] = {}

    def say(self, message: dict[str, object]) -> None:
        try:
            self.out.write(json.dumps(message) + "\n")
            self.out.flush()
        except BrokenPipeError:
            return  # the worker is gone; its end of standard input ends us

    def start(self, order: dict[str, object]) -> None:
        name = str(order["start"])
        read_end, write_end = os.pipe()
        process = subprocess.Popen(
            [str(word) for word in order["argv"]],  # type: ignore[attr-defined]
            env={str(k): str(v) for k, v in order["env"].items()},  # type: ignore[attr-defined]
            cwd=str(order["cwd"]),
            stdin=subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            start_new_session=True,
            preexec_fn=_limit,  # noqa: PLW1509 (this process has one thread)
        )
        os.close(write_end)
        self.pumps[read_end] = Pump(Path(str(order["log"])))
        self.processes[name] = process
        self.groups.add(process.pid)
        self.say({"started": name, "pid": process.pid})

    def pump(self, read_end: int) -> None:
        """Takes what a process printed; its pipe never fills up and never fails, however much it prints."""
        chunk = os.read(read_end, 65536)
        if chunk:
            self.pumps[read_end].take(chunk)
        else:
            os.close(read_end)
            del self.pumps[read_end]

    def reap(self) -> None:
        for name, process in list(self.processes.items()):
            code = process.poll()
            if code is not None:
                del self.processes[name]
                self.say({"exited": name, "code": code})
        known = {process.pid for process in self.processes.values()}
        for pid in descendants():
            if pid not in known:
                _collect(pid)

    def stop(self) -> list[int]:
        """Ends every descendant: TERM, then KILL; returns those that survived both."""
        begin = time.monotonic()
        while time.monotonic() - begin < TERM_S + KILL_S:
            self.reap()
            left = descendants()
            if not left and not self.processes:
                return []
            sign = signal.SIGTERM if time.monotonic() - begin < TERM_S else signal.SIGKILL
            for pid in left:
                _signal(pid, sign)
            for group in self.groups:
                _signal_group(group, sign)
            time.sleep(0.05)
        return descendants()


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _signal(pid: int, sign: int) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return


def _signal_group(group: int, sign: int) -> None:
    try:
        os.killpg(group, sign)
    except (ProcessLookupError, PermissionError):
        return  # the group is empty, or (macOS) holds only zombies


def _collect(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # a grandchild: its own parent collects it


def descendants() -> list[int]:
    """All live processes below this one, from /proc; empty where there is none (then process groups must do)."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue  # it ended while we looked
        if fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        for pid in children.get(waiting.pop(), []):
            found.append(pid)
            waiting.append(pid)
    return found


def main() -> int:
    """Serves one run; the exit code is 1 when a process survived."""
    os.setsid()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sign, lambda *_: os.close(0))
    supervisor = Supervisor(sys.stdout)
    buffer = b""
    while True:
        try:
            ready, _, _ = select.select([0, read_end, *supervisor.pumps], [], [], 5.0)
            if read_end in ready:
                os.read(read_end, 4096)
            for pipe in [fd for fd in ready if fd in supervisor.pumps]:
                supervisor.pump(pipe)
            supervisor.reap()
            if 0 not in ready:
                continue
            chunk = os.read(0, 65536)
        except (OSError, ValueError):
            chunk = b""
        buffer += chunk
        *lines, buffer = buffer.split(b"\n")
        orders = [json.loads(line) for line in lines]
        for order in orders:
            if "start" in order:
                supervisor.start(order)
        if not chunk or any("stop" in order for order in orders):
            survivors = supervisor.stop()
            supervisor.say({"stopped": True, "survivors": survivors})
            return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
