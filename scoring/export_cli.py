"""The command `export`: sessions of a log in the forms of others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scenarios.text import counted, visible
from scoring.errors_cli import InputError, NothingScorable
from scoring.options_cli import logs_argument, run_option

if TYPE_CHECKING:
    from scoring.logs.detail import SessionDetail
    from scoring.logs.reader import Log, RunInfo

WILDTOOLBENCH, OPENAI = "wildtoolbench", "openai"
RESULT_FILE = "Wild-Tool-Bench_result.jsonl"
STANDARD_OUTPUT = "-"
REASONS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Chosen:
    """A Session that is exported, where it comes from, and the name its model goes by."""

    log: Path
    run: str
    model: str
    detail: SessionDetail


@click.command(
    epilog="""\b
    Examples:
      wildproxy export run.db -o results
      wildproxy export run.db --format openai -o chats.jsonl
    """
)
@logs_argument
@run_option("Export")
@click.option(
    "--format",
    "output_format",
    type=click.Choice([WILDTOOLBENCH, OPENAI]),
    default=WILDTOOLBENCH,
    show_default=True,
    help="wildtoolbench: the released harness's result file. openai: one chat per session, JSONL.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="DIR|FILE",
    help=f"wildtoolbench: a folder, in which MODEL/{RESULT_FILE} is made. openai: a file; default: "
    "standard output.",
)
@click.option("--model", metavar="NAME", help="The model's name in the export. Default: what was asked for.")
@click.option(
    "--epoch",
    type=click.IntRange(min=1),
    metavar="N",
    help="Export this epoch. Default: the first for wildtoolbench, which knows no others; all for openai.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
def export(
    logs: tuple[Path, ...],
    run_ids: tuple[str, ...],
    output_format: str,
    output: Path | None,
    model: str | None,
    epoch: int | None,
    force: bool,
) -> None:
    """Write the sessions of one or more logs for the tools of others.

    The released evaluation code, given the wildtoolbench files, finds the metrics that 'score'
    finds; a run with live history, or whose tasks go on after a wrong step, has no such files.
    A session that infrastructure kept from being played to its end is left out; standard
    error says which and why. Exit code 3 if none is left.
    """
    from scoring.choosing_cli import choose_runs
    from scoring.logs.opening import LogError

    target = _target(output_format, output, logs)
    if output_format == WILDTOOLBENCH and epoch is None:
        epoch = 1
    try:
        chosen = [
            session
            for log, run in _comparable(choose_runs(logs, run_ids), output_format)
            for session in _sessions(log, run, epoch, model)
        ]
    except LogError as error:
        raise InputError(str(error)) from error
    chosen = list(_exportable(chosen, output_format))
    if not chosen:
        raise NothingScorable(f"{', '.join(map(str, logs))}: no session to export")
    if output_format == OPENAI:
        _write_transcripts(chosen, target, force)
    else:
        _write_results(chosen, target, force)


def _comparable(runs: Sequence[tuple[Log, RunInfo]], output_format: str) -> Sequence[tuple[Log, RunInfo]]:
    """The runs, none of which the released form would pass off as something else."""
    from scoring.modes import modes_of

    for log, run in runs if output_format == WILDTOOLBENCH else ():
        if reason := modes_of(run.config).why_not_comparable:
            raise InputError(
                f"{log.path}: run {visible(run.id)} ({reason}) would pass for a published figure: "
                f"the released form cannot say how it was played; use --format {OPENAI}"
            )
    return runs


def _sessions(log: Log, run: RunInfo, epoch: int | None, model: str | None) -> Iterator[Chosen]:
    """The Sessions of a Run and an epoch; those of other epochs are counted on standard error."""
    from scoring.logs.detail import models, session_details

    details = session_details(log, run.id)
    name = model or "+".join(models(details)) or "unknown"
    epochs = sorted({detail.trajectory.epoch for detail in details})
    listed = ", ".join(map(str, epochs))
    if epoch is not None and epochs and epoch not in epochs:
        raise InputError(f"{log.path}: run {visible(run.id)} has no epoch {epoch}; it has: {listed}")
    kept = [detail for detail in details if epoch is None or detail.trajectory.epoch == epoch]
    if others := len(details) - len(kept):
        left_out = counted(others, "session")
        _say(f"{log.path}: epoch {epoch} of the epochs {listed}; {left_out} left out (see --epoch)")
    for detail in kept:
        yield Chosen(log.path, run.id, name, detail)


def _exportable(chosen: Iterable[Chosen], output_format: str) -> Iterator[Chosen]:
    """Without the Sessions that cannot be told in the format; standard error says why."""
    from scoring.export import why_unfinished, why_unreadable

    left_out: list[str] = []
    for session in chosen:
        reason = why_unfinished(session.detail)
        if reason is None and output_format == WILDTOOLBENCH:
            reason = why_unreadable(session.detail)
        if reason is None:
            yield session
        else:
            left_out.append(f"left out {visible(session.detail.trajectory.session)}: {visible(reason)}")
    for line in left_out[:REASONS_SHOWN]:
        _say(line)
    if len(left_out) > REASONS_SHOWN:
        _say(f"left out {counted(len(left_out) - REASONS_SHOWN, 'session')} more")


def _write_transcripts(chosen: Sequence[Chosen], target: Path, force: bool) -> None:
    from scoring.output.json_text import json_bytes
    from scoring.transcript import transcript_line

    lines = (json_bytes(transcript_line(it.detail, it.run, it.model)) for it in chosen)
    if str(target) == STANDARD_OUTPUT:
        for line in lines:
            click.echo(line, nl=False)
        return
    _refuse_existing([target], force)
    _write(target, lines)
    click.echo(f"{target}: {counted(len(chosen), 'session')}")


def _write_results(chosen: Sequence[Chosen], folder: Path, force: bool) -> None:
    from scoring.export import result_line
    from scoring.logs.reader import natural
    from scoring.output.json_text import json_bytes

    files: dict[Path, list[Chosen]] = {}
    for session in chosen:
        files.setdefault(folder / _folder_name(session.model) / RESULT_FILE, []).append(session)
    for sessions in files.values():
        _refuse_repeated(sessions)
    _refuse_existing(files, force)
    for path, sessions in files.items():
        sessions.sort(key=lambda it: natural(it.detail.trajectory.scenario.id))
        _write(path, (json_bytes(result_line(it.detail, it.model)) for it in sessions))
        click.echo(f"{path}: {counted(len(sessions), 'session')}")


def _folder_name(model: str) -> str:
    """As the released harness names a model's folder."""
    name = model.replace("/", "_")
    if name in ("", ".", "..") or "\0" in name:
        raise InputError(f"the model name {model!r} cannot be a folder's; give another with --model")
    return name


