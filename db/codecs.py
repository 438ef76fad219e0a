"""Plans, request specs and progress as JSON values and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from core.model import Progress, RequestSpec, RunPlan
from db.records import clean_json


def plan_to_json(plan: RunPlan) -> dict[str, Any]:
    return dict(clean_json(asdict(plan)))


def plan_from_json(value: Mapping[str, Any]) -> RunPlan:
    return RunPlan(**{**value, "cases": tuple(value["cases"]), "builds": tuple(value["builds"])})


def spec_to_json(spec: RequestSpec) -> dict[str, Any]:
    return dict(clean_json(asdict(spec)))


def progress_to_json(progress: Progress) -> dict[str, Any]:
    return dict(clean_json(asdict(progress)))


def progress_from_json(value: Mapping[str, Any]) -> Progress:
    """The progress of a row; a run that has not begun has none of the keys."""
    known = {field.name for field in fields(Progress)}
    return Progress(**{key: inner for key, inner in value.items() if key in known})
