"""What the pages say first: a sentence and a second line, from records. Pure; no database, no screen, no markup.

A sentence is a tuple of ``Span``: plain text with a tone. Text that came from a person stays text; whoever renders
it escapes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from core import numerals
from core.model import ComparisonView, NodeView, Report, RunState, RunView, Verdict
from core.provenance import method

_WORSE = (Verdict.SLOWER, Verdict.WORSE)
_BETTER = (Verdict.FASTER, Verdict.BETTER)
#: How an outcome that is no number is said of one row and of several.
_MISSING = {
    "unsupported": ("is unsupported", "are unsupported"),
    "skipped": ("was skipped", "were skipped"),
    "mismatch": ("is a mismatch", "are mismatches"),
    "failed": ("failed", "failed"),
    "timed out": ("timed out", "timed out"),
    "not run": ("was not run", "were not run"),
}
_LEAST = 0.005  # a certain change below this is not told


@dataclass(frozen=True)
class Span:
    """A piece of a sentence; ``tone`` is "", "slower", "faster" or "strong"."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Answer:
    """The opening of a page: what it is about, the sentence, the second line."""

    eyebrow: str
    sentence: tuple[Span, ...]
    more: tuple[Span, ...] = ()

    @property
    def text(self) -> str:
        """The sentence without tones, as the title of an exported figure."""
        return "".join(s.text for s in self.sentence)


@dataclass(frozen=True)
class Tally:
    """Verdicts counted; cases without a number are in it."""

    slower: int = 0
    faster: int = 0
    unsure: int = 0
    same: int = 0
    missing: int = 0

    @property
    def total(self) -> int:
        return self.slower + self.faster + self.unsure + self.same + self.missing

    @property
    def measured(self) -> int:
        return self.total - self.missing

    @property
    def words(self) -> str:
        """For screen readers and the text beside a chart: ``3 slower, 2 faster, 1 without a number``."""
        pairs = (
            (self.slower, "slower"),
            (self.faster, "faster"),
            (self.unsure, "unsure"),
            (self.same, "same"),
            (self.missing, "without a number"),
        )
        return ", ".join(f"{n} {w}" for n, w in pairs if n) or "nothing measured"


def of_metric(comparisons: Iterable[ComparisonView], metric: str = "time") -> tuple[ComparisonView, ...]:
    """The comparisons of one metric, in the order given."""
    return tuple(c for c in comparisons if c.metric == metric)


def tally(comparisons: Iterable[ComparisonView]) -> Tally:
    """Count verdicts; what has no verdict is counted as missing."""
    n: Counter[str] = Counter()
    for c in comparisons:
        if c.verdict is None:
            n["missing"] += 1
        else:
            n["slower" if c.verdict in _WORSE else "faster" if c.verdict in _BETTER else str(c.verdict)] += 1
    return Tally(n["slower"], n["faster"], n["unsure"], n["same"], n["missing"])


def things(comparisons: Sequence[ComparisonView]) -> str:
    """What the rows are: cases, or comparisons where a case was measured in more than one variant."""
    noun = "case" if len({c.case for c in comparisons}) == len(comparisons) else "comparison"
    return noun if len(comparisons) == 1 else noun + "s"


def of_one_case(comparisons: Sequence[ComparisonView]) -> str:
    """*; all rows are of cpu-fusion/gelu[n=1]*, where a narrow chart names the variants only; else empty."""
    one = len({c.case for c in comparisons}) == 1 and len(comparisons) > 1
    return f"; all rows are of {comparisons[0].case}" if one else ""


def verdict_line(comparisons: Sequence[ComparisonView]) -> tuple[Span, ...]:
    """*Slower in 3, faster in 2 of 12 cases.*"""
    n, noun = tally(comparisons), things(comparisons)
    if not n.total:
        return (Span("Nothing is measured yet."),)
    if not n.measured:
        return (Span(f"None of {n.total} {noun} has a number." if n.total > 1 else f"The one {noun} has no number."),)
    of = f" of {n.total} {noun}."
    if n.slower and n.faster:
        return (
            Span(f"Slower in {n.slower}", "slower"),
            Span(", "),
            Span(f"faster in {n.faster}", "faster"),
            Span(of),
        )
    if n.slower:
        return (Span(f"Slower in {n.slower}", "slower"), Span(of))
    if n.faster:
        return (Span(f"Faster in {n.faster}", "faster"), Span(of))
    if n.same == n.total:
        return (Span(f"The same in all {n.total} {noun}." if n.total > 1 else f"The same in the one {noun}."),)
    if n.same:
        return (Span(f"Nothing changed that we can see; the same in {n.same}{of}"),)
    return (Span(f"Unsure in {n.unsure}{of}"),)


