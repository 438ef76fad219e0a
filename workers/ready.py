"""The ready marker of an environment: what it holds, and the proof that it still does."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workers.probing import BuildInfo

MARKER = "flashpoint.json"
FORM = 1  # of the marker; one of another form is made anew


@dataclass(frozen=True)
class Environment:
    """One environment, ready for use.

    ``path`` its folder, ``python`` its interpreter, ``python_version`` in full, ``lock`` the pinned packages with the
    Python and the platform as comment lines, ``probe`` what torch says about itself, ``size_bytes`` on disk (0 for one
    that somebody else owns), ``reused``: it was there before.
    """

    name: str
    path: Path
    python: Path
    python_version: str
    build: BuildInfo
    lock: str = field(repr=False)
    probe: dict[str, str] = field(repr=False)
    size_bytes: int
    reused: bool

    def write(self, folder: Path) -> None:
        """Put the marker into ``folder``, which is to become this environment."""
        told = asdict(self) | {"form": FORM, "path": str(self.path), "python": str(self.python)}
        told["libraries"] = libraries(folder)
        freeze(folder / MARKER, json.dumps(told, indent=1))


def read_ready(folder: Path) -> Environment | None:
    """The ready environment in ``folder``; None when there is none, its Python is gone or a library was changed."""
    try:
        told = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or told.pop("form", None) != FORM:
        return None
    python = folder / "bin" / "python"
    if not os.access(python, os.X_OK) or told.pop("libraries", None) != libraries(folder):
        return None
    known: dict[str, Any] = {**told, "path": folder, "python": python, "build": BuildInfo(**told["build"])}
    return Environment(**{**known, "reused": True})


def libraries(folder: Path) -> dict[str, int]:
    """Path and size of every shared library: what a damaged environment lacks, found without importing anything."""
    return {
        os.path.relpath(os.path.join(where, name), folder): os.stat(os.path.join(where, name)).st_size
        for where, _, names in os.walk(folder / "lib")
        for name in names
        if name.endswith(".so") or ".so." in name
    }


def size_of(folder: Path) -> int:
    """Bytes of all files, links not followed; files shared with uv's cache count too."""
    return sum(os.lstat(os.path.join(where, name)).st_size for where, _, names in os.walk(folder) for name in names)


def freeze(file: Path, text: str) -> None:
    """Write a file in one step."""
    aside = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(file)


def thaw_name(file: Path) -> str:
    """The one word in ``file``, "" when it is not there or is no name of an environment."""
    try:
        word = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return word if word.isalnum() else ""
