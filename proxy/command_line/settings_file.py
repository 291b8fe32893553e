"""The optional file of repeated settings: what it may hold, and what it gives a command."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from proxy.command_line.options import SHARED, is_shared, key_of, options
from proxy.log.redaction import scrub
from scenarios.nearest import did_you_mean
from scenarios.text import visible

DEFAULTS = "defaults"
_FILES = frozenset({"scenarios"})
"""Options whose value may be a file, but need not be one."""


class SettingsError(click.ClickException):
    """A settings file that cannot be used as it is; one line: file, key, how to mend it."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(visible(scrub(message)))


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file that was read. `tables` is what TOML makes of it; its top-level names are checked."""

    path: Path
    tables: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a file says of an option; `key` is where: `drive.concurrency`."""

    value: Any
    key: str


def read(path: Path, commands: Iterable[str]) -> SettingsFile:
    """Reads a file. Its tables are called after `commands`, or `defaults`. Raises SettingsError."""
    try:
        # Editors of some systems begin a file with a byte order mark.
        tables = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    known = (DEFAULTS, *commands)
    for name, value in tables.items():
        if not isinstance(value, dict):
            raise SettingsError(f"{path}: {name}: stands in no table: put it under [{DEFAULTS}] or a command")
        if name not in known:
            meant = did_you_mean(name, known) or f"there are {', '.join(known)}"
            raise SettingsError(f"{path}: [{name}]: there is no command of that name: {meant}")
    for key in tables.get(DEFAULTS, {}):
        if _spelt(key) not in SHARED:
            meant = did_you_mean(_spelt(key), SHARED) or f"there are {', '.join(SHARED)}"
            raise SettingsError(f"{path}: {DEFAULTS}.{key}: is not shared by several commands: {meant}")
    return SettingsFile(path, tables)


def settings(
    file: SettingsFile, words: Sequence[str], command: click.Command, known: Sequence[Sequence[str]]
) -> dict[str, Setting]:
    """What a file says of a command, by the names of its parameters. Raises SettingsError.

    `words` name the command; before each, `known` holds what could stand there.
    """
    found: dict[str, Setting] = {}
    by_key = {key_of(it): it for it in options(command)}
    for key, value in file.tables.get(DEFAULTS, {}).items():
        if is_shared(words, _spelt(key)) and (option := by_key.get(_spelt(key))) is not None:
            found[option.name or ""] = _setting(file, f"{DEFAULTS}.{key}", option, value)
    for key, value in _table(file, words, known).items():
        where = ".".join((*words, key))
        option = by_key.get(_spelt(key))
        if option is None:
            meant = did_you_mean(_spelt(key), by_key) or f"there are {', '.join(by_key) or 'none'}"
            raise SettingsError(
                f"{file.path}: {where}: '{' '.join(words)}' has no option of that name: {meant}"
            )
        found[option.name or ""] = _setting(file, where, option, value)
    return found


def _table(file: SettingsFile, words: Sequence[str], known: Sequence[Sequence[str]]) -> Mapping[str, Any]:
    """The table of a command: `[log.runs.list]` for `log runs list`."""
    table: Mapping[str, Any] = file.tables
    for depth, (word, names) in enumerate(zip(words, known, strict=True)):
        above = ".".join(words[:depth])
        for name in table if above else ():
            if name not in names:
                meant = did_you_mean(name, names) or f"there are {', '.join(names)}"
                raise SettingsError(f"{file.path}: {above}.{name}: there is no such command: {meant}")
        inner = table.get(word, {})
        if not isinstance(inner, dict):
            where = ".".join(words[: depth + 1])
            raise SettingsError(f"{file.path}: {where}: is a command: make it a table, [{where}]")
        table = inner
    return table


def _spelt(key: str) -> str:
    return key.replace("_", "-")


def _setting(file: SettingsFile, key: str, option: click.Option, value: Any) -> Setting:
    """The value as click takes it, checked. Raises SettingsError."""
    values = value if option.multiple and isinstance(value, list) else [value]
    wanted, fits = _expected(option)
    for it in values:
        if not fits(it):
            many = ", or a list of them" if option.multiple else ""
            raise SettingsError(f"{file.path}: {key}: must be {wanted}{many}, not {_kind(it)}")
        if isinstance(it, str) and "\0" in it:
            raise SettingsError(f"{file.path}: {key}: has a NUL character in it: take it out")
        try:
            option.type.convert(it, option, None)
        except click.BadParameter as error:
            meant = _nearest_choice(option, it)
            raise SettingsError(f"{file.path}: {key}: {error.message} {meant}".rstrip()) from error
    try:
        values = [_placed(file, option, it) for it in values]
    except RuntimeError as error:
        raise SettingsError(f"{file.path}: {key}: {values[0]!r}: no home of that user is known") from error
    return Setting(values if option.multiple else values[0], key)


def _expected(option: click.Option) -> tuple[str, Any]:
    """What a value must be, in words, and whether one is."""
    if option.is_flag:
        return "true or false", lambda it: isinstance(it, bool)
    if isinstance(option.type, click.types.IntParamType):
        return "a whole number", lambda it: isinstance(it, int) and not isinstance(it, bool)
    if isinstance(option.type, click.types.FloatParamType):
        return "a number", lambda it: isinstance(it, int | float) and not isinstance(it, bool)
    return "a text in quotes", lambda it: isinstance(it, str)


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}
    return kinds.get(type(value), "a table" if isinstance(value, dict) else "a date or time")


def _nearest_choice(option: click.Option, value: Any) -> str:
    if not isinstance(option.type, click.Choice):
        return ""
    return did_you_mean(str(value), map(str, option.type.choices)).capitalize()


def _placed(file: SettingsFile, option: click.Option, value: Any) -> Any:
    """A path in the file is meant from the file's folder."""
    if not isinstance(value, str) or not value or value == "-":
        return value
    path = Path(value).expanduser()
    is_file = isinstance(option.type, click.Path) or (
        key_of(option) in _FILES and (path.suffix != "" or len(path.parts) > 1)
    )
    if not is_file or file.path.parent == Path("."):
        return value
    return str(file.path.parent / path)