def missing_line(comparisons: Iterable[ComparisonView]) -> str:
    """*8 are unsupported.* or, of several kinds, *2 have no number: 1 failed, 1 unsupported.* Empty when every row has
    a number."""
    n = Counter(c.outcome if c.outcome != "ok" else "not run" for c in comparisons if c.verdict is None)
    total = sum(n.values())
    if not total:
        return ""
    if len(n) == 1:
        (word,) = n
        one, many = _MISSING.get(word, (word, word))
        return f"{total} {one if total == 1 else many}."
    listed = ", ".join(f"{k} {word}" for word, k in n.most_common())
    return f"{total} have no number: {listed}."


def overall(report: Report) -> tuple[Span, ...]:
    """*Geometric mean over the 10 of 12 that both builds have: 1.006× (0.999 to 1.013), so on the whole = same.*"""
    g = report.geomean
    if g.ratio is None:
        return ()
    word, ends = "", ""
    if g.ci_low is not None and g.ci_high is not None:
        word = _mean_word(g.ratio, g.ci_low, g.ci_high, report.margin)
        ends = f" ({numerals.interval(g.ci_low, g.ci_high)})"
    spans = [
        Span(f"Geometric mean over the {g.measured} of {g.cases} that both builds have: "),
        Span(numerals.times(g.ratio), "strong"),
        Span(ends),
    ]
    if word:
        tone = word if word in ("slower", "faster") else "strong"
        spans += [Span(", so on the whole "), Span(numerals.said(g.ratio, word), tone)]
    return (*spans, Span(". "))


def _mean_word(ratio: float, low: float, high: float, margin: float) -> str:
    """As single comparisons are judged: a certain change first, then the margin. In words only, for the mean has no
    verdict of its own."""
    if (low > 1 or high < 1) and max(ratio, 1 / ratio) > 1 + _LEAST:
        return "slower" if ratio > 1 else "faster"
    return "same" if 1 / (1 + margin) <= low and high <= 1 + margin else "unsure"


def _busy(report: Report) -> str:
    """Wall time moved and CPU time did not: the machine, not PyTorch."""
    cpu = {(c.case, c.variant): c.verdict for c in report.comparisons if c.metric == "cpu_time"}
    n = sum(
        1
        for c in of_metric(report.comparisons)
        if c.verdict == Verdict.SLOWER and cpu.get((c.case, c.variant)) == Verdict.SAME
    )
    return "" if not n else f" In {n} of the slower ones CPU time did not move: there the machine was busy."


def worst(comparisons: Iterable[ComparisonView]) -> ComparisonView | None:
    """The comparison that got worse most, else the one that got better most; None when nothing changed."""

    def size(c: ComparisonView) -> float:
        ratio = c.ratio or 1.0
        return max(ratio, 1 / ratio)

    rows = [c for c in comparisons if c.ratio]
    for group in (_WORSE, _BETTER):
        changed = [c for c in rows if c.verdict in group]
        if changed:
            return max(changed, key=size)
    return None


def compare(report: Report) -> Answer:
    """The opening of Compare."""
    rows = of_metric(report.comparisons)
    missing, how = missing_line(rows), method(report)
    return Answer(
        eyebrow=f"{report.contender} against {report.baseline} on {report.node}" + (f". {how}" if how else ""),
        sentence=verdict_line(rows),
        more=(*overall(report), Span(f"{missing}{_busy(report)}".strip())),
    )


def of_worst(comparison: ComparisonView, node: str) -> tuple[Span, ...]:
    """*Most in cpu-fusion/gelu[n=1] · eager on epyc-01: 412 → 463 µs, ↑ 12.4 % slower (95 % interval ...).*"""
    if comparison.ratio is None or comparison.verdict is None:
        return ()
    tone = "slower" if comparison.verdict in _WORSE else "faster" if comparison.verdict in _BETTER else "strong"
    raw = numerals.old_new(comparison.baseline_value, comparison.contender_value, comparison.unit)
    return (
        Span("Most in "),
        Span(row_label(comparison), "strong"),
        Span(f" on {node}: {raw}, "),
        Span(numerals.said(comparison.ratio, comparison.verdict), tone),
        Span(f" (95 % interval of the ratio {numerals.interval(comparison.ci_low, comparison.ci_high)})."),
    )


def row_label(comparison: ComparisonView) -> str:
    """What a row is called: ``case · variant``; a case that failed before its variants were known has none."""
    return f"{comparison.case} · {comparison.variant}" if comparison.variant else comparison.case


def overview(report: Report | None, now: datetime) -> Answer:
    """The opening of the overview: what the newest finished run said."""
    if report is None:
        return Answer("", (Span("Nothing is measured yet."),))
    rows = of_metric(report.comparisons)
    top = worst(rows)
    missing = missing_line(rows)
    more = of_worst(top, report.node) if top else ()
    return Answer(
        eyebrow=f"Newest result, {report.contender} against {report.baseline} on {report.node}, "
        f"{numerals.span(report.measured_from, report.measured_to)}, {numerals.ago(report.measured_to, now)}",
        sentence=verdict_line(rows),
        more=(*more, Span((" " if more else "") + missing)),
    )


