"""A suite file that is wrong fails at load, with one sentence that names the file and the fix."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench_suites.kit import Needs, Suite, SuiteError, Variants
from bench_suites.kit.catalog import describe, find_case, load_suites, satisfies


def made() -> Suite:
    return Suite("try-out", question="?", revision=1, reference="plain", needs=Needs(), file="try_out.py")


def test_axes_become_cases_in_the_order_of_the_signature() -> None:
    suite = made()

    @suite.benchmark(axes={"size": [1, 2], "mode": ["a", "b"]}, quick={"size": [2]})
    def work(ctx, size, mode):  # type: ignore[no-untyped-def]
        yield Variants(plain=lambda: 1, other=lambda: 1)

    cases = suite.cases()
    assert [case.id for case in cases] == [
        "try-out/work[size=1,mode=a]",
        "try-out/work[size=1,mode=b]",
        "try-out/work[size=2,mode=a]",
        "try-out/work[size=2,mode=b]",
    ]
    assert [case.quick for case in cases] == [False, False, True, True]
    assert cases[0].benchmark.variants == ("plain", "other")


def test_axes_that_disagree_with_the_signature_are_named() -> None:
    suite = made()
    with pytest.raises(SuiteError, match=r"try_out.py: benchmark 'work' must take \(ctx, size\).*not \(ctx, n\)"):

        @suite.benchmark(axes={"size": [1]})
        def work(ctx, n):  # type: ignore[no-untyped-def]
            yield Variants(plain=lambda: 1)


def test_a_missing_reference_variant_is_named() -> None:
    suite = made()
    with pytest.raises(SuiteError, match=r"no variant named 'plain'.*it has fast"):

        @suite.benchmark()
        def work(ctx):  # type: ignore[no-untyped-def]
            yield Variants(fast=lambda: 1)


def test_a_function_that_is_no_generator_is_refused() -> None:
    suite = made()
    with pytest.raises(SuiteError, match="must be a generator"):

        @suite.benchmark(variants=("plain",))
        def work(ctx):  # type: ignore[no-untyped-def]
            return Variants(plain=lambda: 1)


@pytest.mark.parametrize("value", ["a b", "x]", "a,b", "a=b", "a/b", object()])
def test_an_axis_value_that_no_case_id_can_hold_is_refused(value: object) -> None:
    suite = made()
    with pytest.raises(SuiteError, match="must be a number, a flag or a plain word"):

        @suite.benchmark(axes={"size": [value]})
        def work(ctx, size):  # type: ignore[no-untyped-def]
            yield Variants(plain=lambda: 1)


def test_quick_must_name_values_of_the_axis() -> None:
    suite = made()
    with pytest.raises(SuiteError, match="some of the values of the axis 'size'"):

        @suite.benchmark(axes={"size": [1]}, quick={"size": [3]})
        def work(ctx, size):  # type: ignore[no-untyped-def]
            yield Variants(plain=lambda: 1)


@pytest.mark.parametrize("name", ["Try", "try_-out", "-try", "", "a b", "../x"])
def test_a_suite_name_is_lower_case_words(name: str) -> None:
    with pytest.raises(SuiteError, match="lower-case words"):
        Suite(name, question="?", revision=1, reference="plain", file="x.py")


def test_version_ranges() -> None:
    assert satisfies("1.10.2+cu102", ">=1.9")
    assert satisfies("2.13.0+cpu", ">=1.10,<3")
    assert not satisfies("1.9.1", ">=1.10")
    assert satisfies("2.16.0.dev20261130", ">=2.16")
    with pytest.raises(SuiteError, match="must be made of"):
        satisfies("1.9.1", "~=1.9")


def test_every_suite_loads_and_lists_all_its_cases_with_torch_absent(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('a suite imported torch')\n")
    suites = load_suites()
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(Path(__file__).parents[2])!r}]\n"
        "from bench_suites.kit.catalog import describe, load_suites\n"
        "print(sum(len(s['cases']) for s in describe(load_suites())))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == sum(len(suite.cases()) for suite in suites.values())


def test_the_catalog_names_every_case_once() -> None:
    suites = load_suites()
    ids = [case["id"] for suite in describe(suites) for case in suite["cases"]]
    assert len(ids) == len(set(ids))
    assert {"cpu-fusion", "parametrizations"} <= set(suites)
    assert all(find_case(suites, case).id == case for case in ids)
    quick = {case.split("/")[0] for case in ids if find_case(suites, case).quick}
    assert quick == set(suites)  # every suite has something for the preset quick


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("x = ", "broken.py, line 1: it cannot be loaded (SyntaxError"),
        ("import nowhere", "broken.py, line 1: it cannot be loaded (ModuleNotFoundError"),
        ("raise SystemExit(0)", "broken.py, line 1: it cannot be loaded (SystemExit"),
        ("print('hello')", "broken.py defines no 'suite'"),
    ],
)
def test_a_file_that_does_not_load_is_one_sentence(tmp_path: Path, source: str, sentence: str) -> None:
    shutil.copytree(Path(__file__).parents[2] / "bench_suites", tmp_path / "bench_suites")
    (tmp_path / "bench_suites" / "broken.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "bench_suites.kit", "describe"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
