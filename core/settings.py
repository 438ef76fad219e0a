"""The settings: environment variables FLASHPOINT_*, read once by an entry point and passed on as a frozen value."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from core.addresses import broker_address, postgresql_address
from core.errors import UserError

PATH_SHOWN = 80  # characters of a path that a sentence repeats
SOCKET_LIMIT = 100  # bytes; a unix socket's path may hold about 107, the broker's own suffixes need a few
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
_BACKEND = re.compile(r"(auto|cpu|off|cu\d{2,3})\Z")


@dataclass(frozen=True)
class Setting:
    """One row of the documented table: the variable, its default in words and what it means."""

    name: str
    default: str
    meaning: str


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "FLASHPOINT_DATA",
        "data/ in a checkout, else $XDG_DATA_HOME/flashpoint or ~/.local/share/flashpoint",
        "The folder that holds the database, the environments, the spool and the broker's file.",
    ),
    Setting(
        "FLASHPOINT_DATABASE_URL",
        "the SQLite file flashpoint.db in the data folder",
        "Where results live: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME.",
    ),
    Setting(
        "FLASHPOINT_BROKER_URL",
        "the embedded broker's private unix socket",
        "The Redis that rings the workers: redis://, rediss:// or redis+socket:///PATH.",
    ),
    Setting(
        "FLASHPOINT_TORCH_BACKEND",
        "auto",
        "Which PyTorch wheels to ask for: auto (by the node's hardware), cpu, cuNNN, or off (configured sources only).",
    ),
    Setting("FLASHPOINT_NODE_NAME", "the host name", "What this machine is called as a node."),
    Setting("FLASHPOINT_PORT", "8501", "The port of the dashboard on 127.0.0.1."),
    Setting(
        "FLASHPOINT_FIRST_RUN",
        "on",
        "Whether `flashpoint up` queues a first comparison on an empty database: on or off.",
    ),
    Setting(
        "FLASHPOINT_PYTHONS",
        "those found on the machine",
        f"Python interpreters to consider for environments, full paths joined by '{os.pathsep}'.",
    ),
)


@dataclass(frozen=True)
class Settings:
    """All settings, checked; paths are absolute. The two addresses may hold a password, so they are never logged."""

    data: Path
    database_url: str
    broker_url: str
    torch_backend: str
    node_name: str
    port: int
    pythons: tuple[Path, ...]
    broker_embedded: bool
    first_run: bool = True

    @property
    def database_path(self) -> Path | None:
        """The SQLite file, None when the database is a server."""
        prefix = "sqlite:///"
        return Path(self.database_url.removeprefix(prefix)) if self.database_url.startswith(prefix) else None

    @property
    def broker_socket(self) -> Path | None:
        """The broker's unix socket, None when it is reached over the network."""
        parts = urlsplit(self.broker_url)
        return Path(unquote(parts.path)) if parts.scheme == "redis+socket" else None

    @property
    def environments_dir(self) -> Path:
        return self.data / "environments"

    @property
    def spool_dir(self) -> Path:
        return self.data / "spool"

    @property
    def runs_dir(self) -> Path:
        return self.data / "runs"

    @property
    def broker_dir(self) -> Path:
        """Where the embedded broker keeps its append-only file; its socket lies in a shorter, private place."""
        return self.data / "broker"


def settings_from(environ: Mapping[str, str]) -> Settings:
    """The settings of these environment variables; an empty value counts as not set.

    Raises UserError with the variable, its value and what to do.
    """
    given = {setting.name: environ.get(setting.name, "").strip() for setting in SETTINGS}
    for name, value in given.items():
        if any(ord(character) < 32 for character in value):
            raise UserError(f"{name} is {value!r}, which holds a control character; write it on one line.")
    home = Path(environ.get("HOME") or Path.home())
    data = _absolute(given["FLASHPOINT_DATA"], home) if given["FLASHPOINT_DATA"] else _default_data(environ, home)
    if _asked("FLASHPOINT_DATA", data, Path.exists) and not data.is_dir():
        raise UserError(f"FLASHPOINT_DATA is '{data}', which is not a folder; name a folder or remove the file.")
    return Settings(
        data=data,
        database_url=_database_url(given["FLASHPOINT_DATABASE_URL"], data, home),
        broker_url=_broker_url(given["FLASHPOINT_BROKER_URL"], data, environ.get("TMPDIR") or "/tmp"),
        torch_backend=_torch_backend(given["FLASHPOINT_TORCH_BACKEND"]),
        node_name=_node_name(given["FLASHPOINT_NODE_NAME"]),
        port=_port(given["FLASHPOINT_PORT"]),
        pythons=_pythons(given["FLASHPOINT_PYTHONS"], home),
        broker_embedded=not given["FLASHPOINT_BROKER_URL"],
        first_run=_switch("FLASHPOINT_FIRST_RUN", given["FLASHPOINT_FIRST_RUN"] or "on"),
    )


