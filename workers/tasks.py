"""The one task of a worker: somebody rang, so perform what is queued for this device until nothing is."""

from __future__ import annotations

import logging
import os
import socket
import threading
from typing import Any

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


def perform_queued(settings: Settings, node: str, device: str) -> int:
    """Claims and performs runs until none is queued for the device; returns how many it performed."""
    engine = make_engine(settings.database_url)
    try:
        store = Store(engine)
        executor = Executor(settings, store, say=log.info)
        done = 0
        while True:
            claim = store.claim(node, device, owner(), LEASE_S)
            if claim is None:
                return done
            executor.perform(claim)
            done += 1
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

    signals.worker_ready.connect(ready, weak=False)
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
