"""The command line: wires the commands together. Each is imported when it is first asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proxy.command_line.group import Entry, LazyGroup
from proxy.command_line.runs_folder import newest_log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from proxy.tail.summary import Opinion, PlayedTask
    from proxy.ui.lent import Lent

COMMANDS = {
    "demo": Entry("Play", "proxy.cli:demo", "Everything at once on the bundled scenarios, offline."),
    "serve": Entry("Play", "proxy.cli:serve", "Stand between agents and their LLM provider."),
    "drive": Entry("Play", "proxy.cli:drive", "Play sessions against an agent."),
    "simulate": Entry("Play", "proxy.simulate.cli:simulate", "A scripted OpenAI-compatible provider."),
    "tail": Entry("Look", "proxy.tail.cli:tail", "Show a session in the terminal, live if wanted."),
    "report": Entry("Look", "scoring.page.report_cli:report", "One HTML page about a run, or several."),
    "log": Entry("Look", "proxy.log.cli:log", "Look into a log, name and delete its runs."),
    "score": Entry("Score", "scoring.cli:score", "Metrics and verdicts from a log."),
    "compare": Entry("Score", "scoring.compare.cli:compare", "Is one run better, and how sure is that?"),
    "judge": Entry("Score", "scoring.judge_cli:judge", "Score recorded replies and chats without a proxy."),
    "export": Entry("Score", "scoring.export_cli:export", "Sessions for the tools of others."),
    "scenarios": Entry("Scenarios", "scoring.scenarios_cli:scenarios", "List, show, check scenario files."),
    "config": Entry(
        "Settings", "proxy.command_line.config_cli:config", "What is set where: variables, wildproxy.toml."
    ),
    "completion": Entry(
        "Settings", "proxy.command_line.completion_cli:completion", "Completion for bash, zsh and fish."
    ),
}


class Composition:
    """Lends scoring to commands of the proxy, and what these know to those, as neither imports the other."""

    def newest_log(self) -> Path | None:
        """The log in `./runs` that was written last; None if there is none."""
        return newest_log()

    def damage(self, words: Sequence[str]) -> str | None:
        """What is wrong with a log that one of the words of a command names, if something is."""
        from proxy.log.damage import damage

        paths = [Path(word.rpartition("=")[2]) for word in words]
        return next(filter(None, map(damage, filter(Path.is_file, paths))), None)

    def score(self, log: Path) -> tuple[str, str]:
        """A log's scores as a table and as a JSON document."""
        from scoring.cli import Asked, score_logs
        from scoring.output.document import documents
        from scoring.output.json_text import json_bytes
        from scoring.output.run_table import run_table
        from scoring.terminal_cli import text_columns

        reports = score_logs((log,), (), Asked())
        document = json_bytes(documents(reports), indent=2).decode()
        return run_table(reports[0], columns=text_columns()), document

    def report(self, log: Path) -> bytes:
        """A log's report as an HTML page."""
        from scoring.cli import Asked
        from scoring.page.report_cli import make_page

        return make_page((log,), (), Asked(), raw=True).page

    def judge(
        self, record: Mapping[str, Any], config: Mapping[str, Any], tasks: Sequence[PlayedTask]
    ) -> Sequence[Opinion]:
        """What `strict` says of a Session's Tasks, and the released rules where they differ."""
        from scoring.glance import glance

        return glance(record, config, [(task.messages, task.ending) for task in tasks])

    def live_page(self) -> Lent:
        """The look of the report's pages and the scorers, for the proxy's own page."""
        from proxy.ui.lent import Lent
        from scoring.page.look import shared_look

        look = shared_look()
        return Lent(look.css, look.script, self.judge, self.read, self.words)

    def read(
        self, record: Mapping[str, Any], config: Mapping[str, Any], tasks: Sequence[PlayedTask]
    ) -> Sequence[dict[str, Any]]:
        """What scorers read in a Session, step by step."""
        from scoring.page.played import read_tasks

        return read_tasks(record, config, [(task.messages, task.ending) for task in tasks])

    def words(self) -> dict[str, Any]:
        """What the names of error classes and rules mean."""
        from scoring.page.played import words

        return words()


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    subcommand_metavar="COMMAND [ARGS]...",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
    First steps:
      wildproxy demo                 # everything at once, offline, in seconds
      wildproxy serve --scenarios bundled --provider sim:oracle
      wildproxy score                # the newest log in ./runs
      README.md and docs/tutorial.md lead from an agent of your own to its score
    """,
)
@click.version_option(package_name="wildtoolbench-proxy", prog_name="wildproxy")
@click.option("--debug", is_flag=True, help="Tell an error by its traceback instead of in one line.")
@click.option(
    "--config",
    metavar="FILE",
    help="Settings from this file instead of the nearest wildproxy.toml; '' for none.",
)
@click.pass_context
def main(context: click.Context, debug: bool, config: str | None) -> None:
    """Put any tool-using agent through WildToolBench sessions, unmodified.

    Point the agent's base URL at the proxy, run sessions, score the log.
    """
    context.obj = Composition()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


if __name__ == "__main__":
    sys.exit(main(prog_name="wildproxy"))
