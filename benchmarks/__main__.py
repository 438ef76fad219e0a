"""``python -m benchmarks [PYTHON ...]``: on the interpreters given, else on PyTorch 2.13.0, whose environment is made
if need be.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks import fork
from core.settings import settings_from
from core.versions import parse_spec


def main() -> int:
    given = [(path, Path(path)) for path in sys.argv[1:]]
    for label, python in given or [_newest()]:
        fork.report(label, python)
    return 0


def _newest() -> tuple[str, Path]:
    from workers.inventory import environments_of

    made = environments_of(settings_from(os.environ), lambda line: print(line, file=sys.stderr)).prepare(
        parse_spec("2.13.0")
    )
    return f"PyTorch {made.build.label}", made.python


if __name__ == "__main__":
    sys.exit(main())
