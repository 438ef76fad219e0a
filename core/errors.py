"""The errors of Flashpoint: one small tree, one sentence each.

    FlashpointError
    ├── UserError        the person can mend it: what was wrong, with the value, and what to do (exit code 2)
    │   └── NotFound     a named thing does not exist
    ├── RunFailed        a run ended without results; the sentence is its reason (exit code 3)
    │   ├── BuildFailed  an environment could not be made
    │   └── Stopped      somebody cancelled, the worker leaves, or the lease was lost
    └── Unavailable      a service (database, broker) does not answer now; trying again later may work

Anything else that is raised is a bug and may show a traceback in the log, never on a page.
"""

from __future__ import annotations


class FlashpointError(Exception):
    """Base of all errors that carry one sentence for a person; ``str(error)`` is that sentence."""


class UserError(FlashpointError):
    """The input was wrong; the sentence says what, with the value, and what to do."""


class NotFound(UserError):
    """A run, build, node, suite or case of that name does not exist."""


class RunFailed(FlashpointError):
    """A run cannot go on; the sentence becomes the run's reason."""


class BuildFailed(RunFailed):
    """An environment could not be made; ``step`` names the package step, ``log`` holds the last lines of its output."""

    def __init__(self, sentence: str, *, step: str = "", log: str = "") -> None:
        super().__init__(sentence)
        self.step = step
        self.log = without_frames(log)


def without_frames(text: str) -> str:
    """Output without the frames of Python tracebacks; the last line of each, which says what was wrong, stays."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("Traceback (most recent call last)"):
            inside = True
        elif not (inside and (line.startswith((" ", "\t")) or not line.strip())):
            inside = False
            kept.append(line)
    return "\n".join(kept)


class Stopped(RunFailed):
    """The run was cancelled or lost its lease; nothing more may be written."""


class Unavailable(FlashpointError):
    """The database or the broker does not answer now."""
