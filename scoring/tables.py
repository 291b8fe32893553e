"""Scores as plain text for a terminal. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from scenarios.text import clip, visible, width
from scoring import metrics
from scoring.live import LiveFigures, count_findings
from scoring.metrics import Estimate, Unscored
from scoring.report import RunReport
from scoring.types import VERDICTS

Row = tuple[str, str, str, str]

BLANK: Row = ("", "", "", "")
GAP = "  "
FINDINGS = "Findings (the agent's own history)"
REASONS_SHOWN = 5
REASON_LENGTH = 100
SECTIONS = (
    ("By task label", "task_type_info"),
    ("By position", "layer_info"),
    ("By turn subtype", "turn_subtype_info"),
    ("Optimal path rate", "optimal_info"),
    ("Progress rate", "progress_info"),
)
NOTES = (
    "Interval: Wilson, 95 %; the tasks of one session are taken as independent.",
    "Progress, as released: steps (the failing one too, a batch as one) over nodes of the reference,",
    "so that a perfect run can stay below 100 %.",
)


def run_table(report: RunReport) -> str:
    """The scores of one Run: a header, the rates, and what was not scored."""
    estimates, live = metrics.estimates(metrics.count(report.sessions)), report.live
    return "\n".join(
        [
            *([] if report.modes.banner is None else [report.modes.banner, ""]),
            *pairs(_header(report)),
            "",
            *align([("", "%", "k/n", "95 %"), *_live_rates(live), *_rates(estimates)]),
            "",
            *_finding_lines(live),
            *_call_lines(live),
            unscored_line(metrics.unscored(report.sessions)),
            *NOTES,
            "",
        ]
    )


def unscored_line(left_out: Unscored) -> str:
    """One line on what the rates leave out, and why."""
    if left_out.all_sessions == 0:
        return "Not scored: the run has no sessions."
    if left_out.tasks == 0:
        return "Not scored: none."
    shown = [
        f"{clip(visible(reason), REASON_LENGTH)} ({n})" for reason, n in left_out.reasons[:REASONS_SHOWN]
    ]
    if more := len(left_out.reasons) - len(shown):
        shown.append(f"{more} other {_plural(more, 'reason')}")
    return (
        f"Not scored: {left_out.tasks} of {left_out.all_tasks} tasks, so {left_out.sessions} of "
        f"{left_out.all_sessions} sessions: {', '.join(shown)}"
    )


def align(rows: Sequence[Row]) -> list[str]:
    """The rows as lines: the first column to the left, the others to the right."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [_line(row, widths) for row in rows]


def pairs(items: Mapping[str, str]) -> list[str]:
    """`name  value` lines with the values in one column."""
    longest = max(map(width, items), default=0)
    return [f"{name}{' ' * (longest - width(name))}{GAP}{value}".rstrip() for name, value in items.items()]


def percent(value: float | None) -> str:
    """A fraction as per cent with one decimal; `-` for none."""
    return "-" if value is None else f"{100 * value:.1f}"


def interval(estimate: Estimate) -> str:
    """The bounds as per cent, `10.7-19.3`; `-` where there are none."""
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{percent(estimate.low)}-{percent(estimate.high)}"


def moment(seconds: float) -> str:
    """Unix seconds as UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _header(report: RunReport) -> dict[str, str]:
    scenarios = len({session.scenario.id for session in report.sessions})
    sessions = len(report.sessions)
    return {
        "Log": visible(report.log),
        "Run": visible(report.run),
        "Model": visible(report.model or "-"),
        **_shown_modes(report),
        "Scenarios": f"{scenarios} ({sessions} {_plural(sessions, 'session')})",
        "Scorer": f"{report.scorer.name} {report.scorer.version}",
    }


def _shown_modes(report: RunReport) -> dict[str, str]:
    """History alone where everything is as usual; all modes where anything is not."""
    modes = report.modes
    history = visible(str(report.config.get("history") or "-"))
    if modes.usual:
        return {"History": history}
    return {
        "History": history + (f" (from the {visible(modes.history_from)})" if modes.history_from else ""),
        "Tools": visible(modes.tools),
        "On mismatch": visible(modes.on_mismatch),
    }


def _live_rates(live: LiveFigures | None) -> Iterable[Row]:
    if live is None:
        return
    yield _title("Tasks by verdict")
    for name in VERDICTS:
        yield _rate(f"  {_worded(name)}", live.verdicts[name])
    yield _rate("Sessions completed", live.completed_sessions)
    yield from (BLANK, _title("As released: up to the first wrong step"))


def _call_lines(live: LiveFigures | None) -> Iterable[str]:
    if live is None or live.calls is None:
        return
    calls = live.calls
    counts = {"redundant": calls.redundant, "that matched nothing": calls.unmatched}
    told = ", ".join(f"{n} {what} ({n / calls.sessions:.1f} a session)" for what, n in counts.items())
    yield f"Calls: {told}."
    yield f"Steps in the completed tasks: {calls.steps}; the optimal number is {calls.least}."


def _finding_lines(live: LiveFigures | None) -> Iterable[str]:
    if live is None or live.findings is None:
        return
    if live.findings:
        rows = [
            (f"  {_worded(clip(visible(it.what), REASON_LENGTH))}", str(it.count), str(it.sessions), "")
            for it in count_findings(live.findings)
        ]
        yield from align([(FINDINGS, "count", "sessions", ""), *rows])
    else:
        yield f"{FINDINGS}: none."
    yield ""


def _title(text: str) -> Row:
    return text, "", "", ""


def _rates(estimates: Mapping[str, Mapping[str, Estimate]]) -> Iterable[Row]:
    total = estimates["total_info"]
    yield _rate("Session accuracy", total["session"])
    yield _rate("Task accuracy", total["task"])
    for title, section in SECTIONS:
        yield BLANK
        yield _title(title)
        for name, estimate in estimates[section].items():
            label = f"Task {int(name) + 1}" if section == "layer_info" else visible(name)
            yield _rate(f"  {label}", estimate)


def _rate(label: str, estimate: Estimate) -> Row:
    return label, percent(estimate.value), f"{estimate.successes}/{estimate.n}", interval(estimate)


def _line(row: Row, widths: Sequence[int]) -> str:
    first, *rest = row
    cells = [first + " " * (widths[0] - width(first))]
    cells += [" " * (room - width(cell)) + cell for cell, room in zip(rest, widths[1:], strict=True)]
    return GAP.join(cells).rstrip()


def _worded(name: str) -> str:
    """`lost_turn` -> `Lost turn`."""
    return name.replace("_", " ").capitalize()


def _plural(n: int, noun: str) -> str:
    return noun if n == 1 else f"{noun}s"
