"""``run``: measures the torch of this interpreter alone, with nothing else installed; ``flashpoint import`` reads the
file.
"""

from __future__ import annotations

import fnmatch
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional

from .authoring import Case, SuiteError
from .catalog import load_suites
from .probe import probe
from .protocol import VERSION
from .rounds import RoundPlan, measure_round
from .stage import Stage
from .turns import ChildResult, Key


def run_alone(suites: List[str], glob: str, rounds: int, everything: bool, out: str) -> int:
    """Measures and writes ``out`` (one JSON object); progress goes to standard error. Returns the exit code."""
    cases = _chosen(suites, glob, everything)
    build = probe()
    records: Dict[str, Dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="flashpoint-") as folder:
        stage = Stage(os.path.join(folder, "stage"), lambda: False)
        cpus = sorted(os.sched_getaffinity(0))[-1:] if hasattr(os, "sched_getaffinity") else []
        seed = int(time.time())
        try:
            for number in range(rounds):
                print(f"round {number + 1} of {rounds}", file=sys.stderr)
                plan = RoundPlan(number, ["this"], cases, seed, number == 0, cpus)
                measure_round(stage, _launcher(stage, folder), plan, lambda c, r, n=number: _note(records, c, r, n))
        finally:
            stage.close()
    whole = {
        "flashpoint": VERSION,
        "build": build,
        "node": {"machine": platform.machine(), "system": platform.platform(), "name": platform.node()},
        "seed": seed,
        "measurements": list(records.values()),
    }
    with open(out, "w", encoding="utf-8") as file:
        json.dump(whole, file, allow_nan=False)
    print(f"wrote {len(records)} measurements to {out}", file=sys.stderr)
    return 0


def _chosen(suites: List[str], glob: str, everything: bool) -> List[Case]:
    catalog = load_suites()
    unknown = [name for name in suites if name not in catalog]
    if unknown:
        raise SuiteError(f"there is no suite {unknown[0]!r}; there are {', '.join(catalog)}")
    chosen = [
        case
        for name in suites or list(catalog)
        for case in catalog[name].cases()
        if (everything or case.quick) and fnmatch.fnmatchcase(case.id.replace("[", "("), glob.replace("[", "("))
    ]
    if not chosen:
        raise SuiteError(f"no case matches {glob!r}; 'describe' lists them")
    return chosen


def _launcher(stage: Stage, folder: str) -> Callable[[str, str, List[str]], Callable[[], Optional[str]]]:
    def launch(build: str, name: str, extra: List[str]) -> Callable[[], Optional[str]]:
        command = [sys.executable, "-m", "bench_suites.kit", "serve", "--connect", stage.path, "--name", name, *extra]
        quiet = {
            # torch 2.0 runs a bare "python" to learn the vector width: it must be this one
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "cache"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        process = subprocess.Popen(command, env={**os.environ, **quiet}, stdout=sys.stderr, stdin=subprocess.DEVNULL)
        return lambda: None if process.poll() is None else f"exit code {process.returncode}"

    return launch


def _note(records: Dict[str, Dict[str, Any]], case: Case, results: Dict[Key, ChildResult], number: int) -> None:
    for (_, variant), result in results.items():
        record = records.setdefault(
            f"{case.id} {variant}",
            {
                "case": case.id,
                "revision": case.benchmark.suite.revision,
                "variant": variant,
                "outcome": result.outcome,
                "reason": result.reason,
                "rounds": [],
                "evidence": result.evidence,
            },
        )
        if result.outcome == "ok":
            record["rounds"].append(
                {"round": number, "time": result.wall, "cpu_time": result.cpu, "metrics": result.metrics}
            )
        else:
            record["outcome"], record["reason"] = result.outcome, result.reason
