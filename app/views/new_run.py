"""New run: choose, see what will happen, queue it once."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import address, data
from app.bootstrap import services
from app.views.run import remember
from app.widgets.answer import answer, banner, empty, note
from app.widgets.buttons import go
from app.widgets.guard import guarded
from app.widgets.markup import html
from core import numerals
from core.errors import UserError
from core.model import PRESETS, BuildView, NodeView, SuiteInfo
from core.sentences import Answer, Span
from core.usecases import Planned, SubmitInput

ORDINALS = ("baseline", "contender")


def page() -> None:
    """The choices on the left; what will happen, and Queue, on the right."""
    suites, nodes, builds = data.catalog(), data.nodes(), data.builds()
    if not nodes:
        empty("No worker has reported.", "A run needs a node that measures it. Start one, then come back:")
        st.code("flashpoint worker", language=None)
        return
    answer(
        Answer(
            "",
            (Span("What should be measured?"),),
            (Span("The builds are measured side by side, in interleaved rounds; the first one is the baseline."),),
        )
    )
    left, right = st.columns([1.6, 1], gap="large")
    with left:
        given = _choices(suites, nodes, builds)
    with right, st.container(key="queue-plan"):
        _plan(given)


def _choices(suites: Sequence[SuiteInfo], nodes: Sequence[NodeView], builds: Sequence[BuildView]) -> SubmitInput:
    address.recall("new-run")
    names = [s.name for s in suites]
    installed = list(dict.fromkeys(b.spec for b in builds if b.state == "ready"))
    alive = [n.name for n in nodes if n.alive] + [n.name for n in nodes if not n.alive]
    unknown = address.take_many("suite", "queue-suites", names, names[:1] if len(names) == 1 else ())
    address.take_many("build", "queue-builds", None, ())
    address.take_text("case", "queue-cases")
    strange = address.take("node", "queue-nodes", alive, alive[0])
    address.take("preset", "queue-preset", list(PRESETS), "quick")
    for what, asked in [*(("suite", u) for u in unknown), *([("node", strange)] if strange else [])]:
        banner(f"There is no {what} {asked[:80]!r} here; choose one that there is.")
    chosen = st.multiselect(
        "Suites",
        names,
        key="queue-suites",
        placeholder="Search, or select all",
        select_all=True,
        filter_mode="contains",
    )
    if chosen:
        note(*(f"{s.name}: {s.question} Needs {s.needs or 'nothing special'}." for s in suites if s.name in chosen))
    glob = st.text_input(
        "Cases", key="queue-cases", placeholder="All cases of the preset; or a pattern, such as *gelu*"
    )
    specs = st.multiselect(
        "Builds, the baseline first",
        list(dict.fromkeys([*installed, *st.session_state["queue-builds"]])),
        key="queue-builds",
        accept_new_options=True,
        select_all=False,
        placeholder="Pick an installed build, or type a release such as 2.13.0 and press Enter",
    )
    if specs:
        note(_order_said(specs))
    node = st.selectbox("Node", alive, key="queue-nodes", format_func=lambda name: name)
    silent = next((n for n in nodes if n.name == node and not n.alive), None)
    if silent is not None:
        since = numerals.moment(silent.heartbeat_at) or "its start"
        note(f"{node} is silent since {since}; the run waits until it answers.")
    preset = st.radio(
        "Preset",
        list(PRESETS),
        key="queue-preset",
        captions=[p.sentence for p in PRESETS.values()],
        format_func=str.capitalize,
    )
    address.put({"suite": chosen, "case": glob.strip(), "build": specs, "node": node, "preset": preset})
    address.keep("new-run")
    return SubmitInput(
        suites=tuple(chosen), builds=tuple(specs), case_glob=glob.strip() or None, node=node, preset=preset
    )


def _order_said(specs: Sequence[str]) -> str:
    said = f"Baseline: {specs[0]}."
    if len(specs) > 1:
        said += f" Compared with it: {', '.join(specs[1:])}."
    else:
        said += " Add a second build to compare."
    return said


def _plan(given: SubmitInput) -> None:
    busy = bool(st.session_state.get("queue-busy"))
    planned = None
    if not given.suites or not given.builds:
        missing = [word for word, has in (("a suite", given.suites), ("a build", given.builds)) if not has]
        note(f"Choose {' and '.join(missing)} to see what will happen.")
    else:
        try:
            planned = services().plan(given)
        except UserError as error:
            banner(str(error))
    if planned is not None:
        _said(planned)
    st.button(
        "Queueing" if busy else "Queue",
        key="queue-submit",
        type="primary",
        disabled=planned is None or busy,
        on_click=_begin,
        width="stretch",
    )
    if busy and planned is not None:
        _queue(given)
    st.session_state["queue-busy"] = False


def _said(planned: Planned) -> None:
    builds, cases = planned.spec.builds, numerals.count(planned.cases, "case")
    node = f'<span class="fp-whole">{html(planned.spec.node)}</span>'
    times = html(f"{cases} × {numerals.count(len(builds), 'build')} on ")
    margin = numerals.percent(planned.preset.margin)
    rest = f", about {numerals.about(planned.estimate_s)}, " + (
        f"decided at {margin}." if len(builds) > 1 else "nothing to compare with."
    )
    notes = [
        f"{run.suite}: {numerals.count(len(run.cases), 'case')}, {numerals.count(run.rounds, 'round')}, "
        f"about {numerals.about(run.estimate_s)}"
        for run in planned.runs
    ]
    notes += planned.notes
    items = "".join(f"<li>{html(n)}</li>" for n in notes)
    st.html(f'<p class="fp-plan">{times}{node}{html(rest)}</p>')
    st.html(f'<ul class="fp-notes">{items}</ul>')


def _begin() -> None:
    """The click: one key for one request, however often it is clicked before the page is left."""
    st.session_state.setdefault("queue-key", uuid.uuid4().hex)
    st.session_state["queue-busy"] = True


def _queue(given: SubmitInput) -> None:
    key = st.session_state.setdefault("queue-key", uuid.uuid4().hex)
    try:
        done, waiting = services().submit(replace(given, key=key))
    finally:
        st.session_state["queue-busy"] = False
    first = services().queries.run(done.run_ids[0])
    remember(first, waiting)
    go("runs", run=str(first.id))


if __name__ == "__main__":
    guarded(page)
