"""One run: its sentence, its steps and rounds, its results, its log. Only the part that lives renews itself."""

from __future__ import annotations

import streamlit as st

from app import data, frames
from app.bootstrap import services
from app.charts.forest import forest
from app.widgets.answer import answer, banner, note
from app.widgets.buttons import go
from app.widgets.figures import facts, tally
from app.widgets.guard import guarded
from app.widgets.progress import Step, rounds_strip, steps
from app.widgets.sheet import row_step, section, sheet
from core import numerals, provenance, sentences
from core.errors import UserError
from core.model import Report, RunState, RunView

EVERY_S = 2.0


def page(run_id: int) -> None:
    """The page of one run; raises NotFound."""
    run = data.run(run_id)
    if run.state.final:
        _note(run)
        _final(run)
    else:
        st.fragment(_live_head, run_every=EVERY_S)(run_id)
        _results(run)
        st.fragment(_live_log, run_every=EVERY_S)(run_id)


def _live_head(run_id: int) -> None:
    guarded(lambda: _live(run_id))


def _live_log(run_id: int) -> None:
    guarded(lambda: _log(run_id))


def remember(run: RunView, said: str) -> None:
    """Have the run's page say this until the run is in another state."""
    st.session_state["run-note"] = (run.id, run.state, said)


def _note(run: RunView) -> None:
    """What the last click had to say."""
    run_id, state, said = st.session_state.get("run-note", (0, run.state, ""))
    if run_id == run.id and state == run.state and said:
        banner(said)


def _live(run_id: int) -> None:
    """The part that renews itself while the run lives; its end draws the whole page anew, without a timer."""
    run = data.run(run_id)
    if run.state.final or st.session_state.pop("run-refresh-now", False):
        st.rerun(scope="app")
    _note(run)
    answer(sentences.run(run, (), data.now()))
    _progress(run)
    with st.container(horizontal=True, key="run-actions"):
        label = "Cancelling" if run.cancel_requested else "Cancel run"
        st.button(label, key="run-cancel", disabled=run.cancel_requested, on_click=_cancel, args=(run.id,))
        _all_runs()
        fresh = run.progress.round - _shown(run)
        if fresh > 0:
            st.button(
                f"Show new results ({fresh})", key="run-refresh", on_click=_show, args=(run.id, run.progress.round)
            )
    facts(*_live_facts(run))


def _progress(run: RunView) -> None:
    with st.container(key="run-progress"):
        steps(*_steps(run))
        p, total = run.progress, run.progress.rounds or run.plan.rounds
        if run.state is RunState.RUNNING or p.round:
            said = f"{numerals.share(p.round, total, 'round')} done"
            if run.state is RunState.RUNNING and p.round < total:
                within = f", {numerals.share(p.cases_done, p.cases, 'case')} in it" if p.cases else ""
                said = f"Round {p.round + 1} of {total} is under way{within}"
            rounds_strip(p.round, total, live=run.state is RunState.RUNNING, note=said)
        elif run.state is RunState.PREPARING and p.detail:
            note(p.detail)


def _steps(run: RunView) -> list[Step]:
    """Queued, preparing, measuring and the end, each with the time at which it began."""
    at = [run.queued_at, run.prepared_at, run.started_at]
    words = ["Queued", "Preparing", "Measuring"]
    place = {RunState.QUEUED: 0, RunState.PREPARING: 1, RunState.RUNNING: 2}.get(run.state, 3)
    out: list[Step] = []
    for k, word in enumerate(words):
        since = at[k]
        if since is None:
            out.append((word, "now" if k == place else "later"))
        else:
            out.append((f"{word} {numerals.clock(since)}", "now" if k == place else "done"))
    if run.state.final:
        end = f" {numerals.clock(run.finished_at)}" if run.finished_at else ""
        return [s for s in out if s[1] != "later"] + [(f"{str(run.state).capitalize()}{end}", "now")]
    return [*out, ("Finished", "later")]


