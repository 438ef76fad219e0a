"""A PostgreSQL server of the tests' own, from Debian's package: in a temporary folder, on a unix socket, no network."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def find_programs() -> Path | None:
    """The folder of initdb and postgres, the newest version first; None when PostgreSQL is not installed."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    for folder in [*installed, *([Path(on_path).resolve().parent] if on_path else [])]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def unprivileged_user() -> str | None:
    """Whom to run the server as: PostgreSQL refuses root. None stands for the present user."""
    return "postgres" if os.getuid() == 0 else None


@contextmanager
def server(programs: Path) -> Iterator[str]:
    """Starts a server and gives the address of its maintenance database; stops it and removes its files at the end.

    The server is a child that the kernel ends with this process: a test run that is killed leaves none behind.
    """
    user = unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="fp-pg-"))
    if user:
        account = pwd.getpwnam(user)
        os.chown(folder, account.pw_uid, account.pw_gid)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    environment = {**kept, "HOME": str(folder)}
    data = folder / "data"
    try:
        _init(programs, data, user, environment)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *_ends_with_us(),
                    programs / "postgres",
                    "-D",
                    data,
                    "-k",
                    folder,
                    "-c",
                    "listen_addresses=",
                    "-c",
                    "fsync=off",
                ],
                user=user,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            _wait_until_ready(programs, process, folder)
            yield f"postgresql+psycopg://flashpoint@/postgres?host={folder}"
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed again
            process.wait(30)
    finally:
        shutil.rmtree(folder)


def _init(programs: Path, data: Path, user: str | None, environment: dict[str, str]) -> None:
    wanted = ["-U", "flashpoint", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
    done = subprocess.run(
        [programs / "initdb", "-D", data, *wanted],
        user=user,
        cwd=data.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stderr}")


def _wait_until_ready(programs: Path, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + 60
    while subprocess.run([programs / "pg_isready", "-q", "-h", folder], check=False).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL did not start: {(folder / 'log').read_text(errors='replace')}")
        time.sleep(0.05)


def _ends_with_us() -> tuple[str, ...]:
    setpriv = shutil.which("setpriv")  # of util-linux; without it a killed test run leaves its server behind
    return (setpriv, "--pdeathsig", "QUIT") if setpriv else ()
