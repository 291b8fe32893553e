"""The program as a whole: its commands by use, each imported when it is first asked for."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from proxy.command_line.context_cli import Context, dress
from proxy.command_line.usage_cli import in_one_line
from scenarios.text import visible

INTERRUPTED = 130
WORDS = f"{__name__}.words"
"""Where a context has what the program was called with."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: what it is for, as a heading; `module:attribute`; and a line of help."""

    use: str
    target: str
    text: str


class CannotGoOn(click.ClickException):
    """The machine fails the program: a full disk, say."""

    exit_code = 3


class Damaged(click.ClickException):
    """What is wrong with a log that a command could make no sense of."""

    exit_code = 2


class LazyGroup(click.Group):
    """A group whose help needs none of its commands' modules."""

    context_class = Context

    def __init__(self, *args: Any, table: Mapping[str, Entry], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.table = table
        dress(self, ())

    def main(self, *args: Any, **settings: Any) -> Any:
        _prepare_streams()
        return super().main(*args, **settings)

    def make_context(
        self, info_name: str | None, args: list[str], *more: Any, **settings: Any
    ) -> click.Context:
        words = list(args)
        try:
            context = super().make_context(info_name, args, *more, **settings)
        except click.UsageError as error:
            raise in_one_line(error) from error
        except OSError as error:  # the program's own help could not be written
            raise _cannot_go_on(error) from error
        context.meta.setdefault(WORDS, words)
        return context

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise in_one_line(error) from error
        except click.ClickException as error:
            if not ctx.params["debug"]:
                raise
            traceback.print_exception(error)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except OSError as error:
            if ctx.params["debug"] and error.errno != errno.EPIPE:
                raise
            raise _cannot_go_on(error) from error
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            damage = None if ctx.params["debug"] else ctx.obj.damage(self._command(ctx.meta[WORDS]))
            if damage is not None:
                raise Damaged(visible(damage)) from error
            raise

    def _command(self, words: list[str]) -> list[str]:
        """Without the options of the program itself."""
        return words[next((place for place, word in enumerate(words) if word in self.table), 0) :]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.table:
            return None
        module, _, attribute = self.table[name].target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return dress(command, (name,))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """By the table alone: no command is imported to complete its name."""
        begun = [(name, it) for name, it in self.table.items() if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=it.text) for name, it in begun]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What to do first, the commands by use, then the options."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.table))
        for use in dict.fromkeys(entry.use for entry in self.table.values()):
            with formatter.section(use):
                formatter.write_dl(
                    [(name.ljust(width), it.text) for name, it in self.table.items() if it.use == use]
                )


def _cannot_go_on(error: OSError) -> click.ClickException | click.exceptions.Exit:
    if error.errno == errno.EPIPE:
        # Whoever read the output has had enough.
        return click.exceptions.Exit(0)
    where = "" if error.filename is None else f"{visible(str(error.filename))}: "
    return CannotGoOn(f"cannot go on: {where}{error.strerror or error}")


def _prepare_streams() -> None:
    """Lets commands write whatever they have to say, wherever it goes; what was closed is empty."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), closefd=False)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Closed by whoever started the program, who wants none of it.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False))
        elif getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            # An encoding that lacks a character of a model's is no reason to end.
            stream.reconfigure(errors="backslashreplace")
