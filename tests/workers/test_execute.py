"""Whole runs on stand-in builds: real environments, real processes, real SQL; every end has its state and reason."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from core.catalog import catalog
from core.errors import UserError
from core.model import Outcome, RunState, RunView
from core.settings import Settings, settings_from
from core.usecases import SubmitInput, plan, submit
from db.engine import make_engine, migrate
from db.queries import Queries
from db.records import Claim
from db.store import Store
from tests.standin import stock, torch_wheel
from workers.execute import Executor
from workers.lease import Lease
from workers.node import node_facts

#: Enough of torch for the eager variants of cpu-fusion; no TorchScript, no torch.compile.
BODY = """
import os
class Tensor:
    def _same(self, *given): return self
    __add__ = __radd__ = __mul__ = __rmul__ = relu = _same
def randn(*shape): return Tensor()
def manual_seed(seed): pass
def set_num_threads(count): pass
"""
CASE = "chain[n=256]"


class Place:
    """A node with stand-in builds in its only package source, and a database."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        wheels = folder / "wheels"
        for name, value in stock(wheels).items():
            monkeypatch.setenv(name, value)
        for version in ("2.12.0", "2.13.0"):
            torch_wheel(wheels, version, body=BODY)
        torch_wheel(wheels, "2.11.0", body="raise ImportError('libtorch.so is damaged')")
        torch_wheel(wheels, "2.10.0", body=BODY + "\nimport time, sys\nif 'serve' in sys.argv: time.sleep(600)")
        self.settings: Settings = settings_from(
            {
                "FLASHPOINT_DATA": str(folder / "data"),
                "FLASHPOINT_NODE_NAME": "node-1",
                "FLASHPOINT_TORCH_BACKEND": "off",
            }
        )
        self.settings.data.mkdir()
        engine = make_engine(self.settings.database_url)
        migrate(engine)
        self.engine, self.store, self.queries = engine, Store(engine), Queries(engine)
        self.store.register_node(node_facts("node-1"))
        self.said: list[str] = []

    def claim(self, *builds: str, case: str = CASE) -> Claim:
        given = SubmitInput(("cpu-fusion",), case, builds)
        done = submit(self.store, self.queries, catalog(), given)
        claim = self.store.claim("node-1", "cpu", "test", 30)
        assert claim is not None and claim.run_id == done.run_ids[0]
        return claim

    def perform(self, claim: Claim) -> RunView:
        Executor(self.settings, self.store, self.said.append).perform(claim)
        return self.queries.run(claim.run_id)

    def device_is_free(self) -> bool:
        with self.engine.connect() as connection:
            return connection.execute(text("select run_id from device_locks")).scalars().all() == [None]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    made = Place(tmp_path, monkeypatch)
    yield made
    made.engine.dispose()


