from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from core.errors import UserError
from core.versions import (
    RELEASES,
    Kind,
    companions_for,
    in_order,
    newest_for,
    order_key,
    parse_spec,
    pythons_for,
    require_supported,
)

numbers = st.integers(0, 40)
releases = st.builds(
    lambda major, minor, micro, pre, local: f"{major}.{minor}.{micro}{pre}{local}",
    numbers, numbers, numbers, st.sampled_from(["", "rc1", "a0", "b12", ".post1"]), st.sampled_from(["", "+cpu"]),
)  # fmt: skip
days = st.dates(date(2020, 1, 1), date(2030, 12, 31))
nightlies = st.builds(
    lambda minor, day, local: f"2.{minor}.0.dev{day:%Y%m%d}{local}", numbers, days, st.sampled_from(["", "+cpu"])
)
paths = st.text("abcZ09._-+@=, é/", max_size=40).map(lambda s: "/" + s.strip("/ ") + "x").filter(
    lambda s: ".." not in s.split("/") and not s.startswith("//")
)  # fmt: skip
specs = st.one_of(
    releases,
    nightlies,
    days.map(lambda day: f"nightly:{day}"),
    st.sampled_from(["latest", "nightly", "latest-1", "latest-99"]),
    paths.map("existing:{}".format),
    paths.map("wheel:{}.whl".format),
)
labels = st.one_of(
    releases, nightlies, releases.map("{}@3f2a91".format), st.just("2.14.0a0+gitabc1234"), st.text(max_size=8)
)


@given(specs)
def test_the_canonical_text_means_the_same_spec(text: str) -> None:
    spec = parse_spec(text)
    assert parse_spec(str(spec)) == spec
    assert str(parse_spec(str(spec))) == str(spec)


@given(st.lists(labels, min_size=3, max_size=12))
def test_the_order_of_labels_is_total_and_does_not_depend_on_their_order(given_labels: list[str]) -> None:
    ordered = in_order(given_labels)
    assert sorted(ordered) == sorted(given_labels)
    assert in_order(reversed(given_labels)) == sorted(ordered, key=order_key)
    for left, right in pairwise(ordered):
        assert order_key(left) <= order_key(right)
        assert left == right or order_key(left) != order_key(right)


def test_releases_in_order_nightlies_between_them_local_builds_last() -> None:
    ordered = [
        "1.9.1+cu102", "1.10.2+cu102", "2.0.1", "2.13.0", "2.13.0+cpu",
        "2.16.0.dev20261129+cpu", "2.16.0.dev20261130+cpu", "2.16.0rc1", "2.16.0",
        "1.10.2@aaaaaa", "2.14.0a0+gitabc1234", "2.15.0+cpu@3f2a91", "something else",
    ]  # fmt: skip
    assert in_order(reversed(ordered)) == ordered


@pytest.mark.parametrize(
    ("text", "kind", "canonical"),
    [
        ("2.13.0", Kind.RELEASE, "2.13.0"),
        ("2.13", Kind.RELEASE, "2.13.0"),
        (" 2.13.0 ", Kind.RELEASE, "2.13.0"),
        ("2.13.0+cpu", Kind.RELEASE, "2.13.0+cpu"),
        ("2.14.0rc1", Kind.RELEASE, "2.14.0rc1"),
        ("latest", Kind.LATEST, "latest"),
        ("latest-0", Kind.LATEST, "latest"),
        ("nightly:2026-11-30", Kind.NIGHTLY, "nightly:2026-11-30"),
        ("2.16.0.dev20261130+cpu", Kind.NIGHTLY, "2.16.0.dev20261130+cpu"),
        ("existing:/opt/a//b/./python", Kind.EXISTING, "existing:/opt/a/b/python"),
        (
            "wheel:/tmp/torch-2.13.0-cp311-cp311-linux_x86_64.whl",
            Kind.WHEEL,
            "wheel:/tmp/torch-2.13.0-cp311-cp311-linux_x86_64.whl",
        ),
    ],
)
def test_the_grammar(text: str, kind: Kind, canonical: str) -> None:
    spec = parse_spec(text)
    assert (spec.kind, spec.text) == (kind, canonical)


def test_the_parts_of_a_spec() -> None:
    assert parse_spec("latest-2").offset == 2
    assert parse_spec("2.16.0.dev20261130+cpu").date == parse_spec("nightly:2026-11-30").date == date(2026, 11, 30)
    assert parse_spec("2.13.0+cpu").version == Version("2.13.0+cpu")
    assert parse_spec("existing:/opt/py/bin/python").path == "/opt/py/bin/python"


