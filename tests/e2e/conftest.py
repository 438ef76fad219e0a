"""The real thing: environments of two real PyTorch builds, everything up under one parent, and a real Chromium."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, Request, sync_playwright

OLD, NEW = "1.10.2", "2.13.0"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Machine:
    """A data folder and the command that works on it."""

    data: Path

    @property
    def environ(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FLASHPOINT_") or k == "FLASHPOINT_PYTHONS"}
        return {
            **kept,
            "FLASHPOINT_DATA": str(self.data),
            "FLASHPOINT_NODE_NAME": "bench-01",
            "FLASHPOINT_FIRST_RUN": "off",
        }

    def flashpoint(self, *words: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Runs ``flashpoint WORDS`` to its end."""
        command = [sys.executable, "-m", "app.cli", *words]
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=timeout)

    def json(self, *words: str, timeout: float = 900) -> Any:
        """The JSON that ``flashpoint WORDS --json`` prints; the command must succeed."""
        done = self.flashpoint(*words, "--json", timeout=timeout)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A data folder for the session; environments in it are built once."""
    return Machine(tmp_path_factory.mktemp("machine"))


@pytest.fixture(scope="session")
def real_builds(machine: Machine, missing: Callable[[str], None]) -> tuple[str, str]:
    """Two real builds in environments of the session's data folder; their labels, the older first."""
    labels = []
    for spec in (OLD, NEW):
        done = machine.flashpoint("builds", "add", spec, "--json")
        if done.returncode != 0:
            missing(f"PyTorch {spec} cannot be installed here: {done.stderr.strip()}")
        labels.append(json.loads(done.stdout)["build"])
    return labels[0], labels[1]


@dataclass
class Up:
    """``flashpoint up``, running."""

    machine: Machine
    address: str
    process: subprocess.Popen[str]
    log: Path

    def stop(self) -> int:
        """What Ctrl-C does; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_up(machine: Machine, log: Path) -> Up:
    """Starts everything and waits for the address."""
    command = [sys.executable, "-m", "app.cli", "up", "--port", str(free_port())]
    with log.open("w") as errors:
        process = subprocess.Popen(command, env=machine.environ, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("Flashpoint is at http://127.0.0.1:"), line + log.read_text()
    return Up(machine, line.split()[-1], process, log)


@pytest.fixture(scope="session")
def up(machine: Machine, real_builds: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Everything up on the session's data folder."""
    running = start_up(machine, tmp_path_factory.mktemp("up") / "up.log")
    yield running
    if running.process.poll() is None:
        running.stop()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as made:
        yield made


@pytest.fixture(scope="session")
def browser(playwright: Playwright, missing: Callable[[str], None]) -> Iterator[Browser]:
    """The system's Chromium, headless, quiet on the network."""
    program = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if program is None:
        missing("Chromium is not installed (on Debian: apt install chromium)")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
    made = playwright.chromium.launch(
        executable_path=program,
        args=[*quiet, "--disable-component-update", "--no-first-run", "--disable-dev-shm-usage"],
    )
    yield made
    made.close()


class Watch:
    """What a page asked of whom, and what it complained about."""

    def __init__(self, page: Page, address: str) -> None:
        self.outside: list[str] = []
        self.errors: list[str] = []
        self.address = address
        page.on("request", self._request)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _request(self, request: Request) -> None:
        local = (self.address, self.address.replace("http", "ws"), "data:", "blob:")
        if not request.url.startswith(local):
            self.outside.append(request.url)


@pytest.fixture
def page(browser: Browser, up: Up) -> Iterator[Page]:
    """A page at 1280 pixels that must ask nobody but this server and must raise no error."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    made = context.new_page()
    made.set_default_timeout(30_000)
    watch = Watch(made, up.address)
    yield made
    context.close()
    assert watch.outside == []
    assert watch.errors == []


def wait_until(check: Callable[[], bool], seconds: float, what: str) -> None:
    """Polls until ``check`` holds; fails with ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds:g} s: {what}")
        time.sleep(0.25)
