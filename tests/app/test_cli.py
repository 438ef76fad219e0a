"""Wrong usage is one sentence on standard error and exit code 2; nothing goes to standard output."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from app.bootstrap import Services
from app.cli import main
from app.operate import inline_log
from core.errors import UserError
from tests.app.conftest import measured
from tests.reports import BASELINE, CONTENDER


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHPOINT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("FLASHPOINT_NODE_NAME", "node-1")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("nosuch", "No such command 'nosuch'"),
        ("submit --suite cpu-fusion", "Missing option '--build'"),
        ("submit --suite nope --build 2.13.0 --inline", "There is no suite 'nope'"),
        ("submit --suite cpu-fusion --build --help --inline", "The build spec '--help' is not understood"),
        ("submit --suite cpu-fusion --build nightly --inline", "nightly"),
        ("submit --suite cpu-fusion --build 1.8.0 --inline", "1.8.0"),
        ("submit --suite cpu-fusion --build 2.13.0 --case zzz --inline", "matches 'zzz'"),
        ("submit --suite cpu-fusion --build 2.13.0 --preset slow --inline", "There is no preset 'slow'"),
        ("submit --suite cpu-fusion --build 2.13.0 --node other --inline", "--inline measures on this machine"),
        ("submit --suite cpu-fusion --build 2.13.0", "No worker has reported"),
        ("submit --suite cpu-fusion --build 2.13.0 --build 2.13 --inline", "'2.13.0' is named twice"),
        ("runs abc", "abc"),
        ("runs 77", "There is no run 77"),
        ("runs -- -3", "There is no run -3"),
        ("cancel 99999999999999999999999", "There is no run"),
        ("retry 1", "There is no run 1"),
        ("compare 1.10.2 2.13.0", "Nothing is measured yet"),
        ("builds probe 2.13.0", "is not installed here"),
        ("builds remove 2.13.0", "2.13.0"),
        ("builds add wheel:/tmp/x.whl", "wheel"),
        ("builds add existing:/nowhere/python", "/nowhere/python"),
        (f"builds add existing:/{'x' * 256}/python", "longer than 255 bytes"),
        (f"up --data /{'x' * 256}", "File name too long"),
        ("worker --device tpu", "The device 'tpu' is not known"),
    ],
)
def test_wrong_usage_is_one_sentence(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    out, err = capsys.readouterr()
    assert ended.value.code == 2, err
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith("error: ") and sentence in last
    assert "Traceback" not in err


def test_what_needs_nothing_works_on_an_empty_database(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("suites", "suites --json", "builds list", "nodes", "runs", "runs --json"):
        with pytest.raises(SystemExit) as ended:
            main(words.split())
        assert ended.value.code == 0
    assert "cpu-fusion/chain[n=65536]" in capsys.readouterr().out


def test_a_dash_as_the_file_is_standard_output(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    measured(services)
    monkeypatch.setattr("app.cli.measure.services", lambda: services)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["compare", BASELINE, CONTENDER, "--format", "csv", "-o", "-"])
    out, err = capsysbinary.readouterr()
    assert ended.value.code == 0, err
    assert out.count(b"\n") > 1 and b"Wrote" not in err
    assert not (tmp_path / "-").exists()


def test_a_fault_in_line_goes_to_a_log_file_and_not_to_the_terminal(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logging.getLogger("flashpoint.run")
    with inline_log(services.settings):
        log.error("the disk is full")
    assert "the disk is full" in (services.settings.data / "logs" / "inline.log").read_text()
    assert capsys.readouterr().err == ""
    assert not logging.getLogger("flashpoint").handlers and logging.getLogger("flashpoint").propagate


def test_a_log_that_cannot_be_written_is_said(services: Services) -> None:
    (services.settings.data / "logs").write_text("in the way")
    with pytest.raises(UserError, match=r"inline\.log' cannot be written"), inline_log(services.settings):
        pass
