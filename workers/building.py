"""The package steps of an environment: finding out what to install, and installing it, with uv."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from core.errors import BuildFailed
from core.versions import companions_for
from workers.backends import Backend, Unreachable, unreachable
from workers.pythons import Python
from workers.sources import Sources
from workers.uvrun import Finished, run, uv_command

RESOLVE_S = 300.0
INSTALL_S = 3600.0  # several GB over a slow line
ASK_BACKEND_S = 15.0
CONNECT_S = 5

RESOLVING, INSTALLING = "resolving packages", "installing packages"


@dataclass(frozen=True)
class Wanted:
    """What an environment is to hold: a PyTorch, extra packages of the suites, a Python."""

    version: Version
    extras: tuple[str, ...]
    python: Python

    @property
    def requirements(self) -> tuple[str, ...]:
        return (f"torch=={self.version}", *companions_for(self.version), *self.extras)


@dataclass(frozen=True)
class Resolved:
    """``packages`` as sorted ``name==version`` lines, and the backend they were found with."""

    packages: tuple[str, ...]
    backend: str


class Installer:
    """uv with this machine's package sources."""

    def __init__(self, sources: Sources, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
        self.sources, self.environ, self.say = sources, environ, say

    def resolve(self, wanted: Wanted, backend: Backend, stop: Callable[[], bool]) -> Resolved:
        """The locked packages. Asks PyTorch's own index first where ``backend`` says so. BuildFailed, Stopped."""
        asking = backend.forced or not self.sources.no_index  # who forbids indexes means that one too
        if backend.name and asking and not self._has_wheel(wanted, backend.name):
            found = self._ask_backend(wanted, backend, stop)
            if found is not None:
                return found
        finished, packages = self._compile(wanted, "", RESOLVE_S, {}, stop)
        if packages is None:
            raise BuildFailed(self._why_unresolved(wanted, finished), step=RESOLVING, log=finished.tail())
        return Resolved(packages, "")

    def install(self, wanted: Wanted, resolved: Resolved, folder: Path, stop: Callable[[], bool], lock_fd: int) -> Path:
        """A virtual environment in ``folder`` with exactly these packages; its interpreter. BuildFailed, Stopped."""
        env = self.sources.environment(self.environ)
        made = run(
            [*uv_command("venv"), "--python", str(wanted.python.path), "--relocatable", str(folder)],
            env=env, cwd=folder.parent, deadline_s=RESOLVE_S, stop=stop, keep_open=(lock_fd,),
        )  # fmt: skip
        if not made.ok:
            raise BuildFailed(
                self._why_not_installed(f"A virtual environment of Python {wanted.python.version}", made),
                step="making the virtual environment",
                log=made.tail(),
            )
        python = folder / "bin" / "python"
        lock = folder / "lock.txt"
        lock.write_text("\n".join(resolved.packages) + "\n", encoding="utf-8")
        installed = run(
            [
                *uv_command("pip", "install"), "--python", str(python), "--no-deps", "--only-binary", "torch",
                *self.sources.options(), *_backend_options(resolved.backend), "-r", str(lock),
            ],
            env=env, cwd=folder.parent, deadline_s=INSTALL_S, stop=stop, keep_open=(lock_fd,),
        )  # fmt: skip
        if not installed.ok:
            raise BuildFailed(
                self._why_not_installed(f"PyTorch {wanted.version}", installed), step=INSTALLING, log=installed.tail()
            )
        return python

    def fetch_python(self, minors: Sequence[str], stop: Callable[[], bool]) -> Path | None:
        """The interpreter of a managed Python that uv fetched, None when it cannot be had."""
        quick = {"UV_PYTHON_DOWNLOADS": "manual", "UV_HTTP_RETRIES": "0", "UV_HTTP_CONNECT_TIMEOUT": str(CONNECT_S)}
        env = self.sources.environment(self.environ) | quick
        with tempfile.TemporaryDirectory(prefix="flashpoint-uv-") as folder:
            for minor in reversed(minors):
                self.say(f"No Python {minor} is on this machine; asking for one.")
                got = run(
                    [*uv_command("python", "install"), minor],
                    env=env, cwd=Path(folder), deadline_s=RESOLVE_S, stop=stop,
                )  # fmt: skip
                if got.ok:
                    where = run(
                        [*uv_command("python", "find"), "--managed-python", minor],
                        env=env, cwd=Path(folder), deadline_s=RESOLVE_S, stop=stop,
                    )  # fmt: skip
                    return Path(where.output.strip().splitlines()[-1]) if where.ok else None
                if unreachable(got):
                    return None
        return None

    def _has_wheel(self, wanted: Wanted, flavour: str) -> bool:
        """Whether a find-links folder has this very build, so that nobody need be asked for it."""
        local = wanted.version.local or flavour
        start = f"torch-{wanted.version.public}+{local}-cp{wanted.python.minor.replace('.', '')}-"
        return any(name.startswith(start) for name in self.sources.local_wheels())

    def _ask_backend(self, wanted: Wanted, backend: Backend, stop: Callable[[], bool]) -> Resolved | None:
        """None when the configured sources are to be asked instead."""
        what = f"PyTorch's {backend.name} wheels"
        if backend.forced:
            finished, packages = self._compile(wanted, backend.name, RESOLVE_S, {}, stop)
            if packages is None:
                why = "could not be reached" if unreachable(finished) else f"have no {wanted.version} for this Python"
                raise BuildFailed(
                    f"{what}, which FLASHPOINT_TORCH_BACKEND demands, {why} (Python {wanted.python.version}); "
                    "set it to auto or off to use the configured package sources.",
                    step=RESOLVING,
                    log=finished.tail(),
                )
            return Resolved(packages, backend.name)
        if Unreachable.lately(backend.name):
            self.say(f"{what} could not be reached a while ago; using the configured package sources.")
            return None
        quick = {
            "UV_HTTP_TIMEOUT": str(CONNECT_S),
            "UV_HTTP_CONNECT_TIMEOUT": str(CONNECT_S),
            "UV_HTTP_RETRIES": "0",
        }
        finished, packages = self._compile(wanted, backend.name, ASK_BACKEND_S, quick, stop)
        if packages is not None:
            return Resolved(packages, backend.name)
        if unreachable(finished):
            Unreachable.remember(backend.name)
            self.say(f"{what} cannot be reached ({finished.seconds:.1f} s); using the configured package sources.")
        else:
            self.say(f"{what} have no {wanted.version} that fits; using the configured package sources.")
        return None

    def _compile(
        self, wanted: Wanted, backend: str, deadline_s: float, extra: Mapping[str, str], stop: Callable[[], bool]
    ) -> tuple[Finished, tuple[str, ...] | None]:
        with tempfile.TemporaryDirectory(prefix="flashpoint-uv-") as place:
            folder = Path(place)
            (folder / "wanted.in").write_text("\n".join(wanted.requirements) + "\n", encoding="utf-8")
            finished = run(
                [
                    *uv_command("pip", "compile"), "--no-header", "--no-annotate", "--quiet",
                    "--python", str(wanted.python.path), "--only-binary", "torch",
                    *self.sources.options(), *self.sources.constraint_options(), *_backend_options(backend),
                    "--output-file", "lock.txt", "wanted.in",
                ],
                env={**self.sources.environment(self.environ), **extra}, cwd=folder, deadline_s=deadline_s, stop=stop,
            )  # fmt: skip
            if not finished.ok:
                return finished, None
            lines = (line.strip() for line in (folder / "lock.txt").read_text(encoding="utf-8").splitlines())
            return finished, tuple(sorted(line for line in lines if line and line[0] not in "#-"))

    def _why_unresolved(self, wanted: Wanted, finished: Finished) -> str:
        said, torch = finished.flat, f"PyTorch {wanted.version}"
        if finished.code is None:
            return f"Resolving {torch} took longer than {RESOLVE_S:.0f} s; look at the network and try again."
        if unreachable(finished):
            return f"{torch} could not be looked up: {self.sources.in_words()} did not answer; look at the network."
        if f"you require torch=={wanted.version} and torch" in said and self.sources.constraints:
            return f"{torch} is ruled out by the constraints that pip is configured with here; choose another version."
        if "no version of torch==" in said or "torch was not found" in said:
            return f"{torch} does not exist: {self.sources.in_words()} had no such version; check the number."
        if "no wheels with a matching" in said:
            return (
                f"{torch} has no wheel for Python {wanted.python.minor} on {os.uname().sysname} {os.uname().machine}; "
                "choose another version or name another Python."
            )
        return f"No set of packages fits {torch} with Python {wanted.python.version}; the log has the reason."

    def _why_not_installed(self, what: str, finished: Finished) -> str:
        if finished.code is None:
            return f"{what} could not be installed within {INSTALL_S / 60:.0f} min; look at the network and try again."
        if "No space left" in finished.flat or "os error 28" in finished.flat:
            return f"{what} could not be installed: no space is left on the disk; remove environments or free some."
        if unreachable(finished):
            return f"{what} could not be installed: {self.sources.in_words()} did not answer; look at the network."
        if "ash mismatch" in finished.flat:
            return f"{what} could not be installed: a package is not what its index promises (hash mismatch)."
        return f"{what} could not be installed; the log has the reason."


def _backend_options(backend: str) -> list[str]:
    return ["--torch-backend", backend] if backend else []
