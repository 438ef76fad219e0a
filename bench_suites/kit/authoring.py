"""How a suite is written: Suite, benchmark, Needs, Variants. Everything here works with no torch installed."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import os
import re
import textwrap
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .agree import close

NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*\Z")
RESERVED = ("per_call",)


class SuiteError(Exception):
    """A suite file is wrong; the sentence names the file and the fix."""


class Unsupported(Exception):
    """Raised by an author: this build of PyTorch lacks what the variant needs."""


class Skipped(Exception):
    """Raised by an author: this node lacks what the variant needs (a GPU, a compiler)."""


class Needs(NamedTuple):
    """What a suite needs.

    ``device`` is cpu, cuda or any; ``torch`` a range such as ``>=1.10``; ``threads`` the intra-op threads of a child;
    ``preload`` names modules that cases import lazily: the zygote imports them once instead (those a build lacks are
    left out).
    """

    device: str = "cpu"
    torch: str = ""
    threads: int = 1
    preload: Tuple[str, ...] = ()

    def words(self) -> str:
        """The needs in words: ``cpu``, ``cuda, torch >=1.10``."""
        return ", ".join(filter(None, [self.device, f"torch {self.torch}" if self.torch else ""]))


class Prepared(NamedTuple):
    """A variant that is built only in the process that times it."""

    make: Callable[[], Callable[[], Any]]
    compiles: bool
    cached: bool


def prepared(make: Callable[[], Callable[[], Any]], *, compiles: bool = False, cached: bool = False) -> Prepared:
    """A variant that must be made first: ``make()`` returns the callable to time.

    It runs only in the child of that variant, so it may switch global modes, and may raise Unsupported or Skipped for
    its variant alone. With ``compiles`` its duration is the metric ``compile_time``; with ``cached`` the compiler keeps
    a cache on disk, so later rounds of a run count as ``compile_time_warm``.
    """
    return Prepared(make, compiles, cached)


class Variants:
    """What a benchmark yields: the ways of doing the same work, by name. ``per_call`` says what one call processes."""

    def __init__(self, per_call: Optional[Dict[str, float]] = None, **variants: Any) -> None:
        self.per_call = per_call or {}
        self.variants = variants


class Case(NamedTuple):
    """One benchmark with one value for each axis."""

    id: str
    benchmark: "Benchmark"
    axes: Dict[str, Any]
    quick: bool


class Benchmark:
    """One benchmark function of a suite, checked when it is declared."""

    def __init__(
        self,
        suite: "Suite",
        function: Callable[..., Iterator[Variants]],
        axes: Dict[str, Sequence[Any]],
        quick: Dict[str, Sequence[Any]],
        agree: Callable[[Any, Any, Any], Optional[str]],
        reference: Optional[str],
        variants: Optional[Sequence[str]],
    ) -> None:
        self.suite = suite
        self.function = function
        self.name = function.__name__
        self.axes = {name: list(values) for name, values in axes.items()}
        self.quick = {name: list(values) for name, values in quick.items()}
        self.agree = agree
        self.variants = tuple(variants) if variants else _declared_variants(self)
        self.reference = reference or suite.reference
        _check(self)

    def cases(self) -> List[Case]:
        """All cases, axes varying from the last to the first."""
        out = []
        for values in itertools.product(*self.axes.values()):
            axes = dict(zip(self.axes, values))
            quick = all(axes[name] in allowed for name, allowed in self.quick.items())
            out.append(Case(case_id(self.suite.name, self.name, axes), self, axes, quick))
        return out


class Suite:
    """One suite: a file asking one question about PyTorch.

    ``revision`` must rise whenever the measured work changes: only then are old and new numbers told apart.
    ``child_seconds`` is what one child typically takes in a round (set up, agree, warm up, turns): for the estimate.
    """

    def __init__(
        self,
        name: str,
        *,
        question: str,
        revision: int,
        reference: str,
        needs: Needs = Needs(),
        file: Optional[str] = None,
        child_seconds: float = 0.4,
    ) -> None:
        self.name = name
        self.question = question
        self.revision = revision
        self.reference = reference
        self.needs = needs
        self.child_seconds = child_seconds
        self.benchmarks: Dict[str, Benchmark] = {}
        self.file = file or os.path.basename(inspect.stack()[1].filename)
        if not NAME.match(name):
            raise SuiteError(f"{self.file}: the suite name {name!r} must be lower-case words joined by hyphens")
        if not isinstance(revision, int) or revision < 1:
            raise SuiteError(f"{self.file}: the revision {revision!r} must be a whole number from 1 on")
        if needs.device not in ("cpu", "cuda", "any"):
            raise SuiteError(f"{self.file}: the device {needs.device!r} must be cpu, cuda or any")

    def benchmark(
        self,
        axes: Optional[Dict[str, Sequence[Any]]] = None,
        *,
        quick: Optional[Dict[str, Sequence[Any]]] = None,
        agree: Optional[Callable[[Any, Any, Any], Optional[str]]] = None,
        reference: Optional[str] = None,
        variants: Optional[Sequence[str]] = None,
    ) -> Callable[[Callable[..., Iterator[Variants]]], Callable[..., Iterator[Variants]]]:
        """Declares a generator function as a benchmark: set up, ``yield Variants(...)`` once, tear down.

        ``axes`` are checked against the signature; ``quick`` narrows them for the preset quick; ``agree`` compares a
        variant's output with the reference variant's; ``variants`` is needed only where the names cannot be read from
        the source.

        Raises SuiteError, naming the file and the fix.
        """

        def declare(function: Callable[..., Iterator[Variants]]) -> Callable[..., Iterator[Variants]]:
            if function.__name__ in self.benchmarks:
                raise SuiteError(
                    f"{self.file}: the benchmark {function.__name__!r} is declared twice; rename one of them"
                )
            self.benchmarks[function.__name__] = Benchmark(
                self, function, axes or {}, quick or {}, agree or close(), reference, variants
            )
            return function

        return declare

    def cases(self) -> List[Case]:
        """All cases of the suite in the order of declaration."""
        return [case for benchmark in self.benchmarks.values() for case in benchmark.cases()]


def case_id(suite: str, benchmark: str, axes: Dict[str, Any]) -> str:
    """The id of a case: ``suite/benchmark[axis=value,...]``, axes in the order of the signature."""
    inside = ",".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in axes.items())
    return f"{suite}/{benchmark}" + (f"[{inside}]" if inside else "")


def _declared_variants(benchmark: Benchmark) -> Tuple[str, ...]:
    """Reads the names from ``yield Variants(name=...)`` in the source, so that the catalog needs no torch."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(benchmark.function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Variants":
            names = [k.arg for k in node.keywords if k.arg not in RESERVED]
            if names and None not in names:
                return tuple(str(n) for n in names)
    where = f"{benchmark.suite.file}: benchmark {benchmark.name!r}"
    raise SuiteError(f"{where} must 'yield Variants(name=...)' with literal names, or declare variants=(...)")


