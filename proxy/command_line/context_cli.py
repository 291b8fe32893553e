"""The context of every command: how its help looks, which variables its options are read from."""

from __future__ import annotations

from collections.abc import Sequence

import click

from proxy.command_line.help import Formatter


class Context(click.Context):
    """click's, with our help."""

    formatter_class = Formatter


def dress(command: click.Command, words: Sequence[str]) -> click.Command:
    """Gives a command and all below it what every command has. `words` are those that name it."""
    command.context_class = Context
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            dress(inner, (*words, name))
    return command
