"""Turns: the children of one case, of all builds and variants, alive together and measured one at a time in random
order.

The machine's speed drifts by tens of per cent within seconds. Turns of a few milliseconds in an order that is drawn,
then reversed, then drawn again put every child into the same drift, so that it cancels in ratios of the same pass.
"""

from __future__ import annotations

import math
import random
import signal
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .child import LIMIT
from .metrics import METRICS
from .protocol import Closed, ProtocolError, TimedOut
from .stage import Peer, Stage

SET_UP_S = 240.0
TURN_S = 60.0
TURN_TARGET_S = 0.003
BATCH_TARGET_S = 30e-6
CHILD_BUDGET_S = 1.5

Key = Tuple[str, str]  # (build, variant)


class ChildResult(NamedTuple):
    """What one child said: an outcome, and for ``ok`` one wall and CPU time (seconds per call) for each pass."""

    outcome: str
    reason: str
    wall: List[float]
    cpu: List[float]
    metrics: Dict[str, float]
    evidence: Dict[str, str]
    per_call: Dict[str, float]


class Fork(NamedTuple):
    """A child to be made. ``start`` makes it and returns (peer id, a function that tells why it will never come)."""

    key: Key
    start: Callable[[Dict[str, Any]], Tuple[str, Callable[[], Optional[str]]]]


class Plan(NamedTuple):
    """How often a turn calls: ``calls`` batches of ``inner`` calls, in ``passes`` turns."""

    inner: int
    calls: int
    passes: int


def plan_turns(fastest: float, slowest: float) -> Plan:
    """Sizes the turns of one variant from its fastest and slowest build (seconds per call); the same for all its
    builds.

    A batch lasts at least 30 us, a turn about 3 ms with at least 5 batches; a call of more than 1 ms is a turn by
    itself. 24 turns, 32 where a call exceeds 1 ms, fewer (at least 6) where that would take more than CHILD_BUDGET_S.
    """
    inner = max(1, math.ceil(BATCH_TARGET_S / max(fastest, 1e-8) - 1e-6))
    batch = inner * slowest
    calls = max(5, round(TURN_TARGET_S / batch)) if batch < 1e-3 else 1
    passes = 32 if slowest > 1e-3 else 24
    if calls * batch * passes > CHILD_BUDGET_S:
        passes = max(6, int(CHILD_BUDGET_S / (calls * batch)))
    return Plan(inner, calls, passes)


def without_number(outcome: str, reason: str) -> ChildResult:
    return ChildResult(outcome, reason, [], [], {}, {}, {})


def died(code: Optional[int]) -> str:
    """In words how a process ended; ``code`` is negative for a signal, None when unknown."""
    if code is None:
        return "the process ended without a word"
    if code < 0:
        return f"the process was killed by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"


def measure_case(
    stage: Stage,
    forks: List[Fork],
    rng: random.Random,
    order: Callable[[Key], Dict[str, Any]],
    exit_of: Callable[[str], Optional[int]],
) -> Dict[Key, ChildResult]:
    """Measures one case: makes all children in a drawn order, lets them take turns, ends them.

    ``order(key)`` is the order for a child, ``exit_of(peer id)`` the exit code of a child that went away. A child that
    fails, dies or hangs ends only its own measurement. Raises Stopping.
    """
    results: Dict[Key, ChildResult] = {}
    ready: Dict[Key, Tuple[Peer, Dict[str, Any]]] = {}
    drawn = list(forks)
    rng.shuffle(drawn)
    try:
        for fork in drawn:
            _set_up(stage, fork, order(fork.key), exit_of, ready, results)
        turns = _all_turns(stage, ready, rng, exit_of, results)
        for key, (_, said) in ready.items():
            if key not in results:
                wall, cpu = turns[key]
                results[key] = ChildResult("ok", "", wall, cpu, said["metrics"], said["evidence"], said["per_call"])
    finally:
        for key, (peer, _) in ready.items():
            _end(peer, key, results)
    return results


