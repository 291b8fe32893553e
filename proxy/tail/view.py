"""What `tail` does once its options are read: looks into the log, prints, goes on with what is new."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

import click

from proxy.log.errors import LogError
from proxy.tail.compact import Compact, Wide
from proxy.tail.events import Event, TaskEnded
from proxy.tail.follow import Follower, Overview, Wanted, overview
from proxy.tail.lines import Told
from proxy.tail.shapes import Columns, Fields, json_line
from proxy.tail.summaries import Summaries
from proxy.tail.summary import Judge
from proxy.terminal.environment import look_of, size_of
from scenarios.nearest import aside
from scenarios.text import visible

POLL_SECONDS = 0.2
GRACE_SECONDS = 1.0
"""How long a log that cannot be read yet may be one that is just being made."""
SESSIONS_NAMED = 8
LINES_AT_A_TIME = 200

Form = Literal["text", "plain", "json"]


class PipeClosed(Exception):
    """Nobody reads standard output any more."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to show. `form` None: `text` on a terminal, `plain` elsewhere. `last`: so many lines of what
    there is already; None for all.
    """

    follow: bool = False
    wide: bool = False
    form: Form | None = None
    color: str = "auto"
    last: int | None = None


def show(path: Path, wanted: Wanted, options: Options, judge: Judge | None) -> None:
    """Prints what is wanted of a log. Raises LogError, and PipeClosed if nobody reads it."""
    make_printable(sys.stdout)
    found = _overview(path, wanted, wait=options.follow)
    _say_what_is_shown(path, wanted, found, follow=options.follow)
    alone = len(found.sessions) == 1 and (not options.follow or wanted.session in found.sessions)
    printer = _Printer(sys.stdout, options, found.sessions, alone=alone)
    follower = Follower(path, found.scope)
    summaries = Summaries(judge)
    try:
        printer.print(_told(follower, summaries), options.last)
        if options.follow:
            _follow(path, follower, summaries, printer)
    finally:
        follower.close()


def _told(follower: Follower, summaries: Summaries) -> Iterator[Told]:
    """What is new, with the summaries of what is over."""
    event: Event
    for event in follower.new():
        yield event
        if isinstance(event, TaskEnded):
            yield from summaries.of(event, follower.connection)


class _Printer:
    def __init__(self, out: TextIO, options: Options, sessions: Iterable[str], *, alone: bool) -> None:
        look = look_of(out, options.color)
        self._out = out
        self._color = look.color
        self._form: Form = options.form or ("text" if out.isatty() else "plain")
        self._teller = Wide() if options.wide else Compact()
        self._shape: Columns | Fields = Fields(look, sessions, wide=options.wide)
        if self._form == "text":
            self._shape = Columns(look, sessions, alone=alone, wide=options.wide)

    def print(self, events: Iterable[Told], last: int | None = None) -> None:
        """Prints all of them, or the last lines."""
        held: deque[str] = deque(maxlen=last)
        for text in self._texts(events):
            held.append(text)
            if last is None and len(held) >= LINES_AT_A_TIME:
                self._write(held)
        self._write(held)

    def _texts(self, events: Iterable[Told]) -> Iterator[str]:
        if self._form == "json":
            yield from map(json_line, events)
            return
        columns = size_of(self._out)[0]
        for event in events:
            for line in self._teller.lines(event):
                yield self._shape.text(line, columns)
        for line in self._teller.rest():
            yield self._shape.text(line, columns)

    def _write(self, texts: deque[str]) -> None:
        if texts:
            click.echo("\n".join(texts), file=self._out, color=self._color)
            texts.clear()


def _overview(path: Path, wanted: Wanted, *, wait: bool) -> Overview:
    """Looks into the log; waits for it to be made, if told to. Raises LogError."""
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
    if found.run is not None and wanted.run is None and found.runs > 1:
        _say(f"run {found.run}, the newest of {found.runs} (--run RUN for another, --run all for all)")
    if wanted.session is None or found.sessions:
        return
    where = "" if found.run is None else f" in run {found.run}"
    if follow:
        _say(f"{path}: no session {wanted.session!r}{where} yet: waiting for it")
        return
    names = ", ".join(found.known[:SESSIONS_NAMED]) + (", ..." if len(found.known) > SESSIONS_NAMED else "")
    meant = aside(wanted.session, found.known)
    raise LogError(f"{path}: has no session {wanted.session!r}{where}{meant}; there are: {names or 'none'}")


def _follow(path: Path, follower: Follower, summaries: Summaries, printer: _Printer) -> None:
    gone, failing = False, None
    while True:
        _pause()
        if _pipe_is_closed():
            raise PipeClosed
        try:
            printer.print(_told(follower, summaries))
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


def _say(text: str) -> None:
    click.echo(visible(text), err=True)


def _pause() -> None:
    time.sleep(POLL_SECONDS)


def make_printable(out: TextIO) -> None:
    """A terminal whose encoding lacks a character gets it spelt out."""
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def leave_line_clean(out: TextIO) -> None:
    """A terminal has echoed ^C: what comes next begins a line of its own."""
    if out.isatty():
        click.echo("" if os.environ.get("TERM") == "dumb" else "\r\x1b[K", nl=False, color=True)
        if os.environ.get("TERM") == "dumb":
            click.echo()


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


def forget_stdout() -> None:
    """Python flushes standard output when it ends, and would complain about the closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
