"""What a measured process sees of its worker: the suites, and nothing that is none of its business."""

from __future__ import annotations

import sys
from pathlib import Path

from workers.launcher import Launcher, scrubbed, stage_suites

SECRETS = {
    "FLASHPOINT_DATABASE_URL": "postgresql://u:hunter2@h/d",
    "FLASHPOINT_BROKER_URL": "redis://:hunter2@h",
    "PGPASSWORD": "hunter2",
    "AWS_SECRET_ACCESS_KEY": "hunter2",
    "PYTHONPATH": "/elsewhere",
    "OMP_NUM_THREADS": "64",
    "PATH": "/usr/bin",
    "LANG": "C.UTF-8",
}


def test_no_secret_and_no_python_setting_reaches_a_measured_process(tmp_path: Path) -> None:
    given = scrubbed(Path("/env/bin/python"), tmp_path, SECRETS)
    assert "hunter2" not in " ".join(given.values())
    assert "PYTHONPATH" not in given
    assert given["OMP_NUM_THREADS"] == "1"
    assert given["PATH"].startswith("/env/bin")
    assert given["LANG"] == "C.UTF-8"
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR"):
        assert given[name].startswith(str(tmp_path))


def test_the_folder_that_processes_start_in_holds_the_suites_alone(tmp_path: Path) -> None:
    folder = stage_suites(tmp_path)
    assert [entry.name for entry in folder.iterdir()] == ["bench_suites"]
    assert stage_suites(tmp_path) == folder
    assert not list(folder.rglob("__pycache__"))


def test_a_process_runs_from_there_and_its_end_is_known(tmp_path: Path) -> None:
    folder = stage_suites(tmp_path / "suites")
    with Launcher(folder, tmp_path, {"PATH": "/usr/bin:/bin"}) as launcher:
        gone = launcher.start(Path(sys.executable), "one", ["describe"])
        while gone() is None:
            pass
        assert gone() == "it ended with exit code 0"
    assert launcher.survivors == []
    assert '"cpu-fusion"' in (tmp_path / "output.log").read_text()


def test_a_killed_supervisor_leaves_nobody_behind(tmp_path: Path) -> None:
    folder = stage_suites(tmp_path / "suites")
    kit = folder / "bench_suites" / "kit" / "__main__.py"
    pids = tmp_path / "pids"
    kit.write_text(
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}\\n')\n"
        "time.sleep(600)\n"
    )
    launcher = Launcher(folder, tmp_path / "run", {"PATH": "/usr/bin:/bin"})
    (tmp_path / "run").mkdir()
    launcher.start(Path(sys.executable), "one", ["describe"])
    while not (pids.exists() and pids.read_text().endswith("\n")):
        assert launcher.process.poll() is None
    launcher.process.kill()
    assert launcher.stop() == []
    for pid in pids.read_text().split():
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z"
