"""What the store's tests begin with: nodes, builds, queued and claimed runs, and leases that ran out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sqlalchemy import Engine, update

from core.model import Outcome, RequestSpec, RunPlan, Sample
from db.records import BuildFacts, Claim, EnvironmentFacts, MeasurementRecord, NodeFacts
from db.store import Store
from db.tables import EnvironmentState, device_locks, runs
from db.transactions import database_now, writing

GIB = 1024**3
NODE = NodeFacts("epyc-01", "AMD EPYC 7B13", 8, 31 * GIB, {"cpu": "AMD EPYC 7B13"}, {"kernel": "6.1"})
PLAN = RunPlan(
    suite="cpu-fusion",
    revision=1,
    cases=("cpu-fusion/chain[n=65536]", "cpu-fusion/gelu[n=256]"),
    builds=("1.10.2", "2.13.0"),
    preset="quick",
    rounds=8,
    seed=7,
    estimate_s=90.5,
)
OLD = BuildFacts("1.10.2+cpu", "1.10.2", "1.10.2", "release", "71f889c", "cpu", {"python": "3.9.18"})
NEW = BuildFacts("2.13.0+cpu", "2.13.0", "2.13.0", "release", "aa11bb2", "cpu")
CASE = PLAN.cases[0]


def spec(key: str = "k1", plan: RunPlan = PLAN, node: str = NODE.name) -> RequestSpec:
    return RequestSpec((plan.suite,), None, plan.builds, node, plan.preset, key)


def queue(store: Store, *plans: RunPlan, key: str = "k1", node: NodeFacts = NODE) -> tuple[int, ...]:
    """Runs in the queue of a node, which is registered if need be."""
    store.register_node(node)
    return store.submit(spec(key, node=node.name), plans or (PLAN,)).run_ids


def claimed(store: Store, plan: RunPlan = PLAN, key: str = "k1", node: NodeFacts = NODE) -> Claim:
    """A run that was queued and claimed."""
    queue(store, plan, key=key, node=node)
    claim = store.claim(node.name, plan.device, "w1")
    assert claim is not None
    return claim


def environment(build_id: int, name: str = "e1", state: EnvironmentState = EnvironmentState.READY) -> EnvironmentFacts:
    return EnvironmentFacts(
        name, build_id, NODE.name, "1.10.2", "3.9.18", state, "torch==1.10.2\n", {"omp": "gnu"}, 900
    )


def bound(store: Store, plan: RunPlan = PLAN, key: str = "k1", builds: tuple[BuildFacts, ...] = (OLD, NEW)) -> Claim:
    """A claimed run whose builds are resolved."""
    claim = claimed(store, plan, key)
    for position, facts in enumerate(builds):
        store.bind_build(claim.run_id, claim.token, position, store.record_build(facts))
    return claim


def record(position: int = 0, value: float | None = 2.0, **changes: object) -> MeasurementRecord:
    """A measurement of the metric time over two rounds, or one that is unsupported when there is no value."""
    if value is None:
        bare = MeasurementRecord(position, CASE, "eager", "time", Outcome.UNSUPPORTED, "No LLVM back end.")
        return replace(bare, **changes)  # type: ignore[arg-type]
    sample = Sample((1, 2), ((value, value * 1.5), (value / 2,)))
    whole = MeasurementRecord(
        position, CASE, "eager", "time", Outcome.OK, "", value, value * 0.9, value * 1.1, 0.1, sample, {"load": "0.3"}
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def expire(engine: Engine, run_id: int) -> None:
    """Let the lease of a run end a second ago, by the database's clock; nothing when no lease is held."""
    with writing(engine) as connection:
        ago = database_now(connection) - timedelta(seconds=1)
        connection.execute(update(device_locks).where(device_locks.c.run_id == run_id).values(until=ago))
        leased = runs.c.lease_until.is_not(None)
        connection.execute(update(runs).where(runs.c.id == run_id, leased).values(lease_until=ago))
