"""What this machine is: hardware that makes its fingerprint, and versions that may change."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path

from db.records import NodeFacts


def node_facts(name: str) -> NodeFacts:
    """Describes this machine under that name."""
    cpu = _cpu_model()
    gpus, driver = _gpus()
    versions = {
        "flashpoint": importlib.metadata.version("flashpoint"),
        "python": platform.python_version(),
        "system": platform.platform(),
        **({"driver": driver} if driver else {}),
    }
    return NodeFacts(
        name=name,
        cpu=cpu,
        threads=os.cpu_count() or 1,
        memory_bytes=_memory_bytes(),
        devices={"cpu": cpu, **{f"cuda:{i}": model for i, model in enumerate(gpus)}},
        versions=versions,
    )


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith(("model name", "cpu model")):
                return line.split(":", 1)[1].strip()
    except OSError:
        return platform.processor() or platform.machine()
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _gpus() -> tuple[list[str], str]:
    """The models of the GPUs and the driver's version, as nvidia-smi tells; nothing where it is not installed or
    fails.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return [], ""
    asked = subprocess.run(
        [program, "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    rows = [line.rsplit(",", 1) for line in asked.stdout.splitlines() if "," in line]
    if asked.returncode != 0 or not rows:
        return [], ""
    return [name.strip() for name, _ in rows], rows[0][1].strip()
