"""The command alone, no broker, two real builds: the product finds what is known to be true of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Machine

pytestmark = pytest.mark.builds
CHAIN = "cpu-fusion/chain[n=65536]"
HOUSEHOLDER = "parametrizations/linear[size=64,mode=forward_backward]"


@pytest.fixture(scope="module")
def fusion(machine: Machine, real_builds: tuple[str, str]) -> Any:
    return machine.json(
        "submit", "--suite", "cpu-fusion", "--case", "chain[n=65536]", "--build", "1.10.2", "--build", "2.13.0",
        "--inline", "--wait",
    )  # fmt: skip


def one(rows: list[dict[str, Any]], **wanted: str) -> dict[str, Any]:
    found = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    assert len(found) == 1, found
    return found[0]


def test_fusing_on_the_cpu_is_much_faster_in_1_10_and_gone_in_2_13(fusion: Any, real_builds: tuple[str, str]) -> None:
    old, new = real_builds
    effect = one(fusion["effects"], case=CHAIN, variant="nnc", build=old, metric="time")
    assert effect["verdict"] == "faster"
    assert effect["ratio"] < 0.35
    assert effect["ci_low"] <= effect["ratio"] <= effect["ci_high"] < 0.5
    lost = one(fusion["measurements"], case=CHAIN, variant="nnc", build=new)
    assert lost["outcome"] == "unsupported"
    assert "LLVM" in lost["reason"]
    assert lost["value"] is None
    gone = one(fusion["comparisons"], case=CHAIN, variant="nnc", metric="time")
    assert (gone["outcome"], gone["ratio"], gone["verdict"]) == ("unsupported", None, None)


def test_torch_compile_came_with_2_0(fusion: Any, real_builds: tuple[str, str]) -> None:
    old, new = real_builds
    assert one(fusion["measurements"], case=CHAIN, variant="compile", build=old)["outcome"] == "unsupported"
    compiled = one(fusion["effects"], case=CHAIN, variant="compile", build=new, metric="time")
    assert compiled["verdict"] == "faster"
    assert one(fusion["measurements"], case=CHAIN, variant="compile", build=new, metric="compile_time")["value"] > 0.1


def test_the_keys_of_the_json_are_the_promised_ones(fusion: Any) -> None:
    assert {"request", "runs", "comparisons", "measurements", "effects", "seconds"} <= set(fusion)
    assert {
        "case", "variant", "metric", "unit", "better", "baseline", "contender", "ratio", "ci_low", "ci_high", "verdict",
        "processes", "samples",
    } <= set(fusion["comparisons"][0])  # fmt: skip
    assert {"case", "variant", "build", "metric", "unit", "value", "ci_low", "ci_high", "outcome", "reason"} <= set(
        fusion["measurements"][0]
    )
    assert {"case", "variant", "reference", "build", "metric", "ratio", "ci_low", "ci_high", "verdict"} <= set(
        fusion["effects"][0]
    )
    assert fusion["runs"][0]["state"] == "finished"
    eager = one(fusion["comparisons"], case=CHAIN, variant="eager", metric="time")
    assert eager["processes"] == 8
    assert eager["samples"] > 8 * 2


def test_householder_became_much_faster(machine: Machine, real_builds: tuple[str, str]) -> None:
    found = machine.json(
        "submit", "--suite", "parametrizations", "--case", HOUSEHOLDER.split("/")[1],
        "--build", "1.10.2", "--build", "2.13.0", "--inline", "--wait",
    )  # fmt: skip
    change = one(found["comparisons"], case=HOUSEHOLDER, variant="orthogonal_householder", metric="time")
    assert change["verdict"] == "faster"
    assert change["ratio"] < 0.7
    assert (
        one(found["measurements"], case=HOUSEHOLDER, variant="weight_norm", build=real_builds[0])["outcome"]
        == "unsupported"
    )
    error = one(
        found["measurements"], variant="orthogonal_householder", build=real_builds[1], metric="orthogonality_error"
    )
    assert 0 < error["value"] < 1e-3


def test_one_build_alone_says_what_each_variant_gains(machine: Machine, real_builds: tuple[str, str]) -> None:
    found = machine.json(
        "submit",
        "--suite",
        "parametrizations",
        "--case",
        "four_forwards[size=64]",
        "--build",
        "2.13.0",
        "--inline",
        "--wait",
    )
    assert found["comparisons"] == []
    assert one(found["effects"], variant="cached", metric="time")["verdict"] == "faster"
