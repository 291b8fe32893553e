"""The command `report`: one run, or several side by side, as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scoring.errors_cli import InputError, NothingScorable
from scoring.options_cli import logs_argument, prices_option, run_option, scorer_option

if TYPE_CHECKING:
    from scoring.cli import Asked
    from scoring.page.document import PageRun

STANDARD_OUTPUT = "-"
_SQLITE = b"SQLite format 3\0"


_EXAMPLES = """\b
Examples:
  wildproxy report run.db                             # writes run.html
  wildproxy report before.db after.db -o report.html  # side by side
"""


@click.command(epilog=_EXAMPLES)
@logs_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE.html",
    help="Where to write the page; - is standard output. Default: beside the first log, under its name.",
)
@run_option("Report")
@scorer_option("is shown first")
@click.option(
    "--no-raw",
    is_flag=True,
    help="Leave out the requests and answers as they were sent: a smaller file, for others to read.",
)
@prices_option
def report(
    logs: tuple[Path, ...], output: Path | None, run_ids: tuple[str, ...], no_raw: bool, **asked: Any
) -> None:
    """Write one HTML page about one run, or about several side by side.

    The page needs nothing else, no network either: figures with their intervals, charts, and every
    session with its calls beside the expected ones. Several runs are compared with the first: name
    the baseline's log first, or the baseline's --run. The same logs give the same bytes.

    Exit code 3 if a run has no scored task: the page then says why.
    """
    from scoring.cli import Asked

    target = _target(output, logs)
    made = make_page(logs, run_ids, Asked(**asked), raw=not no_raw)
    if str(target) == STANDARD_OUTPUT:
        click.echo(made.page, nl=False)
    else:
        _write(target, made.page)
        click.echo(f"{target}: {made.words}")
    if made.too_large:
        click.echo(made.too_large, err=True)
    if made.empty:
        raise NothingScorable(made.empty)


@dataclass(frozen=True, slots=True)
class Made:
    """A page, and lines about it: what is in it, that it is too large, which runs have no scored task."""

    page: bytes
    words: str
    too_large: str | None
    empty: str | None


def make_page(paths: Sequence[Path], run_ids: Sequence[str], asked: Asked, *, raw: bool) -> Made:
    """The page of the runs chosen in these logs. Raises InputError, NothingScorable for logs without runs."""
    from importlib.metadata import version

    from scoring.logs.opening import LogError
    from scoring.output.nothing import nothing_scored
    from scoring.page.document import page_document
    from scoring.page.html import page
    from scoring.page.look import report_look

    try:
        runs = _runs(paths, run_ids, asked, raw)
    except LogError as error:
        raise InputError(str(error)) from error
    if not runs:
        raise NothingScorable(f"{', '.join(map(str, paths))}: no run, so nothing to report")
    packed = list(_packed(runs))
    made = page(page_document(runs, version("wildtoolbench-proxy")), packed, report_look())
    empty = nothing_scored((run.report for run in runs), [str(path) for path in paths])
    sizes = sum(len(text) for name, text in packed if name.startswith("raw-"))
    return Made(made, _words(runs, len(made)), _too_large(len(made), sizes), empty)


def _runs(paths: Sequence[Path], run_ids: Sequence[str], asked: Asked, raw: bool) -> list[PageRun]:
    from scoring.choosing_cli import choose_runs
    from scoring.cli import Means, score_played
    from scoring.logs.shown import read_shown
    from scoring.page.document import page_run

    chosen = choose_runs(paths, run_ids)
    if run_ids:
        chosen.sort(key=lambda it: min(run_ids.index(x) for x in (it[1].id, it[1].name) if x in run_ids))
    means = Means.read(asked)
    found = []
    for log, run in chosen:
        played, shown = read_shown(log, run.id, raw=raw)
        found.append(page_run(score_played(log, run, played, means), shown))
    return found


def _packed(runs: Sequence[PageRun]) -> Iterator[tuple[str, str]]:
    """The compressed details, and raw exchanges, of every Session under the ids that the page knows."""
    from scoring.page.details import session_detail
    from scoring.page.exchanges import raw_document
    from scoring.page.html import pack
    from scoring.page.sessions import session_key

    for number, run in enumerate(runs):
        told = iter(run.told["tasks"])
        for place, shown in enumerate(run.shown.sessions):
            key = session_key(number, place)
            verdicts = [next(told) for _ in shown.tasks]
            detail = session_detail(run.report, place, key, shown, run.shown.usage, verdicts)
            yield f"detail-{key}", pack(detail)
            if shown.exchanges:
                yield f"raw-{key}", pack(raw_document(key, shown.exchanges, run.shown.texts))


def _words(runs: Sequence[PageRun], size: int) -> str:
    from scenarios.text import counted

    sessions = sum(len(run.shown.sessions) for run in runs)
    return f"{counted(len(runs), 'run')}, {counted(sessions, 'session')}, {_megabytes(size)}"


def _too_large(size: int, raw: int) -> str | None:
    """A line for a page that is slow to open, with the cure that there is."""
    from scoring.page.html import MOST_BYTES

    if size <= MOST_BYTES:
        return None
    cure = "leave out the raw exchanges with --no-raw" if raw else "report fewer runs in one page"
    part = f", {_megabytes(raw)} of them raw exchanges" if raw else ""
    return f"The page has {_megabytes(size)}{part}: more than {_megabytes(MOST_BYTES)} open slowly; {cure}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


# --- The file ----------------------------------------------------------------


def _target(output: Path | None, logs: Sequence[Path]) -> Path:
    """Raises InputError for a place that no page can or should be written to."""
    target = logs[0].parent / f"{logs[0].stem}.html" if output is None else output
    if str(target) == STANDARD_OUTPUT:
        return target
    if target.is_dir():
        raise InputError(f"{target}: is a folder; name a file with -o, such as {target / 'report.html'}")
    if any(target.exists() and log.exists() and target.samefile(log) for log in logs) or _is_database(target):
        raise InputError(f"{target}: is a log, which the page would overwrite; name another file with -o")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder {target.parent} is not there; make it, or choose another -o")
    return target


def _is_database(path: Path) -> bool:
    """Is a SQLite database, so perhaps a log, at this path?"""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _write(path: Path, page: bytes) -> None:
    """Writes the file whole or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device takes what it is given; nothing may stand in its place.
            path.write_bytes(page)
            return
        try:
            part.write_bytes(page)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
