"""Build specs: what a person writes to name a PyTorch, parsed strictly, and the order of builds on charts.

A spec is one of ``2.13.0``, ``2.13.0+cpu``, ``2.14.0rc1``, ``2.16.0.dev20261130+cpu``, ``latest``, ``latest-1``,
``nightly``, ``nightly:2026-11-30``, ``existing:/path/to/python`` and ``wheel:/path/to.whl``. It is never passed on as
it came: what an installer sees is made from the parsed parts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from core.errors import UserError

ALLOWED = "write a release such as 2.13.0 or 2.13.0+cpu, or existing:/path/to/python"
LIMIT = 80  # characters of a version or a word
PATH_LIMIT = 1024
NAME_LIMIT = 255  # bytes of one file's or folder's name
FLOOR = Version("1.9")

_VERSION = re.compile(
    r"[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?((a|b|rc)[0-9]{1,3})?(\.post[0-9]{1,3})?(\.dev[0-9]{1,8})?"
    r"(\+[a-z0-9]{1,24}(\.[a-z0-9]{1,24}){0,3})?",
    re.ASCII,
)
_LATEST = re.compile(r"latest(?:-([0-9]{1,2}))?", re.ASCII)
_NIGHTLY = re.compile(r"nightly(?::([0-9]{4}-[0-9]{2}-[0-9]{2}))?", re.ASCII)
_PATH_SIGNS = frozenset("/._-+@=, ")  # besides letters and digits of any script


class Kind(StrEnum):
    RELEASE = "release"  # candidates too
    NIGHTLY = "nightly"
    LATEST = "latest"
    EXISTING = "existing"
    WHEEL = "wheel"


@dataclass(frozen=True)
class Spec:
    """One parsed spec; ``text`` is its canonical form, and parsing that gives the same spec again.

    ``version``: of a release or of a nightly named by its version, else None. ``offset``: how many releases before the
    latest. ``date``: the day of a nightly, None for the newest. ``path``: absolute, of an interpreter or a wheel.
    """

    kind: Kind
    text: str
    version: Version | None = None
    offset: int = 0
    date: date | None = None
    path: str | None = None

    def __str__(self) -> str:
        return self.text


def parse_spec(text: str) -> Spec:
    """The spec that ``text`` means; spaces around it do not count. UserError with one sentence for anything else."""
    text = text.strip(" ")
    if not text:
        raise UserError(f"The build spec is empty; {ALLOWED}.")
    for kind, ending in ((Kind.EXISTING, ""), (Kind.WHEEL, ".whl")):
        if text.startswith(f"{kind}:"):
            return _path_spec(kind, text, ending)
    if len(text) <= LIMIT:
        if found := _LATEST.fullmatch(text):
            offset = int(found[1] or 0)
            return Spec(Kind.LATEST, f"latest-{offset}" if offset else "latest", offset=offset)
        if found := _NIGHTLY.fullmatch(text):
            day = _day(found[1], text) if found[1] else None
            return Spec(Kind.NIGHTLY, f"nightly:{day}" if day else "nightly", date=day)
        if _VERSION.fullmatch(text):
            return _version_spec(text)
    raise UserError(f"The build spec {shown(text)} is not understood; {ALLOWED}.")


def require_supported(spec: Spec) -> Spec:
    """The spec itself when environments can be made of it now; UserError that says plainly what cannot yet."""
    if spec.kind in (Kind.LATEST, Kind.NIGHTLY, Kind.WHEEL):
        what = {"latest": "The newest release", "nightly": "A nightly build", "wheel": "A build from a wheel"}[
            spec.kind
        ]
        raise UserError(
            f"{what} ({shown(spec.text)}) cannot be installed by this version of Flashpoint yet; {ALLOWED}."
        )
    if spec.kind is Kind.RELEASE:
        pythons_for(spec.version or FLOOR)
    return spec


def _version_spec(text: str) -> Spec:
    version = Version(text)
    release = ".".join(str(part) for part in (*version.release, 0)[:3])
    rest = str(version.public)[len(version.base_version) :]  # rc1, .post1, .dev20261130
    canonical = Version(f"{release}{rest}{'+' + version.local if version.local else ''}")
    if version.dev is None:
        return Spec(Kind.RELEASE, str(canonical), version=canonical)
    return Spec(Kind.NIGHTLY, str(canonical), version=canonical, date=_day(str(version.dev), text))


def _day(digits: str, text: str) -> date:
    try:
        return date.fromisoformat(digits)
    except ValueError as error:
        raise UserError(
            f"The build spec {shown(text)} names no day of the calendar; write it as nightly:2026-11-30."
        ) from error


def _path_spec(kind: Kind, text: str, ending: str) -> Spec:
    path = text.partition(":")[2]
    example = f"{kind}:/path/to{ending or '/python'}"
    if len(path) > PATH_LIMIT:
        raise UserError(f"The path in {shown(text)} has {len(path)} characters; at most {PATH_LIMIT} are allowed.")
    if bad := next((c for c in path if not _harmless(c)), None):
        raise UserError(
            f"The path in {shown(text)} holds the character {shown(bad)}; "
            "only letters, digits, spaces and / . _ - + @ = , are allowed."
        )
    parts = path.split("/")
    if not path.startswith("/") or path.startswith("//") or ".." in parts or not parts[-1] or not path.endswith(ending):
        raise UserError(f"The build spec {shown(text)} needs a full path without '..'; write it as {example}.")
    if any(len(part.encode()) > NAME_LIMIT for part in parts):
        raise UserError(f"The path in {shown(text)} has a name longer than {NAME_LIMIT} bytes; no more are allowed.")
    clean = "/" + "/".join(part for part in parts if part not in ("", "."))
    return Spec(kind, f"{kind}:{clean}", path=clean)


def _harmless(character: str) -> bool:
    return character in _PATH_SIGNS or unicodedata.category(character)[0] in "LMN"


def shown(text: str) -> str:
    """A value for an error sentence: quoted, shortened, and with everything but plain ASCII escaped."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")


