"""``flashpoint doctor``: what Flashpoint needs of this machine, what was found, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app import bootstrap, operate
from core.errors import FlashpointError
from core.settings import Settings, settings_from

NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "glusterfs", "ceph", "lustre"}
LEAST_FREE = 10 * 1024**3


@dataclass(frozen=True)
class Check:
    """One finding; ``note`` works but is worth knowing, ``wrong`` must be mended."""

    name: str
    state: Literal["ok", "note", "wrong"]
    found: str
    advice: str = ""


def examine() -> list[Check]:
    """All checks, none of which changes anything but the schema of the database."""
    try:
        settings = settings_from(os.environ)
    except FlashpointError as error:
        return [Check("settings", "wrong", str(error), "correct the variable")]
    checks: list[Callable[[Settings], Check]] = [
        _python, _data_folder, _file_system, _space, _sqlite, _database, _broker, _node, _pythons, _compiler, _fonts,
    ]  # fmt: skip
    return [Check("settings", "ok", f"data in {settings.data}"), *(_guarded(check, settings) for check in checks)]


def _guarded(check: Callable[[Settings], Check], settings: Settings) -> Check:
    try:
        return check(settings)
    except (FlashpointError, OSError) as error:
        return Check(check.__name__.strip("_").replace("_", " "), "wrong", str(error))


def _python(_: Settings) -> Check:
    return Check("python", "ok", platform.python_version())


def _data_folder(settings: Settings) -> Check:
    settings.data.mkdir(parents=True, exist_ok=True)
    if not os.access(settings.data, os.W_OK):
        return Check(
            "data folder", "wrong", f"{settings.data} cannot be written", "change its owner or set FLASHPOINT_DATA"
        )
    return Check("data folder", "ok", str(settings.data))


def file_system_of(path: Path) -> str:
    """The type of the file system that holds a path, "" where the system does not tell."""
    best, kind = "", ""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, found, *_ = line.split()
        inside = str(path) == mount or str(path).startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, found
    return kind


def _file_system(settings: Settings) -> Check:
    kind = file_system_of(settings.data) if Path("/proc/mounts").exists() else ""
    if kind in NETWORK_FILE_SYSTEMS and settings.database_path is not None:
        return Check(
            "file system",
            "wrong",
            f"{kind}, a network file system",
            "SQLite loses data there; use a local folder or PostgreSQL",
        )
    return Check("file system", "ok", kind or "not told by this system")


def _space(settings: Settings) -> Check:
    free = shutil.disk_usage(settings.data).free
    found = f"{free / 1024**3:.0f} GiB free"
    if free < LEAST_FREE:
        return Check(
            "disk space",
            "note",
            found,
            "an environment takes 1 to 6 GiB; remove builds with `flashpoint builds remove`",
        )
    return Check("disk space", "ok", found)


def _sqlite(settings: Settings) -> Check:
    from db.engine import sqlite_module, wal_is_safe

    module = sqlite_module()
    found = f"{module.sqlite_version} from {module.__name__.split('.')[0]}"
    if settings.database_path is None:
        return Check("sqlite", "ok", f"not used ({found})")
    if not wal_is_safe(module.sqlite_version_info):
        return Check(
            "sqlite",
            "note",
            found,
            "this version has the WAL-reset race, so a rollback journal is used; install pysqlite3",
        )
    return Check("sqlite", "ok", found)


def _database(settings: Settings) -> Check:
    from db.engine import schema_revision

    bootstrap.configure(settings)
    kind = "SQLite" if settings.database_path else "PostgreSQL"
    return Check("database", "ok", f"{kind}, schema {schema_revision(bootstrap.services().engine)}")


def _broker(settings: Settings) -> Check:
    answer = operate.broker_answers(settings)
    if answer:
        return Check("broker", "ok", "answers")
    if settings.broker_embedded:
        return Check(
            "broker", "note", "the embedded broker is not running", "`flashpoint up` starts it; --inline needs none"
        )
    return Check("broker", "wrong", "does not answer", "start it, or correct FLASHPOINT_BROKER_URL")


def _node(settings: Settings) -> Check:
    views = [view for view in bootstrap.services().queries.nodes() if view.name == settings.node_name]
    if views and views[0].alive:
        return Check("worker", "ok", f"{settings.node_name} answers")
    return Check(
        "worker",
        "note",
        f"no worker of {settings.node_name} answers",
        "`flashpoint up` or `flashpoint worker` starts one",
    )


def _pythons(settings: Settings) -> Check:
    found = operate.pythons_found(settings)
    if not found:
        return Check("pythons", "wrong", "none", "install a Python from 3.9 on, or set FLASHPOINT_PYTHONS")
    return Check("pythons", "ok", ", ".join(version for version, _ in found))


def _compiler(_: Settings) -> Check:
    found = next((name for name in ("g++", "c++", "clang++") if shutil.which(name)), None)
    if found is None:
        return Check("C++ compiler", "note", "none", "torch.compile is skipped on this node; install g++")
    return Check("C++ compiler", "ok", found)


def _fonts(_: Settings) -> Check:
    from core.exports.figure import font_folder

    folders = [
        font_folder(p) for p in ("fontpkg_ibm_plex_sans", "fontpkg_ibm_plex_sans_condensed", "fontpkg_ibm_plex_mono")
    ]
    missing = [folder.name for folder in folders if not folder.is_dir()]
    if missing:
        return Check("fonts", "wrong", "missing", "install Flashpoint again with `make setup`")
    return Check("fonts", "ok", "IBM Plex")
