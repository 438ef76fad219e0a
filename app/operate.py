"""What this process does itself on this machine: runs in line, environments, the worker and the scheduler.

Beside ``app/bootstrap.py`` the only file of ``app`` that knows the workers; they are imported when they are needed, so
that ``flashpoint suites`` does not wait for Celery.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.bootstrap import Services
from core.errors import FlashpointError, NotFound, UserError
from core.model import RunState
from core.settings import Settings
from core.versions import parse_spec, require_supported

if TYPE_CHECKING:
    from workers.execute import Executor

LEASE_S = 30.0


@dataclass(frozen=True)
class Made:
    """An environment on this machine, in words for a person."""

    label: str
    name: str
    python: str
    size_bytes: int
    reused: bool
    probe: dict[str, str]


def register_node(services: Services) -> str:
    """Puts this machine on record under its name, so that runs can be queued for it. Returns the name."""
    from workers.node import node_facts

    services.store.register_node(node_facts(services.settings.node_name))
    return services.settings.node_name


def perform_inline(services: Services, run_ids: Sequence[int], say: Callable[[str], None]) -> None:
    """Performs these runs in this process, one after the other, with no broker.

    A run that a worker took meanwhile, or a device that is busy, is waited for.
    """
    from workers.execute import Executor

    executor = Executor(services.settings, services.store, say)
    with inline_log(services.settings):
        for run_id in run_ids:
            _perform(services, executor, run_id, say)


def _perform(services: Services, executor: Executor, run_id: int, say: Callable[[str], None]) -> None:
    node = services.settings.node_name
    owner = f"{socket.gethostname()}:{os.getpid()} (in line)"
    told = False
    while not services.queries.run(run_id).state.final:
        device = services.queries.run(run_id).plan.device
        claim = services.store.claim(node, device, owner, LEASE_S, run_id=run_id)
        if claim is not None:
            executor.perform(claim)
            continue
        if not told:
            say(f"Run {run_id} waits: the device {device} of {node} is busy.")
            told = True
        time.sleep(1.0)


@contextmanager
def inline_log(settings: Settings) -> Iterator[None]:
    """While open, what ``flashpoint.*`` logs goes to logs/inline.log of the data folder and not to the terminal, where
    the run's own sentence is enough. Raises UserError when the file cannot be written.
    """
    file = settings.data / "logs" / "inline.log"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise UserError(f"The log '{file}' cannot be written ({error.strerror}); mend its folder.") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    log = logging.getLogger("flashpoint")
    before = log.propagate
    log.propagate = False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = before
        handler.close()


def add_build(services: Services, text: str, python: str | None, say: Callable[[str], None]) -> Made:
    """Makes the environment of a build on this machine and puts it on record. Raises UserError, BuildFailed."""
    from workers.inventory import environments_of, record

    spec = require_supported(parse_spec(text))
    register_node(services)
    made = environments_of(services.settings, say).prepare(spec, python=python)
    record(services.store, services.settings.node_name, str(spec), made)
    return Made(made.build.label, made.name, made.python_version, made.size_bytes, made.reused, dict(made.probe))


def remove_build(services: Services, text: str, say: Callable[[str], None]) -> str:
    """Removes the environment of a build from this machine; its measurements stay. Returns its label. Raises
    NotFound.
    """
    from workers.inventory import environments_of

    node = register_node(services)
    view = services.queries.build(text, node)
    if view is None or view.state != "ready":
        raise NotFound(
            f"No environment of the build {text[:80]!r} is on {node}; `flashpoint builds list` shows those that are."
        )
    live = services.queries.runs(states=(RunState.PREPARING, RunState.RUNNING))
    if any(view.label in run.builds and run.node == node for run in live):
        raise UserError(f"The build {view.label} is being measured now; cancel that run first or wait for its end.")
    environments_of(services.settings, say).remove(view.environment)
    services.store.environment_removed(node, view.environment)
    return view.label


def run_worker(services: Services, device: str) -> int:
    """Serves this node's queue until told to stop."""
    from workers.celery_app import make_celery
    from workers.tasks import run_worker as serve

    settings = services.settings
    return serve(make_celery(settings), settings, settings.node_name, device)


def run_beat(services: Services) -> None:
    """Keeps the queue moving until told to stop."""
    from workers.celery_app import make_celery
    from workers.schedule import run_beat as serve

    serve(make_celery(services.settings), services.settings)


def pythons_found(settings: Settings) -> tuple[tuple[str, Path], ...]:
    """The Python interpreters of this machine that environments can be made with: (version, path)."""
    from workers.pythons import found_pythons

    return tuple((python.version, python.path) for python in found_pythons(settings.pythons, os.environ))


def python_available(settings: Settings, build: str) -> bool:
    """Whether a Python for this build is on the machine, or uv has one at hand or can fetch it now."""
    from workers.inventory import environments_of

    try:
        environments_of(settings, lambda _: None).python_for(parse_spec(build))
    except FlashpointError:
        return False
    return True


def broker_answers(settings: Settings) -> bool:
    """Whether the broker answers within a few seconds."""
    from redis import Redis
    from redis.exceptions import RedisError

    path = settings.broker_socket
    client = (
        Redis(unix_socket_path=str(path), socket_timeout=2, socket_connect_timeout=2)
        if path
        else Redis.from_url(settings.broker_url, socket_timeout=2, socket_connect_timeout=2)
    )
    try:
        return bool(client.ping())
    except RedisError:
        return False
    finally:
        client.close()
