"""Errors of usage: one line that says what is wrong, what was meant, and where help is."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import IO, Any

import click
from click.core import ParameterSource

from proxy.command_line.context_cli import ORIGINS
from proxy.command_line.options import variable_in_use


class OneLine(click.UsageError):
    """An error of usage, told in one line and no more."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"Error: {self.message}", file=file or sys.stderr)


def in_one_line(error: click.UsageError) -> click.UsageError:
    """The same error as one line; what is no error but a help text stays as it is."""
    if isinstance(error, OneLine) or type(error).show is not click.UsageError.show:
        return error
    from proxy.log.redaction import scrub
    from scenarios.text import visible

    words = " ".join(part for part in _parts(error) if part)
    return OneLine(visible(scrub(" ".join(words.split()))), error.ctx)


def _parts(error: click.UsageError) -> Iterator[str]:
    """What is wrong, where the value came from, what was meant, where help is."""
    context = error.ctx
    if isinstance(error, click.NoSuchOption):
        yield f"No such option {error.option_name}:"
        yield _meant_option(error, context)
    elif (name := getattr(error, "command_name", None)) is not None and context is not None:
        yield f"No such command {name!r}:"
        yield _meant_command(name, context)
    else:
        yield error.format_message()
        if isinstance(error, click.BadParameter):
            yield _meant_choice(error)
            yield _origin(error)
    if context is not None:
        yield f"See {context.command_path} --help"


def _meant_option(error: click.NoSuchOption, context: click.Context | None) -> str:
    from scenarios.nearest import did_you_mean

    if context is None:
        return ""
    if context.parent is not None and error.option_name in _options(context.find_root().command):
        root = context.find_root().command_path
        return f"it goes before the command, as in '{root} {error.option_name} ...'."
    return did_you_mean(error.option_name, _options(context.command)) or "there is none like it."


def _options(command: click.Command) -> list[str]:
    return [name for it in command.params if isinstance(it, click.Option) for name in _names(it)]


def _names(option: click.Option) -> list[str]:
    return [name for name in (*option.opts, *option.secondary_opts) if name.startswith("--")]


def _meant_command(name: str, context: click.Context) -> str:
    from scenarios.nearest import did_you_mean

    group = context.command
    known = group.list_commands(context) if isinstance(group, click.Group) else []
    return did_you_mean(name, known) or f"there are {', '.join(known)}."


def _meant_choice(error: click.BadParameter) -> str:
    from scenarios.nearest import did_you_mean

    kind = None if error.param is None else error.param.type
    given = re.match(r"'(.*)' is not one of", error.message)
    if not isinstance(kind, click.Choice) or given is None:
        return ""
    return did_you_mean(given[1], map(str, kind.choices)).capitalize()


def _origin(error: click.BadParameter) -> str:
    """Where a value comes from that does not stand on the command line."""
    context, parameter = error.ctx, error.param
    if context is None or parameter is None or parameter.name is None:
        return ""
    source = context.get_parameter_source(parameter.name)
    if source is ParameterSource.ENVIRONMENT:
        return f"It comes from the environment: {variable_in_use(parameter)}."
    if source is ParameterSource.DEFAULT_MAP:
        return f"It comes from {context.meta.get(ORIGINS, {}).get(parameter.name, 'the settings file')}."
    return ""
