"""Rounds with real processes: zygotes, forks and turns, on a stand-in torch and a suite that misbehaves in every
way.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bench_suites
from bench_suites.kit import turns
from bench_suites.kit.authoring import Case
from bench_suites.kit.catalog import find_case
from bench_suites.kit.rounds import RoundPlan, measure_round
from bench_suites.kit.stage import Stage, Stopping
from bench_suites.kit.turns import ChildResult, Key, plan_turns

TORCH = """
import os, threading
__version__ = "1.99.0"
class Tensor: pass
class cuda:
    is_available = staticmethod(lambda: False)
def manual_seed(seed): pass
def set_num_threads(n): pass
if os.path.exists(os.path.join(os.path.dirname(__file__), "thread")):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
if os.environ.get("BROKEN"):
    raise ImportError("libtorch.so is damaged")
"""

SUITE = """
import os, signal, time
from bench_suites.kit import Needs, Skipped, Suite, Unsupported, Variants, prepared
suite = Suite("hostile", question="?", revision=1, reference="plain", needs=Needs())

def busy(n):
    return sum(range(n))

@suite.benchmark()
def behaves(ctx):
    ctx.evidence("pid", os.getpid())
    yield Variants(plain=lambda: busy(2000), same=lambda: busy(2000), half=prepared(lambda: halved()))

def halved():
    return lambda: busy(2000)

@suite.benchmark()
def misbehaves(ctx):
    def segfault(): os.kill(os.getpid(), signal.SIGSEGV)
    def leave(): os._exit(7)
    def hang(): time.sleep(600)
    def no(): raise Unsupported("this build lacks it")
    def skip(): raise Skipped("this node lacks it")
    def wrong(): raise ValueError("a bug of the author")
    yield Variants(plain=lambda: 1, other=lambda: 2, segfault=segfault, leave=leave, hang=hang,
                   unsupported=prepared(no), skipped=prepared(skip), wrong=wrong)

@suite.benchmark()
def dies_later(ctx):
    calls = []
    def call():
        calls.append(1)
        if len(calls) > 400: os.kill(os.getpid(), signal.SIGKILL)
        return busy(20000)
    yield Variants(plain=call)

@suite.benchmark()
def absurd(ctx):
    def huge():
        ctx.record("compile_time", 1e308)
        return lambda: 1
    def negative():
        ctx.record("compile_time", -5)
        return lambda: 1
    yield Variants(plain=lambda: 1, huge=prepared(huge), negative=prepared(negative), infinite=lambda: float("inf"))

@suite.benchmark()
def bad_tear_down(ctx):
    yield Variants(plain=lambda: busy(2000))
    raise RuntimeError("left something open")
"""


class Bench:
    """A folder with the kit, the stand-in torch and the suite, and the processes started from it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environ: dict[str, dict[str, str]] = {}
        kit = Path(bench_suites.__file__).parent / "kit"
        shutil.copytree(kit, folder / "bench_suites" / "kit", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "bench_suites" / "__init__.py").touch()
        (folder / "bench_suites" / "hostile.py").write_text(SUITE)
        (folder / "torch").mkdir()
        (folder / "torch" / "__init__.py").write_text(TORCH)
        space: dict[str, object] = {}
        exec(compile(SUITE, str(folder / "bench_suites" / "hostile.py"), "exec"), space)  # noqa: S102 (the text above)
        self.suite = space["suite"]
        self.told = threading.Event()
        self.stage = Stage(str(folder / "s"), self.told.is_set)

    def case(self, name: str) -> Case:
        return find_case({"hostile": self.suite}, f"hostile/{name}")  # type: ignore[dict-item]

    def launch(self, build: str, name: str, extra: list[str]) -> Callable[[], str | None]:
        command = [
            sys.executable,
            "-m",
            "bench_suites.kit",
            "serve",
            "--connect",
            self.stage.path,
            "--name",
            name,
            *extra,
        ]
        with (self.folder / "output.log").open("ab") as log:
            environ = {**os.environ, **self.environ.get(build, {})}
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env=environ)
        self.processes.append(process)
        return lambda: None if process.poll() is None else f"exit code {process.returncode}"

    def round(self, *names: str, builds: tuple[str, ...] = ("a", "b")) -> dict[str, dict[Key, ChildResult]]:
        found: dict[str, dict[Key, ChildResult]] = {}
        plan = RoundPlan(0, builds, [self.case(name) for name in names], seed=3, cold=True, cpus=[])
        measure_round(self.stage, self.launch, plan, lambda case, results: found.update({case.benchmark.name: results}))
        return found

    def close(self) -> None:
        self.stage.close()
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # The suite's source must be readable by inspect in this process too.
    folder = tmp_path_factory.mktemp("b")
    made = Bench(folder, monkeypatch)
    yield made
    made.close()


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
    return False


def test_children_take_turns_and_every_pass_has_one_turn_of_each(bench: Bench) -> None:
    results = bench.round("behaves")["behaves"]
    assert set(results) == {(b, v) for b in "ab" for v in ("plain", "same", "half")}
    assert {r.outcome for r in results.values()} == {"ok"}
    for result in results.values():
        assert len(result.wall) == len(result.cpu) == 24
        assert all(0 < value < 1 for value in result.wall)
    pids = {r.evidence["pid"] for r in results.values()}
    assert len(pids) == 6  # a process each


