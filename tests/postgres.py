"""A PostgreSQL server of the tests' own, from Debian's package: in a temporary folder, on a unix socket, no network."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def find_programs() -> Path | None:
    """The folder of initdb and pg_ctl, the newest version first; None when PostgreSQL is not installed."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    for folder in [*installed, *([Path(on_path).resolve().parent] if on_path else [])]:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    return None


def unprivileged_user() -> str | None:
    """Whom to run the server as: PostgreSQL refuses root. None stands for the present user."""
    return "postgres" if os.getuid() == 0 else None


@contextmanager
def server(programs: Path) -> Iterator[str]:
    """Starts a server and gives the address of its maintenance database; stops it and removes its files at the end."""
    user = unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="fp-pg-"))
    if user:
        account = pwd.getpwnam(user)
        os.chown(folder, account.pw_uid, account.pw_gid)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")} | {"HOME": str(folder)}

    def call(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [programs / program, *arguments],
            user=user,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a pipe would stay open in the server
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            log = folder / "log"
            raise RuntimeError(f"{program} failed: {done.stderr or (log.read_text() if log.exists() else '')}")

    data, log = str(folder / "data"), str(folder / "log")
    try:
        call("initdb", "-D", data, "-U", "flashpoint", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        options = f"-c listen_addresses='' -k {folder} -c fsync=off -c max_connections=60"
        call("pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://flashpoint@/postgres?host={folder}"
        finally:
            call("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
