"""A scored Run as Markdown, for a comment on a pull request. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from scenarios.text import clip, counted, visible
from scoring.compare.markdown import escaped
from scoring.gates import Outcome, outcome_line
from scoring.metrics import accuracy
from scoring.metrics.calls import NEVER_PARALLEL, never_parallel
from scoring.metrics.definitions import DEFINITIONS
from scoring.metrics.figures import Figure
from scoring.output.evidence_text import is_wrong, why_wrong, wrong_rows, wrong_title
from scoring.output.faulty_writes import beyond_figures, call_and_why, kinds, place_of_write, write_lists
from scoring.output.tables import interval, percent, quantity, unscored_line, worded
from scoring.report import RunReport, TaskRow, task_rows
from scoring.types import TaskScore
from scoring.verdicts.error_classes import CLASSES

MOST = 60_000
"""Characters; a comment on GitHub may have 65,536."""

LIMITS = (50, 25, 10, 5, 1, 0)
"""How many entries lists have, tried in turn until the text is short enough."""

RATES = (
    "verdict_share",
    "completed_sessions",
    "session_accuracy",
    "task_accuracy",
    "accuracy_by_label",
    "optimal_path_rate",
)
ELSEWHERE = "--format json has everything"

_NAME = 60
_LINE = 160
_ARGUMENTS = 80
_GROUPS = 20

Cells = tuple[str, ...]


def markdown_text(reports: Sequence[RunReport], outcomes: Sequence[Outcome]) -> str:
    """What came of the thresholds, the main figures, and what went wrong: at most `MOST` characters.

    Lists are shortened, and if need be Runs left out, until it fits; the text says so.
    """
    if not reports:
        return "### Scores\n\nThere is no run.\n"
    for limit in LIMITS:
        text = "\n".join(_run(report, outcomes, limit) for report in reports)
        if len(text) <= MOST:
            return text
    shown: list[str] = []
    room = MOST - 200
    for report in reports:
        text = _run(report, outcomes, 0)
        if len(text) >= room:
            break
        shown.append(text)
        room -= len(text) + 1
    more = len(reports) - len(shown)
    shown.append(f"### Scores\n\n{counted(more, 'run')} left out, too long for a comment: {ELSEWHERE}.\n")
    return "\n".join(shown)


def code(text: str, limit: int = _NAME) -> str:
    """Text of others in one line: nothing of it is markup, a link or a mention."""
    return f"<code>{escaped(clip(visible(text), limit)).replace('www.', 'www&#46;')}</code>"


def _run(report: RunReport, outcomes: Sequence[Outcome], limit: int) -> str:
    mine = dict.fromkeys(it for it in outcomes if (it.log, it.run) == (report.log, report.run))
    why = report.modes.why_not_comparable
    blocks = [
        [f"### Scores of run {code(report.run)}"],
        [] if why is None else [f"> **Not comparable with published figures**: {code(why, _LINE)}"],
        [f"> {code(note, _LINE)}" for note in (report.judged_by, *report.notes) if note],
        _gates(list(mine), limit),
        [_about(report)],
        _rates(report),
        _behaviour(report),
        _errors(report),
        _unscored(report),
        *_writes(report, limit),
        _wrong(report, limit),
        _disagreements(report, limit),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _gates(outcomes: Sequence[Outcome], limit: int) -> list[str]:
    """Those that were missed first, as they are what a reader looks for."""
    words = {False: "failed", None: "nothing to tell", True: "passed"}
    ordered = [it for passed in words for it in outcomes if it.passed is passed]
    lines = [f"- **{words[it.passed]}**: {code(outcome_line(it), _LINE)}" for it in ordered[:limit]]
    return lines + [f"- {line}" for line in _more(len(ordered), limit, "threshold")]


def _about(report: RunReport) -> str:
    scenarios = len({session.scenario.id for session in report.sessions})
    sessions = len(report.sessions)
    return (
        f"Log {code(report.log)}, model {code(report.model or '-')}, history {code(report.modes.history)}, "
        f"{counted(scenarios, 'scenario')} ({counted(sessions, 'session')})"
    )


def _rates(report: RunReport) -> list[str]:
    figures = [{figure.key: figure for figure in scored.figures} for scored in report.scored]
    rows: list[Cells] = []
    for name in RATES:
        keys = dict.fromkeys(key for of in figures for key, it in of.items() if it.name == name)
        for key in islice(keys, _GROUPS):
            found = [of.get(key) for of in figures]
            group = next(it.group for it in found if it is not None)
            rows.append((_titled(name, group), *map(_rate, found)))
        if len(keys) > _GROUPS:
            rows.append((f"{len(keys) - _GROUPS} more", *([""] * len(figures))))
    return _table(["", *_scorers(report)], rows)


def _titled(name: str, group: str | None) -> str:
    title = DEFINITIONS[name].title
    if group is None:
        return title
    return f"{title}: {worded(group) if name == 'verdict_share' else code(group)}"


def _rate(figure: Figure | None) -> str:
    if figure is None:
        return ""
    if figure.value is None:
        return "-"
    counts = f"n = {figure.n}" if figure.successes is None else f"{figure.successes}/{figure.n}"
    bounds = "" if figure.low is None else f", 95 %: {interval(figure)}"
    return f"{percent(figure.value)} % ({counts}{bounds})"


def _behaviour(report: RunReport) -> list[str]:
    rows = [
        (DEFINITIONS[it.name].title, quantity(it, DEFINITIONS[it.name].unit), str(it.n))
        for it in (*report.figures, *(it for it in report.scored[0].figures if _is_of_correct(it)))
        if it.n and it.group is None
    ]
    lines = _table(["Behaviour", "", "n"], rows)
    if never_parallel(report.trajectories):
        lines += ["", escaped(NEVER_PARALLEL)]
    return lines


def _is_of_correct(figure: Figure) -> bool:
    return DEFINITIONS[figure.name].by_verdict


def _errors(report: RunReport) -> list[str]:
    """The classes that occur, of the failed Tasks."""
    shares = [{it.group: it for it in of.figures if it.name == "error_share"} for of in report.scored]
    rows = [
        (title, *(_rate(of.get(name)) for of in shares))
        for name, (title, _) in CLASSES.items()
        if any(it.successes for of in shares if (it := of.get(name)) is not None)
    ]
    return _table(["Errors, of the failed tasks", *_scorers(report)], rows)


def _unscored(report: RunReport) -> list[str]:
    said = {it.scorer.name: unscored_line(accuracy.unscored(it.sessions)) for it in report.scored}
    if len(set(said.values())) == 1:
        return [_told(line) for line in dict.fromkeys(said.values())]
    return [f"- {name}: {_told(line)}" for name, line in said.items()]


def _told(line: str) -> str:
    """A line on what was not scored, whose reasons are text of others."""
    what, colon, reasons = line.partition("sessions: ")
    return f"{what}{colon}{code(reasons, 2 * _LINE)}" if reasons else line


def _wrong(report: RunReport, limit: int) -> list[str]:
    rows = wrong_rows(report)
    return _details(report, wrong_title(report, rows), rows, limit, _why)


def _writes(report: RunReport, limit: int) -> Iterator[list[str]]:
    for title, entries in write_lists(report.writes):
        rows = [
            (code(place_of_write(it)), kinds(it), code(call_and_why(it, _ARGUMENTS), 2 * _LINE))
            for it in entries[:limit]
        ]
        more = _more(len(entries), limit, "write")
        aside = beyond_figures(entries, report.unscored_sessions)
        yield _folded(title, len(entries), _table(["Where", "What is wrong", "Write"], rows), more, aside)


def _disagreements(report: RunReport, limit: int) -> list[str]:
    rows = [row for row in task_rows(report) if row.disagrees]
    return _details(report, "Tasks on which the scorers disagree", rows, limit, _verdict)


def _details(
    report: RunReport, title: str, rows: Sequence[TaskRow], limit: int, tell: Callable[[TaskScore], str]
) -> list[str]:
    shown = [
        (
            code(row.session.session),
            str(row.position + 1),
            code(row.task.label),
            *(tell(score) for score in row.scores.values()),
        )
        for row in rows[:limit]
    ]
    table = _table(["Session", "Task", "Label", *_scorers(report)], shown)
    return _folded(title, len(rows), table, _more(len(rows), limit, "task"))


def _folded(title: str, number: int, table: Sequence[str], more: Sequence[str], aside: str = "") -> list[str]:
    """A list behind its title, and what there is to say `aside` of it; nothing where it has no entries."""
    if not number:
        return []
    told = [*table, *([""] if table and more else []), *more]
    return [f"<details><summary>{title}: {number}{aside}</summary>", "", *told, "", "</details>"]


def _why(score: TaskScore) -> str:
    if not is_wrong(score):
        return score.label or "not scored"
    return code(why_wrong(score), _LINE)


def _verdict(score: TaskScore) -> str:
    rule = "" if score.evidence is None else f" {code(score.evidence.rule)}"
    return f"{score.label or 'not scored'}{rule}"


def _scorers(report: RunReport) -> Iterator[str]:
    yield from (f"{it.scorer.name} {it.scorer.version}" for it in report.scored)


def _more(all_of_them: int, limit: int, noun: str) -> list[str]:
    more = all_of_them - limit
    return [f"and {counted(more, f'more {noun}')}: {ELSEWHERE}"] if more > 0 else []


def _table(titles: Iterable[str], rows: Sequence[Cells]) -> list[str]:
    """Nothing where there are no rows; cells are Markdown."""
    if not rows:
        return []
    head = list(titles)
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return [lines[0], "|" + " --- |" * len(head), *lines[1:]]
