"""The first comparison of an empty database, so that there is something true to look at."""

from __future__ import annotations

from app import operate
from app.bootstrap import Services
from core.errors import UserError
from core.usecases import SubmitInput
from core.versions import newest_for

SUITE = "cpu-fusion"
#: The release that brought fusing on the CPU, and the newest that is tried here: the change between them is large and
#: known.
WANTED = ("1.10.2", "2.13.0")


def queue_first_comparison(services: Services) -> str:
    """Queues it when no run was ever queued; a sentence about it, empty when there is nothing to say."""
    if not services.settings.first_run or services.queries.runs(limit=1):
        return ""
    builds = first_builds(services)
    if len(builds) < 2:
        return "No two PyTorch builds fit the Pythons of this machine; choose builds on the page New run."
    given = SubmitInput(
        (SUITE,), None, builds, node=services.settings.node_name, preset="quick", key="first-comparison"
    )
    try:
        done, note = services.submit(given)
    except UserError as error:
        return f"The first comparison was not queued: {error}"
    sentence = f"Queued a first comparison: {builds[0]} against {builds[1]} on {SUITE}, run {done.run_ids[0]}."
    return f"{sentence} {note}".strip()


def first_builds(services: Services) -> tuple[str, ...]:
    """1.10.2 and 2.13.0 where Pythons for both are found or can be had, else the two newest that the machine's Pythons
    support.
    """
    if all(operate.python_available(services.settings, build) for build in WANTED):
        return WANTED
    found = {".".join(version.split(".")[:2]) for version, _ in operate.pythons_found(services.settings)}
    return newest_for(found)[:2][::-1]