def measured_processes(folder: Path) -> list[int]:
    """Processes that were started for runs in this data folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder) in (entry / "cmdline").read_bytes().decode("utf-8", "replace"):
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def until(check: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def test_a_run_is_measured_stored_and_finished(place: Place) -> None:
    run = place.perform(place.claim("2.12.0", "2.13.0"))
    assert (run.state, run.reason) == (RunState.FINISHED, "")
    assert run.builds == ("2.12.0", "2.13.0")
    assert run.progress.round == run.plan.rounds == 8
    assert run.started_at and run.prepared_at and run.finished_at
    rows = place.queries.measurements([run.id], with_samples=True)
    eager = {row.build: row for row in rows if (row.variant, row.metric) == ("eager", "time")}
    assert set(eager) == {"2.12.0", "2.13.0"}
    for row in eager.values():
        assert row.outcome is Outcome.OK and row.n == 8 and row.samples == 8 * 24
        assert row.sample is not None and row.sample.numbers == tuple(range(8))
        assert row.ci_low <= row.value <= row.ci_high  # type: ignore[operator]
    compiled = next(row for row in rows if row.variant == "compile")
    assert (compiled.outcome, compiled.reason) == (Outcome.UNSUPPORTED, "torch.compile came with 2.0")
    failed = next(row for row in rows if row.variant == "nnc")
    assert failed.outcome is Outcome.FAILED and "AttributeError" in failed.reason and "cpu_fusion.py" in failed.reason
    assert place.device_is_free()
    assert list(place.settings.spool_dir.iterdir()) == []
    assert [line.text for line in place.queries.run_log(run.id)][-1].startswith("Round 8 of 8 took")
    assert measured_processes(place.settings.data) == []


def test_environments_are_shared_by_runs(place: Place) -> None:
    place.perform(place.claim("2.12.0", "2.13.0"))
    again = place.perform(place.claim("2.12.0", "2.13.0"))
    assert any("was ready" in line.text for line in place.queries.run_log(again.id))
    assert len(place.queries.builds()) == 2


def test_a_build_that_does_not_exist_fails_the_run_with_a_sentence(place: Place) -> None:
    run = place.perform(place.claim("2.12.0", "2.12.9"))
    assert run.state is RunState.FAILED
    assert run.reason.startswith("While ") and "PyTorch 2.12.9 does not exist" in run.reason
    assert "\n" not in run.reason
    assert any("torch==2.12.9" in line.text for line in place.queries.run_log(run.id))  # the installer's own words
    assert place.device_is_free()
    assert [view.label for view in place.queries.builds() if view.state == "ready"] == ["2.12.0"]


def test_a_build_that_no_python_here_supports_fails_the_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.environments.found_pythons", lambda *_: ())
    run = place.perform(place.claim("2.12.0", "2.13.0"))
    assert run.state is RunState.FAILED
    assert "needs Python" in run.reason and "FLASHPOINT_PYTHONS" in run.reason


def test_a_torch_that_does_not_import_leaves_no_environment(place: Place) -> None:
    run = place.perform(place.claim("2.11.0", "2.12.0"))
    assert run.state is RunState.FAILED
    assert "import" in run.reason and "libtorch.so is damaged" in run.reason
    left = [entry.name for entry in place.settings.environments_dir.iterdir() if not entry.name.startswith(".")]
    assert left == []


def test_a_cancel_is_obeyed_within_seconds_and_leaves_nothing(place: Place) -> None:
    claim = place.claim("2.12.0", "2.10.0")  # importing 2.10.0 hangs
    worker = threading.Thread(target=place.perform, args=(claim,))
    worker.start()
    until(lambda: place.queries.run(claim.run_id).state is RunState.RUNNING)
    until(lambda: len(measured_processes(place.settings.environments_dir)) >= 2)
    assert place.store.request_cancel(claim.run_id) is RunState.RUNNING
    asked = time.monotonic()
    worker.join(timeout=60)
    assert not worker.is_alive()
    assert time.monotonic() - asked < 30
    run = place.queries.run(claim.run_id)
    assert run.state is RunState.CANCELLED and "Cancelled" in run.reason
    assert measured_processes(place.settings.environments_dir) == []
    assert place.device_is_free()


def test_a_worker_that_lost_its_lease_writes_nothing_more(place: Place) -> None:
    claim = place.claim("2.12.0", "2.10.0")
    worker = threading.Thread(target=place.perform, args=(claim,))
    worker.start()
    until(lambda: place.queries.run(claim.run_id).state is RunState.RUNNING)
    with place.engine.begin() as connection:  # as if the worker had slept past its lease and another took the run
        connection.execute(text("update runs set lease_token = lease_token + 1"))
        connection.execute(text("update device_locks set token = token + 1"))
    worker.join(timeout=60)
    assert not worker.is_alive()
    run = place.queries.run(claim.run_id)
    assert (run.state, run.reason) == (RunState.RUNNING, "")
    assert measured_processes(place.settings.environments_dir) == []
    assert any("no longer held" in line for line in place.said)


def test_a_fault_of_flashpoint_itself_ends_the_run_with_a_reason(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("workers.execute.records_of", broken)
    run = place.perform(place.claim("2.12.0", "2.13.0"))
    assert run.state is RunState.FAILED
    assert "A fault of Flashpoint ended the run: ZeroDivisionError" in run.reason
    assert len(list(place.settings.spool_dir.iterdir())) == 1  # what was measured is still on disk


def test_an_outage_of_the_database_is_waited_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.errors import Unavailable

    save, failures = place.store.save_measurements, iter(range(3))

    def away(*given: object) -> None:
        if next(failures, None) is not None:
            raise Unavailable("The database does not answer.")
        save(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(place.store, "save_measurements", away)
    run = place.perform(place.claim("2.12.0", "2.13.0"))
    assert run.state is RunState.FINISHED
    assert {row.n for row in place.queries.measurements([run.id]) if row.outcome is Outcome.OK} == {8}


def test_the_heartbeat_keeps_a_lease_that_is_shorter_than_the_run(place: Place) -> None:
    claim = place.claim("2.12.0", "2.13.0")
    with Lease(place.store, claim, lease_s=5):
        time.sleep(7)
        assert place.store.reap() == ()
        assert place.store.renew(claim.run_id, claim.token).held


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"suites": ("nope",)}, "There is no suite 'nope'; there are cpu-fusion"),
        ({"suites": ()}, "No suite is chosen"),
        ({"case_glob": "zzz*"}, "No case of cpu-fusion matches 'zzz*'"),
        ({"builds": ()}, "No build is chosen"),
        ({"builds": ("2.12.0", "2.12.0")}, "is named twice"),
        ({"builds": ("2.12.0", "--help")}, "--help"),
        ({"builds": ("2.12.0; rm -rf /",)}, "rm"),
        ({"builds": ("nightly",)}, "nightly"),
        ({"preset": "fast"}, "There is no preset 'fast'; choose quick, standard, thorough"),
        ({"node": "elsewhere"}, "There is no node 'elsewhere'; there are node-1"),
    ],
)
def test_what_cannot_be_queued_is_refused_in_one_sentence(
    place: Place, change: dict[str, object], sentence: str
) -> None:
    from dataclasses import replace

    given = replace(SubmitInput(("cpu-fusion",), None, ("2.12.0", "2.13.0")), **change)  # type: ignore[arg-type]
    with pytest.raises(UserError) as refused:
        submit(place.store, place.queries, catalog(), given)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert place.queries.runs() == ()


def test_quick_takes_fewer_cases_unless_they_are_named(place: Place) -> None:
    given = SubmitInput(("cpu-fusion", "parametrizations"), None, ("2.12.0", "2.13.0"))
    quick = plan(place.queries, catalog(), given)
    assert all(run.estimate_s > 0 for run in quick.runs)
    standard = plan(place.queries, catalog(), SubmitInput(given.suites, None, given.builds, preset="standard"))
    assert quick.cases < standard.cases
    assert quick.estimate_s < standard.estimate_s
    named = plan(place.queries, catalog(), SubmitInput(("cpu-fusion",), "chain*", given.builds))
    assert named.cases == 3
    assert any("2.12.0 is not installed on node-1 yet" in note for note in named.notes)
