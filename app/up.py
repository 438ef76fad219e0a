"""``flashpoint up``: everything on this machine under one parent, which ends all of it again."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app import operate
from app.bootstrap import Services
from app.first import queue_first_comparison
from app.processes import Child
from core.errors import FlashpointError, RunFailed, UserError

HOST = "127.0.0.1"
READY_S = 90.0


def up(services: Services, port: int, say: Callable[[str], None]) -> None:
    """Starts broker, worker, scheduler and dashboard, prints one address, and keeps them up until Ctrl-C or SIGTERM.

    Raises UserError when the port or the data folder is taken, RunFailed when a part does not stay up.
    """
    _refuse_taken_port(port)
    with _alone(services.settings.data):
        told = threading.Event()
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sign, lambda *_: told.set())
        children = _children(services, port)
        try:
            operate.register_node(services)
            _start(children, services, port, told)
            if told.is_set():
                return
            print(f"Flashpoint is at http://{HOST}:{port}", flush=True)
            say(f"Data is in {services.settings.data}. Ctrl-C ends everything.")
            # Asking for a Python may take a while, and the parts must be watched meanwhile.
            threading.Thread(target=_first, args=(services, say), name="first comparison", daemon=True).start()
            _watch(children, told, say)
        finally:
            for child in reversed(children):
                child.stop()
            say("Everything has ended.")


def _first(services: Services, say: Callable[[str], None]) -> None:
    try:
        sentence = queue_first_comparison(services)
    except FlashpointError as error:
        sentence = f"The first comparison was not queued: {error}"
    if sentence:
        say(sentence)


def _children(services: Services, port: int) -> list[Child]:
    settings = services.settings
    environ = {**os.environ, "FLASHPOINT_DATA": str(settings.data), "PYTHONUNBUFFERED": "1"}
    python = [sys.executable, "-W", "ignore::DeprecationWarning", "-m"]
    parts: list[tuple[str, list[str], float]] = [
        ("worker", [*python, "app.cli", "worker"], 20.0),
        ("beat", [*python, "app.cli", "beat"], 4.0),
        ("web", [*python, "app.cli", "web", "--port", str(port)], 6.0),
    ]
    if settings.broker_embedded:
        parts.insert(0, ("broker", [*python, "workers.broker"], 8.0))
    return [
        Child(name, command, settings.data / "logs" / f"{name}.log", environ, wait) for name, command, wait in parts
    ]


def _start(children: list[Child], services: Services, port: int, told: threading.Event) -> None:
    deadline = time.monotonic() + READY_S
    for child in children:
        child.start()
        if child.name == "broker":
            _wait_for(child, deadline, told, lambda: _answers(services.settings.broker_socket))
    web = next(child for child in children if child.name == "web")
    _wait_for(web, deadline, told, lambda: _ready(port))


def _wait_for(child: Child, deadline: float, told: threading.Event, ready: Callable[[], bool]) -> None:
    while not told.is_set() and not ready():
        code = child.died()
        if code is not None:
            raise RunFailed(
                f"The {child.name} ended with exit code {code} while starting; "
                f"its log {child.log} ends:\n{child.last_lines()}"
            )
        if time.monotonic() > deadline:
            raise RunFailed(
                f"The {child.name} was not ready after {READY_S:g} s; its log {child.log} ends:\n{child.last_lines()}"
            )
        told.wait(0.2)


def _watch(children: list[Child], told: threading.Event, say: Callable[[str], None]) -> None:
    """Starts again what dies, until told to stop. Raises RunFailed when one keeps dying."""
    while not told.wait(1.0):
        for child in children:
            code = child.died()
            if code is None:
                continue
            if child.hopeless(code):
                raise RunFailed(
                    f"The {child.name} keeps ending (exit code {code}); its log {child.log} ends:\n{child.last_lines()}"
                )
            say(f"The {child.name} ended with exit code {code} and is started again; its log is {child.log}.")
            child.start()


def _answers(path: Path | None) -> bool:
    """Whether the broker says PONG at its socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
            probe.sendall(b"PING\r\n")
            return probe.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _ready(port: int) -> bool:
    """Whether the dashboard says that it is ready."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _refuse_taken_port(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UserError(
                f"The port {port} of {HOST} cannot be used ({error.strerror}); choose another with --port."
            ) from error


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """One ``up`` a data folder. Raises UserError."""
    data.mkdir(parents=True, exist_ok=True)
    with (data / "up.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(
                f"Flashpoint is up already with the data folder '{data}'; stop it or name another with --data."
            ) from error
        yield
