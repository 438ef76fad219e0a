"""The suites as frozen dataclasses: everything a page or a command may offer, with no torch installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from bench_suites.kit.authoring import SuiteError
from bench_suites.kit.catalog import describe, load_suites
from core.errors import UserError
from core.identity import case_matches
from core.model import CaseInfo, SuiteInfo


@lru_cache(maxsize=1)
def catalog() -> tuple[SuiteInfo, ...]:
    """All suites by name. Raises UserError naming the file and the fix when one is wrong."""
    try:
        described = describe(load_suites())
    except SuiteError as error:
        raise UserError(f"A suite cannot be loaded: {error}.") from error
    return tuple(
        SuiteInfo(
            name=suite["suite"],
            question=suite["question"],
            revision=suite["revision"],
            reference=suite["reference"],
            needs=suite["needs"],
            device=suite["device"],
            torch=suite["torch"],
            child_seconds=suite["child_seconds"],
            cases=tuple(
                CaseInfo(
                    id=case["id"],
                    suite=suite["suite"],
                    benchmark=case["benchmark"],
                    axes=case["axes"],
                    variants=tuple(case["variants"]),
                    quick=case["quick"],
                    reference=case["reference"],
                )
                for case in suite["cases"]
            ),
        )
        for suite in described
    )


def references(suites: Sequence[SuiteInfo]) -> dict[str, str]:
    """The reference variant of each case, and of each suite for cases that are no longer in the catalog."""
    return {suite.name: suite.reference for suite in suites} | {
        case.id: case.reference for suite in suites for case in suite.cases
    }


def choose_suites(suites: Sequence[SuiteInfo], names: Sequence[str]) -> tuple[SuiteInfo, ...]:
    """The suites of those names, each once. Raises UserError for an unknown one, or when none is named."""
    known = {suite.name: suite for suite in suites}
    for name in names:
        if name not in known:
            raise UserError(f"There is no suite {name[:80]!r}; there are {', '.join(known)}.")
    if not names:
        raise UserError(f"No suite is chosen; choose at least one of {', '.join(known)}.")
    return tuple(known[name] for name in dict.fromkeys(names))


def choose_cases(suites: Sequence[SuiteInfo], glob: str | None, preset: str) -> dict[str, tuple[CaseInfo, ...]]:
    """The cases of each suite: those that the glob names, else those of the preset (quick has fewer).

    Suites without a case are left out. Raises UserError when nothing is left.
    """
    if glob:
        chosen = {s.name: tuple(c for c in s.cases if case_matches(glob, c.id)) for s in suites}
    else:
        chosen = {s.name: tuple(c for c in s.cases if c.quick or preset != "quick") for s in suites}
    kept = {name: cases for name, cases in chosen.items() if cases}
    if not kept:
        names = ", ".join(suite.name for suite in suites)
        raise UserError(f"No case of {names} matches {str(glob)[:120]!r}; `flashpoint suites` lists them all.")
    return kept
