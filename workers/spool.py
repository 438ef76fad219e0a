"""What a run measured, written to a local file before it goes to the database: a crash loses only what was not yet
said.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from bench_suites.kit.turns import ChildResult, Key


class Spool:
    """One file of JSON lines for one attempt of one run."""

    def __init__(self, folder: Path, run_id: int, attempt: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"run-{run_id}-{attempt}.jsonl"
        self.file = self.path.open("a", encoding="utf-8")

    def add(self, number: int, case: str, results: Mapping[Key, ChildResult]) -> None:
        """Appends a case's results of one round, and has them on disk before it returns."""
        for (build, variant), result in results.items():
            line = {"round": number, "case": case, "build": int(build), "variant": variant, **result._asdict()}
            self.file.write(json.dumps(line, allow_nan=False) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def close(self, *, stored: bool) -> None:
        """Ends the file; once everything is ``stored`` in the database it is not needed any more."""
        self.file.close()
        if stored:
            self.path.unlink()
