"""The commands `serve`, `drive` and `demo`. What they need is imported when they run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import click

from proxy.command_line.values_cli import complete_ids, complete_scenarios
from proxy.listen_cli import listen_options, listening
from proxy.play_cli import finite, given_beside_proxy, log_of, play_config, play_options, warn_of

if TYPE_CHECKING:
    from proxy.settings import RunChoice, Settings
    from proxy.ui.lent import Lent

F = TypeVar("F", bound=Callable[..., Any])

BUNDLED_WORD = "bundled"
"""As in `scenarios.load`, which is not imported for a help text."""


class Composition(Protocol):
    """What the composition root lends to commands that join proxy and scoring."""

    def score(self, log: Path) -> tuple[str, str]:
        """A log's scores as a table and as a JSON document."""

    def report(self, log: Path) -> bytes:
        """A log's report as an HTML page."""

    def live_page(self) -> Lent:
        """The look and the verdicts of the live page."""


def scenarios_option(default: str) -> Callable[[F], F]:
    """`default` says what is played where none are named."""
    return click.option(
        "--scenarios",
        "files",
        multiple=True,
        metavar="FILE",
        shell_complete=complete_scenarios,
        help=f"Scenario file, or the name of a pack, such as {BUNDLED_WORD}; may be given several times.  "
        f"[default: {default}]",
    )


@click.command(
    epilog="""\b
    Examples:
      wildproxy serve --scenarios bundled --provider sim:oracle
      wildproxy serve --scenarios everyday --provider https://api.openai.com/v1
      wildproxy serve --provider https://api.openai.com/v1    # only records
    """
)
@scenarios_option("none, and nothing is played, only recorded")
@play_options
@listen_options
@click.option(
    "--new-run",
    is_flag=True,
    help="Begin a new run. Default: go on with the log's last run if it has the same configuration.",
)
@click.pass_obj
def serve(composition: Composition, /, files: tuple[str, ...], new_run: bool, **options: Any) -> None:
    """Stand between agents and their LLM provider, and log every call.

    With --scenarios the proxy plays: an agent whose base URL is
    http://HOST:PORT/s/SCENARIO_ID/v1 and whose prompts are [[next-user-turn 1]],
    [[next-user-turn 2]], ... gets that scenario's user turns and tool results. Without
    --scenarios it only records: every request passes through verbatim.

    Started again with the same --log, it goes on where that log ends. What it does can be watched
    at http://HOST:PORT/ui. That page and drivers need its control token: set EVAL_TOKEN to choose
    it. Without, one is made up and printed, on a terminal only, and kept for the next start.
    """
    from proxy.serving import run_serve

    _require_provider(options)
    settings = listening(_settings(files, options), options)
    warn_of(settings)
    runs: RunChoice = "new" if new_run else "continue"
    with log_of(settings.log, files) as log:
        settings = replace(settings, log=log, runs=runs, token=os.environ.get("EVAL_TOKEN") or None)
        run_serve(settings, composition.live_page(), options["token_env"])


@click.command(
    epilog="""\b
    Examples:
      wildproxy drive --agent builtin --provider sim:noisy:0.3
      wildproxy drive --agent builtin --provider sim:serial --scenarios ledger
      wildproxy drive --agent 'python my_agent.py' --provider sim:noisy:0.3
    """
)
@scenarios_option(BUNDLED_WORD)
@play_options
@click.option(
    "--agent",
    required=True,
    metavar="AGENT",
    help="A command ('python my_agent.py'), MODULE:FUNCTION, http://... of a server, "
    "or 'builtin': a plain loop around the bare model.",
)
@click.option(
    "--per",
    type=click.Choice(["session", "turn"]),
    help="For a command: one process a session, prompts line by line on its standard input, or one a turn, "
    "the prompt in place of {turn} or on its standard input.  [default: session; turn if {turn} is in it]",
)
@click.option(
    "--agent-body",
    metavar="JSON",
    help="For a server: the body to POST, with {turn} for the prompt and {session} for the session's name.",
)
@click.option(
    "--inject",
    type=click.Choice(["sentinel", "driver"]),
    default="sentinel",
    show_default=True,
    help="What the agent is prompted with: a placeholder, or the user's words themselves, so that its own "
    "retrieval, guardrails and routers see them.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="ID",
    shell_complete=complete_ids,
    help="Play only this scenario; may be repeated.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Play only the first so many scenarios.")
