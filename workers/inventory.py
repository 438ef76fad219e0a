"""The environments of this node, and putting a prepared one on record: the Build it holds and where it lies."""

from __future__ import annotations

import os
from collections.abc import Callable

from core.settings import Settings
from db.records import BuildFacts, EnvironmentFacts
from db.store import Store
from db.tables import EnvironmentState
from workers.environments import Environment, Environments


def environments_of(settings: Settings, say: Callable[[str], None]) -> Environments:
    """The environments in this node's data folder; ``say`` is told one sentence a step."""
    return Environments(
        settings.environments_dir,
        torch_backend=settings.torch_backend,
        pythons=tuple(str(python) for python in settings.pythons),
        environ=os.environ,
        say=say,
    )


def record(store: Store, node: str, spec: str, environment: Environment) -> tuple[int, int]:
    """Records build and environment; returns their ids. Raises NotFound for the node, Unavailable."""
    build = environment.build
    build_id = store.record_build(
        BuildFacts(
            label=build.label,
            version=build.version,
            spec=spec,
            channel=build.channel,
            git_revision=build.git_revision,
            flavour=build.flavour,
            details=environment.probe,
        )
    )
    environment_id = store.record_environment(
        EnvironmentFacts(
            name=environment.name,
            build_id=build_id,
            node=node,
            spec=spec,
            python=environment.python_version,
            state=EnvironmentState.READY,
            lock=environment.lock,
            probe=environment.probe,
            size_bytes=environment.size_bytes,
        )
    )
    return build_id, environment_id
