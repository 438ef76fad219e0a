"""Environments: one virtual environment per locked list of packages, made once, shared by runs, never half-made.

Layout of the folder::

    <name>/                 a virtual environment, with the file flashpoint.json in it once it is ready
    .aside/<name>.<random>/ one being made; moved to its name when its probe passed
    .locks/<name>           held while one is made or removed
    .index/<key>            the name that a spec, Python, backend and extras led to

Only ``bin/python`` of an environment is ever used, so moving it is harmless.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from core.errors import BuildFailed, NotFound, UserError
from core.identity import environment_name
from core.versions import Kind, Spec, pythons_for, require_supported, shown
from workers.backends import backend_for, has_gpu
from workers.building import Installer, Resolved, Wanted
from workers.locking import Lock, try_lock
from workers.probing import Probe, platform_line, probe
from workers.pythons import Python, ask, found_pythons, in_preference
from workers.ready import Environment, freeze, read_ready, size_of, thaw_name
from workers.sources import sources_from_pip

__all__ = ["Environment", "Environments"]

GIB = 1024**3
FINDING = "finding a Python"
SPACE = "looking for space on the disk"


def _never() -> bool:
    return False


class Environments:
    """The environments in one folder. Made once per use; several processes may work in the same folder at once.

    ``torch_backend`` is FLASHPOINT_TORCH_BACKEND, ``pythons`` interpreters to consider before those found, ``environ``
    the process's environment variables (pip's settings, PATH), ``say`` is told one sentence per step.
    """

    def __init__(
        self,
        folder: Path,
        *,
        torch_backend: str = "auto",
        pythons: Sequence[str] = (),
        environ: Mapping[str, str],
        say: Callable[[str], None],
        disk_free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self.folder = Path(os.path.abspath(folder))
        self.torch_backend, self.pythons, self.environ, self.say = torch_backend, tuple(pythons), environ, say
        self.disk_free = disk_free

    def prepare(
        self,
        spec: Spec,
        python: str | None = None,
        *,
        stop: Callable[[], bool] = _never,
        extras: Sequence[str] = (),
    ) -> Environment:
        """The ready environment of ``spec``, made now where there is none.

        ``python``: ``3.11``, ``3.11.7`` or the path of an interpreter; without it the best that the build supports.
        ``extras``: further requirements of the suites; they become part of the lock. ``stop`` is asked several times a
        second. Raises UserError for a spec or Python that cannot be used, BuildFailed with the step that failed and
        the last lines of its output, Stopped.
        """
        require_supported(spec)
        if spec.kind is Kind.EXISTING:
            return self.probe_python(spec.path or "", stop=stop)
        version = spec.version or Version("0")
        for folder in (self.folder, *(self.folder / part for part in (".aside", ".locks", ".index"))):
            folder.mkdir(parents=True, exist_ok=True)
        backend = backend_for(self.torch_backend, version, has_gpu())
        index = self.folder / ".index" / _digest([str(spec), python or "", backend.name, *sorted(extras)])
        if (known := thaw_name(index)) and (ready := read_ready(self.folder / known)):
            return ready
        installer = Installer(sources_from_pip(self.environ), self.environ, self.say)
        wanted = Wanted(version, tuple(sorted(extras)), self._python(version, python, installer, stop))
        self.say(f"Looking up the packages of PyTorch {version} for Python {wanted.python.version}.")
        resolved = installer.resolve(wanted, backend, stop)
        lock = "\n".join([f"# python {wanted.python.version}", f"# platform {platform_line()}", *resolved.packages])
        name = environment_name(lock, wanted.python.version)
        target = self.folder / name
        with Lock(
            self.folder / ".locks" / name, stop, lambda: self.say(f"Waiting: {name} is being made already.")
        ) as fd:
            environment = read_ready(target)
            if environment is None:
                environment = self._build(installer, wanted, resolved, lock + "\n", target, stop, fd)
        freeze(index, name)
        return environment

    def python_for(self, spec: Spec, *, stop: Callable[[], bool] = _never) -> Python:
        """The Python that an environment of ``spec`` would get, fetched when the machine has none. UserError,
        BuildFailed.
        """
        installer = Installer(sources_from_pip(self.environ), self.environ, self.say)
        return self._python(require_supported(spec).version or Version("0"), None, installer, stop)

    def probe_python(self, path: str, *, stop: Callable[[], bool] = _never) -> Environment:
        """The environment of somebody else's interpreter: asked, never copied or changed. UserError, BuildFailed,
        Stopped.
        """
        python = Path(path)
        try:
            runs = python.is_file() and os.access(python, os.X_OK)
        except OSError as error:
            raise UserError(
                f"The interpreter {shown(path)} cannot be looked at ({error.strerror}); name another path."
            ) from error
        if not runs:
            raise BuildFailed(
                f"There is no interpreter at '{path}'; write existing: and a Python's full path.", step=FINDING
            )
        found = probe(python, environ=self.environ, stop=stop)
        lines = [f"# python {found.python_version}", f"# platform {platform_line()}", f"# at {path}", *found.packages]
        lock = "\n".join(lines) + "\n"
        name = f"existing-{environment_name(lock, found.python_version)}"
        return _environment(name, found.prefix, python, found, lock, size_bytes=0, reused=True)

    def remove(self, name: str) -> None:
        """Delete an environment of this folder; one that somebody else owns (``existing-...``) is only forgotten.

        Raises NotFound when there is none of that name, UserError while it is being made.
        """
        if name.startswith("existing-"):
            return
        target = self.folder / name
        if not name or name != Path(name).name or name.startswith(".") or not target.is_dir():
            raise NotFound(
                f"There is no environment {name[:80]!r} on this machine; `flashpoint builds list` shows all."
            )
        with try_lock(self.folder / ".locks" / name) as fd:
            if fd is None:
                raise UserError(f"The environment {name} is being made just now; wait for its end.")
            self._discard(target)

    # -- making one ------------------------------------------------------------------------------------------------

    def _python(self, version: Version, wanted: str | None, installer: Installer, stop: Callable[[], bool]) -> Python:
        supported = pythons_for(version)
        if wanted and "/" in wanted:
            chosen = ask(Path(wanted))
            if chosen is None:
                raise UserError(f"'{wanted[:200]}' is no CPython from 3.9 on that runs; name another interpreter.")
            if chosen.minor not in supported:
                raise _unsupported(version, chosen.version, supported)
            return chosen
        if wanted:
            if ".".join(wanted.split(".")[:2]) not in supported:
                raise _unsupported(version, wanted, supported)
            supported = (".".join(wanted.split(".")[:2]),)
        found = found_pythons(self.pythons, self.environ)
        if wanted and wanted.count(".") > 1:
            found = tuple(python for python in found if python.version == wanted)
        start = f"torch-{version.public}"
        wheels = [name for name in installer.sources.local_wheels() if name.startswith((f"{start}-", f"{start}+"))]
        at_hand = [minor for minor in supported if any(f"-cp{minor.replace('.', '')}-" in name for name in wheels)]
        best = in_preference(found, supported, at_hand)
        if best:
            return best[0]
        fetched = installer.fetch_python([wanted] if wanted else supported, stop)
        chosen = ask(fetched) if fetched else None
        if chosen is None:
            names = wanted or " or ".join([", ".join(supported[:-1]), supported[-1]] if supported[1:] else supported)
            raise BuildFailed(
                f"PyTorch {version} needs Python {names}, which is neither on this machine nor could be fetched; "
                "install it, or name an interpreter in FLASHPOINT_PYTHONS.",
                step=FINDING,
            )
        return chosen

    def _build(
        self,
        installer: Installer,
        wanted: Wanted,
        resolved: Resolved,
        lock: str,
        target: Path,
        stop: Callable[[], bool],
        lock_fd: int,
    ) -> Environment:
        self._clean(target.name)
        self._require_space(wanted, resolved)
        aside = self.folder / ".aside" / f"{target.name}.{uuid.uuid4().hex[:8]}"
        try:
            self.say(f"Installing PyTorch {wanted.version} and {len(resolved.packages) - 1} other packages.")
            python = installer.install(wanted, resolved, aside, stop, lock_fd)
            self.say(f"Importing PyTorch {wanted.version} in its new environment.")
            found = probe(
                python, environ=self.environ, stop=stop, new=f"PyTorch {wanted.version}", keep_open=(lock_fd,)
            )
            self._require_version(wanted, found)
            (aside / "lock.txt").write_text(lock, encoding="utf-8")
            made = _environment(
                target.name, target, target / "bin" / "python", found, lock, size_of(aside), reused=False
            )
            made.write(aside)
            if target.exists():
                self._discard(target)  # damaged, or without its Python: read_ready refused it
            aside.rename(target)
        except OSError as error:
            raise BuildFailed(
                f"The environment of PyTorch {wanted.version} could not be stored: {error.strerror or error}.",
                step="storing the environment",
            ) from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return made

    def _require_space(self, wanted: Wanted, resolved: Resolved) -> None:
        cuda = any(line.startswith(("nvidia-", "triton")) for line in resolved.packages)
        needed = 8 * GIB if cuda else 3 * GIB
        free = self.disk_free(self.folder)
        if free < needed:
            raise BuildFailed(
                f"PyTorch {wanted.version} needs about {needed // GIB} GiB and {free / GIB:.1f} GiB are free where "
                "environments are kept; remove some builds, or set FLASHPOINT_DATA to a folder on a larger disk.",
                step=SPACE,
            )

    def _require_version(self, wanted: Wanted, found: Probe) -> None:
        got = Version(found.build.version)
        if got.public != wanted.version.public:
            raise BuildFailed(
                f"The package torch {wanted.version} says that it is {got}; the package source is not to be trusted.",
                step="importing torch",
            )

    def _clean(self, own: str) -> None:
        """Remove what builders that are gone left behind; those at work hold their lock, and ``own`` is ours."""
        for left in (self.folder / ".aside").iterdir():
            name = left.name.partition(".")[0]
            with try_lock(self.folder / ".locks" / name) as fd:
                if fd is not None or name == own:
                    shutil.rmtree(left, ignore_errors=True)

    def _discard(self, target: Path) -> None:
        """Out of sight in one step, then deleted, so that nobody finds half of it."""
        trash = self.folder / ".aside" / f"{target.name}.{uuid.uuid4().hex[:8]}"
        trash.parent.mkdir(exist_ok=True)
        target.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)


def _environment(
    name: str, path: Path, python: Path, found: Probe, lock: str, size_bytes: int, *, reused: bool
) -> Environment:
    return Environment(name, path, python, found.python_version, found.build, lock, found.facts, size_bytes, reused)


def _unsupported(version: Version, python: str, supported: Sequence[str]) -> UserError:
    return UserError(f"PyTorch {version} has no wheels for Python {python[:40]}; it supports {', '.join(supported)}.")


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()[:24]
