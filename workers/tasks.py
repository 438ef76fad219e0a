"""The one task of a worker: somebody rang, so perform what is queued for this device until nothing is."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from typing import Any

from billiard import active_children
from celery import Celery, signals

from core.errors import Unavailable
from core.settings import Settings
from db.engine import make_engine
from db.store import Store
from workers.celery_app import WORK, queue_of
from workers.client import ring
from workers.execute import LEASE_S, Executor
from workers.node import node_facts

log = logging.getLogger("flashpoint.worker")
BEAT_S = 10.0


def register(app: Celery, settings: Settings) -> None:
    """Registers the task. A late or doubled delivery finds nothing to claim and ends."""

    @app.task(name=WORK)  # type: ignore[untyped-decorator]
    def work(node: str, device: str) -> None:
        perform_queued(settings, node, device)


#: Set in the process that measures when its worker is being stopped: the run is given back to the queue.
leaving = threading.Event()


def perform_queued(settings: Settings, node: str, device: str) -> int:
    """Claims and performs runs until none is queued for the device or the worker leaves; returns how many."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGUSR2, lambda *_: leaving.set())
    engine = make_engine(settings.database_url)
    try:
        store = Store(engine)
        executor = Executor(settings, store, say=log.info, leaving=leaving)
        done = 0
        while not leaving.is_set():
            claim = store.claim(node, device, owner(), LEASE_S)
            if claim is None:
                return done
            executor.perform(claim)
            done += 1
        return done
    finally:
        engine.dispose()


def owner() -> str:
    """Who holds a lease: this process on this host."""
    return f"{socket.gethostname()}:{os.getpid()}"


def run_worker(app: Celery, settings: Settings, node: str, device: str) -> int:
    """Registers the node and serves its queue until told to stop. Returns the exit code."""
    engine = make_engine(settings.database_url)
    Store(engine).register_node(node_facts(node))
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(BEAT_S):
            try:
                Store(engine).beat_node(node)
            except Unavailable as error:
                log.warning("the node's heartbeat was not stored: %s", error)

    def ready(**_: Any) -> None:
        threading.Thread(target=beat, name="node heartbeat", daemon=True).start()
        try:
            ring(settings, node, device)  # what was queued while no worker ran
        except Unavailable as error:
            log.warning("%s", error)

    def shutting_down(**_: Any) -> None:
        """Tells the process that measures to give its run back; Celery itself would wait for the run's end."""
        for child in active_children():
            if child.pid is not None:
                os.kill(child.pid, signal.SIGUSR2)

    signals.worker_ready.connect(ready, weak=False)
    signals.worker_shutting_down.connect(shutting_down, weak=False)
    signals.worker_shutdown.connect(lambda **_: stop.set(), weak=False)
    register(app, settings)
    app.worker_main(
        [
            "worker",
            "--pool=prefork",
            "--concurrency=1",
            "--without-gossip",
            "--without-mingle",
            "--loglevel=INFO",
            f"--queues={queue_of(node, device)}",
            f"--hostname={device.replace(':', '-')}@{node}",
        ]
    )
    engine.dispose()
    return 0
