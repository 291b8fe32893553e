"""The command line: wires the commands together. Each is imported when it is first asked for."""

from __future__ import annotations

import errno
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import click

COMMANDS = {
    "serve": ("proxy.cli:serve", "Stand between agents and their LLM provider."),
    "drive": ("proxy.cli:drive", "Play sessions against an agent."),
    "demo": ("proxy.cli:demo", "Everything at once on the bundled scenarios, offline."),
    "score": ("scoring.cli:score", "Metrics and verdicts from a log."),
    "compare": ("scoring.compare.cli:compare", "Is one run better than another, and how sure is that?"),
    "export": ("scoring.export_cli:export", "Sessions for the tools of others: result files, chats."),
    "tail": ("proxy.tail.cli:tail", "Show a session in the terminal, live if wanted."),
    "log": ("proxy.log.cli:log", "Look into a log, name and delete its runs."),
    "judge": ("scoring.judge_cli:judge", "Score recorded replies and chats without a proxy."),
    "scenarios": ("scoring.scenarios_cli:scenarios", "List, show and check scenario files."),
    "simulate": ("proxy.simulate.cli:simulate", "A scripted OpenAI-compatible provider."),
}


INTERRUPTED = 130


class CannotGoOn(click.ClickException):
    """The machine fails the program: a full disk, say."""

    exit_code = 3


class LazyGroup(click.Group):
    """A group whose help needs none of its commands' modules."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError:
            raise
        except click.ClickException as error:
            if not ctx.params["debug"]:
                raise
            traceback.print_exception(error)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except OSError as error:
            if error.errno == errno.EPIPE:
                # Whoever read the output has had enough.
                ctx.exit(0)
            if ctx.params["debug"] or error.filename is not None:
                raise
            raise CannotGoOn(f"cannot go on: {error.strerror or error}") from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


class Composition:
    """Lends scoring to commands of the proxy, which does not import it."""

    def score(self, log: Path) -> tuple[str, str]:
        """A log's scores as a table and as a JSON document."""
        from scoring.cli import Asked, score_logs
        from scoring.output.document import documents
        from scoring.output.json_text import json_bytes
        from scoring.output.run_table import run_table

        reports = score_logs((log,), (), Asked())
        return run_table(reports[0]), json_bytes(documents(reports), indent=2).decode()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="wildtoolbench-proxy", prog_name="wildproxy")
@click.option("--debug", is_flag=True, help="Tell an error by its traceback instead of in one line.")
@click.pass_context
def main(context: click.Context, debug: bool) -> None:
    """Put any tool-using agent through WildToolBench sessions, unmodified.

    Point the agent's base URL at the proxy, run sessions, score the log.
    """
    context.obj = Composition()


if __name__ == "__main__":
    sys.exit(main(prog_name="wildproxy"))
