"""A round: one fresh zygote per build, all alive together; their cases take turns, one case after the other."""

from __future__ import annotations

import json
import random
import time
from typing import AbstractSet, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .authoring import Case
from .protocol import Closed, ProtocolError, TimedOut
from .stage import Peer, Stage
from .turns import ChildResult, Fork, Key, measure_case, without_number

IMPORT_S = 180.0

#: Starts ``serve`` for a build: (build, process name, extra arguments) -> a function that tells why the process is
#: gone.
Launch = Callable[[str, str, List[str]], Callable[[], Optional[str]]]


class RoundPlan(NamedTuple):
    """What one round measures.

    ``cpus`` pins the children (empty: not pinned); ``cold`` is true in the first round of a run; ``done`` are the (case
    id, build, variant) that need no more rounds.
    """

    number: int
    builds: Sequence[str]
    cases: Sequence[Case]
    seed: int
    cold: bool
    cpus: Sequence[int]
    done: AbstractSet[Tuple[str, str, str]] = frozenset()


class Crew:
    """The zygotes of one round."""

    def __init__(self, stage: Stage, launch: Launch, plan: RoundPlan, rng: random.Random) -> None:
        self.stage, self.launch, self.plan, self.rng = stage, launch, plan, rng
        self.zygotes: Dict[str, Peer] = {}
        self.absent: Dict[str, str] = {}
        self.exits: Dict[str, int] = {}
        self.cannot_fork: Dict[str, int] = {}
        self.suites = sorted({case.benchmark.suite.name for case in plan.cases})
        self.relaunched: Dict[str, Callable[[], Optional[str]]] = {}
        self.children = 0

    def assemble(self) -> None:
        """Starts all zygotes in a drawn order and waits for them; a build whose torch does not import is absent, with a
        reason.
        """
        builds = list(self.plan.builds)
        self.rng.shuffle(builds)
        extra = [word for suite in self.suites for word in ("--suite", suite)]
        gone = {build: self.launch(build, self._name(build), extra) for build in builds}
        for build in builds:
            try:
                self.zygotes[build] = self.stage.expect(self._name(build), IMPORT_S, gone[build])
            except TimedOut:
                self.absent[build] = f"importing torch took more than {IMPORT_S:g} s"
            except (Closed, ProtocolError) as error:
                self.absent[build] = f"torch could not be imported: {error}"
        for build, zygote in self.zygotes.items():
            if int(zygote.hello.get("threads", 1)) != 1:
                self.cannot_fork[build] = int(zygote.hello["threads"])

    def _name(self, build: str) -> str:
        return f"r{self.plan.number}-z{list(self.plan.builds).index(build)}"

    def fork(self, key: Key) -> Fork:
        return Fork(key, lambda order: self._start(key, order))

    def _start(self, key: Key, order: Dict[str, Any]) -> Tuple[str, Callable[[], Optional[str]]]:
        self.children += 1
        name = f"{self._name(key[0])}-c{self.children}"
        order = {**order, "id": name}
        zygote = self.zygotes[key[0]]
        if key[0] in self.cannot_fork:
            return name, self.launch(key[0], name, ["--child", json.dumps(order)])
        try:
            zygote.channel.send(order)
        except Closed:
            return name, lambda: "its zygote is gone"
        return name, lambda: self._never_comes(key[0], name, order)

    def _never_comes(self, build: str, name: str, order: Dict[str, Any]) -> Optional[str]:
        code = self.exit_of(name, 0.0)
        if code is not None:
            return f"it ended before it said hello (exit {code})"
        if build in self.cannot_fork:
            # A zygote with threads must not fork (children hang); from now on this build measures in fresh processes.
            if name not in self.relaunched:
                self.relaunched[name] = self.launch(build, name, ["--child", json.dumps(order)])
            return self.relaunched[name]()
        return None

    def exit_of(self, peer: str, seconds: float = 2.0) -> Optional[int]:
        """The exit code of a child that went away, as its zygote says; None when unknown."""
        build = next((b for b in self.zygotes if peer.startswith(self._name(b) + "-")), None)
        deadline = time.monotonic() + seconds
        while build is not None and peer not in self.exits:
            try:
                said = self.zygotes[build].channel.receive(max(0.01, deadline - time.monotonic()))
            except TimedOut:
                if time.monotonic() >= deadline:
                    break
                continue
            except (Closed, ProtocolError):
                break
            if "exited" in said:
                self.exits[str(said["exited"])] = int(said["code"])
            elif "cannot_fork" in said:
                self.cannot_fork[build] = int(said["threads"])
        return self.exits.get(peer)

    def dismiss(self) -> None:
        """Hangs up; a zygote whose conductor is gone ends."""
        for zygote in self.zygotes.values():
            zygote.channel.close()


def measure_round(
    stage: Stage,
    launch: Launch,
    plan: RoundPlan,
    on_case: Callable[[Case, Dict[Key, ChildResult]], None],
) -> None:
    """Performs one round and hands over each case's results, keyed by (build, variant), as soon as it is measured.

    The order of launching, of cases and of children is drawn from the plan's seed and number. Raises Stopping.
    """
    rng = random.Random(f"{plan.seed}/{plan.number}")
    crew = Crew(stage, launch, plan, rng)
    try:
        crew.assemble()
        cases = list(plan.cases)
        rng.shuffle(cases)
        for case in cases:
            wanted = [(b, v) for b in plan.builds for v in case.benchmark.variants if (case.id, b, v) not in plan.done]
            forks = [crew.fork(key) for key in wanted if key[0] in crew.zygotes]
            results = measure_case(stage, forks, rng, _order(plan, case), crew.exit_of)
            for key in wanted:
                if key[0] in crew.absent:
                    results[key] = without_number("failed", crew.absent[key[0]])
            on_case(case, results)
    finally:
        crew.dismiss()


def _order(plan: RoundPlan, case: Case) -> Callable[[Key], Dict[str, Any]]:
    def order(key: Key) -> Dict[str, Any]:
        return {
            "case": case.id,
            "variant": key[1],
            "seed": plan.seed,
            "cold": plan.cold,
            "cpus": list(plan.cpus),
        }

    return order