BAD = [
    "", " ", "--help", "-r requirements.txt", "-e .", "--index-url=x", "2.13.0 --no-deps", "torch==2.13.0", ">=2.0",
    "2.*", "2", "v2.13.0", "https://example.org/torch.whl", "git+https://example.org/x.git", "torch @ file:///x",
    "2.13.0;id", "2.13.0$(id)", "`id`", "2.13.0|cat", "2.13.0&", "2.13.0>x", "2.13.0\n", "2.13.0\nrm", "2.13.0\x00",
    "\t2.13.0", "2.13.0\u202e", "２.１３.０", "2.13.٣", "2.13.0+CPU!", "2.13.0+", "2.13.0+a_b", "1!2.13.0", "2.13.0.1",
    "9999.1.0", "2.13.0" * 2000, "Latest", "latest-", "latest-100", "latest--1", "nightly:", "nightly:2026-02-30",
    "nightly:2026-13-01", "nightly:20261130", "nightly:２026-11-30", "nightly:2026-11-30\n", "2.16.0.dev1",
    "2.16.0.dev20261332", "existing:", "existing:python", "existing:~/python", "existing:../python",
    "existing:/a/../b", "existing:/", "existing:/bin/", "existing://host/python", "existing:/bin/python;id",
    "existing:/bin/$(id)", "existing:/a\nb", "existing:/a\x00b", "existing:/a\u202eb", "existing:/%2e%2e/x",
    "existing:/a|b", "existing:/" + "a" * 1100, "existing:/a'b", 'existing:/a"b', "existing:/a\\b", "wheel:/x.zip",
    "wheel:x.whl", "wheel:/x.whl#egg=y", "wheel:https://example.org/x.whl", "conda:torch", "../torch", "/etc/passwd",
    "{}", "%2e", "existing:/" + "a" * 256 + "/python", "existing:/" + "é" * 128, "wheel:/" + "a" * 252 + ".whl",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_a_bad_spec_is_refused_in_one_plain_short_sentence(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_spec(text)
    sentence = str(refused.value)
    assert sentence.isascii() and sentence.isprintable()
    assert len(sentence) < 320
    assert "write" in sentence or "allowed" in sentence
    assert sentence.endswith(".")


@given(st.text(max_size=40))
def test_any_text_is_a_spec_or_one_sentence(text: str) -> None:
    try:
        spec = parse_spec(text)
    except UserError as refused:
        assert str(refused).isprintable() and "\n" not in str(refused)
    else:
        assert parse_spec(spec.text) == spec


@pytest.mark.parametrize(
    "text", ["latest", "latest-1", "nightly", "nightly:2026-11-30", "2.16.0.dev20261130", "wheel:/x.whl"]
)
def test_what_cannot_be_installed_yet_says_so(text: str) -> None:
    with pytest.raises(UserError, match="cannot be installed by this version of Flashpoint yet"):
        require_supported(parse_spec(text))


@pytest.mark.parametrize("text", ["2.13.0", "2.13.0+cpu", "2.14.0rc1", "existing:/opt/python"])
def test_what_can_be_installed_is_handed_back(text: str) -> None:
    assert require_supported(parse_spec(text)) == parse_spec(text)


def test_a_pytorch_before_the_floor_is_refused() -> None:
    with pytest.raises(UserError, match=r"1\.8\.1 is older than 1\.9"):
        require_supported(parse_spec("1.8.1"))


@pytest.mark.parametrize(
    ("version", "pythons"),
    [
        ("1.9.1", ("3.9",)),
        ("1.10.2+cpu", ("3.9",)),
        ("1.12.1", ("3.9", "3.10")),
        ("2.0.1", ("3.9", "3.10", "3.11")),
        ("2.4.1", ("3.9", "3.10", "3.11", "3.12")),
        ("2.8.0", ("3.9", "3.10", "3.11", "3.12", "3.13")),
        ("2.9.0rc1", ("3.10", "3.11", "3.12", "3.13", "3.14")),
        ("9.0.0", ("3.10", "3.11", "3.12", "3.13", "3.14")),
    ],
)
def test_which_pythons_a_pytorch_supports(version: str, pythons: tuple[str, ...]) -> None:
    assert pythons_for(version) == pythons


def test_what_old_pytorch_needs_besides() -> None:
    assert companions_for("1.10.2") == ("numpy<2", "setuptools<70")
    assert companions_for("2.2.2") == ("numpy<2", "setuptools<70")
    assert companions_for("2.3.0") == ("numpy",)


def test_the_newest_releases_that_a_machine_can_run() -> None:
    assert newest_for(["3.9"])[0] == "2.8.0"
    assert newest_for(["3.11", "3.9"])[-1] == "1.9.1"
    assert newest_for(["3.8"]) == ()
    assert list(RELEASES) == in_order(RELEASES)[::-1]
