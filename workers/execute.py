"""Performs one claimed run: prepare its environments, measure in rounds, store as it goes, give it its final state."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from core.analysis.samples import summarise
from core.errors import BuildFailed, FlashpointError, RunFailed, Stopped, Unavailable
from core.model import Outcome, Progress, RunPlan, RunState
from core.numerals import count
from core.settings import Settings
from core.versions import parse_spec
from db.records import Claim, MeasurementRecord
from db.store import LEASE_S, Store
from workers.conductor import Conductor, Place, Tally
from workers.environments import Environment
from workers.inventory import environments_of, record
from workers.launcher import Launcher, stage_suites
from workers.lease import Lease
from workers.spool import Spool

__all__ = ["LEASE_S", "Executor"]
log = logging.getLogger("flashpoint.run")
PROGRESS_S = 1.0
EXPLAINED = 20  # lines of a failed step's output


class Executor:
    """Performs claims on this node. ``say`` gets each line of the run's log as well; ``leaving`` gives the run back."""

    def __init__(
        self, settings: Settings, store: Store, say: Callable[[str], None], leaving: threading.Event | None = None
    ) -> None:
        self.leaving = leaving
        self.settings = settings
        self.store = store
        self.say = say

    def perform(self, claim: Claim) -> RunState | None:
        """Performs the run to its final state and returns it; None when it was given back or went to somebody else.

        Every error becomes the run's reason; nothing is raised for a run that fails.
        """
        with Lease(self.store, claim, leaving=self.leaving) as lease:
            state, reason = RunState.FAILED, ""
            performance, unbuilt = _Performance(self, claim, lease), None
            try:
                performance.run()
                state = RunState.FINISHED
            except Stopped as error:
                if not lease.lost.is_set() and lease.cancelled.is_set():
                    state, reason = RunState.CANCELLED, performance.cancelled()
                elif not lease.lost.is_set() and lease.leaving.is_set():
                    self._give_back(claim, lease)
                    return None
                else:
                    self.say(f"Run {claim.run_id} is no longer held by this worker: {error}")
                    return None
            except KeyboardInterrupt:
                reason = "Interrupted by the person who ran it in line."
                lease.patiently(lambda: self.store.finish(claim.run_id, claim.token, RunState.CANCELLED, reason))
                raise
            except BuildFailed as error:
                reason = f"While {error.step}: {error}" if error.step else str(error)
                unbuilt = error
            except FlashpointError as error:
                reason = str(error)
            except OSError as error:
                reason = f"The worker could not go on: {error.strerror or error} ({error.filename or 'no file'})."
                log.exception("run %s", claim.run_id)
            except Exception as error:  # a bug must end the run with a reason, not leave it running
                reason = (
                    f"A fault of Flashpoint ended the run: {type(error).__name__}: {error}. The worker's log has more."
                )
                log.exception("run %s", claim.run_id)
            try:
                if unbuilt is not None:
                    performance.explain(unbuilt)
                lease.patiently(lambda: self.store.finish(claim.run_id, claim.token, state, reason))
            except Stopped as error:
                self.say(f"Run {claim.run_id}: {error}")
                return None
            self.say(f"Run {claim.run_id} is {state}{': ' + reason if reason else ''}")
            return state

    def _give_back(self, claim: Claim, lease: Lease) -> None:
        reason = "The worker was stopped; the run was queued again."
        try:
            lease.patiently(lambda: self.store.give_back(claim.run_id, claim.token, reason))
        except (Stopped, Unavailable) as error:
            self.say(f"Run {claim.run_id} could not be given back: {error}")


