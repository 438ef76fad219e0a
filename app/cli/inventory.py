"""``flashpoint builds | nodes | doctor``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from app.cli.console import Json, RunsFailed, print_json, print_table, say, services
from core import numerals
from core.model import BuildView, NodeView

Spec = Annotated[str, typer.Argument(metavar="SPEC", help="A build: 2.13.0, 2.13.0+cpu, existing:/path/to/python.")]
Python = Annotated[str | None, typer.Option("--python", metavar="X.Y", help="The Python to use, such as 3.11.")]


def add_to(app: typer.Typer) -> None:
    builds = typer.Typer(help="List, add, probe and remove PyTorch builds of this machine.", no_args_is_help=True)
    builds.command("list")(list_builds)
    builds.command("add")(add)
    builds.command("probe")(probe)
    builds.command("remove")(remove)
    app.add_typer(builds, name="builds")
    app.command("nodes")(nodes)
    app.command("doctor")(doctor)


def build_record(view: BuildView) -> dict[str, Any]:
    return {
        "build": view.label,
        "spec": view.spec,
        "channel": view.channel,
        "git_revision": view.git_revision,
        "flavour": view.flavour,
        "python": view.python,
        "environment": view.environment,
        "state": view.state,
        "size_bytes": view.size_bytes,
        "details": view.details,
        "last_measured_at": view.last_measured_at.isoformat() if view.last_measured_at else None,
    }


def list_builds(as_json: Json = False) -> None:
    """List the builds that are known."""
    found = services().queries.builds()
    if as_json:
        print_json([build_record(view) for view in found])
        return
    if not found:
        print("No build is installed; add one with `flashpoint builds add 2.13.0`.")
        return
    print_table(
        ["build", "state", "python", "revision", "size", "last measured"],
        [
            (
                view.label,
                view.state,
                view.python,
                view.git_revision[:10],
                numerals.quantity(view.size_bytes, "B") if view.size_bytes else "",
                numerals.moment(view.last_measured_at) if view.last_measured_at else "never",
            )
            for view in found
        ],
        right=["size"],
    )


def add(spec: Spec, python: Python = None, as_json: Json = False) -> None:
    """Make the environment of a build on this machine."""
    from app import operate

    s = services()
    made = operate.add_build(s, spec, python, say)
    if as_json:
        view = s.queries.build(made.label, s.settings.node_name)
        print_json(build_record(view) if view else None)
        return
    print(f"PyTorch {made.label} is ready on Python {made.python}{' (it was already)' if made.reused else ''}.")


def probe(spec: Spec, python: Python = None, as_json: Json = False) -> None:
    """Say what a build is, by importing it in its environment."""
    from app import operate

    made = operate.add_build(services(), spec, python, say)
    if as_json:
        print_json({"build": made.label, "environment": made.name, "python": made.python, "probe": made.probe})
        return
    print_table(["fact", "value"], [("build", made.label), *sorted(made.probe.items())])


def remove(spec: Spec) -> None:
    """Remove a build's environment from this machine; its measurements stay."""
    from app import operate

    label = operate.remove_build(services(), spec, say)
    say(f"Removed the environment of {label}; its measurements stay.")


def node_record(view: NodeView) -> dict[str, Any]:
    return {
        "node": view.name,
        "cpu": view.cpu,
        "threads": view.threads,
        "memory_bytes": view.memory_bytes,
        "devices": list(view.devices),
        "versions": view.versions,
        "fingerprint": view.fingerprint,
        "alive": view.alive,
        "heartbeat_at": view.heartbeat_at.isoformat() if view.heartbeat_at else None,
        "running": view.running,
    }


def nodes(as_json: Json = False) -> None:
    """List the machines that measure."""
    found = services().queries.nodes()
    if as_json:
        print_json([node_record(view) for view in found])
        return
    if not found:
        print("No worker has reported; start one with `flashpoint worker`.")
        return
    print_table(
        ["node", "answers", "cpu", "threads", "devices", "heard", "runs"],
        [
            (
                view.name,
                "yes" if view.alive else "no",
                view.cpu,
                view.threads,
                " ".join(view.devices),
                numerals.moment(view.heartbeat_at) if view.heartbeat_at else "never",
                view.running or "",
            )
            for view in found
        ],
        right=["threads"],
    )


def doctor(as_json: Json = False) -> None:
    """Check this machine: what Flashpoint needs, what it found, what to do."""
    from app.doctor import examine

    found = examine()
    if as_json:
        print_json([{"check": c.name, "state": c.state, "found": c.found, "advice": c.advice} for c in found])
    else:
        signs = {"ok": "=", "note": "?", "wrong": "×"}
        rows = [(f"{signs[c.state]} {c.state}", c.name, c.found, c.advice) for c in found]
        print_table(["", "check", "found", "what to do"], rows)
    wrong = [c.name for c in found if c.state == "wrong"]
    if wrong:
        raise RunsFailed(f"These checks found something wrong: {', '.join(wrong)}.")
