"""Conducts a run: rounds over all its builds, what each case gave, and how far it is."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench_suites.kit.authoring import Case
from bench_suites.kit.catalog import find_case, load_suites
from bench_suites.kit.rounds import RoundPlan, measure_round
from bench_suites.kit.stage import Stage, Stopping
from bench_suites.kit.turns import ChildResult, Key
from core.errors import Stopped
from core.model import Outcome, Progress, RunPlan, Sample
from workers.launcher import Launcher


@dataclass
class Tally:
    """What the rounds so far say about one case, variant and build; ``metrics`` maps a name to turn values by round."""

    outcome: Outcome = Outcome.OK
    reason: str = ""
    evidence: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, dict[int, tuple[float, ...]]] = field(default_factory=dict)

    def add(self, number: int, result: ChildResult) -> None:
        self.outcome = Outcome(result.outcome)
        self.reason = result.reason
        if result.outcome != "ok":
            if number and result.outcome in ("failed", "timed out", "mismatch"):
                self.reason = f"in round {number + 1}: {result.reason}"
            return
        self.evidence = dict(result.evidence)
        self.metrics.setdefault("time", {})[number] = tuple(result.wall)
        self.metrics.setdefault("cpu_time", {})[number] = tuple(result.cpu)
        for name, value in result.metrics.items():
            self.metrics.setdefault(name, {})[number] = (value,)

    def sample(self, metric: str) -> Sample:
        rounds = self.metrics.get(metric, {})
        return Sample(tuple(sorted(rounds)), tuple(rounds[n] for n in sorted(rounds)))


#: (case id, variant, position of the build in the plan)
Place = tuple[str, str, int]


class Conductor:
    """Measures one run's plan in the given interpreters (baseline first).

    ``on_case`` is told of each case's results of a round as they come; ``on_progress`` of where the run is; ``stop`` is
    asked every quarter of a second.
    """

    def __init__(
        self,
        plan: RunPlan,
        pythons: Sequence[Path],
        launcher: Launcher,
        *,
        on_case: Callable[[int, Case, Mapping[Key, ChildResult]], None],
        on_progress: Callable[[Progress], None],
        stop: Callable[[], bool],
    ) -> None:
        catalog = load_suites()
        self.plan = plan
        self.cases = [find_case(catalog, case) for case in plan.cases]
        self.pythons = list(pythons)
        self.launcher = launcher
        self.on_case = on_case
        self.on_progress = on_progress
        self.stop = stop
        self.tallies: dict[Place, Tally] = {}
        self.seconds: list[float] = []
        self.begun = time.monotonic()
        self.progress = Progress(
            "measuring",
            rounds=plan.rounds,
            cases=len(self.cases),
            environments_ready=len(self.pythons),
            environments=len(self.pythons),
        )

    def rounds(self, after_round: Callable[[int], None]) -> None:
        """Performs all rounds; ``after_round`` gets the number of rounds done. Raises Stopped."""
        # A Unix socket's path holds about 100 bytes, so it lives in a short private folder and not among the run's
        # files.
        with tempfile.TemporaryDirectory(prefix="flashpoint-") as folder:
            stage = Stage(os.path.join(folder, "stage"), self.stop)
            try:
                for number in range(self.plan.rounds):
                    self._round(stage, number)
                    after_round(number + 1)
            except Stopping as error:
                raise Stopped("somebody asked the run to stop") from error
            finally:
                stage.close()

    def _round(self, stage: Stage, number: int) -> None:
        self.begun = time.monotonic()
        self._show(round=number, cases_done=0, case="", detail="Starting one fresh process a build")
        plan = RoundPlan(
            number=number,
            builds=[str(position) for position in range(len(self.pythons))],
            cases=self.cases,
            seed=self.plan.seed,
            cold=number == 0,
            cpus=pinned(),
            done=self._done(),
        )
        measure_round(
            stage,
            lambda build, name, extra: self.launcher.start(
                self.pythons[int(build)], name, ["serve", "--connect", stage.path, "--name", name, *extra]
            ),
            plan,
            lambda case, results: self._note(number, case, results),
        )
        self.seconds.append(time.monotonic() - self.begun)
        self._show(round=number + 1)

    def _note(self, number: int, case: Case, results: Mapping[Key, ChildResult]) -> None:
        for (build, variant), result in results.items():
            self.tallies.setdefault((case.id, variant, int(build)), Tally()).add(number, result)
        self.on_case(number, case, results)
        self._show(cases_done=self.progress.cases_done + 1, case=case.id, detail="")

    def _done(self) -> frozenset[tuple[str, str, str]]:
        """What needs no more rounds: a measurement that ended without a number says so once."""
        return frozenset((c, str(p), v) for (c, v, p), tally in self.tallies.items() if tally.outcome is not Outcome.OK)

    def _show(self, **changes: object) -> None:
        self.progress = replace(self.progress, **changes, seconds_left=self._seconds_left())  # type: ignore[arg-type]
        self.on_progress(self.progress)

    def _seconds_left(self) -> float | None:
        """From the rounds done and the plan's estimate; the first round also compiles and says little of the others."""
        planned = self.plan.estimate_s / self.plan.rounds
        known = self.seconds[1:]
        each = sum(known) / len(known) if known else min([planned, *self.seconds])
        running = time.monotonic() - self.begun if len(self.seconds) == self.progress.round else 0.0
        return max(0.0, each * (self.plan.rounds - len(self.seconds)) - running)


def pinned() -> list[int]:
    """The processor that takes the turns: the last one this process may use, so that the conductor keeps the others."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[-1:] if len(allowed) > 1 else []
