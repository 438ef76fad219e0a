"""Compare: two builds on a node; what changed, by how much, how surely, and why."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import streamlit as st

from app import address, data, exporting, frames
from app.charts.forest import forest
from app.views.compare_variants import variants
from app.views.compare_why import why
from app.widgets.answer import answer, banner, empty, note
from app.widgets.buttons import go
from app.widgets.figures import tally
from app.widgets.guard import guarded
from app.widgets.markup import plain
from app.widgets.sheet import row_step, section, sheet
from app.widgets.table import ROW, height_of, width_of
from core import numerals, provenance, sentences
from core.exports import FORMATS
from core.model import ComparisonView, Report

SHOW = {"changed": "Changed", "unsure": "Unsure", "all": "All"}
_CHANGED = ("slower", "faster", "worse", "better")
TABS = ("Builds", "Variants")


def page() -> None:
    """Controls, the answer, and the two tabs."""
    nodes = data.measured_nodes()
    if not nodes:
        empty("Nothing is measured yet.", "Pick two builds and a suite; the quick preset takes about two minutes.")
        if st.button("New run", type="primary", key="compare-new"):
            go("new_run")
        return
    chosen = _controls(nodes)
    if chosen is None:
        return
    baseline, contender, node, show = chosen
    view = {"baseline": baseline, "contender": contender, "node": node, "show": show}
    report = data.pair(baseline, contender, node)
    rows = sentences.of_metric(report.comparisons)
    if not any(c.ratio is not None for c in rows):
        _nothing_shared(report, rows)
        address.put(view)
        return
    answer(sentences.compare(report))
    _conditions(report)
    tally(sentences.tally(rows))
    builds_tab, variants_tab = st.tabs(TABS, key="compare-tab", on_change="rerun")
    if variants_tab.open:
        with variants_tab:
            view |= {"tab": TABS[1], "case": variants(report)}
    else:
        with builds_tab:
            view |= {"row": _builds(report, rows, show)}
    address.put(view)


def _controls(nodes: Sequence[str]) -> tuple[str, str, str, str] | None:
    """Baseline, contender, node and what to show, from the address and back into it; None when a node has one build
    only."""
    strange = [("node", address.take("node", "compare-node", nodes, nodes[0]))]
    builds = data.measured_builds(st.session_state["compare-node"])
    if len(builds) < 2:
        node = st.selectbox("Node", nodes, key="compare-node", width=200)
        address.put({"node": node})
        empty(
            f"{node} has measured one build only.",
            f"Measure a second one beside {builds[0] if builds else 'it'} to compare.",
        )
        if st.button("New run", type="primary", key="compare-new"):
            go("new_run", node=node, **({"build": data.spec_of(builds[0])} if builds else {}))
        return None
    contender, baseline = _newest_pair(builds, st.session_state["compare-node"])
    strange.append(("build", address.take("baseline", "compare-baseline", builds, baseline)))
    strange.append(("build", address.take("contender", "compare-contender", builds, contender)))
    views = [("show", address.take("show", "compare-show", list(SHOW), "all"))]
    views.append(("tab", address.take("tab", "compare-tab", TABS, TABS[0])))
    unknown = [f"{what} {asked[:80]!r}" for what, asked in strange if asked]
    if unknown:
        banner(f"There is no measured {' and no '.join(unknown)} here; what you see is the newest there is.")
    wrong = [f"{what} {asked[:80]!r}" for what, asked in views if asked]
    if wrong:
        banner(f"There is no {' and no '.join(wrong)} here; what you see is the usual view.")
    with st.container(horizontal=True, vertical_alignment="bottom", key="compare-controls"):
        baseline = st.selectbox("Baseline", builds, key="compare-baseline", width=210)
        contender = st.selectbox("Contender", builds, key="compare-contender", width=230)
        node = st.selectbox("Node", nodes, key="compare-node", width=180)
        show = st.segmented_control("Show", list(SHOW), key="compare-show", format_func=SHOW.__getitem__, required=True)
    return baseline, contender, node, show or "all"


def _newest_pair(builds: Sequence[str], node: str) -> tuple[str, str]:
    """Contender and baseline of the newest finished run on the node, else the two newest builds."""
    for run in data.runs():
        if run.node == node and len(run.builds) > 1 and run.builds[0] in builds and run.builds[-1] in builds:
            return run.builds[-1], run.builds[0]
    return builds[0], builds[1]


def _nothing_shared(report: Report, rows: Sequence[ComparisonView]) -> None:
    where = " ".join(
        f"{build} was measured on {', '.join(n for n in data.measured_nodes() if build in data.measured_builds(n))}."
        for build in (report.baseline, report.contender)
    )
    missing = sentences.missing_line(rows)
    empty(f"These builds share no case on {report.node} that has a number in both.", f"{where} {missing}".strip())
    if st.button(f"Measure both on {plain(report.node)}", type="primary", key="compare-measure"):
        go("new_run", node=report.node, build=[data.spec_of(report.baseline), data.spec_of(report.contender)])


def _conditions(report: Report) -> None:
    """What tells the two sides apart besides PyTorch, and which measured builds lie between them."""
    known = {b.label: b for b in data.builds()}
    said = (
        provenance.builds_differ(known.get(report.baseline), known.get(report.contender)),
        provenance.between(data.measured_builds(report.node), report.baseline, report.contender),
    )
    if any(said):
        note(" ".join(s for s in said if s))


def _shown(rows: Sequence[ComparisonView], show: str) -> tuple[ComparisonView, ...]:
    if show == "changed":
        return tuple(c for c in rows if c.verdict is None or c.verdict in _CHANGED)
    if show == "unsure":
        return tuple(c for c in rows if c.verdict == "unsure")
    return tuple(rows)


def _builds(report: Report, rows: Sequence[ComparisonView], show: str) -> str:
    """Forest, export, table and the reasons of one row. Returns the row that a reader selected, "" when none is."""
    shown = _shown(rows, show)
    if not shown:
        empty(f"No case is {SHOW[show].lower()}.", f"{len(rows)} without the filter.")
        st.button("Show all", key="compare-clear", on_click=_show_all)
        return ""
    chart = forest(frames.forest_rows(shown), margin=report.margin, step=row_step())
    sheet("compare", chart, f"Forest plot of {len(shown)} rows: {sentences.tally(shown).words}")
    note(
        f"95 % intervals; {provenance.band(report.margin, drawn=True)}. "
        f"Preset {report.preset}, error level {report.alpha:g}"
        + (". " if len(shown) == len(rows) else f"; {numerals.count(len(rows) - len(shown), 'row')} filtered out. ")
        + (provenance.ratio_meaning(report.paired) if any(c.ratio for c in shown) else "No row has a ratio")
        + f"{sentences.of_one_case(shown)}."
    )
    _export(report, shown, show)
    hint = "sorted by verdict, then by p; select a row to see why"
    section(f"{'All' if len(shown) == len(rows) else 'These'} {len(shown)} {sentences.things(shown)}", hint)
    names = [sentences.row_label(c) for c in shown]
    selected = _table(shown, _asked_row(names, rows))
    why(report, shown[selected or 0])
    return "" if selected is None else names[selected]


def _asked_row(names: Sequence[str], rows: Sequence[ComparisonView]) -> int | None:
    """The position of the row that the address names; a row that does not exist gets a banner, a filtered one none."""
    unknown = address.take("row", "compare-row", ["", *map(sentences.row_label, rows)], "")
    if unknown:
        banner(f"There is no row {unknown[:120]!r} here; what you see is the first one.")
    asked = st.session_state["compare-row"]
    return names.index(asked) if asked in names else None


def _show_all() -> None:
    st.session_state["compare-show"] = "all"


def _export(report: Report, shown: Sequence[ComparisonView], show: str) -> None:
    """Format and download; the file is made when it is asked for."""
    link = _permalink(report, show)
    key = (report.baseline, report.contender, report.node, show, str(report.runs), str(report.measured_to))
    with st.container(horizontal=True, vertical_alignment="bottom", key="compare-export"):
        name = st.selectbox(
            "Export as", list(FORMATS), key="export-format", format_func=lambda f: FORMATS[f].label, width=150
        )
        st.download_button(
            "Download",
            data=lambda: data.exported(key, report, name, link, shown),
            file_name=exporting.file_name(report, name),
            mime=FORMATS[name].media_type,
            on_click="ignore",
            key="export-download",
        )


def _permalink(report: Report, show: str) -> str:
    query = urlencode({"baseline": report.baseline, "contender": report.contender, "node": report.node, "show": show})
    return f"{(st.context.url or '/compare').split('?')[0]}?{query}"


def _table(shown: Sequence[ComparisonView], asked: int | None) -> int | None:
    """The table, at first with the row selected that was asked for; returns the selected row."""
    found = st.dataframe(
        frames.compare_table(shown),
        hide_index=True,
        key="compare-table",
        row_height=ROW,
        height=height_of(len(shown)),
        placeholder="",
        alt="Comparisons of both builds",
        on_select="rerun",
        selection_mode="single-row",
        selection_default=None if asked is None else {"selection": {"rows": [asked]}},
        column_config={
            "verdict": st.column_config.TextColumn("Verdict", width=130),
            "case": st.column_config.TextColumn("Case", width=width_of((c.case for c in shown), 140, 375)),
            "variant": st.column_config.TextColumn("Variant", width=width_of((c.variant for c in shown), 80, 180)),
            "baseline": st.column_config.TextColumn("Baseline", width=85, alignment="right"),
            "contender": st.column_config.TextColumn("Contender", width=85, alignment="right"),
            "ratio": st.column_config.NumberColumn("Ratio", format="%.3f", width=70),
            "interval": st.column_config.TextColumn("95 % interval", width=125),
            "p": st.column_config.NumberColumn("p", format="%.2g", width=75),
            "rounds": st.column_config.NumberColumn("Rounds", width=70, format="%d"),
            "reason": st.column_config.TextColumn("Reason", width=260),
        },
    )
    rows = found["selection"]["rows"]
    return rows[0] if rows and rows[0] < len(shown) else None


if __name__ == "__main__":
    guarded(page)
