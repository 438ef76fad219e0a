"""Raw samples survive to the last bit."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.model import Outcome, Sample
from db.queries import Queries
from db.records import MeasurementRecord
from db.samples import pack, unpack
from db.store import Store
from tests.db.scenes import CASE, bound

VALUES = st.floats(allow_nan=False, allow_infinity=False)
SAMPLES = st.dictionaries(st.integers(0, 2**31 - 1), st.lists(VALUES, max_size=40).map(tuple), max_size=8).map(
    lambda rounds: Sample(tuple(rounds), tuple(rounds.values()))
)


@given(SAMPLES)
def test_a_sample_reads_back_bit_by_bit(sample: Sample) -> None:
    back = unpack(pack(sample))
    assert back == sample
    assert bits(back) == bits(sample)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(samples=st.lists(SAMPLES, min_size=1, max_size=3))
def test_a_sample_reads_back_from_the_database(store: Store, queries: Queries, samples: list[Sample]) -> None:
    if not hasattr(store, "claim_of_test"):  # one run for all examples: a later save replaces what an earlier one said
        store.claim_of_test = bound(store)  # type: ignore[attr-defined]
    claim = store.claim_of_test  # type: ignore[attr-defined]
    variants = [f"v{number}" for number in range(len(samples))]
    records = [
        MeasurementRecord(0, CASE, variant, "time", Outcome.OK, value=1.0, sample=sample)
        for variant, sample in zip(variants, samples, strict=True)
    ]
    store.save_measurements(claim.run_id, claim.token, records)
    found = {view.variant: view for view in queries.measurements([claim.run_id], with_samples=True)}
    for variant, sample in zip(variants, samples, strict=True):
        assert found[variant].sample == sample
        assert (found[variant].n, found[variant].samples) == (len(sample.rounds), sum(map(len, sample.rounds)))


def bits(sample: Sample) -> list[bytes]:
    return [struct.pack("<d", value) for turns in sample.rounds for value in turns]  # -0.0 is not 0.0 here


def test_a_blob_is_small() -> None:
    sample = Sample(tuple(range(13)), tuple(tuple(4.2e-6 for _ in range(24)) for _ in range(13)))
    assert len(pack(sample)) < 500


def test_damage_and_other_formats_are_noticed() -> None:
    blob = pack(Sample((1,), ((1.0, 2.0),)))
    with pytest.raises(ValueError, match="newer Flashpoint"):
        unpack(b"\x02" + blob[1:])
    with pytest.raises(zlib.error):
        unpack(blob[:-3])
    with pytest.raises(ValueError, match="round numbers"):
        pack(Sample((1, 2), ((1.0,),)))
