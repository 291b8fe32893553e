"""The commands `config show` and `config init`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.command_line.context_cli import Context, settings_file, words_of
from proxy.command_line.places import NAME, searched
from proxy.errors_cli import InputError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from proxy.command_line.effective import Effective
    from proxy.command_line.settings_file import SettingsFile

Found = list[tuple[str, list["Effective"]]]
"""Commands by their words, and their options."""


@click.group(
    epilog="""\b
    Examples:
      wildproxy config init
      wildproxy config show drive
    """
)
def config() -> None:
    """Settings that are repeated: from the environment and from wildproxy.toml.

    The command line comes first, then variables such as WILDPROXY_DRIVE_LIMIT, or WILDPROXY_PROVIDER
    for all commands that have it, then the nearest wildproxy.toml, then the defaults. That file is
    looked for in the current folder and above it, as far as the root of its repository.
    """


def _complete_command(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    words = context.params.get("words") or ()
    at = context.find_root()
    for word in words:
        inner = at.command.get_command(at, word) if isinstance(at.command, click.Group) else None
        if inner is None:
            return []
        at = click.Context(inner, info_name=word, parent=at)
    return at.command.shell_complete(at, begun) if isinstance(at.command, click.Group) else []


@config.command(
    short_help="What each option comes to, and where from.",
    epilog="""\b
    Examples:
      wildproxy config show                         # what is set, for all commands
      wildproxy config show drive --format json
      wildproxy config show drive -- --limit 3      # as with this option
    """,
)
@click.argument("words", nargs=-1, metavar="[COMMAND [-- ARGS]]", shell_complete=_complete_command)
@click.option(
    "--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.pass_context
def show(context: click.Context, words: tuple[str, ...], output_format: str) -> None:
    """Say what each option of COMMAND comes to, and where its value comes from.

    Without COMMAND: what is set in the environment and in the file, for all commands. ARGS after --
    are taken as the command's own. What looks like a key or a password is masked.
    """
    from proxy.command_line.effective import commands, effective

    chosen, arguments = _chosen(context.find_root(), words)
    found = [(" ".join(words_of(it)), effective(it, arguments)) for it in commands(chosen)]
    if not words:
        found = [(name, [it for it in values if it.source != "default"]) for name, values in found]
    file, unused = settings_file(context), _unused(context.find_root())
    if output_format == "json":
        click.echo(json.dumps(_document(file, found, unused), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(file, found, unused, all_options=bool(words))))


def _chosen(root: click.Context, words: Sequence[str]) -> tuple[click.Context, Sequence[str]]:
    """The command, or group of commands, that is named, and the words after it."""
    at: click.Context = root
    for number, word in enumerate(words):
        if not isinstance(at.command, click.Group):
            return at, words[number:]
        inner = at.command.get_command(at, word)
        if inner is None:
            raise InputError(_unknown(at, word))
        at = Context(inner, info_name=word, parent=at)
    return at, ()


def _unknown(group: click.Context, word: str) -> str:
    from scenarios.nearest import did_you_mean

    assert isinstance(group.command, click.Group)
    known = group.command.list_commands(group)
    return f"there is no command {word!r}: {did_you_mean(word, known) or 'there are ' + ', '.join(known)}"


def _unused(root: click.Context) -> dict[str, str]:
    """Variables that are called as if they were read, but are not; with the nearest that is."""
    from proxy.command_line.effective import commands
    from proxy.command_line.options import PREFIX, options
    from scenarios.nearest import nearest

    read = {"WILDPROXY_CHROMIUM"}
    for context in (root, *commands(root)):
        for option in options(context.command):
            read.update(option.envvar or ())
    unused = sorted(it for it in os.environ if it.startswith(f"{PREFIX}_") and it not in read)
    return {it: next(iter(nearest(it, read, 1)), "") for it in unused}


def _document(file: SettingsFile | None, found: Found, unused: dict[str, str]) -> dict[str, Any]:
    return {
        "file": None if file is None else str(file.path),
        "commands": {
            name: {it.option: {"value": it.value, "source": it.source, "where": it.where} for it in values}
            for name, values in found
            if values
        },
        "unused_variables": list(unused),
    }


def _lines(
    file: SettingsFile | None, found: Found, unused: dict[str, str], *, all_options: bool
) -> list[str]:
    lines = [_file_line(file)]
    for name, values in found:
        if values:
            lines += ["", name, *_table(values)]
    for name, near in unused.items():
        lines += ["", f"{name} is set, but no option is called so{near and f': did you mean {near}?'}"]
    if not all_options:
        none = "Nothing is set. " if not any(values for _, values in found) else ""
        lines += ["", f"{none}All options of a command: wildproxy config show COMMAND"]
    return lines


def _file_line(file: SettingsFile | None) -> str:
    if file is not None:
        return f"File: {file.path}"
    folders = searched(Path.cwd())
    above = f" and above it, up to {folders[-1]}" if len(folders) > 1 else ""
    return f"File: none ({NAME} is looked for in {folders[0]}{above})"


def _table(values: Sequence[Effective]) -> list[str]:
    from scenarios.text import visible

    rows = [(it.option, visible(_shown(it.value)), _whence(it)) for it in values]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [f"  {option:{first}}  {value:{second}}  {whence}" for option, value, whence in rows]


def _whence(found: Effective) -> str:
    if found.where is None:
        return found.source if found.note is None else f"{found.source}: {found.note}"
    return found.where if found.source == "file" else f"{found.source}: {found.where}"


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


TEMPLATE = """\
# Settings for wildproxy. Take away a # to set one.
# The command line and variables (WILDPROXY_PROVIDER, WILDPROXY_DRIVE_LIMIT) come before this file.
# Paths are meant from this file's folder. Keys of providers do not belong here: name the variable
# that holds one. `wildproxy config show COMMAND` lists a command's options and what they come to.

[defaults]                                   # for every command that has the option
# scenarios = "bundled"                      # a pack or a file; several: ["bundled", "mine.jsonl"]
# provider = "sim:oracle"                    # or "https://api.openai.com/v1"
# provider-key-env = "OPENAI_API_KEY"        # the variable that holds the key
# model = "gpt-4o-mini"
# history = "gold"                           # or "live"
# tools = "intercept"                        # or "relay", "mcp"
# language = "en"                            # or "zh"

[serve]
# port = 8787

[drive]
# agent = "builtin"                          # or "python my_agent.py", "my_module:my_function", "http://..."
# concurrency = 4
# limit = 10
# turn-timeout = 300.0

[score]
# scorer = ["wildtoolbench", "strict"]
# fail-under = ["strict:task_accuracy=0.5"]

[log.runs.list]                              # a command of several words
# format = "json"
"""


@config.command(
    short_help="Write a wildproxy.toml to begin with.",
    epilog="""\b
    Examples:
      wildproxy config init
    """,
)
def init() -> None:
    """Write a wildproxy.toml to the current folder, with everything commented out. Never overwrites."""
    try:
        with Path(NAME).open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise InputError(f"{NAME}: is there already, and was left as it is") from None
    except OSError as error:
        raise InputError(f"{NAME}: cannot be written: {error.strerror}") from error
    click.echo(f"{NAME}: written, with everything commented out; `wildproxy config show` tells what is set")
