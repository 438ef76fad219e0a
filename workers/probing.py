"""What a Python with PyTorch says about itself: it is asked by importing torch in it."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from core.errors import BuildFailed
from core.versions import is_source_build
from workers.uvrun import Finished, run

STEP = "importing torch"
DEADLINE_S = 300.0  # a CUDA build on a cold disk takes a minute

#: Answers through a file: old builds print on standard output when they find no GPU.
SCRIPT = r"""
import json, platform, sys
if sys.version_info < (3, 9):
    sys.exit("Python %s is older than 3.9" % platform.python_version())
import torch
def ask(question):
    try:
        value = question()
    except Exception as error:
        return "unknown (%s: %s)" % (type(error).__name__, error)
    return "" if value is None else value
from importlib.metadata import distributions
named = [d for d in distributions() if d.metadata["Name"]]
answer = {
    "python": platform.python_version(),
    "prefix": sys.prefix,
    "version": str(torch.__version__),
    "git": ask(lambda: torch.version.git_version),
    "cuda": ask(lambda: torch.version.cuda),
    "hip": ask(lambda: torch.version.hip) if hasattr(torch.version, "hip") else "",
    "config": ask(lambda: torch.__config__.show()),
    "parallel": ask(lambda: torch.__config__.parallel_info()),
    "llvm": ask(lambda: torch._C._llvm_enabled()) if hasattr(getattr(torch, "_C", None), "_llvm_enabled") else "",
    "gpu": ask(lambda: torch.cuda.is_available()),
    "packages": sorted({"%s==%s" % (d.metadata["Name"], d.version) for d in named}, key=str.lower),
}
with open(sys.argv[1], "w") as out:
    json.dump(answer, out)