def _live_facts(run: RunView) -> list[tuple[str, str, str]]:
    p, now = run.progress, data.now()
    begun = run.prepared_at or run.queued_at
    ready, wanted = p.environments_ready, p.environments or len(run.builds)
    return [
        (
            "Elapsed",
            numerals.duration((now - begun).total_seconds()),
            f"measuring takes about {numerals.about(run.plan.estimate_s)}",
        ),
        (
            "Environments",
            f"{ready} of {wanted} ready",
            p.detail if run.state is RunState.PREPARING else ", ".join(run.builds),
        ),
        ("Case", p.case or "none yet", f"{p.cases_done} of {p.cases} in this round" if p.cases else ""),
        (
            "Worker",
            _heard(run),
            f"lease until {numerals.moment(run.lease_until)}" if run.lease_until else f"attempt {run.attempt}",
        ),
    ]


def _heard(run: RunView) -> str:
    if run.heartbeat_at is None:
        return "not heard yet"
    return f"heard {numerals.ago(run.heartbeat_at, data.now())}"


def _all_runs() -> None:
    if st.button("All runs", key="run-all"):
        st.query_params.clear()
        st.rerun(scope="app")


def _cancel(run_id: int) -> None:
    try:
        services().cancel(run_id)
    except UserError as error:
        remember(services().queries.run(run_id), str(error))
    data.run.clear()


def _shown(run: RunView) -> int:
    """Up to which round results are on the screen; what is on it stays until the reader asks."""
    return int(st.session_state.setdefault(f"run-shown-{run.id}", run.progress.round))


def _show(run_id: int, rounds: int) -> None:
    st.session_state[f"run-shown-{run_id}"] = rounds
    st.session_state["run-refresh-now"] = True


def _results(run: RunView) -> None:
    """Decisions so far, frozen at the round that the reader asked for."""
    rounds = _shown(run)
    if not rounds:
        return
    for report in data.run_reports(run.id, RunState.RUNNING, rounds):
        _verdicts(
            report,
            "the order changes only when you ask for new results",
            f"So far, after {numerals.count(rounds, 'round')}",
        )


def _verdicts(report: Report, remark: str, title: str) -> None:
    rows = sentences.of_metric(report.comparisons)
    if not rows:
        return
    section(title, f"{report.contender} against {report.baseline}; {remark}{sentences.of_one_case(rows)}")
    chart = forest(frames.forest_rows(rows), margin=report.margin, step=row_step(), rest="in Compare")
    sheet(f"run-{report.contender}", chart, f"Forest plot: {sentences.tally(rows).words}")


def _final(run: RunView) -> None:
    reports = data.run_reports(run.id, run.state, run.progress.round)
    report = reports[-1] if reports else None
    answer(sentences.run(run, reports, data.now()))
    rows = [c for one in reports for c in sentences.of_metric(one.comparisons)]
    if rows:
        tally(sentences.tally(rows))
    _progress(run)
    with st.container(horizontal=True, key="run-actions"):
        if report is not None and st.button("Compare these builds", type="primary", key="run-compare"):
            go("compare", baseline=report.baseline, contender=report.contender, node=report.node)
        if run.state not in (RunState.FINISHED,) and st.button("Queue it again", key="run-retry"):
            waiting = services().retry(run.id)
            data.run.clear()
            remember(data.run(run.id), waiting)
            st.rerun()
        _all_runs()
    facts(*_final_facts(run, report))
    for one in reports:
        _verdicts(
            one,
            f"95 % intervals over {numerals.count(one.rounds, 'round')}; {provenance.band(one.margin, drawn=True)}",
            "What it found",
        )
    _log(run.id)


def _final_facts(run: RunView, report: Report | None) -> list[tuple[str, str, str]]:
    machine = report.node_cpu if report else ""
    return [
        (
            "Took",
            sentences.took_words(run) or "did not begin",
            numerals.share(run.progress.round, run.plan.rounds, "round"),
        ),
        ("Builds", " → ".join(run.builds), "the baseline first"),
        ("Machine", run.node, machine),
        ("Queued", numerals.moment(run.queued_at), f"request {run.request_id}, attempt {run.attempt}"),
    ]


def _log(run_id: int) -> None:
    lines = data.run_log(run_id)
    if not lines:
        return
    section("Log", f"the last {numerals.count(len(lines), 'line')}, UTC")
    with st.container(key="run-log"):
        # a text of several lines stays together under its time
        indent = "\n" + " " * len("00:00:00 ")
        said = (f"{line.at:%H:%M:%S} {indent.join(line.text.splitlines())}" for line in lines)
        st.code("\n".join(said), language=None, wrap_lines=True)