# -- order -------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def order_key(label: str) -> tuple[int, Version, str]:
    """Sort key of build labels and specs: releases in order, nightlies by date between them, local builds last.

    A nightly sorts before the release of its number and after all earlier ones. Local are builds from an existing
    interpreter (``2.13.0+cpu@3f2a91``), from a source tree (``2.14.0a0+gitabc1234``), and whatever is no version.
    """
    public, _, place = label.partition("@")
    try:
        version = Version(public)
    except InvalidVersion:
        return (2, Version("0"), label)
    return (1 if place or is_source_build(version) else 0, version, label)


def in_order(labels: Iterable[str]) -> list[str]:
    """The labels, oldest build first."""
    return sorted(labels, key=order_key)


def is_source_build(version: Version) -> bool:
    """Whether somebody built it from a source tree: ``+git...`` or the trunk's own ``a0``."""
    return (version.local or "").startswith("git") or (version.pre is not None and version.pre == ("a", 0))


# -- what a PyTorch needs ----------------------------------------------------------------------------------------------

#: From this PyTorch on, the CPythons that have wheels on the package index and that the kit runs on (3.9 and newer).
PYTHONS: tuple[tuple[Version, tuple[str, ...]], ...] = (
    (Version("1.9"), ("3.9",)),
    (Version("1.11"), ("3.9", "3.10")),
    (Version("1.13"), ("3.9", "3.10", "3.11")),
    (Version("2.2"), ("3.9", "3.10", "3.11", "3.12")),
    (Version("2.5"), ("3.9", "3.10", "3.11", "3.12", "3.13")),
    (Version("2.9"), ("3.10", "3.11", "3.12", "3.13", "3.14")),
)

#: The last of each release series, newest first, for when something must be chosen without asking anybody.
RELEASES = (
    *("2.15.0", "2.14.1", "2.13.0", "2.12.1", "2.11.0", "2.10.0", "2.9.1", "2.8.0", "2.7.1", "2.6.0", "2.5.1", "2.4.1"),
    *("2.3.1", "2.2.2", "2.1.2", "2.0.1", "1.13.1", "1.12.1", "1.11.0", "1.10.2", "1.9.1"),
)


def pythons_for(version: Version | str) -> tuple[str, ...]:
    """The CPythons, oldest first, that have wheels of this PyTorch; a version newer than the table gets its last row.

    Raises UserError for a PyTorch older than 1.9.
    """
    version = Version(version) if isinstance(version, str) else version
    rows = [pythons for since, pythons in PYTHONS if version.release >= since.release]
    if not rows:
        raise UserError(
            f"PyTorch {version} is older than 1.9, the oldest that Flashpoint can measure; choose 1.9.1 or newer."
        )
    return rows[-1]


def companions_for(version: Version | str) -> tuple[str, ...]:
    """Requirements besides torch itself that this PyTorch needs to be imported and to work.

    Wheels before 2.3 were built against numpy 1. Before 2.3 parts of torch import setuptools without declaring it, and
    1.10 fails with the distutils of setuptools 70.3 and newer.
    """
    version = Version(version) if isinstance(version, str) else version
    return ("numpy<2", "setuptools<70") if version.release < (2, 3) else ("numpy",)


def newest_for(pythons: Iterable[str]) -> tuple[str, ...]:
    """The known releases that one of these Pythons (``3.11``) supports, newest first."""
    have = set(pythons)
    return tuple(release for release in RELEASES if have.intersection(pythons_for(release)))
