"""``flashpoint up`` on stand-in builds: broker, worker, scheduler, dashboard under one parent that ends all of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Machine, Up, start_up, wait_until
from tests.standin import stock, torch_wheel
from tests.workers.test_execute import BODY


class Standing(Machine):
    """A machine whose only package source is a folder of stand-in wheels."""

    @property
    def environ(self) -> dict[str, str]:
        wheels = self.data.parent / "wheels"
        return {**super().environ, **stock(wheels), "FLASHPOINT_TORCH_BACKEND": "off"}


@pytest.fixture
def standing(tmp_path: Path) -> Standing:
    made = Standing(tmp_path / "data")
    for version in ("2.12.0", "2.13.0"):
        torch_wheel(tmp_path / "wheels", version, body=BODY)
    return made


@pytest.fixture
def running(standing: Standing, tmp_path: Path) -> Iterator[Up]:
    up = start_up(standing, tmp_path / "up.log")
    yield up
    if up.process.poll() is None:
        up.stop()


def processes(data: Path) -> dict[int, str]:
    """Every process whose environment names this data folder, with its command."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(data).encode() in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if state != "Z":
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    found.pop(os.getpid(), None)
    return found


ORDER = ("submit", "--suite", "cpu-fusion", "--case", "chain[n=256]", "--build", "2.12.0", "--build", "2.13.0")


def submit(machine: Machine) -> int:
    done = machine.flashpoint(*ORDER, "--json")
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["runs"][0]["id"])


def state(machine: Machine, run: int) -> str:
    return str(machine.json("runs", str(run))["state"])


def test_a_queued_run_is_performed_by_the_worker(running: Up) -> None:
    with urllib.request.urlopen(f"{running.address}/readyz", timeout=5) as answer:
        assert json.load(answer) == {"status": "ok"}
    done = running.machine.json(*ORDER, "--wait")
    assert done["runs"][0]["state"] == "finished"
    assert {row["verdict"] for row in done["comparisons"] if row["variant"] == "eager"} - {None}


def test_ctrl_c_ends_everything_and_gives_the_run_back(running: Up, standing: Standing) -> None:
    run = submit(standing)
    wait_until(lambda: any("bench_suites.kit" in c for c in processes(standing.data).values()), 60, "measuring")
    assert running.stop() == 0
    wait_until(lambda: processes(standing.data) == {}, 15, f"survivors {processes(standing.data)}")
    found = standing.json("runs", str(run))
    assert (found["state"], found["reason"]) == ("queued", "The worker was stopped; the run was queued again.")
    assert "is killed" not in running.log.read_text()


def test_a_parent_that_is_killed_takes_its_children_along(running: Up, standing: Standing) -> None:
    running.process.kill()
    running.process.wait()
    wait_until(lambda: processes(standing.data) == {}, 30, f"survivors {processes(standing.data)}")


def test_a_killed_worker_loses_no_run(running: Up, standing: Standing) -> None:
    run = submit(standing)
    wait_until(lambda: any("bench_suites.kit" in c for c in processes(standing.data).values()), 60, "measuring")
    for pid, command in processes(standing.data).items():
        if command.strip().endswith("app.cli worker"):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: state(standing, run) == "finished", 120, "the run was not performed again")
    found = standing.json("runs", str(run))
    assert found["attempt"] == 2
    assert any("queued again (attempt 2)" in line["text"] for line in found["log"])


def test_a_second_parent_on_the_same_data_is_refused(running: Up, standing: Standing) -> None:
    again = standing.flashpoint("up", "--port", "8899", timeout=60)
    assert again.returncode == 2
    assert "Flashpoint is up already with the data folder" in again.stderr
    assert again.stderr.count("\n") == 1


def test_a_taken_port_is_refused(running: Up, standing: Standing, tmp_path: Path) -> None:
    port = running.address.rsplit(":", 1)[1]
    again = standing.flashpoint("up", "--data", str(tmp_path / "other"), "--port", port, timeout=60)
    assert again.returncode == 2
    assert f"The port {port} of 127.0.0.1 cannot be used" in again.stderr


def test_a_killed_broker_is_started_again_and_the_next_run_is_performed(running: Up, standing: Standing) -> None:
    for pid, command in processes(standing.data).items():
        if "valkey-server" in command or "workers.broker" in command:
            os.kill(pid, signal.SIGKILL)
    done = subprocess.CompletedProcess([], 1)
    deadline = time.monotonic() + 120
    while done.returncode != 0 and time.monotonic() < deadline:
        done = standing.flashpoint(
            "submit",
            "--suite",
            "cpu-fusion",
            "--case",
            "chain[n=256]",
            "--build",
            "2.12.0",
            "--build",
            "2.13.0",
            "--wait",
        )
    assert done.returncode == 0, done.stderr


def test_the_same_on_postgresql(standing: Standing, postgresql_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {**standing.environ, "FLASHPOINT_DATABASE_URL": postgresql_server}
    monkeypatch.setattr(Standing, "environ", environ)
    done = standing.json(*ORDER, "--inline", "--wait")
    assert done["runs"][0]["state"] == "finished"
    assert {row["outcome"] for row in done["measurements"] if row["variant"] == "eager"} == {"ok"}
    assert standing.flashpoint("compare", "2.12.0", "2.13.0").returncode == 0
    assert not list(standing.data.glob("*.db"))
