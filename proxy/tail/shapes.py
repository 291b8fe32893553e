"""Lines as text: in columns for a terminal, as fields for a pipe, as JSON for programs. Pure.

Whatever comes from outside is made visible, so that a terminal obeys nothing of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date, tzinfo

from proxy.tail.lines import RULES, Line, Told, cost_text, place_text
from proxy.terminal.look import Look
from proxy.terminal.text import moment, one_line, padded, wrapped
from scenarios.text import visible, width

KIND_COLUMNS = 7
PLACE_COLUMNS = 4
TOKEN_COLUMNS = 11
SECOND_COLUMNS = 6
ROOM = 40
"""Columns that a text keeps before the tokens, and then the seconds, are left out."""
NARROW = 50
"""Below so many columns a line has no time of day."""
LEAST_TEXT = 8
"""A terminal that has not even room for this breaks the lines itself: one of less than 36 columns."""
LONGEST_NAME = 24
MOST_LINES = 12
"""Of a text in the wide view."""
PIPED_TEXT = 300
NOTHING = "-"


class Columns:
    """Lines for a terminal of `columns` columns; a new day is a line of its own.

    `sessions` are names that are known to come: their column is made wide enough at once. `alone`:
    there is but one Session, which need not be named. `wide`: texts go on in further lines.
    """

    def __init__(
        self,
        look: Look,
        sessions: Iterable[str] = (),
        *,
        alone: bool = False,
        wide: bool = False,
        zone: tzinfo | None = None,
    ) -> None:
        self._look = look
        self._alone = alone
        self._wide = wide
        self._zone = zone
        self._day: date | None = None
        self._numbers: dict[str, int] = {}
        self._named = max(map(width, map(visible, sessions)), default=0)

    def text(self, line: Line, columns: int) -> str:
        """One or more lines, without the last line break, none wider than `columns`."""
        when = moment(line.at, self._zone)
        said = []
        if line.kind in RULES:
            said.append(self._rule(f"{when:%H:%M:%S} {line.text}", columns))
        if when.date() != self._day:
            self._day = when.date()
            said.insert(0, self._rule(f"{self._day:%Y-%m-%d}", columns))
        if line.kind not in RULES:
            said.append(self._line(line, columns))
        return "\n".join(said)

    def _rule(self, text: str, columns: int) -> str:
        shown = self._look.fit(text, columns - 5)
        line = self._look.held("─")
        return self._look.paint(f"{line * 2} {shown} {line * max(columns - 4 - width(shown), 1)}", "rule")

    def _line(self, line: Line, columns: int) -> str:
        look = self._look
        clock = f"{moment(line.at, self._zone):%H:%M:%S} " if columns >= NARROW else ""
        name, shown_name = self._name(line, columns)
        place = padded(place_text(line.place), PLACE_COLUMNS)
        before = width(clock) + width(name) + width(place) + 3 + KIND_COLUMNS + 1
        cost = self._cost(line, columns - before)
        room = max(columns - before - (width(cost) + 1 if cost else 0), LEAST_TEXT)
        texts = self._texts(line.text, room, summary=line.kind == "task")
        color = line.color
        # A word in colour is enough where the whole line is not to shout.
        kind_color = color or {"calls": "", "asks": "odd"}.get(line.mark, "")
        head = (
            look.paint(clock, "dim")
            + shown_name
            + look.paint(place, "dim")
            + " "
            + look.paint(look.mark(line.mark), kind_color)
            + " "
            + look.paint(padded(line.kind, KIND_COLUMNS), kind_color)
            + " "
        )
        first = look.paint(texts[0], color)
        if cost:
            first += " " * (room - width(texts[0]) + 1) + look.paint(cost, "dim")
        rest = [" " * before + look.paint(text, color) for text in texts[1:]]
        return "\n".join([(head + first).rstrip(), *rest])

    def _texts(self, text: str, room: int, *, summary: bool) -> list[str]:
        look = self._look
        most = MOST_LINES if self._wide else 2 if summary else 1
        if most == 1:
            return [look.fit(text, room)]
        return [look.held(it) for it in wrapped(look.held(text), room, most, counted=self._wide)]

    def _name(self, line: Line, columns: int) -> tuple[str, str]:
        """The Session's name in its column, plain and in its colour."""
        if self._alone:
            return "", ""
        session = line.place.session or ""
        most = min(LONGEST_NAME, max(columns // 4, LEAST_TEXT))
        self._named = max(self._named, width(visible(session)))
        name = padded(self._look.fit(session, most), min(self._named, most)) + " "
        if not session:
            return name, name
        return name, self._look.name(name, self._numbers.setdefault(session, len(self._numbers)))

    def _cost(self, line: Line, room: int) -> str:
        """Tokens and seconds, or what of them there is room for beside the text."""
        tokens, seconds = cost_text(line.cost, whole=line.kind in ("task", "session"))
        needed = min(width(visible(line.text)), ROOM)
        both = f"{self._look.held(tokens):>{TOKEN_COLUMNS}} {seconds:>{SECOND_COLUMNS}}"
        for cost in (both, f"{seconds:>{SECOND_COLUMNS}}"):
            if cost.strip() and room - len(cost) - 1 >= needed:
                return cost
        return ""


class Fields:
    """Lines for a pipe: fields with blanks between them, the text last and alone in having any.

    TIME SESSION TASK.TURN KIND VERDICT INPUT_TOKENS OUTPUT_TOKENS SECONDS TEXT; `-` is nothing.
    """

    def __init__(
        self, look: Look, sessions: Iterable[str] = (), *, wide: bool = False, zone: tzinfo | None = None
    ) -> None:
        self._look = look
        self._wide = wide
        self._zone = zone
        self._named = max(map(width, map(_field, sessions)), default=1)

    def text(self, line: Line, columns: int) -> str:
        name = _field(line.place.session or "")
        cost = line.cost
        fields = [
            moment(line.at, self._zone).isoformat(timespec="milliseconds"),
            padded(name, max(self._named, width(name))),
            f"{place_text(line.place) or NOTHING:<{PLACE_COLUMNS}}",
            f"{line.kind:<{KIND_COLUMNS}}",
            f"{line.verdict or NOTHING:<8}",
            f"{_number(cost.input_tokens):>6}",
            f"{_number(cost.output_tokens):>5}",
            f"{NOTHING if cost.seconds is None else format(cost.seconds, '.2f'):>7}",
        ]
        text = self._look.held(line.text)
        shown = one_line(text, len(text) * 12) if self._wide else one_line(text, PIPED_TEXT)
        return self._look.paint(" ".join([*fields, self._look.held(shown)]).rstrip(), line.color)


def json_line(event: Told) -> str:
    """An event as the control API streams it, with its name as `event` and what is the owner's alone."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    return json.dumps({"event": name, **asdict(event)})


def _field(name: str) -> str:
    """A name without blanks."""
    return "".join(map(_unblank, visible(name))) or NOTHING


def _unblank(char: str) -> str:
    if not char.isspace():
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"


def _number(number: int | None) -> str:
    return NOTHING if number is None else str(number)
