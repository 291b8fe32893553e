"""Scenario files: the released JSONL, one record per line, or one JSON document, in both key forms.

A file is read as a whole and every error in it is found; a session that is returned can be played.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

from scenarios.documents import FORMS, entries
from scenarios.packs import BUNDLED, BUNDLED_WORD, file_of, no_such_file
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


_EPOCH = re.compile(r"(.+)\.e[1-9]\d{0,5}")


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """What one file holds.

    `path` is the pack's file when the user wrote a pack's name. `sha256` (hex) is that of the
    file's bytes, "" when it could not be read. `lines[i]` is where `scenarios[i]` begins.
    `errors` tells, in the order of lines, why the other records are missing.
    """

    path: Path
    sha256: str
    language: str
    scenarios: tuple[Scenario, ...]
    errors: tuple[ScenarioError, ...]
    lines: tuple[int, ...] = ()


def load(paths: Iterable[str | Path], language: str = "en") -> tuple[ScenarioFile, ...]:
    """Reads the files; raises the first ScenarioError, also when two sessions could not be told apart."""
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
    for file in files:
        for scenario, line in zip(file.scenarios, file.lines, strict=True):
            if clash := _names_an_epoch(scenario.id, seen):
                raise ScenarioError(seen[scenario.id], line, "id", clash)
    return tuple(files)


def _names_an_epoch(name: str, known: Container[str]) -> str | None:
    """Why an id cannot be: `a.e2` names the second epoch of the Scenario `a`, if there is one."""
    epoch = _EPOCH.fullmatch(name)
    if not epoch or epoch[1] not in known:
        return None
    return f"{name} names an epoch of {epoch[1]}, which is a session too; give it another id"


def read_file(path: str | Path, language: str = "en") -> ScenarioFile:
    """Reads one file, or a pack by its name (`packs.packs`), and collects its errors.

    Never raises for what is in the file or for a file that cannot be read: that is an error
    with line 0.
    """
    where = file_of(path)
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
    records = entries(data)
    for entry in records:
        if entry.error is not None:
            errors.append(ScenarioError(path, entry.line, "", entry.error))
            continue
        scenario, problems = read_record(entry.value, language)
        errors.extend(ScenarioError(path, entry.line, field, reason) for field, reason in problems)
        if scenario is not None and scenario.id in found:
            reason = (
                f"{scenario.id} is the id of line {found[scenario.id][1]} too; give every session its own"
            )
            errors.append(ScenarioError(path, entry.line, "id", reason))
        elif scenario is not None:
            found[scenario.id] = (scenario, entry.line)
    for name, (_, line) in [*found.items()]:
        if clash := _names_an_epoch(name, found):
            errors.append(ScenarioError(path, line, "id", clash))
            del found[name]
    if not records:
        errors.append(ScenarioError(path, 0, "", f"holds no records; {FORMS}"))
    scenarios = tuple(scenario for scenario, _ in found.values())
    return scenarios, tuple(line for _, line in found.values()), tuple(errors)


def _unreadable(path: str, error: OSError | ValueError) -> ScenarioError:
    if isinstance(error, FileNotFoundError):
        return ScenarioError(path, 0, "", no_such_file(path))
    if isinstance(error, IsADirectoryError):
        return ScenarioError(path, 0, "", "is a directory; name a .jsonl file in it")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ScenarioError(path, 0, "", f"cannot be read: {reason}")
