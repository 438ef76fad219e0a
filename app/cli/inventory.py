"""``flashpoint builds | nodes | doctor``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from app import operate
from app.bootstrap import Services
from app.cli.console import Json, RunsFailed, print_json, print_table, say, services
from core import numerals
from core.errors import BuildFailed, NotFound, UserError
from core.model import BuildView, NodeView
from core.versions import Kind, parse_spec

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
    s = services()
    made = _made(s, spec, python)
    if as_json:
        view = s.queries.build(made.label, s.settings.node_name)
        print_json(build_record(view) if view else None)
        return
    print(f"PyTorch {made.label} is ready on Python {made.python}.")


def _made(s: Services, spec: str, python: str | None) -> operate.Made:
    """The build's environment. A step that fails says its last lines first, and then one sentence (exit code 2)."""
    try:
        return operate.add_build(s, spec, python, say)
    except BuildFailed as error:
        for line in error.log.splitlines()[-10:]:
            say(f"  {line}")
        raise UserError(f"While {error.step}: {error}" if error.step else str(error)) from error


def probe(spec: Spec, python: Python = None, as_json: Json = False) -> None:
    """Say what an installed build is, by importing it in its environment."""
    s = services()
    if parse_spec(spec).kind is not Kind.EXISTING:
        known = s.queries.build(spec, operate.register_node(s))
        if known is None or known.state != "ready":
            raise NotFound(f"The build {spec[:80]!r} is not installed here; add it with `flashpoint builds add`.")
    made = _made(s, spec, python)
    if as_json:
        print_json({"build": made.label, "environment": made.name, "python": made.python, "probe": made.probe})
        return
    print_table(["fact", "value"], [("build", made.label), *sorted(made.probe.items())])


def remove(spec: Spec) -> None:
    """Remove a build's environment from this machine; its measurements stay."""
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
