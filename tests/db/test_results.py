"""What is stored of a measurement, and what cannot be."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from sqlalchemy import Engine, func, select

from core.model import Outcome, RunState, Sample
from db.queries import Queries
from db.records import MeasurementRecord
from db.store import Store
from db.tables import measurements, samples, series
from db.transactions import reading
from tests.db.scenes import CASE, NODE, PLAN, bound, claimed, environment, record


def counts(engine: Engine) -> tuple[int, ...]:
    with reading(engine) as connection:
        return tuple(
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (series, measurements, samples)
        )


def test_a_measurement_reads_back_as_it_was_said(store: Store, queries: Queries) -> None:
    claim = bound(store)
    store.save_measurements(claim.run_id, claim.token, [record(0, 2.0), record(1, None)])
    old, new = queries.measurements([claim.run_id], with_samples=True)
    assert (old.run_id, old.case, old.suite, old.revision, old.variant) == (
        claim.run_id,
        CASE,
        "cpu-fusion",
        1,
        "eager",
    )
    assert (old.metric, old.unit, old.build, old.node, old.outcome) == (
        "time",
        "s",
        "1.10.2+cpu",
        NODE.name,
        Outcome.OK,
    )
    assert (old.value, old.ci_low, old.ci_high, old.n, old.samples) == (2.0, 1.8, 2.2, 2, 3)
    assert (old.evidence, old.sample) == ({"load": "0.3"}, record(0, 2.0).sample)
    assert (new.build, new.outcome, new.reason) == ("2.13.0+cpu", Outcome.UNSUPPORTED, "No LLVM back end.")
    assert (new.value, new.ci_low, new.ci_high, new.n, new.samples, new.sample) == (None, None, None, 0, 0, None)
    assert queries.measurements([claim.run_id])[0].sample is None


def test_said_again_is_replaced_not_doubled(store: Store, queries: Queries, engine: Engine) -> None:
    claim = bound(store)
    for value in (2.0, 3.0):
        store.save_measurements(claim.run_id, claim.token, [record(0, value), record(1, value)])
    assert counts(engine) == (1, 2, 2)
    assert [view.value for view in queries.measurements()] == [3.0, 3.0]
    store.save_measurements(claim.run_id, claim.token, [record(0, None)])
    assert counts(engine) == (1, 2, 1)
    assert {view.outcome for view in queries.measurements()} == {Outcome.UNSUPPORTED, Outcome.OK}


def test_a_failed_measurement_keeps_the_values_it_got_to(store: Store, queries: Queries) -> None:
    claim = bound(store)
    partial = Sample((1,), ((0.5, 0.6),))
    store.save_measurements(claim.run_id, claim.token, [record(0, None, outcome=Outcome.TIMED_OUT, sample=partial)])
    (found,) = queries.measurements(with_samples=True)
    assert (found.outcome, found.value, found.n, found.samples, found.sample) == (
        Outcome.TIMED_OUT,
        None,
        1,
        2,
        partial,
    )


def test_series_differ_by_what_they_are_made_of_and_not_by_build_or_run(store: Store, engine: Engine) -> None:
    one = bound(store)
    store.save_measurements(one.run_id, one.token, [record(0), record(1), record(0, variant="nnc")])
    assert counts(engine)[0] == 2
    store.finish(one.run_id, one.token, RunState.FINISHED)
    two = bound(store, key="k2")
    store.save_measurements(two.run_id, two.token, [record(0), record(0, metric="cpu_time")])
    assert counts(engine)[0] == 3
    store.finish(two.run_id, two.token, RunState.FINISHED)
    three = bound(store, replace(PLAN, revision=2), key="k3")
    store.save_measurements(three.run_id, three.token, [record(0)])
    store.register_node(replace(NODE, threads=4))
    store.save_measurements(three.run_id, three.token, [record(0)])
    assert counts(engine)[0] == 5


def test_a_thousand_measurements_of_a_run(store: Store, queries: Queries, engine: Engine) -> None:
    claim = bound(store)
    many = [record(at % 2, 1.0 + at, variant=f"v{at // 2}") for at in range(1000)]
    store.save_measurements(claim.run_id, claim.token, many)
    store.save_measurements(claim.run_id, claim.token, many)
    assert counts(engine) == (500, 1000, 1000)
    found = {(view.variant, view.build): view.value for view in queries.measurements([claim.run_id])}
    assert found["v499", "2.13.0+cpu"] == 1000.0 and found["v499", "1.10.2+cpu"] == 999.0


def test_nothing_is_stored_for_a_build_that_is_not_resolved(store: Store, engine: Engine) -> None:
    claim = claimed(store)
    with pytest.raises(ValueError, match="before they were bound"):
        store.save_measurements(claim.run_id, claim.token, [record(0)])
    store.save_measurements(claim.run_id, claim.token, [])
    assert counts(engine) == (0, 0, 0)


def test_a_measurement_said_twice_at_once_is_a_bug(store: Store, engine: Engine) -> None:
    claim = bound(store)
    with pytest.raises(ValueError, match="twice"):
        store.save_measurements(claim.run_id, claim.token, [record(0), record(1), record(0, 9.0)])
    assert counts(engine) == (0, 0, 0)


def test_the_environment_of_a_measurement_is_known(store: Store, engine: Engine) -> None:
    claim = bound(store)
    with reading(engine) as connection:
        build_id = connection.exec_driver_sql("SELECT id FROM builds WHERE label = '1.10.2+cpu'").scalar_one()
    environment_id = store.record_environment(environment(build_id))
    store.bind_build(claim.run_id, claim.token, 0, build_id, environment_id)
    store.save_measurements(claim.run_id, claim.token, [record(0)])
    with reading(engine) as connection:
        assert connection.scalar(select(measurements.c.environment_id)) == environment_id


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"metric": "speed"}, "not in the table"),
        ({"value": None}, "no value"),
        ({"outcome": Outcome.FAILED}, "has numbers"),
        ({"value": math.nan}, "not all finite"),
        ({"ci_high": math.inf}, "not all finite"),
        ({"ci_low": 3.0, "ci_high": 1.0}, "wrong way round"),
        ({"sample": Sample((1, 1), ((1.0,), (2.0,)))}, "all different"),
        ({"sample": Sample((1,), ((1.0,), (2.0,)))}, "one number each"),
        ({"sample": Sample((1,), ((1.0, math.nan),))}, "raw value"),
    ],
)
def test_a_record_that_cannot_be_true_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(record(0), **changes)  # type: ignore[arg-type]


def test_a_record_may_lack_an_interval() -> None:
    one = MeasurementRecord(0, CASE, "eager", "orthogonality_error", Outcome.OK, value=0.0)
    assert (one.rounds, one.values) == (0, 0)