def _refuse_repeated(sessions: Sequence[Chosen]) -> None:
    """Each scenario once in a file; scenarios that share a number are worth a word."""
    homes: dict[str, Chosen] = {}
    numbers: dict[str, str] = {}
    for session in sessions:
        scenario = session.detail.trajectory.scenario.id
        if other := homes.get(scenario):
            both = " and in ".join(f"run {visible(it.run)} of {it.log}" for it in (other, session))
            raise InputError(f"{scenario} is in {both}; export them to different folders")
        homes[scenario] = session
        number = scenario.rpartition("_")[2].lstrip("0")
        if number in numbers:
            _say(
                f"{numbers[number]} and {scenario} end in the same number: the released code takes them "
                "for the same scenario"
            )
        numbers.setdefault(number, scenario)


def _target(output_format: str, output: Path | None, logs: Sequence[Path]) -> Path:
    if output_format == OPENAI:
        target = output or Path(STANDARD_OUTPUT)
        if str(target) != STANDARD_OUTPUT and target.is_dir():
            raise InputError(f"{target}: is a folder; name a file with -o, such as {target / 'chats.jsonl'}")
        if any(target.exists() and log.exists() and target.samefile(log) for log in logs):
            raise InputError(f"{target}: the export would overwrite the log; name another file with -o")
        return target
    if output is None or str(output) == STANDARD_OUTPUT:
        raise InputError(f"--format {WILDTOOLBENCH} makes a file for each model: name a folder with -o DIR")
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; name a folder with -o DIR")
    return output


def _refuse_existing(paths: Iterable[Path], force: bool) -> None:
    for path in paths:
        if path.exists() and not force:
            raise InputError(f"{path}: is there already; overwrite it with --force or choose another -o")


def _write(path: Path, lines: Iterable[bytes]) -> None:
    """Writes the file whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device takes what it is given; nothing may stand in its place.
            with path.open("wb") as file:
                file.writelines(lines)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as file:
                file.writelines(lines)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def _say(line: str) -> None:
    click.echo(line, err=True)
