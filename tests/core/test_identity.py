from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_suites.kit.authoring import case_id
from core.errors import UserError
from core.identity import (
    CaseId,
    Scalar,
    case_matches,
    environment_name,
    format_case,
    node_class,
    node_fingerprint,
    parse_case,
    series_key,
)

NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,12}", fullmatch=True)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8")),
)
AXES = st.dictionaries(NAMES, SCALARS, max_size=4)
GIB = 1024**3


@given(NAMES, NAMES, AXES)
def test_a_case_id_reads_back_as_what_was_written(suite: str, benchmark: str, axes: dict[str, Scalar]) -> None:
    text = format_case(suite, benchmark, axes)
    back = parse_case(text)
    assert back == CaseId(suite, benchmark, tuple(axes.items()))
    assert [type(v) for _, v in back.axes] == [type(v) for v in axes.values()]
    assert format_case(back.suite, back.benchmark, dict(back.axes)) == text


@given(
    NAMES,
    NAMES,
    st.dictionaries(
        NAMES,
        st.one_of(st.booleans(), st.integers(), NAMES.filter(lambda n: n not in ("true", "false", "null"))),
        max_size=3,
    ),
)
def test_ids_are_those_of_the_kit(suite: str, benchmark: str, axes: dict[str, Scalar]) -> None:
    assert format_case(suite, benchmark, axes) == case_id(suite, benchmark, dict(axes))


def test_examples() -> None:
    assert format_case("cpu-fusion", "chain", {"n": 65536, "ops": 8}) == "cpu-fusion/chain[n=65536,ops=8]"
    assert format_case("s", "b", {"kind": "tanh-gelu", "p": 0.5, "on": True}) == "s/b[kind=tanh-gelu,p=0.5,on=true]"
    assert format_case("s", "b", {"v": "1"}) == 's/b[v="1"]' != format_case("s", "b", {"v": 1})
    assert format_case("s", "b", {"v": "a,b]=c"}) == 's/b[v="a,b]=c"]'
    assert format_case("s", "b", {}) == "s/b"


@pytest.mark.parametrize(
    "text",
    [
        *("", "s", "s/", "/b", "../b", "s/b/c", "s b/c"),
        *("s/b[", "s/b[]", "s/b[n]", "s/b[n=]", "s/b[n=1", "s/b[n=1,]", "s/b[n=1]x", "s/b[n=1,n=2]"),
        *("s/b[n=null]", "s/b[n=NaN]", "s/b[n=1e999]", "s/b[n= 1]", 's/b[n="a]', "s/b[a=[1]]"),
    ],
)
def test_what_is_no_case_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is no case"):
        parse_case(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, [1]])
def test_values_that_are_no_scalars_are_a_bug(value: object) -> None:
    with pytest.raises(ValueError, match="axis value"):
        format_case("s", "b", {"a": value})  # type: ignore[dict-item]


CASE = "cpu-fusion/chain[n=65536,ops=8]"


@pytest.mark.parametrize(
    "glob",
    [CASE, "chain[n=65536,ops=8]", "*", "chain*", "cpu-fusion/*", "*ops=8]", "chain[n=65536,ops=?]", "c*n*[n=6*"],
)
def test_globs_that_match(glob: str) -> None:
    assert case_matches(glob, CASE)


@pytest.mark.parametrize(
    "glob", ["", "chain", "fusion/*", "chain[n]*", "chain[!x]*", "chain[n=65536,ops=??]", "CHAIN*", "[c]hain*"]
)
def test_globs_that_do_not_match(glob: str) -> None:
    assert not case_matches(glob, CASE)


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=8))
def test_matching_agrees_with_the_standard_library(glob: str, text: str) -> None:
    assert case_matches(glob, text) == (fnmatch.fnmatchcase(text, glob) or fnmatch.fnmatchcase("", glob))


def test_a_glob_of_many_stars_ends() -> None:
    assert not case_matches("*a" * 60 + "b", "s/" + "a" * 300)


SERIES = st.tuples(st.text(), st.integers(), st.text(), st.text(), st.text())


@given(SERIES, SERIES)
def test_two_series_share_a_key_only_when_they_are_one(
    one: tuple[str, int, str, str, str], two: tuple[str, int, str, str, str]
) -> None:
    assert (series_key(*one) == series_key(*two)) == (one == two)


@given(st.lists(st.from_regex(r"[a-z]+==[0-9.]+", fullmatch=True), min_size=1), st.randoms())
def test_an_environment_is_named_by_its_packages_and_python(lines: list[str], random: object) -> None:
    name = environment_name("\n".join(lines), "3.9.18")
    shuffled = list(lines)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert environment_name("\r\n".join(shuffled) + "\n", "3.9.18") == name
    assert environment_name("\n".join(lines), "3.10.13") != name
    assert environment_name("\n".join([*lines, "other==1"]), "3.9.18") != name
    assert len(name) == 16 and int(name, 16) >= 0


def fingerprint(memory: float = 31.2, cpu: str = "AMD EPYC 7B13", threads: int = 8, gpu: str = "NVIDIA H200") -> str:
    return node_fingerprint(cpu, threads, int(memory * GIB), {"cpu": cpu, "cuda:0": gpu})


def test_a_fingerprint_survives_a_boot_and_notices_new_hardware() -> None:
    assert fingerprint() == fingerprint(31.19) == fingerprint(31.35, cpu="AMD  EPYC 7B13 ")
    assert (
        len({fingerprint(), fingerprint(62.5), fingerprint(cpu="other"), fingerprint(threads=4), fingerprint(gpu="L4")})
        == 5
    )


@given(st.integers(1, 2048), st.floats(0.0, 0.05))
def test_a_kernel_that_keeps_a_little_memory_back_changes_nothing(gib: int, share: float) -> None:
    sizes = [s for s in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048) if s >= gib][:1]
    assert fingerprint(sizes[0] * (1 - share)) == fingerprint(sizes[0])


def test_equal_devices_of_a_node_are_one_class() -> None:
    assert node_class("abc", "cuda:0") == node_class("abc", "cuda:1") == "abc/cuda"
    assert node_class("abc", "cpu") == "abc/cpu"
