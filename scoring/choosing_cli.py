"""Which runs of which logs a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.nearest import aside
from scenarios.text import counted, visible
from scoring.errors_cli import InputError
from scoring.logs.reader import Log, RunInfo, open_log
from scoring.output.tables import moment


def choose_runs(paths: Sequence[Path], wanted: Sequence[str]) -> list[tuple[Log, RunInfo]]:
    """The runs with these ids or names, else each log's only one. Raises LogError, InputError."""
    logs = [(log, log.runs(wanted)) for log in map(open_log, dict.fromkeys(paths))]
    known = {name for _, runs in logs for run in runs for name in (run.id, run.name)}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        lists = "\n".join(_run_list(log) for log, _ in logs)
        names = [name for name in known if name is not None]
        said = ", ".join(f"{name!r}{aside(name, names)}" for name in unknown)
        raise InputError(f"unknown run {said}; choose one of these:\n{lists}")
    return [(log, run) for log, runs in logs for run in _choose(log, runs, wanted)]


def _choose(log: Log, runs: list[RunInfo], wanted: Sequence[str]) -> list[RunInfo]:
    """A log with several runs is ambiguous, unless it was said which."""
    chosen = [run for run in runs if run.id in wanted or run.name in wanted]
    if chosen or len(runs) <= 1:
        return chosen or runs
    raise InputError(f"{log.path} holds {len(runs)} runs; choose with --run:\n{_run_list(log)}")


def _run_list(log: Log) -> str:
    return "\n".join(map(_run_line, log.runs())) or f"  {log.path}: no run"


def _run_line(run: RunInfo) -> str:
    name = f" ({visible(run.name)})" if run.name else ""
    sessions = f"{counted(run.sessions, 'session')}"
    return (
        f"  {visible(run.id)}{name}  {moment(run.created_at)}  model {visible(run.model or '-')}  {sessions}"
    )
