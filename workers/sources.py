"""Where packages come from: the settings that pip itself is configured with, handed on to uv.

uv reads none of pip's configuration. Addresses with credentials travel in the environment of uv and never in its
arguments, where every user of the machine could read them; nothing here is ever logged.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from core.errors import UserError

#: pip's settings that are handed on; several values in one are parted by white space.
MANY = ("extra-index-url", "find-links", "trusted-host", "constraint")
ONE = ("index-url", "no-index", "cert", "client-cert", "proxy", "timeout", "default-timeout")
#: What else uv may see of the worker's environment: places, proxies, its own settings; no database, no broker.
PASSED_ON = (
    *(
        "PATH",
        "HOME",
        "USER",
        "TMPDIR",
        "LANG",
        "LC_ALL",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "NETRC",
    ),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "LD_LIBRARY_PATH", "CC", "CXX"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *(
        "UV_CACHE_DIR",
        "UV_DEFAULT_INDEX",
        "UV_INDEX",
        "UV_INDEX_URL",
        "UV_EXTRA_INDEX_URL",
        "UV_FIND_LINKS",
        "UV_OFFLINE",
    ),
    *("UV_HTTP_TIMEOUT", "UV_SYSTEM_CERTS", "UV_NATIVE_TLS", "UV_KEYRING_PROVIDER", "UV_INSECURE_HOST", "UV_LINK_MODE"),
    *("UV_PYTHON_INSTALL_DIR", "UV_PYTHON_INSTALL_MIRROR", "UV_CONCURRENT_DOWNLOADS", "UV_INDEX_STRATEGY"),
)
_TRUE = ("1", "true", "yes", "on", "y", "t")


@dataclass(frozen=True, repr=False)
class Sources:
    """Package sources and how to reach them. Never print one: addresses may hold passwords."""

    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    trusted_hosts: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    cert: str = ""
    client_cert: str = ""
    proxy: str = ""
    timeout: str = ""

    def options(self) -> list[str]:
        """Options for ``uv pip``; they hold no address of a server."""
        options = [word for place in self.find_links if not _is_remote(place) for word in ("--find-links", place)]
        options += [word for host in self.trusted_hosts for word in ("--allow-insecure-host", host)]
        if self.no_index:
            options.append("--no-index")
        if self.extra_index_urls:
            options += ["--index-strategy", "unsafe-best-match"]  # pip's: the best version of all indexes
        return options

    def constraint_options(self) -> list[str]:
        return [word for file in self.constraints for word in ("--constraints", file)]

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment for uv: what it needs of ``environ``, with pip's settings on top."""
        remote = [place for place in self.find_links if _is_remote(place)]
        given = {
            "UV_DEFAULT_INDEX": self.index_url,
            "UV_INDEX": " ".join(self.extra_index_urls),
            "UV_FIND_LINKS": ",".join(remote),
            "SSL_CERT_FILE": self.cert,
            "SSL_CLIENT_CERT": self.client_cert,
            "ALL_PROXY": self.proxy,
            "UV_HTTP_TIMEOUT": self.timeout,
        }
        kept = {name: environ[name] for name in PASSED_ON if name in environ}
        return {**kept, **{name: value for name, value in given.items() if value}, "UV_PYTHON_DOWNLOADS": "never"}

    def local_wheels(self) -> list[str]:
        """File names of the wheels in those find-links places that are folders of this machine."""
        names: list[str] = []
        for place in self.find_links:
            folder = Path(unquote(urlsplit(place).path) if place.startswith("file://") else place)
            if folder.is_dir():
                names += sorted(entry.name for entry in folder.iterdir() if entry.suffix == ".whl")
        return names

    def in_words(self) -> str:
        """Where was looked, without addresses."""
        places = (
            [] if self.no_index else ["the package index" if not self.index_url else "the configured package index"]
        )
        if self.extra_index_urls and not self.no_index:
            count = len(self.extra_index_urls)
            places.append("1 further index" if count == 1 else f"{count} further indexes")
        if self.find_links:
            places.append("the find-links folder" if len(self.find_links) == 1 else "the find-links folders")
        return " and ".join([", ".join(places[:-1]), places[-1]] if len(places) > 1 else places) or "no place at all"


def sources_from_pip(environ: Mapping[str, str], prefix: Path = Path(sys.prefix)) -> Sources:
    """What pip of this installation is configured with: its files, and PIP_* variables above them.

    Later ones override earlier ones, as in pip: global files, the user's, the site's (in ``prefix``), PIP_CONFIG_FILE,
    variables; within a file the section ``install`` overrides ``global``. UserError for a file that cannot be read.
    """
    found: dict[str, str] = {}
    for file in _config_files(environ, prefix):
        found.update(_read(file))
    for name in (*MANY, *ONE):
        value = environ.get("PIP_" + name.upper().replace("-", "_"), "").strip()
        if value:
            found[name] = value
    lists = {name: tuple(dict.fromkeys(found.get(name, "").split())) for name in MANY}
    return Sources(
        index_url=found.get("index-url", ""),
        extra_index_urls=lists["extra-index-url"],
        find_links=tuple(_place(place) for place in lists["find-links"]),
        no_index=found.get("no-index", "").lower() in _TRUE,
        trusted_hosts=lists["trusted-host"],
        constraints=tuple(_place(place) for place in lists["constraint"]),
        cert=_place(found["cert"]) if found.get("cert") else "",
        client_cert=_place(found["client-cert"]) if found.get("client-cert") else "",
        proxy=found.get("proxy", ""),
        timeout=_whole_seconds(found.get("timeout") or found.get("default-timeout", "")),
    )


def _config_files(environ: Mapping[str, str], prefix: Path) -> list[Path]:
    chosen = environ.get("PIP_CONFIG_FILE", "")
    if chosen == os.devnull:
        return []
    home = Path(environ.get("HOME") or Path.home())
    shared = [Path(folder) for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep) if folder]
    own = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [folder / "pip" / "pip.conf" for folder in reversed(shared)] + [Path("/etc/pip.conf")]
    if sys.platform == "darwin":
        files.append(Path("/Library/Application Support/pip/pip.conf"))
        if (home / "Library/Application Support/pip").is_dir():
            own = home / "Library/Application Support"
    files += [home / ".pip" / "pip.conf", own / "pip" / "pip.conf", prefix / "pip.conf"]
    return files + ([Path(chosen)] if chosen else [])


def _read(file: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"pip's settings in '{file}' cannot be read ({error}); mend the file.") from error
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise UserError(f"pip's settings in '{file}' are not in the form of pip's files; mend the file.") from error
    found: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            for key, value in parser.items(section):
                name = key.lower().replace("_", "-").removeprefix("--")
                if name in MANY or name in ONE:
                    found[name] = value.strip()
    return found


def _is_remote(place: str) -> bool:
    return "://" in place and not place.startswith("file://")


def _place(text: str) -> str:
    """A file or folder as a full path, since uv is started elsewhere; an address as it is."""
    return text if "://" in text else os.path.abspath(os.path.expanduser(text))


def _whole_seconds(text: str) -> str:
    try:
        return str(max(1, round(float(text)))) if text else ""
    except ValueError:
        return ""  # pip itself refuses it; uv keeps its default