def _check(benchmark: Benchmark) -> None:
    where = f"{benchmark.suite.file}: benchmark {benchmark.name!r}"
    parameters = list(inspect.signature(benchmark.function).parameters)
    if not inspect.isgeneratorfunction(benchmark.function):
        raise SuiteError(f"{where} must be a generator: set up, 'yield Variants(...)', tear down")
    if parameters[:1] != ["ctx"] or parameters[1:] != list(benchmark.axes):
        wanted = ", ".join(["ctx", *benchmark.axes])
        raise SuiteError(f"{where} must take ({wanted}), as its axes say, not ({', '.join(parameters)})")
    for axis, values in benchmark.axes.items():
        if not values:
            raise SuiteError(f"{where}: the axis {axis!r} has no values")
        for value in values:
            if not isinstance(value, (str, int, float, bool)) or (
                isinstance(value, str) and re.search(r"[\[\],=/\s]", value)
            ):
                raise SuiteError(
                    f"{where}: the value {value!r} of axis {axis!r} must be a number, a flag or a plain word"
                )
    for axis, values in benchmark.quick.items():
        if not values or any(value not in benchmark.axes.get(axis, []) for value in values):
            raise SuiteError(f"{where}: quick={values!r} must be some of the values of the axis {axis!r}")
    if benchmark.reference not in benchmark.variants:
        raise SuiteError(
            f"{where} has no variant named {benchmark.reference!r}, its reference; "
            f"it has {', '.join(benchmark.variants)}"
        )
