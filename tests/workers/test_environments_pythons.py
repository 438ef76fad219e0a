from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from workers.pythons import Python, found_pythons, in_preference


def script(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_the_running_interpreter_is_found_behind_links_and_once(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("python3", "python3.11"):
        (tmp_path / "bin" / name).symlink_to(sys.executable)
    found = found_pythons((sys.executable,), {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)})
    assert [python.version for python in found] == [".".join(str(part) for part in sys.version_info[:3])]
    assert found[0].path.is_absolute() and not found[0].path.is_symlink()


def test_what_does_not_run_or_is_too_old_or_no_cpython_is_left_out(tmp_path: Path) -> None:
    script(tmp_path / "bin/python3.9", "echo 'pyenv: python3.9: command not found' >&2; exit 127")
    script(tmp_path / "bin/python3.8", "echo 3.8.18; echo 1; echo /x/python3.8")
    script(tmp_path / "bin/python3.10", "echo 3.10.1; echo 0; echo /x/pypy")
    script(tmp_path / "bin/python3.12", "echo 3.12.1; echo 1; echo /x/python3.12")
    script(tmp_path / "bin/python3.13", "echo nonsense")
    (tmp_path / "bin/python3.14").write_text("not executable")
    found = found_pythons((), {"PATH": f"{tmp_path / 'bin'}{os.pathsep}/nowhere", "HOME": str(tmp_path)})
    assert found[0].version == "3.12.1"
    assert len(found) == 2  # and the one that runs this test


@pytest.mark.parametrize(
    "root", [".pyenv/versions/3.12.1", ".asdf/installs/python/3.12.1", ".local/share/uv/python/cpython-3.12.1"]
)
def test_version_managers_are_looked_into(tmp_path: Path, root: str) -> None:
    script(tmp_path / root / "bin/python3.12", f"echo 3.12.1; echo 1; echo {tmp_path}/{root}/bin/python3.12")
    found = found_pythons((), {"PATH": "", "HOME": str(tmp_path)})
    assert Python("3.12.1", tmp_path / root / "bin/python3.12") in found


def test_preference_wheels_at_hand_then_the_nearest_then_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.pythons.sys.version_info", (3, 11, 7))
    pythons = [Python(v, Path("/", v)) for v in ("3.9.18", "3.10.13", "3.11.2", "3.11.7", "3.12.1", "3.13.0")]

    def order(*supported: str, first: tuple[str, ...] = ()) -> list[str]:
        return [python.version for python in in_preference(pythons, supported, first)]

    assert order("3.9", "3.10") == ["3.10.13", "3.9.18"]
    assert order("3.10", "3.11", "3.12", "3.14") == ["3.11.7", "3.11.2", "3.10.13", "3.12.1"]
    assert order("3.10", "3.11", first=("3.10",))[0] == "3.10.13"
    assert order("3.6") == []
