"""A report as plain dictionaries with the keys that commands and exports promise."""

from __future__ import annotations

import math
from typing import Any

from core.model import ComparisonView, EffectView, MeasurementView, Report


def number(value: float | None) -> float | None:
    """A finite number or None; exports never hold NaN or infinity."""
    return value if value is not None and math.isfinite(value) else None


def of_comparison(c: ComparisonView) -> dict[str, Any]:
    """Contender against baseline; values in ``unit``."""
    return {
        "case": c.case,
        "variant": c.variant,
        "metric": c.metric,
        "unit": c.unit,
        "better": c.better,
        "baseline": c.baseline,
        "contender": c.contender,
        "baseline_value": number(c.baseline_value),
        "contender_value": number(c.contender_value),
        "ratio": number(c.ratio),
        "ci_low": number(c.ci_low),
        "ci_high": number(c.ci_high),
        "p_value": number(c.p_value),
        "verdict": None if c.verdict is None else str(c.verdict),
        "outcome": c.outcome,
        "reason": c.reason,
        "paired": c.paired,
        "processes": c.processes,
        "samples": c.samples,
        "run": c.run_id,
    }


def of_effect(e: EffectView) -> dict[str, Any]:
    """A variant against the reference variant of the same build."""
    return {
        "case": e.case,
        "variant": e.variant,
        "reference": e.reference,
        "build": e.build,
        "metric": e.metric,
        "unit": e.unit,
        "reference_value": number(e.reference_value),
        "variant_value": number(e.variant_value),
        "ratio": number(e.ratio),
        "ci_low": number(e.ci_low),
        "ci_high": number(e.ci_high),
        "p_value": number(e.p_value),
        "verdict": None if e.verdict is None else str(e.verdict),
        "outcome": e.outcome,
        "reason": e.reason,
        "run": e.run_id,
    }


def of_measurement(m: MeasurementView) -> dict[str, Any]:
    """What one run says about one case, variant, build and metric."""
    return {
        "case": m.case,
        "variant": m.variant,
        "build": m.build,
        "metric": m.metric,
        "unit": m.unit,
        "value": number(m.value),
        "ci_low": number(m.ci_low),
        "ci_high": number(m.ci_high),
        "outcome": str(m.outcome),
        "reason": m.reason,
        "rounds": m.n,
        "samples": m.samples,
        "run": m.run_id,
    }


def of_report(report: Report) -> dict[str, Any]:
    """Everything a report holds except raw samples; times as ISO 8601 in UTC."""
    return {
        "baseline": report.baseline,
        "contender": report.contender,
        "node": report.node,
        "cpu": report.node_cpu,
        "preset": report.preset,
        "alpha": report.alpha,
        "margin": report.margin,
        "rounds": report.rounds,
        "paired": report.paired,
        "runs": list(report.runs),
        "measured_from": None if report.measured_from is None else report.measured_from.isoformat(),
        "measured_to": None if report.measured_to is None else report.measured_to.isoformat(),
        "geomean": {
            "ratio": number(report.geomean.ratio),
            "ci_low": number(report.geomean.ci_low),
            "ci_high": number(report.geomean.ci_high),
            "measured": report.geomean.measured,
            "cases": report.geomean.cases,
        },
        "comparisons": [of_comparison(c) for c in report.comparisons],
        "effects": [of_effect(e) for e in report.effects],
        "measurements": [of_measurement(m) for m in report.measurements],
    }
