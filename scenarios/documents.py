"""The records of a scenario file as JSON values: one on each line, or one document over many lines.

Lines that begin with `//` are comments in either form. A JSON text cannot hold a raw line feed
within a string, so such a line is never a part of one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

FORMS = "a scenario file has one record, a JSON object, on each line, or is one JSON document"

COMMENT = b"//"
STRING = r'"(?:[^"\\]|\\.)*"'
BLANKS = re.compile(r"[ \t\n\r]*")

COLUMNS_OF_A_RECORD = frozenset(
    f"{prefix}{name}" for prefix in ("", "english_") for name in ("tools", "tasks", "answer_list")
)
"""Keys by which a line is known for a whole record, even in a file that is broken."""

MAX_DEPTH = 200
"""Levels of nesting; the standard library's recursive encoder could not write much more."""

TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


@dataclass(frozen=True, slots=True)
class Entry:
    """What should be a record: the line (from 1) on which it begins and its value, or why there is none."""

    line: int
    value: Any
    error: str | None = None


def entries(data: bytes) -> list[Entry]:
    """The records of a file in their order.

    A file that is one JSON value as a whole is one record, or a list of them. In any other each line
    that is not blank is a record of its own. Of a file that is neither there is one error: one for
    each of its lines would be noise.
    """
    lines = [b"" if _is_comment(line) else line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    whole = b"\n".join(lines)
    if not whole.strip():
        return []
    try:
        return list(_of_document(whole.decode()))
    except NotJson as error:
        failed = Entry(error.line, None, str(error))
    except UnicodeDecodeError as error:
        line = 1 + whole.count(b"\n", 0, error.start)
        failed = Entry(line, None, f"not UTF-8 text: {error.reason}")
    single = [_of_line(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if any(_is_record(entry.value) for entry in single):
        return single
    if whole.lstrip()[:1] in (b"{", b"["):
        return [failed]
    return single if any(isinstance(entry.value, dict) for entry in single) else [_first_error(single)]


def _first_error(single: list[Entry]) -> Entry:
    return next((entry for entry in single if entry.error), single[0])


class NotJson(ValueError):
    """A text that holds no usable JSON value; `line`, from 1, is where."""

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


class _BadNumber(ValueError):
    """A number that is none; `literal` is how the text has it."""

    def __init__(self, reason: str, literal: str) -> None:
        super().__init__(reason)
        self.literal = literal


def _is_comment(line: bytes) -> bool:
    return line.lstrip().startswith(COMMENT)


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and not COLUMNS_OF_A_RECORD.isdisjoint(value)


def _of_line(number: int, line: bytes) -> Entry:
    try:
        return Entry(number, _value(line.decode()))
    except UnicodeDecodeError as error:
        return Entry(number, None, f"not UTF-8 text: {error.reason} at byte {error.start + 1} of the line")
    except NotJson as error:
        return Entry(number, None, str(error))


def _of_document(text: str) -> Iterator[Entry]:
    """The records of a text that is one JSON value; raises NotJson if it is none."""
    value = _value(text)
    at = _past_blanks(text, 0)
    line = 1 + text.count("\n", 0, at)
    if not isinstance(value, list):
        yield Entry(line, value)
        return
    decoder = json.JSONDecoder()
    for item in value:
        # After the bracket or the comma before it.
        start = _past_blanks(text, at + 1)
        line += text.count("\n", at, start)
        yield Entry(line, item)
        at = _past_blanks(text, decoder.raw_decode(text, start)[1])
        line += text.count("\n", start, at)


def _past_blanks(text: str, position: int) -> int:
    found = BLANKS.match(text, position)
    return found.end() if found else position


def _value(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except _BadNumber as error:
        raise NotJson(str(error), _line_of(text, error.literal)) from None
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON (column {error.colno}: {error.msg}); {FORMS}", error.lineno) from None
    except ValueError as error:
        raise NotJson(f"not usable: {error}") from None
    except RecursionError:
        raise NotJson(f"not usable: {TOO_DEEP}") from None
    if _is_too_deep(value):
        raise NotJson(f"not usable: {TOO_DEEP}")
    return value


def _line_of(text: str, literal: str) -> int:
    """The line on which `literal` first stands outside of strings."""
    found = re.finditer(rf"{STRING}|{re.escape(literal)}", text)
    return 1 + next((text.count("\n", 0, it.start()) for it in found if it[0] == literal), 0)


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def _refuse(constant: str) -> NoReturn:
    raise _BadNumber(f"not JSON: {constant} is no JSON number; write null or a number", constant)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _BadNumber(f"not usable: the number {digits[:20]} is too large", digits)
    return value