class _Performance:
    """One run being performed."""

    def __init__(self, executor: Executor, claim: Claim, lease: Lease) -> None:
        self.settings, self.store, self.say = executor.settings, executor.store, executor.say
        self.claim, self.lease, self.plan = claim, lease, claim.plan
        self.lines: list[str] = []
        self.rounds_done = 0
        self.stage: tuple[object, ...] = ()
        self.shown = 0.0
        self.begun = time.monotonic()

    def run(self) -> None:
        environments = self._prepare()
        self.lease.patiently(lambda: self.store.set_state(self.claim.run_id, self.claim.token, RunState.RUNNING))
        private = self.settings.runs_dir / f"{self.claim.run_id}-{self.claim.attempt}"
        shutil.rmtree(private, ignore_errors=True)
        private.mkdir(parents=True)
        try:
            self._measure([environment.python for environment in environments], private)
        finally:
            for name in ("cache", "tmp", "home"):
                shutil.rmtree(private / name, ignore_errors=True)

    # -- environments ----------------------------------------------------------------------------------------------

    def _prepare(self) -> list[Environment]:
        made = environments_of(self.settings, self.note)
        ready: list[Environment] = []
        for position, spec in enumerate(self.plan.builds):
            self.progress(
                Progress(
                    "environments",
                    f"Preparing PyTorch {spec}",
                    rounds=self.plan.rounds,
                    environments=len(self.plan.builds),
                    environments_ready=position,
                ),
                now=True,
            )
            begun = time.monotonic()
            environment = made.prepare(parse_spec(spec), stop=self.lease.stopping)
            how = "was ready" if environment.reused else f"was built in {time.monotonic() - begun:.0f} s"
            self.note(f"Environment of PyTorch {environment.build.label}, Python {environment.python_version}, {how}.")
            build_id, environment_id = self.lease.patiently(
                lambda e=environment, s=spec: record(self.store, self.settings.node_name, s, e)  # type: ignore[misc]
            )
            self.lease.patiently(
                lambda p=position, b=build_id, e=environment_id: self.store.bind_build(  # type: ignore[misc]
                    self.claim.run_id, self.claim.token, p, b, e
                )
            )
            ready.append(environment)
        return ready

    # -- measuring -------------------------------------------------------------------------------------------------

    def _measure(self, pythons: list[Path], private: Path) -> None:
        spool = Spool(self.settings.spool_dir, self.claim.run_id, self.claim.attempt)
        stored = False
        try:
            suites = stage_suites(self.settings.data / "suites")
            with Launcher(suites, private, os.environ) as launcher:
                conductor = Conductor(
                    self.plan,
                    pythons,
                    launcher,
                    on_case=lambda number, case, results: spool.add(number, case.id, results),
                    on_progress=self.progress,
                    stop=self.lease.stopping,
                )
                what = f"{count(len(self.plan.cases), 'case')} on {count(len(pythons), 'build')}"
                self.note(f"Measuring {what}, seed {self.plan.seed}.")
                conductor.rounds(lambda done: self._store_round(conductor, done))
            if launcher.survivors:
                raise RunFailed(f"processes {launcher.survivors} could not be ended; end them by hand on the node")
            stored = True
        except Stopped:
            stored = not self.lease.lost.is_set()  # the rounds that are done are stored, the one under way is given up
            raise
        finally:
            spool.close(stored=stored)

    def _store_round(self, conductor: Conductor, done: int) -> None:
        records = records_of(conductor.tallies)
        self.lease.patiently(lambda: self.store.save_measurements(self.claim.run_id, self.claim.token, records))
        if done == 1:
            for sentence in _without_number(conductor.tallies, self.plan):
                self.note(sentence)
        self.rounds_done = done
        self.note(f"Round {done} of {self.plan.rounds} took {conductor.seconds[-1]:.1f} s.")
        self.progress(conductor.progress, now=True)

    def cancelled(self) -> str:
        """What a cancelled run says."""
        if not self.rounds_done:
            return "Cancelled before the first round was done; nothing was measured."
        return f"Cancelled after {count(self.rounds_done, 'round')}; what they measured is kept."

    def explain(self, error: BuildFailed) -> None:
        """The last lines of the step that failed, in the run's log."""
        for line in error.log.splitlines()[-EXPLAINED:]:
            self.note(f"{error.step}: {line}" if error.step else line)

    # -- saying ----------------------------------------------------------------------------------------------------

    def note(self, line: str) -> None:
        """A line of the run's log; what cannot be stored now goes with the next one."""
        self.say(f"Run {self.claim.run_id}: {line}")
        self.lines.append(line)
        try:
            self.store.log(self.claim.run_id, self.claim.token, self.lines)
        except Unavailable:
            return
        self.lines = []

    def progress(self, progress: Progress, now: bool = False) -> None:
        """Shows where the run is: each new stage, else once a second; in an outage of the database the page waits."""
        stage = (progress.phase, progress.round, progress.cases_done)
        if not now and stage == self.stage and time.monotonic() - self.shown < PROGRESS_S:
            return
        self.stage = stage
        self.shown = time.monotonic()
        try:
            self.store.set_progress(self.claim.run_id, self.claim.token, progress)
        except Unavailable:
            log.warning("progress of run %s was not stored: the database does not answer", self.claim.run_id)


def records_of(tallies: dict[Place, Tally]) -> list[MeasurementRecord]:
    """The measurements that the rounds so far make."""
    records = []
    for (case, variant, position), tally in tallies.items():
        if tally.outcome is not Outcome.OK:
            for metric in tally.metrics or {"time": {}}:
                sample = tally.sample(metric) if tally.metrics else None
                records.append(
                    MeasurementRecord(position, case, variant, metric, tally.outcome, tally.reason, sample=sample)
                )
            continue
        for metric in tally.metrics:
            sample = tally.sample(metric)
            found = summarise(sample)
            records.append(
                MeasurementRecord(
                    position,
                    case,
                    variant,
                    metric,
                    Outcome.OK,
                    "",
                    found.median,
                    found.ci_low,
                    found.ci_high,
                    found.spread,
                    sample,
                    tally.evidence,
                )
            )
    return records


def _without_number(tallies: dict[Place, Tally], plan: RunPlan) -> list[str]:
    """One line for each case, variant and build that gave no number."""
    return [
        f"{case} · {variant} on {plan.builds[position]}: {tally.outcome}: {tally.reason}"
        for (case, variant, position), tally in sorted(tallies.items())
        if tally.outcome is not Outcome.OK
    ]
