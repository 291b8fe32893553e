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
    ids = _meant(logs, wanted) if wanted else [[] for _ in logs]
    return [(log, run) for log, of_log in zip(logs, ids, strict=True) for run in _choose(log, of_log)]


_Place = tuple[int, str]
"""(Number of the log, id of a run in it.)"""


def _meant(logs: Sequence[Log], wanted: Sequence[str]) -> list[list[str]]:
    """Of each log, the ids of the runs that are wanted."""
    runs = [(number, run) for number, log in enumerate(logs) for run in log.runs(_NO_MODELS)]
    found = {word: _called(word, runs) for word in wanted}
    if unknown := [word for word, places in found.items() if not places]:
        names = [name for _, run in runs for name in (run.id, run.name) if name]
        said = ", ".join(f"{word!r}{aside(word, names)}" for word in unknown)
        raise _not_told(f"unknown run {said}", logs)
    for word, places in found.items():
        called = any(word in (run.id, run.name) for _, run in runs)
        if not called and word != NEWEST and len({run_id for _, run_id in places}) > 1:
            raise _not_told(f"several runs begin with {word!r}", logs)
    places = [place for it in found.values() for place in it]
    return [[run_id for of_log, run_id in places if of_log == number] for number in range(len(logs))]


def _called(word: str, runs: Sequence[tuple[int, RunInfo]]) -> list[_Place]:
    """The runs, the oldest of each log first, that a word can mean."""
    if exact := [(number, run.id) for number, run in runs if word in (run.id, run.name)]:
        return exact
    if word == NEWEST:
        return list({number: run.id for number, run in runs}.items())
    return [(number, run.id) for number, run in runs if word and run.id.startswith(word)]


def _not_told(said: str, logs: Sequence[Log]) -> InputError:
    lists = "\n".join(map(_run_list, logs))
    return InputError(f"{said}; choose one of these:\n{lists}")


def _choose(log: Log, wanted: Sequence[str]) -> list[RunInfo]:
    """A log with several runs is ambiguous, unless it was said which."""
    runs = log.runs(wanted)
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
