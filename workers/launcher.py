"""Starts measured processes under a supervisor, with a scrubbed environment, from a folder that holds only the
suites.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import bench_suites
from core.errors import RunFailed
from workers import supervisor

#: What a measured process may know of the worker's environment; never the database, the broker or a secret.
PASSED_ON = (
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_HOME",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
)


def stage_suites(folder: Path) -> Path:
    """Copies ``bench_suites`` into a folder of its own below ``folder``, named by content; returns the folder to start
    in.
    """
    source = Path(bench_suites.__file__).parent
    files = sorted(p for p in source.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(source)}\0".encode() + file.read_bytes())
    target = folder / digest.hexdigest()[:16]
    if not target.exists():
        aside = folder / f".{target.name}.{os.getpid()}"
        shutil.rmtree(aside, ignore_errors=True)
        shutil.copytree(source, aside / "bench_suites", ignore=shutil.ignore_patterns("__pycache__"))
        try:
            aside.rename(target)
        except OSError:
            shutil.rmtree(aside)  # another worker staged the same content first
    return target


def scrubbed(python: Path, private: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a measured process: one thread, private caches and temporary files, the environment's bin
    first.
    """
    kept = {name: environ[name] for name in PASSED_ON if name in environ}
    for name in ("cache", "tmp", "home"):
        (private / name).mkdir(parents=True, exist_ok=True)
    return {
        **kept,
        "PATH": os.pathsep.join([str(python.parent), environ.get("PATH", os.defpath)]),
        "HOME": str(private / "home"),
        "TMPDIR": str(private / "tmp"),
        "XDG_CACHE_HOME": str(private / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(private / "cache" / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def sweep(private: Path, seconds: float = 5.0) -> list[int]:
    """Kills every process whose environment names this private folder; returns those that are left. Linux only."""
    mark = f"={private}/".encode()
    deadline = time.monotonic() + seconds
    while True:
        found = [int(entry.parent.name) for entry in Path("/proc").glob("[0-9]*/environ") if _holds(entry, mark)]
        if not found or time.monotonic() > deadline:
            return found
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _holds(environ: Path, mark: bytes) -> bool:
    try:
        return mark in environ.read_bytes()
    except OSError:
        return False  # it ended, or is somebody else's


class Launcher:
    """The supervisor of one run, as its worker sees it. A context manager: leaving it ends every process."""

    def __init__(self, suites: Path, private: Path, environ: Mapping[str, str]) -> None:
        self.suites = suites
        self.private = private
        self.environ = environ
        self.exits: dict[str, int] = {}
        self.survivors: list[int] | None = None
        self.ended = threading.Event()
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(Path(supervisor.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.reader = threading.Thread(target=self._read, name="supervisor", daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if "exited" in said:
                self.exits[said["exited"]] = int(said["code"])
            elif "stopped" in said:
                self.survivors = [int(pid) for pid in said["survivors"]]
        self.ended.set()

    def _tell(self, order: dict[str, object]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise RunFailed("the supervisor of the run is gone; queue the run again") from error

    def start(self, python: Path, name: str, arguments: Sequence[str]) -> Callable[[], str | None]:
        """Starts ``python -m bench_suites.kit ARGUMENTS``; the returned function tells why the process is gone, or
        None.

        Raises RunFailed when the supervisor is gone.
        """
        self._tell(
            {
                "start": name,
                "argv": [str(python), "-E", "-s", "-B", "-u", "-m", "bench_suites.kit", *arguments],
                "env": scrubbed(python, self.private, self.environ),
                "cwd": str(self.suites),
                "log": str(self.private / "output.log"),
            }
        )
        return lambda: self._gone(name)

    def _gone(self, name: str) -> str | None:
        if name in self.exits:
            code = self.exits[name]
            return f"killed by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
        return "its supervisor is gone" if self.ended.is_set() else None

    def stop(self) -> list[int]:
        """Ends all processes of the run; returns the ids of those that could not be ended (normally none)."""
        if not self.ended.is_set():
            try:
                self._tell({"stop": True})
            except RunFailed:
                self.process.kill()
        self.process.wait(timeout=30)
        self.ended.wait(timeout=5)
        # A supervisor that was itself killed could end nobody; its descendants are known by the run's private folder.
        return sweep(self.private) if self.survivors is None else self.survivors

    def __enter__(self) -> Launcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
