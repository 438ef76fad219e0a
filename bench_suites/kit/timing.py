"""The stopwatch: a batch of calls in a generated loop, read on two clocks.

A call is never wrapped: wrapping biases an operation of 5 microseconds by 1-7 %. The loop is generated so that the
statement stands in it as written. Times are seconds per call.
"""

from __future__ import annotations

import gc
import statistics
import time
from typing import Any, Callable, Dict, List

BURN_NS = 1_000_000
#: A call this long does not feel cold caches after a switch, so it is not burnt first.
LONG_NS = 20_000_000

_LOOP = """
def loop(call, n):
    w0 = wall()
    c0 = cpu()
    for _ in repeat(None, n):
        call()
    done()
    c1 = cpu()
    w1 = wall()
    return w1 - w0, c1 - c0
"""


def make_loop(done: Callable[[], None]) -> Callable[[Callable[[], Any], int], Any]:
    """The timed loop: ``loop(call, n) -> (wall ns, thread CPU ns)`` of n calls; ``done`` waits for a device to
    finish.
    """
    import itertools

    space: Dict[str, Any] = {
        "wall": time.perf_counter_ns,
        "cpu": time.thread_time_ns,
        "repeat": itertools.repeat,
        "done": done,
    }
    exec(compile(_LOOP, "<timed loop>", "exec"), space)
    return space["loop"]  # type: ignore[no-any-return]


class Stopwatch:
    """Times one callable in turns."""

    def __init__(self, call: Callable[[], Any], done: Callable[[], None]) -> None:
        self.call = call
        self.loop = make_loop(done)
        self.estimate_ns = 0.0

    def warm(self, milliseconds: float, least: int = 4, limit_s: float = 3.0) -> float:
        """Calls until ``milliseconds`` are over and ``least`` calls were made (at most ``limit_s``); seconds of a warm
        call.
        """
        seen: List[int] = []
        begin = time.perf_counter_ns()
        while True:
            seen.append(self.loop(self.call, 1)[0])
            spent = time.perf_counter_ns() - begin
            if spent > limit_s * 1e9 or (spent > milliseconds * 1e6 and len(seen) >= least):
                break
        self.estimate_ns = statistics.median(seen[len(seen) // 2 :])
        return self.estimate_ns / 1e9

    def turn(self, inner: int, calls: int) -> Dict[str, float]:
        """One turn: an untimed burn, then ``calls`` batches of ``inner`` calls.

        Returns seconds per call: the median on the wall and thread CPU clocks, and the smallest wall time as a
        diagnostic.
        """
        if self.estimate_ns < LONG_NS:
            spent = 0
            while spent < BURN_NS:
                spent += max(1, self.loop(self.call, inner)[0])
        walls, cpus = [], []
        gc.disable()
        for _ in range(calls):
            wall, cpu = self.loop(self.call, inner)
            walls.append(wall)
            cpus.append(cpu)
        gc.enable()
        scale = 1e9 * inner
        return {
            "wall": statistics.median(walls) / scale,
            "cpu": statistics.median(cpus) / scale,
            "least": min(walls) / scale,
        }
