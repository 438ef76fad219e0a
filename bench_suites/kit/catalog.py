"""Finds the suites and lists everything in them, with no torch installed."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import re
import sys
import traceback
from typing import Any, Dict, List, Tuple

from .authoring import Case, Suite, SuiteError


def load_suites() -> Dict[str, Suite]:
    """All suites of the package ``bench_suites`` by name.

    Raises SuiteError with one sentence that names the file and the fix.
    """
    import bench_suites

    found: Dict[str, Suite] = {}
    for info in sorted(pkgutil.iter_modules(bench_suites.__path__), key=lambda i: i.name):
        if info.ispkg:
            continue
        suite = _load(info.name)
        if suite.name in found:
            raise SuiteError(
                f"{info.name}.py: the suite name {suite.name!r} is taken by {found[suite.name].file}; rename it"
            )
        found[suite.name] = suite
    return found


def _load(module: str) -> Suite:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a suite prints must not stand in anybody's JSON
            loaded = importlib.import_module(f"bench_suites.{module}")
    except SuiteError:
        raise
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise SuiteError(f"{_place(module, error)}: it cannot be loaded ({what}); mend or remove the file") from error
    suite = getattr(loaded, "suite", None)
    if not isinstance(suite, Suite):
        raise SuiteError(f"{module}.py defines no 'suite'; begin the file with suite = Suite(...)")
    if suite.name.replace("-", "_") != module:
        raise SuiteError(f"{module}.py: the suite {suite.name!r} must stand in {suite.name.replace('-', '_')}.py")
    if not suite.benchmarks:
        raise SuiteError(f"{module}.py has no benchmark; add one with @suite.benchmark(...)")
    return suite


def _place(module: str, error: BaseException) -> str:
    """The file and line where loading a suite failed."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename.endswith(f"{module}.py")]
    line = error.lineno if isinstance(error, SyntaxError) else (lines[-1] if lines else None)
    return f"{module}.py" + (f", line {line}" if line else "")


def find_case(suites: Dict[str, Suite], case: str) -> Case:
    """The case of that id. Raises KeyError."""
    suite = suites[case.split("/", 1)[0]]
    for candidate in suite.cases():
        if candidate.id == case:
            return candidate
    raise KeyError(case)


def describe(suites: Dict[str, Suite]) -> List[Dict[str, Any]]:
    """The catalog as JSON scalars, in the order of names."""
    return [
        {
            "suite": suite.name,
            "question": suite.question,
            "revision": suite.revision,
            "reference": suite.reference,
            "device": suite.needs.device,
            "torch": suite.needs.torch,
            "needs": suite.needs.words(),
            "child_seconds": suite.child_seconds,
            "cases": [
                {
                    "id": case.id,
                    "benchmark": case.benchmark.name,
                    "axes": case.axes,
                    "variants": list(case.benchmark.variants),
                    "reference": case.benchmark.reference,
                    "quick": case.quick,
                }
                for case in suite.cases()
            ],
        }
        for suite in suites.values()
    ]


def satisfies(version: str, wanted: str) -> bool:
    """Whether a torch version lies in a range such as ``>=1.10,<2.3``; a local part and pre-release tags do not
    count.
    """
    have = _numbers(version)
    for part in filter(None, (p.strip() for p in wanted.split(","))):
        match = re.match(r"(>=|<=|==|!=|>|<)\s*([0-9.]+)\Z", part)
        if not match:
            raise SuiteError(f"the version range {wanted!r} must be made of >=, <=, ==, !=, > or < and a version")
        sign, want = match.group(1), _numbers(match.group(2))
        size = max(len(have), len(want))
        a, b = have + (0,) * (size - len(have)), want + (0,) * (size - len(want))
        if not {">=": a >= b, "<=": a <= b, "==": a == b, "!=": a != b, ">": a > b, "<": a < b}[sign]:
            return False
    return True


def _numbers(version: str) -> Tuple[int, ...]:
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match.group(0).split(".")) if match else (0,)
