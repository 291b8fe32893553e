"""Which runs of which logs a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.nearest import aside
from scenarios.text import counted, visible
from scoring.errors_cli import InputError
from scoring.logs.reader import Log, RunInfo, open_log
from scoring.output.tables import moment

NEWEST = "newest"
"""In place of a run: the one of each log that was begun last."""
_NO_MODELS = ("",)
"""No run is called so: what models were asked for is not looked up."""


def choose_runs(paths: Sequence[Path], wanted: Sequence[str]) -> list[tuple[Log, RunInfo]]:
    """The runs that are wanted, else each log's only one. Raises LogError, InputError.

    A run is wanted by its id, its name, `newest`, or a beginning of its id that no other has.
    """
    logs = list(map(open_log, dict.fromkeys(paths)))
    meant = _meant(logs, wanted) if wanted else [[] for _ in logs]
    return [(log, run) for log, ids in zip(logs, meant, strict=True) for run in _choose(log, ids)]


def _meant(logs: Sequence[Log], wanted: Sequence[str]) -> list[list[str]]:
    """Of each log, the ids of the runs that are wanted."""
    runs = [log.runs(_NO_MODELS) for log in logs]
    found = {word: [_called(word, of_log) for of_log in runs] for word in wanted}
    if unknown := [word for word, ids in found.items() if not any(ids)]:
        names = [name for of_log in runs for run in of_log for name in (run.id, run.name) if name]
        said = ", ".join(f"{word!r}{aside(word, names)}" for word in unknown)
        raise _not_told(f"unknown run {said}", logs)
    if several := [word for word, ids in found.items() if len({it for of_log in ids for it in of_log}) > 1]:
        begun = [word for word in several if any(it.startswith(word) for it in sum(found[word], []))]
        if begun:
            raise _not_told(f"several runs begin with {', '.join(map(repr, begun))}", logs)
    return [[it for ids in found.values() for it in ids[number]] for number in range(len(logs))]


def _not_told(said: str, logs: Sequence[Log]) -> InputError:
    lists = "\n".join(map(_run_list, logs))
    return InputError(f"{said}; choose one of these:\n{lists}")


def _choose(log: Log, runs: list[RunInfo], wanted: Sequence[str]) -> list[RunInfo]:
    """A log with several runs is ambiguous, unless it was said which."""
    chosen = [run for run in runs if run.id in wanted]
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