@click.option(
    "--epochs",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Times to play each scenario.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with a run of the same configuration: play what is missing or was ended by infrastructure.",
)
@click.option(
    "--run",
    "run_id",
    metavar="RUN",
    help="With --resume: the id of the run.  [default: the newest that fits]",
)
@click.option(
    "--name", metavar="NAME", help="The run's name, which then does for its id, as in compare --run-a."
)
@click.option(
    "--proxy",
    "proxy_url",
    metavar="URL",
    help="Use this running proxy (its token in EVAL_TOKEN, as it was started with) instead of one of "
    "its own; it has the scenarios, the provider and the log.",
)
@click.option(
    "--concurrency", type=click.IntRange(min=1), default=4, show_default=True, help="Sessions at a time."
)
@click.option(
    "--turn-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    callback=finite,
    help="Seconds an agent may take for a turn.",
)
@click.option("--stream/--no-stream", default=False, show_default=True, help="Let the builtin agent stream.")
@click.pass_obj
def drive(
    composition: Composition,
    /,
    files: tuple[str, ...],
    agent: str,
    per: Literal["session", "turn"] | None,
    agent_body: str | None,
    inject: Literal["sentinel", "driver"],
    only: tuple[str, ...],
    limit: int | None,
    epochs: int,
    resume: bool,
    run_id: str | None,
    name: str | None,
    proxy_url: str | None,
    concurrency: int,
    turn_timeout: float,
    stream: bool,
    **options: Any,
) -> None:
    """Play sessions against an agent, with a proxy of its own.

    Starts the proxy on a free port, prompts the agent turn by turn and ends by naming the
    command that scores the log. The agent finds the proxy by OPENAI_BASE_URL and
    OPENAI_API_KEY; its prompts are placeholders that the proxy replaces by the user's
    words. --model is also the model the builtin agent asks for.
    """
    from proxy.commands import AgentChoice, DriveOptions, RemoteProxy, run_drive

    choice = AgentChoice(agent, per, agent_body, stream)
    wanted = DriveOptions(choice, only, limit, epochs, concurrency, turn_timeout, inject, name)
    if run_id is not None and not resume:
        raise click.UsageError("--run is the run to go on with: give --resume too, or leave it out.")
    if proxy_url is not None:
        _refuse_beside_proxy()
        run_drive(RemoteProxy(proxy_url, os.environ["EVAL_TOKEN"], resume), wanted, options["model"])
        return
    _require_provider(options)
    files = files or (BUNDLED_WORD,)
    settings = _settings(files, options)
    play = replace(settings.play, inject=inject)
    if play.echoes_agent and (choice.per == "turn" or "{turn}" in agent):
        raise click.UsageError(
            "an agent that is started anew for each turn remembers nothing: with --history live give "
            "--history-from proxy, or use --per session."
        )
    if play.tools == "mcp" and agent == "builtin":
        raise click.UsageError(
            "the builtin agent takes no MCP servers: use --tools intercept or relay with it."
        )
    warn_of(settings)
    runs: RunChoice = "resume" if resume else "new"
    settings = replace(settings, play=play, agent=choice.label, runs=runs, resume_run=run_id)
    wanted = replace(wanted, tells_log=settings.log is None and not resume)
    with log_of(settings.log, files, resume=resume) as log:
        run_drive(replace(settings, log=log), wanted, settings.model, composition.live_page())


def _require_provider(options: dict[str, Any]) -> None:
    if options["provider"] is None:
        raise click.UsageError(
            "Missing option '--provider': the base URL of an LLM, or sim:oracle for a simulated one."
        )


def _refuse_beside_proxy() -> None:
    given = given_beside_proxy(click.get_current_context())
    if given:
        raise click.UsageError(f"{', '.join(given)}: the proxy at --proxy has its own; leave it out.")
    if not os.environ.get("EVAL_TOKEN"):
        raise click.UsageError(
            "--proxy needs the proxy's control token in EVAL_TOKEN: start the proxy with that variable "
            "set to a secret of your choice, and drive with the same."
        )


@click.command(
    epilog="""\b
    Examples:
      wildproxy demo
      wildproxy demo --folder another-demo
    """
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("wildproxy-demo"),
    show_default=True,
    help="Where the log, the scores and the report go.",
)
@click.pass_obj
def demo(composition: Composition, folder: Path) -> None:
    """Everything at once on the bundled scenarios, offline: drive, log, score, report.

    A simulated provider that errs now and then stands in for an LLM. Ends by saying where
    the log, the scores and the report are, and what to try next.
    """
    from proxy.commands import run_demo

    run_demo(folder, composition.score, composition.report)


def _settings(files: tuple[str, ...], options: dict[str, Any]) -> Settings:
    from proxy.settings import Settings

    return Settings(
        log=options["log"],
        provider=options["provider"],
        scenarios=files,
        language=options["language"],
        provider_key_env=options["provider_key_env"],
        model=options["model"],
        provider_retries=options["provider_retries"],
        provider_api=options["provider_api"],
        play=play_config(options),
    )