def _absolute(text: str, home: Path) -> Path:
    """Absolute without following links: a venv's interpreter is a link whose own place matters."""
    path = home / text[2:] if text.startswith("~/") else home if text == "~" else Path(text)
    return Path(os.path.abspath(path))


def _asked(name: str, path: Path, question: Callable[[Path], bool]) -> bool:
    """The answer of the disk about a path. Raises UserError for a path that no disk takes, such as a name too long."""
    try:
        return question(path)
    except OSError as error:
        shown = str(path) if len(str(path)) <= PATH_SHOWN else f"{str(path)[:PATH_SHOWN]}…"
        raise UserError(
            f"{name} names '{shown}', which cannot be looked at ({error.strerror}); choose another path."
        ) from error


def _default_data(environ: Mapping[str, str], home: Path) -> Path:
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").is_file():
        return checkout / "data"
    share = environ.get("XDG_DATA_HOME", "")
    return (Path(share) if os.path.isabs(share) else home / ".local" / "share") / "flashpoint"


def _database_url(text: str, data: Path, home: Path) -> str:
    if not text:
        return f"sqlite:///{data / 'flashpoint.db'}"
    scheme, mark, rest = text.partition("://")
    if mark and scheme in ("postgresql", "postgres", "postgresql+psycopg") and rest:
        return f"postgresql+psycopg://{postgresql_address(rest)}"
    if scheme == "sqlite" and rest.startswith("/") and rest.strip("/") not in ("", ":memory:") and "?" not in rest:
        return f"sqlite:///{_absolute(rest[1:], home)}"
    raise UserError(  # the rest of the address is not repeated: it may hold a password
        f"FLASHPOINT_DATABASE_URL starts with {scheme[:20]!r} and names no database that is known; "
        "write sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."
    )


def _broker_url(text: str, data: Path, tmp: str) -> str:
    if not text:
        return f"redis+socket://{_socket_path(data, tmp)}"
    parts = broker_address(text)
    if parts.scheme == "redis+socket" and len(os.fsencode(unquote(parts.path))) >= SOCKET_LIMIT:
        raise UserError(
            f"FLASHPOINT_BROKER_URL names the socket '{parts.path[:SOCKET_LIMIT]}', which is not shorter than "
            f"{SOCKET_LIMIT} bytes; choose a shorter path."
        )
    return text


def _socket_path(data: Path, tmp: str) -> Path:
    """A short path that is the same for every process of this user with this data folder."""
    folder = f"flashpoint-{os.getuid()}-{hashlib.sha256(os.fsencode(data)).hexdigest()[:8]}"
    path = Path(os.path.abspath(tmp)) / folder / "broker.sock"
    return path if len(os.fsencode(path)) < SOCKET_LIMIT else Path("/tmp") / folder / "broker.sock"


def _torch_backend(text: str) -> str:
    backend = text or "auto"
    if not _BACKEND.match(backend):
        raise UserError(f"FLASHPOINT_TORCH_BACKEND is {backend!r}; it must be auto, cpu, off or cuNNN such as cu128.")
    return backend


def _node_name(text: str) -> str:
    if text and not _NODE_NAME.match(text):
        raise UserError(
            f"FLASHPOINT_NODE_NAME is {text[:80]!r}; use at most 63 letters, digits, dots, hyphens and underscores, "
            "starting with a letter or digit."
        )
    if text:
        return text
    host = re.sub(r"[^A-Za-z0-9._-]+", "-", platform.node()).lstrip("._-")[:63]
    return host or "node"


def _port(text: str) -> int:
    port = text or "8501"
    if not re.match(r"[0-9]{1,5}\Z", port) or not 1 <= int(port) <= 65535:
        raise UserError(f"FLASHPOINT_PORT is {port[:20]!r}; it must be a number from 1 to 65535.")
    return int(port)


def _switch(name: str, text: str) -> bool:
    if text not in ("on", "off"):
        raise UserError(f"{name} is {text[:20]!r}; it must be on or off.")
    return text == "on"


def _pythons(text: str, home: Path) -> tuple[Path, ...]:
    paths = tuple(_absolute(part.strip(), home) for part in text.split(os.pathsep) if part.strip())
    for path in paths:
        if not (_asked("FLASHPOINT_PYTHONS", path, Path.is_file) and os.access(path, os.X_OK)):
            raise UserError(
                f"FLASHPOINT_PYTHONS names '{path}', which is no program; name Python interpreters by full path."
            )
    return paths
