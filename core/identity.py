"""Names and keys: case ids, series keys, environment names, hardware fingerprints.

Identity is made of explicit revisions and JSON scalars only, never of source hashes or ``repr``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.errors import UserError

Scalar = str | int | float | bool

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")
_BARE = re.compile(r'[^\s,\[\]="\\\x00-\x1f]([^,\[\]="\\\x00-\x1f]*[^\s,\[\]="\\\x00-\x1f])?\Z')
_GIB = 1024**3


@dataclass(frozen=True)
class CaseId:
    """The parts of ``suite/benchmark[axis=value,...]``; axes in the order of the benchmark's signature."""

    suite: str
    benchmark: str
    axes: tuple[tuple[str, Scalar], ...] = ()


def format_case(suite: str, benchmark: str, axes: Mapping[str, Scalar]) -> str:
    """The id of a case. Numbers and truth values are JSON; a text is bare unless it would read as something else.

    Raises ValueError for a name or a value that no id can hold (a bug of the caller).
    """
    for name in (suite, benchmark, *axes):
        if not _NAME.match(name):
            raise ValueError(f"{name!r} cannot be part of a case id")
    inside = ",".join(f"{axis}={_format_scalar(value)}" for axis, value in axes.items())
    return f"{suite}/{benchmark}[{inside}]" if inside else f"{suite}/{benchmark}"


def parse_case(text: str) -> CaseId:
    """The parts of a case id. Raises UserError when it is none."""
    head, bracket, inside = text.partition("[")
    suite, slash, benchmark = head.partition("/")
    if not (slash and _NAME.match(suite) and _NAME.match(benchmark)):
        raise _no_case(text)
    if not bracket:
        return CaseId(suite, benchmark)
    axes: dict[str, Scalar] = {}
    at = 0
    while True:
        axis, equals, _ = inside[at:].partition("=")
        if not equals or not _NAME.match(axis) or axis in axes:
            raise _no_case(text)
        axes[axis], at = _parse_scalar(inside, at + len(axis) + 1, text)
        if inside[at : at + 1] == ",":
            at += 1
        elif inside[at:] == "]":
            return CaseId(suite, benchmark, tuple(axes.items()))
        else:
            raise _no_case(text)


def case_matches(glob: str, case: str) -> bool:
    """Whether a glob names this case: all of its id, or what follows ``suite/``.

    Only ``*`` (any text) and ``?`` (one character) are wild; brackets are literal, because every id has them.
    """
    return _matches(glob, case) or _matches(glob, case.partition("/")[2])


def series_key(case: str, revision: int, variant: str, metric: str, node_class: str) -> str:
    """The canonical text of a series' identity: measurements with the same key differ in build alone."""
    return json.dumps([case, revision, variant, metric, node_class], ensure_ascii=False, separators=(",", ":"))


def environment_name(lock: str, python: str) -> str:
    """16 hex digits from the locked packages and the Python's full version; the order of the lines does not matter."""
    lines = sorted({line.strip() for line in lock.splitlines() if line.strip()})
    return _digest([python, *lines])


def node_fingerprint(cpu: str, threads: int, memory_bytes: int, devices: Mapping[str, str]) -> str:
    """16 hex digits that stay the same until somebody changes the hardware.

    ``devices`` maps device names (``cpu``, ``cuda:0``) to models. What changes at boot is left out: the host name, the
    kernel, addresses, the clock. The memory that a system reports is a little less than is built in and differs between
    boots and kernels, so it counts by the installed size only.
    """
    models = [f"{device}={_squeeze(model)}" for device, model in sorted(devices.items())]
    return _digest([_squeeze(cpu), str(threads), str(_installed_gib(memory_bytes)), *models])


def node_class(fingerprint: str, device: str) -> str:
    """What a series belongs to: this hardware and a kind of device (``cpu``, ``cuda``)."""
    return f"{fingerprint}/{device.partition(':')[0]}"


def _matches(glob: str, text: str) -> bool:
    """Whole-text match that goes back to the last star only: a regular expression of many stars could take for ever."""
    at = here = 0
    star, mark = -1, 0
    while here < len(text):
        if at < len(glob) and glob[at] == "*":
            star, mark = at, here
            at += 1
        elif at < len(glob) and glob[at] in ("?", text[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            mark += 1
            at, here = star + 1, mark
        else:
            return False
    return not glob[at:].strip("*")


def _format_scalar(value: Scalar) -> str:
    if isinstance(value, str):
        return value if _BARE.match(value) and _reads_as_text(value) else json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (bool, int, float)) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{value!r} cannot be an axis value; use text, a finite number, true or false")
    return json.dumps(value)


def _reads_as_text(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


def _parse_scalar(inside: str, at: int, text: str) -> tuple[Scalar, int]:
    """The value that starts at ``at`` and the position after it."""
    if inside[at : at + 1] == '"':
        try:
            value, end = json.JSONDecoder().raw_decode(inside, at)
        except ValueError:
            raise _no_case(text) from None
        return str(value), end
    end = next((i for i in range(at, len(inside)) if inside[i] in ",]"), len(inside))
    raw = inside[at:end]
    if not _BARE.match(raw):
        raise _no_case(text)
    if _reads_as_text(raw):
        return raw, end
    value = json.loads(raw)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise _no_case(text)
    scalar: Scalar = value
    return scalar, end


def _no_case(text: str) -> UserError:
    return UserError(
        f"{text[:200]!r} is no case; write suite/benchmark[axis=value,...] as `flashpoint suites` lists them."
    )


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()[:16]


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _installed_gib(memory_bytes: int) -> float:
    """Reported memory rounded up to a size that is sold: steps of an eighth of the next lower power of two."""
    gib = max(memory_bytes, 1) / _GIB
    step = 2.0 ** math.floor(math.log2(gib)) / 8
    return math.ceil(gib / step) * step
