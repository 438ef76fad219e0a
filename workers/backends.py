"""Which PyTorch wheels to ask for: those of PyTorch's own index for this hardware, or the configured sources'."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from packaging.version import Version

from workers.uvrun import Finished

REMEMBER_S = 3600.0  # a worker lives for weeks, an outage does not
_FLAVOUR = re.compile(r"cpu|cu[0-9]{2,3}|xpu|rocm[0-9.]+")
_SILENCE = (
    "Failed to fetch",
    "error sending request",
    "dns error",
    "client error (Connect)",
    "operation timed out",
    "Connection refused",
    "Network connectivity is disabled",
    "Failed to download",
)


@dataclass(frozen=True)
class Backend:
    """``name`` of uv's torch backend, "" for the configured sources alone; a ``forced`` one has no fall-back."""

    name: str
    forced: bool


def backend_for(setting: str, version: Version, gpu: bool) -> Backend:
    """What ``FLASHPOINT_TORCH_BACKEND`` means for this version (whose own flavour, ``+cu118``, goes first) and node."""
    if setting == "off":
        return Backend("", False)
    if setting != "auto":
        return Backend(setting, True)
    if version.local and _FLAVOUR.fullmatch(version.local):
        return Backend(version.local, False)
    return Backend("" if gpu else "cpu", False)


def has_gpu() -> bool:
    """Whether this machine shows an NVIDIA GPU, without loading anything of CUDA."""
    if Path("/dev/nvidia0").exists() or Path("/proc/driver/nvidia/gpus").is_dir():
        return True
    return shutil.which("nvidia-smi") is not None and Path("/dev/dxg").exists()  # Windows' subsystem for Linux


def unreachable(finished: Finished) -> bool:
    """Whether uv failed because somebody did not answer, rather than because of what was answered."""
    return finished.code is None or (finished.code != 0 and any(sign in finished.flat for sign in _SILENCE))


class Unreachable:
    """Backends whose index did not answer, remembered for an hour of this process: nobody waits for it again."""

    _since: ClassVar[dict[str, float]] = {}

    @classmethod
    def remember(cls, backend: str) -> None:
        cls._since[backend] = time.monotonic()

    @classmethod
    def lately(cls, backend: str) -> bool:
        since = cls._since.get(backend)
        return since is not None and time.monotonic() - since < REMEMBER_S

    @classmethod
    def forget(cls) -> None:
        cls._since.clear()