def run(view: RunView, reports: Sequence[Report], now: datetime) -> Answer:
    """The opening of a run's page, for each state it can be in; ``reports`` has one for each contender."""
    plan = view.plan
    against = " against ".join((view.builds[-1], view.builds[0])) if len(view.builds) == 2 else ", ".join(view.builds)
    cases = numerals.count(len(plan.cases), "case")
    eyebrow = f"Run {view.id} on {view.node}, {plan.suite} ({cases}), {against}, {plan.preset}"
    sentence, more = _run_lines(view, reports, now)
    return Answer(eyebrow, sentence, more)


def _run_lines(view: RunView, reports: Sequence[Report], now: datetime) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    p, reason = view.progress, _closed(view.reason)
    match view.state:
        case RunState.QUEUED:
            place = "next" if view.position in (None, 1) else f"number {view.position}"
            return (Span(f"Queued: {place} on {view.node}."),), (Span(reason or _waiting(view, now)),)
        case RunState.PREPARING:
            ready = numerals.share(p.environments_ready, p.environments or len(view.builds), "environment")
            return (Span(f"Preparing: {ready} ready."),), (Span(_closed(p.detail)),)
        case RunState.RUNNING:
            left = f" About {numerals.about(p.seconds_left)} left." if p.seconds_left is not None else ""
            where = (
                f"Now {p.case}, {numerals.share(p.cases_done, p.cases, 'case')} of this round."
                if p.case
                else _closed(p.detail)
            )
            return (Span(f"Running: {numerals.share(p.round, p.rounds or view.plan.rounds, 'round')} done."),), (
                Span(f"{where}{left}"),
            )
        case RunState.FINISHED:
            took = f" in {took_words(view)}" if took_words(view) else ""
            rows = [c for report in reports for c in of_metric(report.comparisons)]
            done = f"Finished{took} after {numerals.count(p.round or view.plan.rounds, 'round')}."
            return verdict_line(rows) if rows else (Span("Finished."),), (Span(f"{done} {missing_line(rows)}".strip()),)
        case RunState.FAILED:
            return (Span(f"Failed at {_at(view.finished_at)}."),), (Span(reason or "No reason was recorded."),)
        case RunState.CANCELLED:
            return (Span(f"Cancelled at {_at(view.finished_at)}."),), (
                Span(reason or "What was measured until then is kept."),
            )
        case RunState.LOST:
            heard = f"the worker was last heard at {_at(view.heartbeat_at)}"
            return (Span(f"Lost: {heard}."),), (Span(reason or "Queue it again when the node answers."),)


def _waiting(view: RunView, now: datetime) -> str:
    return (
        f"Waiting since {numerals.clock(view.queued_at)} ({numerals.duration((now - view.queued_at).total_seconds())})."
    )


def took_words(view: RunView) -> str:
    """How long a run took, from the begin of its preparation to its end; empty while it has no end, or no begin."""
    if view.finished_at is None or view.prepared_at is None:
        return ""
    return numerals.duration((view.finished_at - view.prepared_at).total_seconds())


def _at(at: datetime | None) -> str:
    return "a time that was not recorded" if at is None else numerals.clock(at)


def _closed(text: str) -> str:
    """The text with a full stop at its end."""
    text = text.strip()
    return text if not text or text[-1] in ".!?…" else text + "."


def runs(views: Sequence[RunView]) -> tuple[Span, ...]:
    """The sentence of ``runs_counted`` for these runs."""
    return runs_counted(Counter(v.state for v in views))


def runs_counted(counts: Mapping[RunState, int]) -> tuple[Span, ...]:
    """*1 running, 2 queued, 41 finished, 1 failed.* Zero counts are left out."""

    def n(*states: RunState) -> int:
        return sum(counts.get(state, 0) for state in states)

    parts = [
        f"{k:,} {word}"
        for k, word in (
            (n(RunState.RUNNING, RunState.PREPARING), "running"),
            (n(RunState.QUEUED), "queued"),
            (n(RunState.FINISHED), "finished"),
            (n(RunState.FAILED), "failed"),
            (n(RunState.CANCELLED), "cancelled"),
            (n(RunState.LOST), "lost"),
        )
        if k
    ]
    return (Span(", ".join(parts) + "." if parts else "No run is waiting or running."),)


def nodes(views: Sequence[NodeView]) -> str:
    """*3 of 4 nodes answer.*"""
    alive = sum(v.alive for v in views)
    if not views:
        return "No worker has reported."
    if len(views) == 1:
        return f"{views[0].name} answers." if alive else f"{views[0].name} is silent."
    return f"{alive} of {len(views)} nodes answer."
