"""Writes about nodes, builds and environments. Functions over a writing transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from core.errors import NotFound, UserError
from db.leases import insert_for, node_id_of
from db.records import BuildFacts, EnvironmentFacts, NodeFacts, clean, clean_json
from db.tables import EnvironmentState, builds, environments, nodes
from db.transactions import database_now


def register_node(connection: Connection, facts: NodeFacts) -> int:
    """Add the node or take over what it says now; a changed fingerprint leaves a note that says what changed."""
    now = database_now(connection)
    values = {
        "fingerprint": facts.fingerprint,
        "cpu": clean(facts.cpu),
        "threads": facts.threads,
        "memory_bytes": facts.memory_bytes,
        "devices": clean_json(facts.devices),
        "versions": clean_json(facts.versions),
        "heartbeat_at": now,
    }
    new = insert_for(connection, nodes).values(name=facts.name, note="", registered_at=now, **values)
    node_id = connection.scalar(new.on_conflict_do_nothing().returning(nodes.c.id))
    if node_id is not None:
        return int(node_id)
    known = (
        connection.execute(select(nodes).where(nodes.c.name == facts.name).with_for_update(key_share=True))
        .mappings()
        .one()
    )
    if known["fingerprint"] != facts.fingerprint:
        values["note"] = clean(_what_changed(known, facts, now))
    connection.execute(update(nodes).where(nodes.c.id == known["id"]).values(**values))
    return int(known["id"])


def beat_node(connection: Connection, name: str) -> None:
    node_id = node_id_of(connection, name)
    connection.execute(update(nodes).where(nodes.c.id == node_id).values(heartbeat_at=database_now(connection)))


def record_build(connection: Connection, facts: BuildFacts) -> int:
    """Add the build or take over what its newest probe says. Raises UserError for the label of another source."""
    known = connection.scalar(select(builds.c.git_revision).where(builds.c.label == facts.label))
    if known and facts.git_revision and known != facts.git_revision:
        raise UserError(
            f"The build {facts.label!r} is known with the git revision {known[:12]}, but this one has "
            f"{facts.git_revision[:12]}; two builds need two labels."
        )
    values: dict[str, Any] = {
        "version": clean(facts.version),
        "spec": clean(facts.spec),
        "channel": clean(facts.channel),
        "git_revision": clean(facts.git_revision) or known or "",
        "flavour": clean(facts.flavour),
        "details": clean_json(facts.details),
    }
    new = insert_for(connection, builds).values(label=facts.label, created_at=database_now(connection), **values)
    upsert = new.on_conflict_do_update(index_elements=["label"], set_=values).returning(builds.c.id)
    return int(connection.execute(upsert).scalar_one())


def record_environment(connection: Connection, facts: EnvironmentFacts) -> int:
    """Add the environment or, when its name is known on the node, take over its new state. Raises NotFound."""
    now = database_now(connection)
    values: dict[str, Any] = {
        "build_id": facts.build_id,
        "spec": clean(facts.spec),
        "python": clean(facts.python),
        "state": facts.state.value,
        "lock": facts.lock.replace("\x00", ""),  # never cut: the environment's name is its hash
        "probe": clean_json(facts.probe),
        "size_bytes": facts.size_bytes,
        "last_used_at": now,
    }
    new = insert_for(connection, environments).values(
        name=facts.name, node_id=node_id_of(connection, facts.node), created_at=now, **values
    )
    upsert = new.on_conflict_do_update(index_elements=["node_id", "name"], set_=values).returning(environments.c.id)
    return int(connection.execute(upsert).scalar_one())


def environment_removed(connection: Connection, node: str, name: str) -> None:
    """Raises NotFound when the node has no such environment."""
    gone = connection.execute(
        update(environments)
        .where(environments.c.node_id == node_id_of(connection, node), environments.c.name == name)
        .values(state=EnvironmentState.REMOVED.value, size_bytes=0)
        .returning(environments.c.id)
    ).one_or_none()
    if gone is None:
        raise NotFound(f"Node {node!r} has no environment {name[:80]!r}; see `flashpoint builds list`.")


def _what_changed(known: RowMapping, facts: NodeFacts, now: datetime) -> str:
    old = {
        "cpu": known["cpu"],
        "threads": known["threads"],
        "memory": f"{known['memory_bytes'] / 1024**3:.1f} GiB",
        "devices": _in_words(known["devices"]),
    }
    new = {
        "cpu": facts.cpu,
        "threads": facts.threads,
        "memory": f"{facts.memory_bytes / 1024**3:.1f} GiB",
        "devices": _in_words(dict(facts.devices)),
    }
    changes = [f"{key} {old[key]} became {new[key]}" for key in old if old[key] != new[key]]
    return f"Hardware changed on {now:%Y-%m-%d %H:%M} UTC: {', '.join(changes) or 'fingerprint'}; series start anew."


def _in_words(devices: dict[str, str]) -> str:
    return ", ".join(f"{device} {model}".strip() for device, model in sorted(devices.items()))
