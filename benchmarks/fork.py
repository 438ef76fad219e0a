"""How soon is a child ready: a fork of a zygote against a fresh process that imports torch, in turn, in one run."""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench_suites.kit.catalog import find_case, load_suites
from bench_suites.kit.rounds import Crew, RoundPlan
from bench_suites.kit.stage import Stage
from workers.launcher import Launcher, stage_suites

CASE = "parametrizations/linear[size=64,mode=forward]"


def compare(python: Path, pairs: int) -> tuple[list[float], list[float]]:
    """Seconds until a fork says hello and seconds of ``python -c 'import torch'``, ``pairs`` of each, alternating."""
    case = find_case(load_suites(), CASE)
    with tempfile.TemporaryDirectory(prefix="flashpoint-") as folder:
        private = Path(folder) / "run"
        private.mkdir()
        stage = Stage(str(Path(folder) / "stage"), lambda: False)
        with Launcher(stage_suites(Path(folder)), private, {}) as launcher:

            def launch(_build: str, name: str, extra: list[str]) -> Callable[[], str | None]:
                return launcher.start(python, name, ["serve", "--connect", stage.path, "--name", name, *extra])

            plan = RoundPlan(0, ["0"], [case], seed=1, cold=True, cpus=[])
            crew = Crew(stage, launch, plan, random.Random(1))
            crew.assemble()
            if crew.absent:
                raise SystemExit(f"error: {crew.absent['0']}")
            forks, fresh = [], []
            for _ in range(pairs):
                forks.append(_fork(stage, crew))
                fresh.append(_import(python))
            crew.dismiss()
        stage.close()
    return forks, fresh


def _fork(stage: Stage, crew: Crew) -> float:
    order = {"case": CASE, "variant": "plain", "seed": 1, "cold": True, "cpus": []}
    begun = time.perf_counter()
    name, gone = crew.fork(("0", "plain")).start(order)
    peer = stage.expect(name, 30, gone)
    took = time.perf_counter() - begun
    stage.answer(peer, 30)
    peer.channel.close()
    return took


def _import(python: Path) -> float:
    begun = time.perf_counter()
    subprocess.run([str(python), "-E", "-s", "-c", "import torch"], check=True, capture_output=True)
    return time.perf_counter() - begun


def report(label: str, python: Path, pairs: int = 15) -> float:
    """Prints both medians and their ratio; returns the ratio (fork / fresh)."""
    forks, fresh = compare(python, pairs)
    ratio = statistics.median(f / i for f, i in zip(forks, fresh, strict=True))
    print(
        f"{label}: a fork is ready in {statistics.median(forks) * 1e3:.1f} ms, a fresh process with import torch in "
        f"{statistics.median(fresh) * 1e3:.0f} ms: 1/{1 / ratio:.0f} (median of {pairs} pairs; asked for: 1/50 or less)"
    )
    return ratio