"""


@dataclass(frozen=True)
class BuildInfo:
    """The Build that an environment holds.

    ``version`` as torch reports it (``2.13.0+cpu``), ``label`` what pages call it (the version; with ``@`` and six
    digits for an existing interpreter), ``channel`` release, nightly or local, ``flavour`` cpu, cu118, rocm5.7,
    ``cuda`` the version it was compiled for, "" for none.
    """

    version: str
    label: str
    git_revision: str
    channel: str
    flavour: str
    cuda: str


@dataclass(frozen=True)
class Probe:
    """``facts`` in words for people, ``packages`` as ``name==version`` lines, ``python_version`` in full."""

    build: BuildInfo
    python_version: str
    prefix: Path
    packages: tuple[str, ...]
    facts: dict[str, str]


def probe(
    python: Path,
    *,
    environ: Mapping[str, str],
    stop: Callable[[], bool],
    new: str = "",
    keep_open: Sequence[int] = (),
) -> Probe:
    """Import torch in ``python`` and ask it. Raises BuildFailed (step "importing torch") and Stopped.

    ``new`` names the environment that is being made; without it, ``python`` is somebody else's existing interpreter.
    """
    place = f"the new environment of {new}" if new else f"'{python}'"
    # The loader's path and a processor's quirks are the machine's; nothing else of the worker gets in.
    kept = (
        "PATH",
        "LANG",
        "LC_ALL",
        "LD_LIBRARY_PATH",
        "OPENBLAS_CORETYPE",
        "OPENBLAS_L2_SIZE",
        "CUDA_VISIBLE_DEVICES",
    )
    with tempfile.TemporaryDirectory(prefix="flashpoint-probe-") as folder:
        answer = Path(folder) / "answer.json"
        env = {name: environ[name] for name in kept if name in environ} | {"HOME": folder, "TMPDIR": folder}
        try:
            finished = run(
                [str(python), "-E", "-s", "-c", SCRIPT, str(answer)],
                env=env, cwd=Path(folder), deadline_s=DEADLINE_S, stop=stop, keep_open=keep_open,
            )  # fmt: skip
        except OSError as error:
            raise BuildFailed(
                f"The interpreter '{python}' cannot be started ({error.strerror}); name a Python that runs.", step=STEP
            ) from error
        told = _read(answer)
    if not finished.ok or told is None:
        raise BuildFailed(_why(place, finished), step=STEP, log=finished.tail())
    return _understood(python, told, place, existing=not new)


def _read(answer: Path) -> dict[str, Any] | None:
    if not answer.is_file():
        return None
    with answer.open(encoding="utf-8") as file:
        told = json.load(file)
    return told if isinstance(told, dict) else None


def _why(place: str, finished: Finished) -> str:
    last = (finished.output.strip().splitlines()[-1:] or ["it said nothing"])[0].strip()
    if finished.code is None:
        return f"Importing torch in {place} took longer than {DEADLINE_S:.0f} s and was ended; is the machine busy?"
    if finished.code < 0:
        return f"Importing torch in {place} ended by signal {-finished.code}; this build does not run on this machine."
    if "No module named 'torch'" in last:
        return f"There is no torch in {place}; name an interpreter that has PyTorch installed."
    return f"Importing torch in {place} failed: {last[:200].rstrip('.')}."


def _understood(python: Path, told: Mapping[str, Any], place: str, *, existing: bool) -> Probe:
    text = str(told["version"])
    try:
        version = Version(text)
    except InvalidVersion as error:
        raise BuildFailed(
            f"The torch in '{python}' calls itself {text[:40]!r}, which is no version.", step=STEP
        ) from error
    cuda, hip = str(told["cuda"]), str(told["hip"])
    local = version.local or ""
    flavour = local if re.fullmatch(r"cpu|cu[0-9]+|rocm[0-9.]+|xpu", local) else _flavour(cuda, hip)
    channel = "local" if existing or is_source_build(version) else "nightly" if version.dev is not None else "release"
    mark = f"@{hashlib.sha256(str(python).encode()).hexdigest()[:6]}" if existing else ""
    build = BuildInfo(text, text + mark, str(told["git"]), channel, flavour, cuda)
    return Probe(build, str(told["python"]), Path(told["prefix"]), tuple(told["packages"]), _facts(told))


def _flavour(cuda: str, hip: str) -> str:
    if cuda:
        return "cu" + "".join(cuda.split(".")[:2])
    return "rocm" + ".".join(hip.split(".")[:2]) if hip else "cpu"


def _facts(told: Mapping[str, Any]) -> dict[str, str]:
    """The lines of torch's own reports that explain speed, by their usual names."""
    config, parallel = str(told["config"]), str(told["parallel"])
    patterns = {
        "OpenMP": (config, r"OpenMP ([^\n]+)"),
        "BLAS": (config, r"BLAS_INFO=(\w+)"),
        "MKL": (config, r"Math Kernel Library Version ([^\n]*?)(?: Product|\n)"),
        "oneDNN": (config, r"MKL-DNN v(\S+)"),
        "compiler": (config, r"- ((?:GCC|clang) [^\n]+)"),
        "CPU capability": (config, r"CPU capability usage: (\S+)"),
        "cuDNN": (config, r"CuDNN (\S+)"),
        "parallel backend": (parallel, r"ATen parallel backend: ([^\n]+)"),
    }
    facts = {"python": str(told["python"])}
    for name, (text, pattern) in patterns.items():
        if found := re.search(pattern, text):
            facts[name] = found[1].strip()
    facts["LLVM"] = {True: "yes", False: "no", "": "unknown"}.get(told["llvm"], str(told["llvm"]))
    facts["CUDA"] = str(told["cuda"]) or "none"
    facts["GPU usable"] = {True: "yes", False: "no"}.get(told["gpu"], str(told["gpu"]))
    return facts


def platform_line() -> str:
    """What a lock says about the machine its packages were chosen for."""
    import platform

    libc = "-".join(part for part in platform.libc_ver() if part)
    return " ".join(part for part in (sys.platform, platform.machine(), libc) if part)
