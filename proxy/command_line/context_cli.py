"""The context of every command: how its help looks, where its options get their values from.

The command line comes before the environment, the environment before a settings file, the
file before the defaults. The file is read when a command first asks for an option that it
was not told: no help text and no completion reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.command_line.help import Formatter
from proxy.command_line.options import options, variables
from proxy.command_line.places import NAME, find

if TYPE_CHECKING:
    from proxy.command_line.settings_file import SettingsFile

ORIGINS = "wildproxy.origins"
"""Where in a context's `meta` stands which place in the settings file gave a parameter its value."""
_FILE = "wildproxy.file"


class Context(click.Context):
    """click's, with our help, and with a settings file behind the options of a command."""

    formatter_class = Formatter

    def lookup_default(self, name: str, call: bool = True) -> Any:
        if self.default_map is None and self._takes(name):
            self.default_map = self._from_file()
        return super().lookup_default(name) if call else super().lookup_default(name, call=False)

    def _takes(self, name: str) -> bool:
        is_command = self.parent is not None and not isinstance(self.command, click.Group)
        return (
            is_command and not self.resilient_parsing and any(it.name == name for it in options(self.command))
        )

    def _from_file(self) -> dict[str, Any]:
        file = settings_file(self)
        if file is None:
            return {}
        from proxy.command_line.settings_file import settings

        found = settings(file, words_of(self), self.command, _known(self))
        self.meta[ORIGINS] = {name: f"{file.path}: {it.key}" for name, it in found.items()}
        return {name: it.value for name, it in found.items()}


def _known(context: click.Context) -> list[list[str]]:
    """What the groups above a command hold, the program's own first."""
    known: list[list[str]] = []
    at = context.parent
    while at is not None:
        known.insert(0, at.command.list_commands(at) if isinstance(at.command, click.Group) else [])
        at = at.parent
    return known


def words_of(context: click.Context) -> tuple[str, ...]:
    """The words that name a context's command, without the program's."""
    words: list[str] = []
    at: click.Context | None = context
    while at is not None and at.parent is not None:
        words.insert(0, at.info_name or "")
        at = at.parent
    return tuple(words)


def settings_file(context: click.Context) -> SettingsFile | None:
    """The file that counts for this call: of `--config`, or the nearest. Raises SettingsError."""
    if _FILE not in context.meta:
        path = _path(context.find_root().params.get("config"))
        context.meta[_FILE] = None if path is None else _read(path, context)
    file: SettingsFile | None = context.meta[_FILE]
    return file


def _read(path: Path, context: click.Context) -> SettingsFile:
    from proxy.command_line.settings_file import read

    root = context.find_root()
    assert isinstance(root.command, click.Group)
    return read(path, root.command.list_commands(root))


def _path(config: str | None) -> Path | None:
    if config is not None:
        return Path(config) if config else None
    folder = Path.cwd()
    found = find(folder)
    return Path(NAME) if found is not None and found.parent == folder else found


def dress(command: click.Command, words: Sequence[str]) -> click.Command:
    """Gives a command and all below it what every command has. `words` are those that name it."""
    command.context_class = Context
    for option in options(command):
        option.envvar = variables(words, option)
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            dress(inner, (*words, name))
    return command