def _set_up(
    stage: Stage,
    fork: Fork,
    order: Dict[str, Any],
    exit_of: Callable[[str], Optional[int]],
    ready: Dict[Key, Tuple[Peer, Dict[str, Any]]],
    results: Dict[Key, ChildResult],
) -> None:
    peer_id, gone = fork.start(order)
    peer: Optional[Peer] = None
    try:
        peer = stage.expect(peer_id, SET_UP_S, gone)
        said = stage.answer(peer, SET_UP_S)
        if said["outcome"] == "ok":
            said["metrics"] = _checked_metrics(said["metrics"])
            ready[fork.key] = (peer, said)
            return
        results[fork.key] = without_number(str(said["outcome"]), str(said.get("reason", "")))
        peer.channel.close()
    except TimedOut:
        results[fork.key] = without_number("timed out", f"setting the case up took more than {SET_UP_S:g} s")
        if peer is not None:
            peer.kill()
    except Closed as error:
        code = exit_of(peer_id)
        results[fork.key] = without_number("failed", died(code) if code is not None else f"{died(code)} ({error})")
    except (ProtocolError, KeyError, TypeError, ValueError) as error:
        results[fork.key] = without_number("failed", f"the process said what it should not: {error}")
        if peer is not None:
            peer.kill()


def _checked_metrics(metrics: Dict[str, Any]) -> Dict[str, float]:
    """What a child says beside its times: known metrics, bounded numbers. ProtocolError, KeyError, ValueError."""
    for name, value in metrics.items():
        if not 0 <= float(value) < LIMIT:
            raise ProtocolError(f"{METRICS[name].name} is {value!r}")
    return {str(name): float(value) for name, value in metrics.items()}


def _all_turns(
    stage: Stage,
    ready: Dict[Key, Tuple[Peer, Dict[str, Any]]],
    rng: random.Random,
    exit_of: Callable[[str], Optional[int]],
    results: Dict[Key, ChildResult],
) -> Dict[Key, Tuple[List[float], List[float]]]:
    plans: Dict[str, Plan] = {}
    for variant in {key[1] for key in ready}:
        seconds = [float(said["seconds"]) for (_, v), (_, said) in ready.items() if v == variant]
        plans[variant] = plan_turns(min(seconds), max(seconds))
    turns: Dict[Key, Tuple[List[float], List[float]]] = {key: ([], []) for key in ready}
    sequence: List[Key] = []
    for number in range(max([plan.passes for plan in plans.values()], default=0)):
        sequence = list(reversed(sequence)) if number % 2 else rng.sample(sorted(ready), len(ready))
        for key in sequence:
            plan = plans[key[1]]
            if key in results or number >= plan.passes:
                continue
            peer = ready[key][0]
            try:
                said = stage.ask(peer, {"turn": [plan.inner, plan.calls]}, TURN_S)
                wall, cpu = float(said["wall"]), float(said["cpu"])
                if not (0 < wall < LIMIT and 0 <= cpu < LIMIT):
                    raise ProtocolError(f"a time of {wall!r} s")
                turns[key][0].append(wall)
                turns[key][1].append(cpu)
            except TimedOut:
                results[key] = without_number("timed out", f"a turn took more than {TURN_S:g} s")
                peer.kill()
            except Closed:
                results[key] = without_number("failed", died(exit_of(peer.id)))
            except (ProtocolError, KeyError, TypeError, ValueError) as error:
                results[key] = without_number("failed", f"the process said what it should not: {error}")
                peer.kill()
    return turns


def _end(peer: Peer, key: Key, results: Dict[Key, ChildResult]) -> None:
    """Lets a child tear down; what goes wrong there is a failure of the case."""
    try:
        peer.channel.send({"end": True})
        said = peer.channel.receive(30.0)
        if said.get("outcome") == "failed":
            results[key] = without_number("failed", f"tearing down: {said.get('reason', '')}")
    except Closed:
        pass  # the normal end: a child that tore down hangs up
    except (TimedOut, ProtocolError):
        peer.kill()
        results[key] = without_number("timed out", "tearing the case down took more than 30 s")
    peer.channel.close()
