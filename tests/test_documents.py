"""The documents are held to the code: every setting, command, page and suite is named, and no link is dead."""

from __future__ import annotations

import re
from pathlib import Path

from app.cli import application
from core.catalog import catalog
from core.model import PRESETS
from core.settings import SETTINGS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_setting_is_in_the_table_as_the_code_has_it() -> None:
    table = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for setting in SETTINGS:
        assert f"| `{setting.name}` | {setting.default} | {setting.meaning} |" in table
    assert set(re.findall(r"FLASHPOINT_[A-Z_]+", table)) == {setting.name for setting in SETTINGS}


def test_the_readme_names_every_preset_with_its_figures_and_every_suite() -> None:
    for preset in PRESETS.values():
        assert f"| {preset.name} | {preset.rounds} | {100 * preset.alpha:g} % |" in README
        assert f"±{100 * preset.margin:g} %" in README
    for suite in catalog():
        assert f"`{suite.name}`" in README


def test_no_link_of_a_document_is_dead() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_commands_named_in_documents_and_sentences_exist() -> None:
    import typer.main

    known = set(typer.main.get_command(application()).commands)  # type: ignore[attr-defined]
    assert {"up", "web", "worker", "beat", "suites", "builds", "nodes", "submit", "runs", "cancel", "retry", "compare",
            "doctor"} == known  # fmt: skip
    sources = [file for folder in ("app", "core", "workers", "db") for file in (ROOT / folder).rglob("*.py")]
    for file in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *sources]:
        for named in re.findall(r"(?:`|bin/)flashpoint ([a-z]+)", file.read_text(encoding="utf-8")):
            assert named in known, f"{file.name} names the command {named!r}"


def test_no_committed_file_names_a_package_index_or_a_path_of_a_machine() -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert "://" not in constraints and "@" not in constraints
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", line) for line in constraints.split())
