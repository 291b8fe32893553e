"""The options of a proxy that plays, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from proxy.command_line.runs_folder import new_log, newest_log

if TYPE_CHECKING:
    from proxy.settings import PlayConfig, Settings

F = TypeVar("F", bound=Callable[..., Any])


def play_options(command: F) -> F:
    """The options of a proxy that plays, shared by `serve` and `drive`."""
    options = [
        click.option(
            "--provider",
            metavar="URL|sim:POLICY",
            help="The LLM provider's base URL (ends in /v1), or sim:oracle, sim:serial, sim:noisy:P[:SEED], "
            "sim:text-only, sim:always-call, sim:empty for a simulated one.",
        ),
        click.option(
            "--log",
            type=click.Path(path_type=Path, dir_okay=False),
            help="The SQLite log.  [default: a new one in ./runs]",
        ),
        click.option(
            "--language",
            type=click.Choice(["en", "zh"]),
            default="en",
            show_default=True,
            help="Which words of a scenario file with both languages are played.",
        ),
        click.option(
            "--history",
            type=click.Choice(["gold", "live"]),
            default="gold",
            show_default=True,
            help="What each task starts from: the references of the earlier tasks, as published, or the "
            "agent's own history, mistakes included.",
        ),
        click.option(
            "--history-from",
            type=click.Choice(["agent", "proxy"]),
            help="With --history live: whose messages the LLM gets, the agent's own or the proxy's record "
            "of them, for agents that remember nothing.  [default: agent]",
        ),
        click.option(
            "--tools",
            type=click.Choice(["intercept", "relay", "mcp"]),
            default="intercept",
            show_default=True,
            help="Who answers tool calls: the proxy, and the agent sees only texts; the agent, which gets "
            "the calls, runs its own tools, and has their results replaced; or the tools of the proxy's "
            "MCP endpoint, which the agent calls.",
        ),
        click.option(
            "--on-mismatch",
            type=click.Choice(["stop", "continue"]),
            help="What a wrong step does: it ends the task, or its calls get the errors that a real tool "
            "would give.  [default: stop; continue with --history live]",
        ),
        click.option(
            "--max-steps",
            type=click.IntRange(1, 1000),
            help="With --on-mismatch continue: the most steps a task may take.  [default: 20]",
        ),
        click.option(
            "--agent-tools",
            type=click.Choice(["replace", "append", "keep"]),
            help="What becomes of the agent's own tools: the scenario's take their place, or join them, or "
            "they are the scenario's already.  [default: replace; keep with --tools mcp]",
        ),
        click.option(
            "--keep-tool",
            "keep_tools",
            multiple=True,
            metavar="PATTERN",
            default=("transfer_to_*",),
            show_default=True,
            help="The agent's control tools, such as handoffs: they stay, and calling them is no step. "
            "May be repeated.",
        ),
        click.option(
            "--observations",
            type=click.Choice(["matched", "released"]),
            default="matched",
            show_default=True,
            help="Give each call what it asked for, or swap parallel results as the released harness does.",
        ),
        click.option(
            "--provider-api",
            type=click.Choice(["chat", "responses"]),
            default="chat",
            show_default=True,
            help="What the provider speaks: Chat Completions or the Responses API.",
        ),
        click.option("--model", help="Send this model name to the provider instead of the agent's."),
        click.option(
            "--provider-key-env",
            metavar="NAME",
            help="Environment variable with the provider's key. Default: the agent's own key is passed on; "
            "for an agent without one, OPENAI_API_KEY.",
        ),
        click.option(
            "--provider-retries",
            type=click.IntRange(min=0),
            default=3,
            show_default=True,
            help="How often a request is sent again after a 429, a 5xx or a broken connection.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def play_config(options: dict[str, Any]) -> PlayConfig:
    """How Sessions are played, by the options of `play_options`. Raises UsageError for what does not fit."""
    from proxy.settings import PlayConfig

    options = dict(options)
    history, tools = options["history"], options["tools"]
    on_mismatch: Any = options["on_mismatch"] or ("continue" if history == "live" else "stop")
    if options["history_from"] and history != "live":
        reason = "--history-from is for --history live: with gold it comes from the references."
        _drop_or_refuse(options, "history_from", ("history",), reason)
    if options["max_steps"] and on_mismatch != "continue":
        reason = "--max-steps is for --on-mismatch continue: a wrong step ends the task otherwise."
        _drop_or_refuse(options, "max_steps", ("on_mismatch", "history"), reason)
    if tools == "mcp" and options["agent_tools"] not in (None, "keep"):
        reason = "--tools mcp needs --agent-tools keep: the agent's tools are the scenario's then."
        _drop_or_refuse(options, "agent_tools", ("tools",), reason)
    agent_tools: Any = options["agent_tools"] or ("keep" if tools == "mcp" else "replace")
    return PlayConfig(
        history=history,
        history_from=options["history_from"] or "agent",
        tools=tools,
        on_mismatch=on_mismatch,
        max_steps=options["max_steps"] or 20,
        agent_tools=agent_tools,
        observations=options["observations"],
        keep_tools=tuple(options["keep_tools"]),
    )


def _drop_or_refuse(options: dict[str, Any], name: str, beside: tuple[str, ...], reason: str) -> None:
    """Takes back what a settings file says where the command line or the environment said otherwise.

    Raises UsageError, with `reason`, where both were said in one place.
    """
    source = click.get_current_context().get_parameter_source
    nearer = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    if source(name) is not ParameterSource.DEFAULT_MAP or not any(source(it) in nearer for it in beside):
        raise click.UsageError(reason)
    options[name] = None


def given_beside_proxy(context: click.Context) -> list[str]:
    """The options on the command line that a proxy at `--proxy` has settled already."""
    names = {"files": "--scenarios", "run_id": "--run"}
    settled = (
        "provider",
        "log",
        "run_id",
        "name",
        "files",
        "history",
        "history_from",
        "tools",
        "on_mismatch",
    )
    return [
        names.get(it, f"--{it.replace('_', '-')}")
        for it in (*settled, "max_steps", "agent_tools", "observations")
        if context.get_parameter_source(it) is ParameterSource.COMMANDLINE
    ]


@contextmanager
def log_of(given: Path | None, scenarios: Sequence[str], *, resume: bool = False) -> Iterator[Path]:
    """The log to write to: the one that is given, else a new one in `runs`; with `resume` the newest there.

    Says which is gone on with; of a new one that is for whoever writes to it. Raises UsageError for a folder
    that cannot be used.
    """
    if given is not None:
        yield given
        return
    if resume:
        newest = newest_log()
        if newest is None:
            raise click.UsageError("--resume: there is no log in ./runs to go on with: name one with --log.")
        click.echo(f"Log: {newest}, the newest in ./runs")
        yield newest
        return
    with ExitStack() as kept:
        try:
            path = kept.enter_context(new_log(scenarios, datetime.now()))
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}: name a log with --log."
            raise click.UsageError(reason) from error
        yield path


def finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """A number of seconds that a clock can reach."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of seconds.")
    return value


def warn_of(settings: Settings) -> None:
    """Says what may surprise, before anything is played."""
    if settings.play.tools == "relay":
        click.echo(
            "warning: --tools relay: the agent's own tools run, with whatever they write to; "
            "only their results are replaced",
            err=True,
        )
