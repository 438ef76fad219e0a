"""``flashpoint up | web | worker | beat``."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import say, services
from core.errors import UserError

Port = Annotated[int | None, typer.Option("--port", min=1, max=65535, help="The port of the dashboard.")]


def add_to(app: typer.Typer) -> None:
    app.command("up")(up)
    app.command("web")(web)
    app.command("worker")(worker)
    app.command("beat")(beat)


def up(
    data: Annotated[Path | None, typer.Option("--data", help="The folder for everything that is stored.")] = None,
    port: Port = None,
) -> None:
    """Start everything on this machine, embedded, and print one address."""
    from app.up import up as run

    if data is not None:
        os.environ["FLASHPOINT_DATA"] = str(data.absolute())
    s = services()
    run(s, s.settings.port if port is None else port, say)


def web(
    port: Port = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
) -> None:
    """Serve the dashboard."""
    from app import server

    s = services()
    server.serve(s.settings, host, port, started=lambda address: say(f"Flashpoint is at {address}"))


def worker(
    name: Annotated[str | None, typer.Option("--name", help="What this node is called.")] = None,
    device: Annotated[str, typer.Option("--device", help="The device that measures: cpu or cuda:N.")] = "cpu",
) -> None:
    """Measure what is queued for this node."""
    from app import operate

    if name is not None:
        os.environ["FLASHPOINT_NODE_NAME"] = name
    if device != "cpu" and not (device.startswith("cuda:") and device[5:].isdigit()):
        raise UserError(f"The device {device[:40]!r} is not known; give cpu or cuda:N.")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    operate.run_worker(services(), device)


def beat() -> None:
    """Keep the queue moving: end dead leases, ring again for waiting runs."""
    from app import operate

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    operate.run_beat(services())
