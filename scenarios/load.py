"""Scenario files: the released JSONL, one record per line, in both key forms.

A file is read as a whole and every error in it is found; a session that is returned can be played.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from scenarios.problems import ScenarioError
from scenarios.record import LANGUAGES, parse_record, read_record
from scenarios.types import Scenario

__all__ = [
    "BUNDLED",
    "BUNDLED_WORD",
    "LANGUAGES",
    "ScenarioError",
    "ScenarioFile",
    "load",
    "parse_record",
    "read_file",
]

BUNDLED = Path(__file__).parent / "bundled" / "sessions.jsonl"
BUNDLED_WORD = "bundled"
"""What users write instead of a path to mean `BUNDLED`."""

ONE_PER_LINE = "a scenario file has one record, a JSON object, on each line"


MAX_DEPTH = 200
"""Levels of nesting; the standard library's recursive encoder could not write much more."""

TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """What one file holds.

    `path` is BUNDLED when the user wrote the word `bundled`. `sha256` (hex) is that of the
    file's bytes, "" when it could not be read. `lines[i]` is the line of `scenarios[i]`.
    `errors` tells, in the order of lines, why the other records are missing.
    """

    path: Path
    sha256: str
    language: str
    scenarios: tuple[Scenario, ...]
    errors: tuple[ScenarioError, ...]
    lines: tuple[int, ...] = ()


def load(paths: Iterable[str | Path], language: str = "en") -> tuple[ScenarioFile, ...]:
    """Reads the files; raises the first ScenarioError, also when two files use one session id."""
    files: list[ScenarioFile] = []
    seen: dict[str, str] = {}
    for path in paths:
        file = read_file(path, language)
        if file.errors:
            raise file.errors[0]
        for scenario, line in zip(file.scenarios, file.lines, strict=True):
            if scenario.id in seen:
                reason = (
                    f"{scenario.id} is a session of {seen[scenario.id]} too; give every session its own id"
                )
                raise ScenarioError(str(path), line, "id", reason)
        seen.update({scenario.id: str(path) for scenario in file.scenarios})
        files.append(file)
    return tuple(files)


def read_file(path: str | Path, language: str = "en") -> ScenarioFile:
    """Reads one file (or the bundled one, by the word `bundled`) and collects its errors.

    Never raises for what is in the file or for a file that cannot be read: that is an error
    with line 0.
    """
    where = BUNDLED if path == BUNDLED_WORD else Path(path)
    try:
        if where.is_char_device():
            raise ValueError("it is a device, not a file")
        data = where.read_bytes()
    except (OSError, ValueError) as error:
        return ScenarioFile(where, "", language, (), (_unreadable(str(path), error),))
    scenarios, lines, errors = _sessions(str(path), data, language)
    return ScenarioFile(where, hashlib.sha256(data).hexdigest(), language, scenarios, errors, lines)


def _sessions(
    path: str, data: bytes, language: str
) -> tuple[tuple[Scenario, ...], tuple[int, ...], tuple[ScenarioError, ...]]:
    found: dict[str, tuple[Scenario, int]] = {}
    errors: list[ScenarioError] = []
    objects = 0
    for line, text in _lines(data):
        try:
            record = _value(text)
        except _NotJson as error:
            errors.append(ScenarioError(path, line, "", str(error)))
            continue
        objects += isinstance(record, dict)
        scenario, problems = read_record(record, language)
        errors.extend(ScenarioError(path, line, field, reason) for field, reason in problems)
        if scenario is not None and scenario.id in found:
            reason = (
                f"{scenario.id} is the id of line {found[scenario.id][1]} too; give every session its own"
            )
            errors.append(ScenarioError(path, line, "id", reason))
        elif scenario is not None:
            found[scenario.id] = (scenario, line)
    if not objects:
        errors = [_not_a_scenario_file(path, data, errors)]
    scenarios = tuple(scenario for scenario, _ in found.values())
    return scenarios, tuple(line for _, line in found.values()), tuple(errors)


class _NotJson(ValueError):
    pass


def _unreadable(path: str, error: OSError | ValueError) -> ScenarioError:
    if isinstance(error, FileNotFoundError):
        return ScenarioError(
            path, 0, "", f"no such file (the word {BUNDLED_WORD} means the bundled sessions)"
        )
    if isinstance(error, IsADirectoryError):
        return ScenarioError(path, 0, "", "is a directory; name a .jsonl file in it")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ScenarioError(path, 0, "", f"cannot be read: {reason}")


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Line number (from 1) and bytes of every line that is not blank; only LF ends a line."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield number, line


def _value(data: bytes) -> Any:
    try:
        value = json.loads(data.decode(), parse_constant=_refuse, parse_float=_finite)
    except _NotJson:
        raise
    except json.JSONDecodeError as error:
        raise _NotJson(f"not JSON (column {error.colno}: {error.msg}); {ONE_PER_LINE}") from None
    except UnicodeDecodeError as error:
        raise _NotJson(f"not UTF-8 text: {error.reason} at byte {error.start + 1} of the line") from None
    except ValueError as error:
        raise _NotJson(f"not usable: {error}") from None
    except RecursionError:
        raise _NotJson(f"not usable: {TOO_DEEP}") from None
    if _is_too_deep(value):
        raise _NotJson(f"not usable: {TOO_DEEP}")
    return value


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
    raise _NotJson(f"not JSON: {constant} is no JSON number; write null or a number")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _NotJson(f"not usable: the number {digits[:20]} is too large")
    return value


def _not_a_scenario_file(path: str, data: bytes, errors: list[ScenarioError]) -> ScenarioError:
    """The one error of a file in which no line holds an object: one per line would be noise."""
    if not errors:
        return ScenarioError(path, 0, "", f"holds no records; {ONE_PER_LINE}")
    try:
        value = _value(data.removeprefix(b"\xef\xbb\xbf"))
    except _NotJson:
        return errors[0]
    if isinstance(value, dict | list):
        jq = "jq -c ." if isinstance(value, dict) else "jq -c '.[]'"
        return ScenarioError(path, 1, "", f"not one record per line but one JSON document; mend it with {jq}")
    return errors[0]
