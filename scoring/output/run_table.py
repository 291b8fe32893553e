"""A scored Run as plain text for a terminal. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from scenarios.text import clip, counted, visible, width
from scoring.metrics import accuracy
from scoring.metrics.calls import NEVER_PARALLEL, never_parallel
from scoring.metrics.definitions import DEFINITIONS
from scoring.metrics.figures import Figure
from scoring.output.evidence_text import disagreement_lines, evidence_lines
from scoring.output.faulty_writes import write_lines
from scoring.output.tables import (
    GAP,
    align,
    interval,
    pairs,
    percent,
    quantity,
    unscored_line,
    worded,
)
from scoring.output.wrapping import COLUMNS, folded, wrapped
from scoring.report import RunReport
from scoring.types import VERDICTS
from scoring.verdicts.error_classes import CLASSES
from scoring.verdicts.live import LiveFigures, count_findings

FINDINGS = "Findings (the agent's own history)"
REASON_LENGTH = 100
SHOWN = 5
"""Lines of a list, unless all are asked for."""

SECTIONS = ("accuracy_by_label", "accuracy_by_position", "optimal_path_rate", "progress_nodes")
MORE_SECTIONS = (
    "accuracy_by_subtype",
    "progress_released",
    "accuracy_by_kind_changes",
    "accuracy_by_half_changes",
)
PASSES = ("pass_hat_k", "task_pass_hat_k", "flip_rate")
MORE_PASSES = ("pass_at_k", "task_pass_at_k")
OF_CORRECT = tuple(name for name, it in DEFINITIONS.items() if it.by_verdict)
NOTES = (
    "Intervals: 95 %, Wilson; over tasks, those of one scenario are taken as a cluster, and there is none "
    "over a single one. What each figure means: docs/metrics.md."
)

Cells = tuple[str, ...]


def run_table(report: RunReport, *, verbose: bool = False, columns: int = COLUMNS) -> str:
    """The scores of one Run: a header, the rates of every scorer, behaviour, and what was not scored.

    Sentences are folded where they are wider than `columns`; tables are as wide as what they hold.
    """
    limit = None if verbose else SHOWN
    blocks = [
        [] if report.modes.banner is None else wrapped(report.modes.banner, columns),
        folded(pairs(_header(report)), columns),
        folded(_unscored(report), columns),
        _rates(report, verbose),
        *_live_blocks(report, columns),
        folded(_never_parallel(report), columns),
        _error_lines(report),
        _of_correct(report),
        [*_quantities(report, verbose), *folded(map(visible, report.notes), columns)],
        folded(write_lines(report.writes, limit, report.unscored_sessions), columns),
        folded(disagreement_lines(report, limit), columns),
        folded(evidence_lines(report), columns) if verbose else [],
        wrapped(NOTES, columns),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _header(report: RunReport) -> dict[str, str]:
    scenarios = len({session.scenario.id for session in report.sessions})
    sessions = len(report.sessions)
    return {
        "Log": visible(report.log),
        "Run": visible(report.run),
        "Model": visible(report.model or "-"),
        **{
            name.capitalize(): clip(visible(str(report.config[name])), REASON_LENGTH)
            for name in ("agent", "provider")
            if report.config.get(name)
        },
        **_shown_modes(report),
        "Scenarios": f"{scenarios:,} ({counted(sessions, 'session')})",
        **({"Judged by": visible(report.judged_by)} if report.judged_by else {}),
        "Scorers": ", ".join(f"{it.scorer.name} {it.scorer.version}" for it in report.scored),
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


def _rates(report: RunReport, verbose: bool) -> list[str]:
    """The figures that every scorer has, side by side, with the difference between two."""
    figures = [{figure.key: figure for figure in scored.figures} for scored in report.scored]
    rows: list[Cells] = []
    if report.modes.banner is not None:
        rows += [_title("Tasks by verdict"), *_live_rows(figures), _title("Up to the first wrong step")]
    rows += [_row(DEFINITIONS[name].title, name, figures) for name in ("session_accuracy", "task_accuracy")]
    rows += _null_rows(report)
    sections = SECTIONS + (MORE_SECTIONS if verbose else ())
    if any(session.epoch > 1 for session in report.sessions):
        sections += PASSES + (MORE_PASSES if verbose else ())
    for name in sections:
        keys = dict.fromkeys(key for found in figures for key in found if key.partition("[")[0] == name)
        if list(keys) == [name]:
            rows += [(), _row(DEFINITIONS[name].title, name, figures)]
        elif keys:
            rows += [(), _title(DEFINITIONS[name].title)]
            rows += [_row(f"  {_group(key)}", key, figures) for key in keys]
    return _side_by_side([it.scorer.name for it in report.scored], rows)


def _live_rows(figures: Sequence[Mapping[str, Figure]]) -> Iterator[Cells]:
    for name in VERDICTS:
        yield _row(f"  {worded(name)}", f"verdict_share[{name}]", figures)
    yield _row("Sessions completed", "completed_sessions", figures)
    yield ()


def _null_rows(report: RunReport) -> Iterator[Cells]:
    """What agents without any skill would get: the floor, and the ceiling."""
    names = [it.scorer.name for it in report.scored]
    for agent in report.null_agents:
        by_scorer = {it.scorer: it.task_accuracy for it in agent.figures}
        cells = [cell for name in names for cell in _cells(by_scorer[name], with_interval=False)]
        yield (f"  {agent.name} (no model)", *cells)


def _row(title: str, key: str, figures: Sequence[Mapping[str, Figure]]) -> Cells:
    found = [of.get(key) for of in figures]
    cells = [cell for figure in found for cell in _cells(figure)]
    if len(found) == 2:
        cells.append(_difference(*found))
    return (visible(title), *cells)


def _cells(figure: Figure | None, *, with_interval: bool = True) -> Cells:
    if figure is None:
        return ("", "", "")
    counts = f"{figure.n}" if figure.successes is None else f"{figure.successes}/{figure.n}"
    return percent(figure.value), counts, interval(figure) if with_interval else ""


def _difference(first: Figure | None, second: Figure | None) -> str:
    if first is None or second is None or first.value is None or second.value is None:
        return ""
    points = 100 * (second.value - first.value)
    return "" if abs(points) < 0.05 else f"{points:+.1f}"


def _side_by_side(names: Sequence[str], rows: Sequence[Cells]) -> list[str]:
    """Three columns to a scorer under its name, and the difference of two where there is any.

    A row of one cell is a title, and may be wider than its column.
    """
    columns = 1 + 3 * len(names)
    differs = any(row[columns:] and row[columns] for row in rows)
    head = ("", *("%", "k/n", "95 %") * len(names), *(["difference"] if differs else []))
    full = [(*row[: len(head)], *[""] * (len(head) - len(row))) for row in (head, *rows)]
    cells = [row if any(row[1:]) else ("", *row[1:]) for row in full]
    lines = [
        row[0] if len(given) == 1 else line
        for row, given, line in zip(full, ((), *rows), align(cells), strict=True)
    ]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    above = " " * widths[0]
    for place, name in enumerate(names):
        room = sum(widths[1 + 3 * place : 4 + 3 * place]) + 2 * len(GAP)
        above += GAP + clip(name, room).rjust(room)
    return [above.rstrip(), *lines]


def _title(text: str) -> Cells:
    return (text,)


def _group(key: str) -> str:
    return key.partition("[")[2].removesuffix("]")


def _live_blocks(report: RunReport, columns: int) -> Iterator[list[str]]:
    live = report.scored[0].live
    if live is not None:
        yield [*_finding_lines(live)]
        yield folded(_call_lines(live), columns)


def _call_lines(live: LiveFigures) -> Iterable[str]:
    if live.calls is None:
        return
    calls = live.calls
    counts = {"redundant": calls.redundant, "that matched nothing": calls.unmatched}
    told = ", ".join(f"{n} {what} ({n / calls.sessions:.1f} a session)" for what, n in counts.items())
    yield f"Calls: {told}."
    yield f"Steps in the completed tasks: {calls.steps}; the optimal number is {calls.least}."


def _finding_lines(live: LiveFigures) -> Iterable[str]:
    if live.findings is None:
        return
    if live.findings:
        rows = [
            (f"  {worded(clip(visible(it.what), REASON_LENGTH))}", str(it.count), str(it.sessions), "")
            for it in count_findings(live.findings)
        ]
        yield from align([(FINDINGS, "count", "sessions", ""), *rows])
    else:
        yield f"{FINDINGS}: none."


def _never_parallel(report: RunReport) -> list[str]:
    return [NEVER_PARALLEL] if never_parallel(report.trajectories) else []


def _error_lines(report: RunReport) -> list[str]:
    """The classes that occur, as shares of the failed Tasks."""
    found = [{it.group: it for it in scored.figures if it.name == "error_share"} for scored in report.scored]
    rows: list[Cells] = []
    for name, (title, _) in CLASSES.items():
        figures = [of.get(name) for of in found]
        if any(figure is not None and figure.successes for figure in figures):
            cells = [cell for figure in figures for cell in _cells(figure)]
            rows.append((f"  {title}", *cells))
    if not rows:
        return []
    return _side_by_side(
        [it.scorer.name for it in report.scored], [_title("Errors, of the failed tasks"), *rows]
    )


def _of_correct(report: RunReport) -> list[str]:
    """What correct Tasks took, against the optimal path; each scorer has its own."""
    figures = [{figure.name: figure for figure in scored.figures} for scored in report.scored]
    rows = []
    for name in OF_CORRECT:
        found = [of.get(name) or Figure(name, None, None, 0) for of in figures]
        if any(it.n for it in found):
            unit = DEFINITIONS[name].unit
            cells = [cell for it in found for cell in (quantity(it, unit, report.currency), f"n = {it.n}")]
            rows.append((f"  {DEFINITIONS[name].title}", *cells))
    if not rows:
        return []
    names = [cell for it in report.scored for cell in (it.scorer.name, "")]
    return align([("Correct tasks", *names), *rows])


def _quantities(report: RunReport, verbose: bool) -> list[str]:
    rows = [
        (
            f"  {DEFINITIONS[it.name].title}" + (f", {visible(it.group)}" if it.group else ""),
            quantity(it, DEFINITIONS[it.name].unit, report.currency),
            f"n = {it.n}",
        )
        for it in report.figures
        if it.n and (verbose or it.group is None)
    ]
    return ["Behaviour", *align(rows)] if rows else []


def _unscored(report: RunReport) -> list[str]:
    said = {it.scorer.name: unscored_line(accuracy.unscored(it.sessions)) for it in report.scored}
    lines = list(dict.fromkeys(said.values()))
    if len(lines) == 1:
        return lines
    return [f"{name}: {line}" for name, line in said.items()]
