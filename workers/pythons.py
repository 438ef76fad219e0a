"""The Python interpreters of this machine that environments can be made with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FLOOR = (3, 9)  # of the measuring kit
ASK_S = 10.0
_NAMED = re.compile(r"python3(\.[0-9]{1,2})?\Z")
#: Full version, whether it is a plain 64-bit CPython with its lock, and the interpreter itself behind venvs and shims.
_QUESTION = """
import os, platform, sys, sysconfig
free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
print("%d.%d.%d" % sys.version_info[:3])
print(int(platform.python_implementation() == "CPython" and not free and sys.maxsize > 2**32))
print(os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable))
"""


@dataclass(frozen=True)
class Python:
    """A CPython that really runs: full ``version`` (``3.11.7``) and ``path``."""

    version: str
    path: Path

    @property
    def minor(self) -> str:
        """``3.11``."""
        return ".".join(self.version.split(".")[:2])


def found_pythons(given: Iterable[str | Path], environ: Mapping[str, str]) -> tuple[Python, ...]:
    """All of them, once each: those ``given`` first, then PATH, pyenv, asdf, uv's own, and the one that runs this.

    An interpreter that does not answer (a pyenv shim without a version) or is no CPython from 3.9 on is left out.
    """
    found: dict[Path, Python] = {}
    for candidate in (*(Path(p) for p in given), *_candidates(environ), Path(sys.executable)):
        python = ask(candidate)
        if python is not None:
            found.setdefault(python.path, python)
    return tuple(found.values())


def ask(candidate: Path) -> Python | None:
    """The plain CPython from 3.9 on that ``candidate`` leads to, None when it is none or does not run."""
    try:
        state = candidate.stat()
    except OSError:
        return None
    return _ask(candidate, state.st_mtime_ns)  # asked again when the file has changed


@lru_cache(maxsize=512)
def _ask(candidate: Path, _changed: int) -> Python | None:
    try:
        answer = subprocess.run(
            [os.fspath(candidate), "-E", "-s", "-S", "-c", _QUESTION],
            capture_output=True, text=True, timeout=ASK_S, check=True, stdin=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        version, plain, path = answer.stdout.splitlines()[-3:]
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if plain != "1" or tuple(int(part) for part in version.split(".")[:2]) < FLOOR:
        return None
    return Python(version, Path(path))


def in_preference(pythons: Sequence[Python], supported: Sequence[str], first: Sequence[str] = ()) -> list[Python]:
    """Those whose minor version is ``supported``, best first.

    ``first`` are minor versions to prefer. Then the nearest to the Python that runs Flashpoint, so that the builds of a
    run mostly share one Python, and of one minor version the newest.
    """
    own = sys.version_info[1]

    def rank(python: Python) -> tuple[int, int, int, int]:
        _, minor, micro = (int(part) for part in python.version.split("."))
        return (0 if python.minor in first else 1, abs(minor - own), minor, -micro)

    return sorted((python for python in pythons if python.minor in supported), key=rank)


def _candidates(environ: Mapping[str, str]) -> list[Path]:
    home = Path(environ.get("HOME") or Path.home())
    folders = [Path(part) for part in environ.get("PATH", "").split(os.pathsep) if part]
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    for root, pattern in (
        (Path(environ.get("PYENV_ROOT") or home / ".pyenv") / "versions", "*/bin"),
        (Path(environ.get("ASDF_DATA_DIR") or home / ".asdf") / "installs" / "python", "*/bin"),
        (Path(environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python"), "cpython-*/bin"),
    ):
        if root.is_dir():
            folders += sorted(root.glob(pattern))
    return [file for folder in folders for file in _programs(folder)]


def _programs(folder: Path) -> list[Path]:
    try:
        names = sorted(name for name in os.listdir(folder) if _NAMED.match(name))
    except OSError:
        return []
    return [folder / name for name in names if os.access(folder / name, os.X_OK)]
