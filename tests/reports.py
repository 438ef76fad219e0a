"""Reports to draw and export in tests: made by the verdict engine from seeded rounds, so that no test invents a
verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from bench_suites.kit.metrics import METRICS
from core.analysis.report import build_report
from core.model import PRESETS, MeasurementView, Outcome, Report, Sample

AT = datetime(2026, 11, 30, 3, 40, tzinfo=UTC)
BASELINE, CONTENDER, NODE = "1.10.2+cpu", "2.13.0+cpu", "epyc-01"

#: case, variant, seconds of a call on the baseline, true ratio, noise of a round's value
ROWS = (
    ("cpu-fusion/chain[n=65536]", "eager", 412e-6, 1.002, 0.006),
    ("cpu-fusion/chain[n=65536]", "nnc", 41e-6, 1.36, 0.01),
    ("cpu-fusion/gelu_tanh[n=65536]", "eager", 1.93e-3, 1.124, 0.008),
    ("cpu-fusion/swish[n=65536]", "eager", 96e-6, 0.7, 0.01),
    ("cpu-fusion/layernorm_tail[n=256]", "eager", 9.1e-6, 0.12, 0.02),
    ("cpu-fusion/swish[n=256]", "eager", 4.2e-6, 1.0, 0.2),
)


def measurement(case: str, variant: str, build: str, values: list[float] | None, **fields: object) -> MeasurementView:
    """One measurement of the metric ``time``; one value a round in seconds, None for one without a number."""
    view = MeasurementView(
        id=0,
        run_id=1,
        case=case,
        suite=case.partition("/")[0],
        revision=1,
        variant=variant,
        metric="time",
        unit=METRICS["time"].unit,
        build=build,
        node=NODE,
        outcome=Outcome.OK if values else Outcome.UNSUPPORTED,
        reason="" if values else "This build has no LLVM back end.",
        value=float(np.median(values)) if values else None,
        ci_low=min(values) if values else None,
        ci_high=max(values) if values else None,
        n=len(values) if values else 0,
        samples=len(values) * 3 if values else 0,
        evidence={},
        measured_at=AT + timedelta(minutes=20),
        sample=Sample(tuple(range(1, len(values) + 1)), tuple((v * 0.99, v, v * 1.01) for v in values))
        if values
        else None,
    )
    return replace(view, **fields)  # type: ignore[arg-type]


def measurements(
    rounds: int = 13, rows: tuple[tuple[str, str, float, float, float], ...] = ROWS
) -> list[MeasurementView]:
    """Both builds of every row, a variant that the contender lacks and a case that failed."""
    g = np.random.default_rng(11)
    out = []
    for case, variant, seconds, ratio, noise in rows:
        drift = 1 + np.cumsum(g.normal(0, 0.01, rounds))
        for build, factor in ((BASELINE, 1.0), (CONTENDER, ratio)):
            out.append(
                measurement(
                    case, variant, build, list(seconds * factor * drift * np.exp(g.normal(0, noise / 2, rounds)))
                )
            )
    lacks = "cpu-fusion/gelu_tanh[n=65536]"
    out.append(measurement(lacks, "nnc", BASELINE, list(2.4e-3 * np.exp(g.normal(0, 0.004, rounds)))))
    out.append(measurement(lacks, "nnc", CONTENDER, None))
    broken = {"outcome": Outcome.FAILED, "reason": "AssertionError in line 812 | =HYPERLINK(1)"}
    out.append(measurement("cpu-fusion/broken[n=1]", "eager", BASELINE, [1e-3] * rounds))
    out.append(measurement("cpu-fusion/broken[n=1]", "eager", CONTENDER, None, **broken))
    return [replace(m, id=i) for i, m in enumerate(out, 1)]


def report(rounds: int = 13, made: list[MeasurementView] | None = None) -> Report:
    """The report of ``measurements()`` under the preset standard."""
    return build_report(
        measurements(rounds) if made is None else made,
        baseline=BASELINE,
        contender=CONTENDER,
        node=NODE,
        rule=PRESETS["standard"],
        references={"cpu-fusion": "eager"},
        node_cpu="AMD EPYC",
    )
