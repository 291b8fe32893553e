"""The command `tail`. What it needs is imported when it runs."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proxy.errors_cli import InputError

if TYPE_CHECKING:
    from proxy.tail.events import Event
    from proxy.tail.follow import Follower, Overview, Wanted
    from proxy.tail.lines import Printer

POLL_SECONDS = 0.2
GRACE_SECONDS = 1.0
"""How long a log that cannot be read yet may be one that is just being made."""
SESSIONS_NAMED = 8
LINES_AT_A_TIME = 200


class PipeClosed(Exception):
    """Nobody reads standard output any more."""


@click.command()
@click.argument("path", metavar="LOG.db", type=click.Path(path_type=Path))
@click.option(
    "--session", metavar="S", help="Only this session (ledger_1.e1), or all of a scenario (ledger_1)."
)
@click.option(
    "--run",
    metavar="R",
    help="A run's id, its name or the beginning of its id; or 'all'. Default: the newest.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on, until Ctrl-C.")
@click.option("--since", metavar="TIME", help="Begin there: 30s, 10m, 2h ago, or an ISO time.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="auto: on a terminal, unless NO_COLOR is set.",
)
def tail(
    path: Path, session: str | None, run: str | None, follow: bool, since: str | None, color: str
) -> None:
    """Show what happens in the sessions of a log, also while they are played.

    A line for each user turn, assistant text, tool call, observation or error, step's verdict,
    provider call and finding (what an agent lost of its own history, once): time, session,
    TASK.TURN, who, what. With --follow a log that is not there yet is waited for.

    \b
    wildproxy tail run.db                       what the newest run has done
    wildproxy tail -f run.db --session shop_1   one scenario, live
    """
    from proxy.log.errors import LogError
    from proxy.tail.follow import Wanted
    from proxy.tail.text import parse_since
    from scenarios.text import visible

    try:
        wanted = Wanted(run, session, None if since is None else parse_since(since, time.time()))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from error
    try:
        _tail(path, wanted, follow=follow, color=_wants_color(color))
    except LogError as error:
        raise InputError(visible(str(error))) from error
    except (PipeClosed, BrokenPipeError):
        _forget_stdout()
    except KeyboardInterrupt:
        raise SystemExit(0 if follow else 130) from None


def _tail(path: Path, wanted: Wanted, *, follow: bool, color: bool) -> None:
    from proxy.tail.follow import Follower
    from proxy.tail.lines import Printer, Style

    _make_printable()
    found = _overview(path, wanted, wait=follow)
    _say_what_is_shown(path, wanted, found, follow=follow)
    alone = len(found.sessions) == 1 and (not follow or wanted.session in found.sessions)
    printer = Printer(Style(color=color, session=not alone), found.sessions)
    follower = Follower(path, found.scope)
    try:
        _print(follower.new(), printer, color)
        if follow:
            _follow(path, follower, printer, color)
    finally:
        follower.close()


def _overview(path: Path, wanted: Wanted, *, wait: bool) -> Overview:
    """Looks into the log; waits for it to be made, if told to. Raises LogError."""
    from proxy.log.errors import LogError
    from proxy.tail.follow import overview

    if wait and not path.exists():
        _say(f"{path}: no such log yet: waiting for it")
    seen: float | None = None
    while True:
        try:
            return overview(path, wanted)
        except LogError:
            if path.exists():
                seen = time.monotonic() if seen is None else seen
            if not wait or (seen is not None and time.monotonic() - seen > GRACE_SECONDS):
                raise
        _pause()


def _say_what_is_shown(path: Path, wanted: Wanted, found: Overview, *, follow: bool) -> None:
    from proxy.log.errors import LogError

    if found.run is not None and wanted.run is None and found.runs > 1:
        _say(f"run {found.run}, the newest of {found.runs} (--run RUN for another, --run all for all)")
    if wanted.session is None or found.sessions:
        return
    where = "" if found.run is None else f" in run {found.run}"
    if follow:
        _say(f"{path}: no session {wanted.session!r}{where} yet: waiting for it")
        return
    names = ", ".join(found.known[:SESSIONS_NAMED]) + (", ..." if len(found.known) > SESSIONS_NAMED else "")
    raise LogError(f"{path}: has no session {wanted.session!r}{where}; there are: {names or 'none'}")


def _follow(path: Path, follower: Follower, printer: Printer, color: bool) -> None:
    from proxy.log.errors import LogError

    gone, failing = False, None
    while True:
        _pause()
        if _pipe_is_closed():
            raise PipeClosed
        try:
            _print(follower.new(), printer, color)
            failing = None
        except LogError:
            failing = failing or time.monotonic()
            if time.monotonic() - failing > GRACE_SECONDS:
                raise
        if follower.replaced:
            follower.replaced = False
            _say(f"{path}: was replaced by another file: this one from its beginning")
        if gone != (not path.exists()):
            gone = not gone
            _say(f"{path}: is gone: waiting for it" if gone else f"{path}: is there again")


def _print(events: Iterable[Event], printer: Printer, color: bool) -> None:
    lines: list[str] = []
    for event in events:
        lines += printer.lines(event)
        if len(lines) >= LINES_AT_A_TIME:
            click.echo("\n".join(lines), color=color)
            lines.clear()
    if lines:
        click.echo("\n".join(lines), color=color)


def _say(text: str) -> None:
    from scenarios.text import visible

    click.echo(visible(text), err=True)


def _pause() -> None:
    time.sleep(POLL_SECONDS)


def _wants_color(choice: str) -> bool:
    if choice == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return choice == "always"


def _make_printable() -> None:
    """A terminal whose encoding lacks a character gets it spelt out."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _pipe_is_closed() -> bool:
    """Has the program that reads our output gone? While nothing is written, nothing else would tell."""
    try:
        descriptor = sys.stdout.fileno()
        if not hasattr(select, "poll") or not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return False
        poll = select.poll()
        poll.register(descriptor, 0)
        return bool(poll.poll(0))
    except (OSError, ValueError):
        return False


def _forget_stdout() -> None:
    """Python flushes standard output when it ends, and would complain about the closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
