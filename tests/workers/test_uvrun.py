"""Programs that making an environment starts: they end with whoever started them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path


def test_a_killed_builder_leaves_no_program_behind(tmp_path: Path) -> None:
    """The builder's deadline dies with it, so what it started must die too."""
    script = tmp_path / "import_torch.py"
    script.write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom workers.uvrun import run\n"
        f"run([sys.executable, {str(script)!r}], env=dict(os.environ), cwd=Path({str(tmp_path)!r}),\n"
        "    deadline_s=600, stop=lambda: False)\n"
    )
    builder = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    pid_file = tmp_path / "pid"
    while not (pid_file.exists() and pid_file.read_text()):
        assert builder.poll() is None
    builder.kill()
    builder.wait()
    state = Path(f"/proc/{pid_file.read_text()}/stat")
    deadline = time.monotonic() + 10
    while state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "Z":
        assert time.monotonic() < deadline, "the program outlived its builder"
