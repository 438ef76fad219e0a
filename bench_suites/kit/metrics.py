"""The closed table of metrics: name, unit, which way is better, and how it is judged."""

from __future__ import annotations

from typing import Dict, NamedTuple


class Metric(NamedTuple):
    """One row of the table.

    ``kind`` is ``timed`` (a distribution over rounds, judged by statistics), ``exact`` (one round says all, judged by
    equality and margin) or ``note`` (shown, never judged: its ratio means nothing).
    """

    name: str
    unit: str
    better: str
    kind: str
    meaning: str


METRICS: Dict[str, Metric] = {
    m.name: m
    for m in (
        Metric("time", "s", "lower", "timed", "wall time of one call"),
        Metric("cpu_time", "s", "lower", "timed", "CPU time of the calling thread in one call"),
        Metric(
            "compile_time", "s", "lower", "timed", "time to compile or trace before the first fast call, nothing cached"
        ),
        Metric("compile_time_warm", "s", "lower", "timed", "the same with the compiler's cache on disk filled"),
        Metric("orthogonality_error", "1", "lower", "note", "largest entry of |W^T W - I|"),
    )
}
