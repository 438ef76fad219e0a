"""The supervisor ends every process of a run, however it was started and whoever dies first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workers import supervisor

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) > 1:                      # the grandchild: its own session, its parent gone, TERM ignored
    open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
    time.sleep(600)
for _ in range(2):
    subprocess.Popen([sys.executable, __file__, os.environ["PIDS"]], start_new_session=True)
open(os.environ["PIDS"], "a").write(f"{os.getpid()}\\n")
time.sleep(600)
"""

LEAVES_EARLY = STUBBORN.replace(
    'open(os.environ["PIDS"], "a").write(f"{os.getpid()}\\n")\ntime.sleep(600)\n', "os._exit(3)\n"
)


class Talk:
    """A supervisor and the lines it says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pids = folder / "pids"
        self.process = subprocess.Popen(
            [sys.executable, "-I", supervisor.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, name: str, source: str) -> int:
        script = self.folder / f"{name}.py"
        script.write_text(source)
        self.tell(
            {
                "start": name,
                "argv": [sys.executable, str(script)],
                "env": {"PIDS": str(self.pids), "PATH": os.environ["PATH"]},
                "cwd": str(self.folder),
                "log": str(self.folder / "log"),
            }
        )
        return int(self.hear("started")["pid"])

    def tell(self, order: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def hear(self, key: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said: dict[str, Any] = json.loads(line)
            if key in said:
                return said
        raise AssertionError(f"the supervisor ended without saying {key}")

    def wait_for_pids(self, count: int) -> list[int]:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = self.pids.read_text().split() if self.pids.exists() else []
            if len(found) >= count:
                return [int(pid) for pid in found]
        raise AssertionError(f"only {found} of {count} processes came up")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def all_end(pids: list[int], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(alive(pid) for pid in pids):
            return True
    return False


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    made = Talk(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


def test_stop_ends_stubborn_grandchildren_in_sessions_of_their_own(talk: Talk) -> None:
    talk.start("stubborn", STUBBORN)
    pids = talk.wait_for_pids(3)
    talk.tell({"stop": True})
    assert talk.hear("stopped")["survivors"] == []
    assert talk.process.wait(timeout=15) == 0
    assert not any(alive(pid) for pid in pids)


def test_orphans_of_a_child_that_left_are_found(talk: Talk) -> None:
    talk.start("leaves", LEAVES_EARLY)
    assert talk.hear("exited") == {"exited": "leaves", "code": 3}
    pids = talk.wait_for_pids(2)
    talk.tell({"stop": True})
    assert talk.hear("stopped")["survivors"] == []
    assert not any(alive(pid) for pid in pids)


def test_the_end_of_its_worker_ends_everything(talk: Talk) -> None:
    talk.start("stubborn", STUBBORN)
    pids = talk.wait_for_pids(3)
    assert talk.process.stdin is not None
    talk.process.stdin.close()  # what happens when the worker is killed
    assert all_end([*pids, talk.process.pid])


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_supervisor_ends_everything(talk: Talk, sign: signal.Signals) -> None:
    talk.start("stubborn", STUBBORN)
    pids = talk.wait_for_pids(3)
    talk.process.send_signal(sign)
    assert all_end([*pids, talk.process.pid])


def test_exits_and_signals_of_children_are_reported(talk: Talk) -> None:
    talk.start("ends", "import sys; sys.exit(4)")
    assert talk.hear("exited") == {"exited": "ends", "code": 4}
    pid = talk.start("killed", "import time; time.sleep(600)")
    os.kill(pid, signal.SIGSEGV)
    assert talk.hear("exited") == {"exited": "killed", "code": -signal.SIGSEGV}


def test_endless_output_is_cut_and_never_fails_a_process(talk: Talk) -> None:
    talk.start(
        "loud", "import sys\nfor _ in range(300): sys.stdout.write('x' * 100_000)\nsys.stdout.flush()\nsys.exit(5)"
    )
    assert talk.hear("exited") == {"exited": "loud", "code": 5}
    talk.start("quiet", "print('still heard')")
    assert talk.hear("exited") == {"exited": "quiet", "code": 0}
    talk.tell({"stop": True})
    assert talk.hear("stopped")["survivors"] == []
    log = (talk.folder / "log").read_bytes()
    assert 1_000_000 < len(log) < 1_200_000
    assert b"further output of this process was dropped" in log and b"still heard" in log
