"""One case, one variant, in a process of its own: set up, agree with the reference, take turns, tear down."""

from __future__ import annotations

import os
import random
import time
import traceback
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from .authoring import Case, Prepared, Skipped, Unsupported, Variants
from .catalog import satisfies
from .metrics import METRICS
from .protocol import VERSION, Channel, Closed
from .timing import Stopwatch

LIMIT = 1e100


class Context:
    """What a benchmark is handed: torch, the device, and ways to say more than a time."""

    def __init__(self, torch: Any, device: str, variant: str, seed: int) -> None:
        self.torch = torch
        self.device = device
        self.variant = variant
        self.seed = seed
        self.evidence_: Dict[str, str] = {}
        self.metrics: Dict[str, float] = {}

    def evidence(self, name: str, value: object) -> None:
        """Shown beside the numbers: was it fused, which path was taken."""
        self.evidence_[name] = (
            {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
        )

    def record(self, metric: str, value: float) -> None:
        """A number beside the time; the metric must stand in the closed table. Raises KeyError, ValueError."""
        number = float(value)
        if not 0 <= number < LIMIT:
            raise ValueError(f"{metric} is {number!r}; a metric is a number from 0 on, below {LIMIT:g}")
        self.metrics[METRICS[metric].name] = number


class Refused(Exception):
    """A measurement ends without a number: (outcome, reason)."""


class Bench:
    """A case set up for one variant."""

    def __init__(self, case: Case, variant: str, torch: Any, seed: int, cold: bool) -> None:
        self.case, self.variant, self.torch, self.cold = case, variant, torch, cold
        needs = case.benchmark.suite.needs
        self.context = Context(torch, "cuda" if needs.device == "cuda" else "cpu", variant, seed)
        self.generator: Optional[Iterator[Variants]] = None
        self.per_call: Dict[str, float] = {}

    def set_up(self) -> Callable[[], Any]:
        """The callable to time, after it agreed with the reference. Raises Refused, Unsupported, Skipped or the
        author's error.
        """
        needs, torch = self.case.benchmark.suite.needs, self.torch
        if needs.torch and not satisfies(torch.__version__, needs.torch):
            raise Unsupported(f"the suite needs torch {needs.torch}")
        if needs.device == "cuda" and not torch.cuda.is_available():
            raise Skipped("this node has no GPU that this build can use")
        random.seed(self.context.seed)
        torch.manual_seed(self.context.seed)
        torch.set_num_threads(needs.threads)
        self.generator = self.case.benchmark.function(self.context, **self.case.axes)
        yielded = next(self.generator)
        if tuple(yielded.variants) != tuple(self.case.benchmark.variants):
            declared = ", ".join(self.case.benchmark.variants)
            raise Refused("failed", f"the benchmark yielded {', '.join(yielded.variants)}; it declares {declared}")
        self.per_call = dict(yielded.per_call)
        call = self.make(yielded.variants[self.variant])
        reference = self.case.benchmark.reference
        if self.variant != reference:
            want = self.make(yielded.variants[reference])()
            found = self.case.benchmark.agree(torch, want, call())
            if found:
                raise Refused("mismatch", found)
        return call

    def make(self, variant: Any) -> Callable[[], Any]:
        if not isinstance(variant, Prepared):
            return variant  # type: ignore[no-any-return]
        begin = time.perf_counter()
        call = variant.make()
        if variant.compiles:
            metric = "compile_time" if self.cold or not variant.cached else "compile_time_warm"
            self.context.record(metric, time.perf_counter() - begin)
        return call

    def done(self) -> Callable[[], None]:
        """What waits for the device at the end of a batch."""
        return self.torch.cuda.synchronize if self.context.device == "cuda" else (lambda: None)

    def tear_down(self) -> None:
        """Runs the author's tear-down, also after a failure."""
        if self.generator is not None:
            for _ in self.generator:
                raise Refused("failed", "the benchmark yielded twice; it must yield once")


def reason_of(error: BaseException) -> Tuple[str, str]:
    """The outcome and the sentence of an error raised while a case was set up or measured."""
    if isinstance(error, Refused):
        return error.args[0], error.args[1]
    if isinstance(error, Unsupported):
        return "unsupported", str(error)
    if isinstance(error, Skipped):
        return "skipped", str(error)
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    said = f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    at = next((f for f in reversed(frames) if os.sep + "kit" + os.sep not in f.filename), None)
    return "failed", said + (f" ({os.path.basename(at.filename)}:{at.lineno})" if at else "")


def run_child(order: Dict[str, Any], case: Case, torch: Any, connect: str) -> None:
    """Serves one child: ready or its outcome, then turns until told to end. Returns when the conductor is gone."""
    channel = Channel.connect(connect)
    channel.send({"hello": "child", "version": VERSION, "id": order["id"], "pid": os.getpid()})
    bench = Bench(case, order["variant"], torch, order["seed"], order["cold"])
    try:
        try:
            call = bench.set_up()
            if order.get("cpus") and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, order["cpus"])
            _take_turns(channel, bench, Stopwatch(call, bench.done()))
        finally:
            bench.tear_down()
    except Closed:
        return
    except Exception as error:
        outcome, reason = reason_of(error)
        if outcome == "failed":
            traceback.print_exc()
        try:
            channel.send({"outcome": outcome, "reason": reason})
        except Closed:
            return


def _take_turns(channel: Channel, bench: Bench, watch: Stopwatch) -> None:
    seconds = watch.warm(30.0)
    channel.send(
        {
            "outcome": "ok",
            "seconds": seconds,
            "metrics": bench.context.metrics,
            "evidence": bench.context.evidence_,
            "per_call": bench.per_call,
        }
    )
    while True:
        message = channel.receive()
        if "turn" not in message:
            return
        inner, calls = message["turn"]
        channel.send(watch.turn(int(inner), int(calls)))
