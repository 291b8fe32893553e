"""What each option of a command comes to, and where from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

import click
from click.core import ParameterSource

from proxy.command_line.context_cli import ORIGINS, Context
from proxy.command_line.options import key_of, options, variable_in_use
from proxy.log.redaction import scrub_json

Source = Literal["command line", "environment", "file", "default"]
_SOURCES: dict[ParameterSource, Source] = {
    ParameterSource.COMMANDLINE: "command line",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
}


@dataclass(frozen=True, slots=True)
class Effective:
    """An option by its long name. `value` is as JSON has it, None where nothing is set, secrets masked.

    `where` is the environment variable, or the file with the key in it: `wildproxy.toml: drive.limit`.
    `note` is what the help text says of a default that is worked out.
    """

    option: str
    value: Any
    source: Source
    where: str | None
    note: str | None = None


def effective(context: Context, arguments: Sequence[str]) -> list[Effective]:
    """The options of the context's command, were it called with these arguments.

    Raises UsageError for arguments that do not fit, SettingsError for a file that does not.
    """
    given, _, _ = context.command.make_parser(context).parse_args(list(arguments))
    return [_effective(context, option, given) for option in options(context.command)]


def _effective(context: Context, option: click.Option, given: dict[str, Any]) -> Effective:
    value, source = option.consume_value(context, given)
    context.set_parameter_source(option.name or "", source)
    try:
        value = option.process_value(context, value)
    except click.MissingParameter:
        value = None
    except click.BadParameter as error:
        error.ctx, error.param = context, option
        raise
    name = _SOURCES.get(source, "default")
    where = {
        "environment": variable_in_use(option),
        "file": context.meta.get(ORIGINS, {}).get(option.name),
    }.get(name)
    note = _said_default(option) if name == "default" and not _as_json(value) else None
    return Effective(key_of(option), scrub_json(_as_json(value)), name, where, note)


def _said_default(option: click.Option) -> str | None:
    """`a new one in ./runs`, of an option whose default is worked out."""
    found = _DEFAULT.search(" ".join((option.help or "").split()))
    return found and next(filter(None, found.groups()))


_DEFAULT = re.compile(r"\[default: (.*)\]$|\bDefault: (.*?)\.?$")


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_as_json(it) for it in value]
    if isinstance(value, PurePath):
        return str(value)
    # What is not set, click says by a value of its own.
    return value if isinstance(value, bool | int | float | str) else None


def commands(context: click.Context) -> Iterator[Context]:
    """A context for each command below a group, in the order of its help text."""
    group = context.command
    if not isinstance(group, click.Group):
        assert isinstance(context, Context)
        yield context
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield from commands(Context(command, info_name=name, parent=context))