def test_a_child_that_misbehaves_ends_only_its_own_measurement(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SET_UP_S", 3.0)
    found = bench.round("misbehaves", "behaves", builds=("a",))
    outcomes = {variant: (r.outcome, r.reason) for (_, variant), r in found["misbehaves"].items()}
    assert outcomes["plain"][0] == "ok"
    assert outcomes["other"] == ("mismatch", "the output is 2 instead of 1")
    assert outcomes["segfault"] == ("failed", "the process was killed by SIGSEGV")
    assert outcomes["leave"] == ("failed", "the process ended with exit code 7")
    assert outcomes["hang"] == ("timed out", "setting the case up took more than 3 s")
    assert outcomes["unsupported"] == ("unsupported", "this build lacks it")
    assert outcomes["skipped"] == ("skipped", "this node lacks it")
    assert outcomes["wrong"][0] == "failed"
    assert "ValueError: a bug of the author (hostile.py:" in outcomes["wrong"][1]
    assert {r.outcome for r in found["behaves"].values()} == {"ok"}


def test_a_child_killed_between_turns_is_failed_and_the_others_go_on(bench: Bench) -> None:
    found = bench.round("dies_later", "behaves", builds=("a",))
    assert found["dies_later"]["a", "plain"].outcome == "failed"
    assert "SIGKILL" in found["dies_later"]["a", "plain"].reason
    assert found["dies_later"]["a", "plain"].wall == []
    assert {r.outcome for r in found["behaves"].values()} == {"ok"}


def test_a_failing_tear_down_is_a_failure_of_the_case(bench: Bench) -> None:
    result = bench.round("bad_tear_down", builds=("a",))["bad_tear_down"]["a", "plain"]
    assert result.outcome == "failed"
    assert "left something open" in result.reason


def test_a_build_whose_torch_does_not_import_fails_and_the_other_is_measured(bench: Bench) -> None:
    bench.environ["b"] = {"BROKEN": "yes"}
    results = bench.round("behaves")["behaves"]
    assert {r.outcome for (b, _), r in results.items() if b == "a"} == {"ok"}
    assert {(r.outcome, r.reason) for (b, _), r in results.items() if b == "b"} == {
        ("failed", "torch could not be imported: exit code 1")
    }


def test_a_zygote_with_threads_never_forks_and_measures_in_fresh_processes(bench: Bench) -> None:
    (bench.folder / "torch" / "thread").touch()
    results = bench.round("behaves")["behaves"]
    assert {r.outcome for r in results.values()} == {"ok"}
    assert len(bench.processes) == 2 + 6  # two zygotes that did not fork, and a process for each child


def test_every_process_ends_when_the_conductor_hangs_up(bench: Bench) -> None:
    pids = [int(r.evidence["pid"]) for r in bench.round("behaves")["behaves"].values()]
    for process in bench.processes:
        assert process.wait(timeout=20) == 0
    assert all(gone(pid) for pid in pids)


def test_children_die_with_a_zygote_that_is_killed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = turns._all_turns

    def kill_first(stage, ready, *rest):  # type: ignore[no-untyped-def]
        seen.extend(peer.pid for peer, _ in ready.values())
        bench.processes[0].send_signal(signal.SIGKILL)
        return original(stage, ready, *rest)

    monkeypatch.setattr(turns, "_all_turns", kill_first)
    results = bench.round("behaves", builds=("a",))["behaves"]
    assert {r.outcome for r in results.values()} == {"failed"}
    assert len(seen) == 3 and all(gone(pid) for pid in seen)


def test_a_stop_is_obeyed_while_a_child_hangs(bench: Bench) -> None:
    threading.Timer(1.0, bench.told.set).start()
    with pytest.raises(Stopping):
        bench.round("misbehaves", builds=("a",))


def test_a_peer_of_another_protocol_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.folder / "bench_suites" / "kit" / "protocol.py"
    path.write_text(path.read_text().replace("VERSION = 1", "VERSION = 2"))
    results = bench.round("behaves", builds=("a",))["behaves"]
    assert {r.outcome for r in results.values()} == {"failed"}
    assert "speaks protocol version 2, not 1" in next(iter(results.values())).reason


def test_turns_are_sized_by_the_slowest_and_batched_by_the_fastest_build() -> None:
    assert plan_turns(5e-3, 5e-3) == (1, 1, 32)  # a call of more than a millisecond is a turn by itself
    assert plan_turns(100e-6, 100e-6) == (1, 30, 24)
    tiny = plan_turns(1e-6, 2e-6)
    assert tiny.inner == 30 and tiny.calls == 50 and tiny.passes == 24
    assert plan_turns(0.5, 0.5).passes == 6  # half a second a call: six turns are all the budget holds
    assert plan_turns(1e-6, 0.9e-3).calls >= 1


def test_orders_are_drawn_from_the_seed_and_balanced(bench: Bench) -> None:
    order: list[str] = []
    ask = bench.stage.ask

    def note(peer, message, seconds):  # type: ignore[no-untyped-def]
        order.append(peer.id)
        return ask(peer, message, seconds)

    bench.stage.ask = note  # type: ignore[method-assign]
    bench.round("behaves")
    passes = [order[i : i + 6] for i in range(0, len(order), 6)]
    assert len(passes) == 24
    assert all(sorted(one) == sorted(passes[0]) for one in passes)
    assert all(passes[i + 1] == passes[i][::-1] for i in range(0, 24, 2))
    assert len({tuple(one) for one in passes[::2]}) > 6


def test_absurd_numbers_fail_their_own_measurement(bench: Bench) -> None:
    results = bench.round("absurd", builds=("a",))["absurd"]
    assert results["a", "plain"].outcome == "ok"
    for variant in ("huge", "negative"):
        assert results["a", variant].outcome == "failed"
        assert "a metric is a number from 0 on, below 1e+100" in results["a", variant].reason
    assert results["a", "infinite"][:2] == ("mismatch", "the output is inf instead of 1")
