"""Which agent `--agent` means."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from proxy.drive.agent import AgentError as AgentError
from proxy.drive.agent import AgentFactory
from proxy.drive.functions import functions, missing_part
from proxy.drive.http_agent import http_agents
from proxy.drive.programs import Per, programs
from proxy.drive.states import Inject
from proxy.wire.endpoint import display_url

BUILTIN = "builtin"
Kind = Literal["builtin", "http", "function", "command"]

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_HTTP = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What `drive` is told about the agent.

    `agent`: `builtin`, `http(s)://...`, `module:function`, else a command. `per` None means
    `turn` for a command with {turn} in it, else `session`. `body` is the JSON text for an
    agent that is a server. `model` and `stream` are for agents that are told them: `builtin`
    (both) and servers (the model). `hidden` are environment variables no agent may see.
    `inject` is who puts the user's words in, as for `drive`.
    """

    agent: str
    per: Per | None = None
    body: str | None = None
    model: str = "gpt-4o-mini"
    stream: bool = False
    hidden: tuple[str, ...] = ()
    inject: Inject = "sentinel"


def kind_of(agent: str) -> Kind:
    if agent.strip() == BUILTIN:
        return "builtin"
    if _HTTP.match(agent.strip()):
        return "http"
    return "function" if _FUNCTION.fullmatch(agent.strip()) else "command"


def chosen(
    options: AgentOptions, environ: Mapping[str, str] = os.environ
) -> AbstractAsyncContextManager[AgentFactory]:
    """The agents that `options` ask for; an async context manager, and they end with it.

    Raises AgentError at once for what can be seen to be wrong before anything is started.
    """
    agent, kind = options.agent.strip(), kind_of(options.agent)
    if options.per is not None and kind != "command":
        raise AgentError(f"--per is for an agent that is a command, which {agent!r} is not: leave it out")
    if options.body is not None and kind != "http":
        raise AgentError("--agent-body is for an agent that is a server (http://...): leave it out")
    if options.inject == "driver" and kind == "http" and "{session}" not in agent + (options.body or ""):
        raise AgentError(
            "--inject driver: nothing in the prompts tells a server's sessions apart: let it name the "
            "session to the proxy (in its base URL, say) and put {session} into --agent or --agent-body"
        )
    if kind == "builtin":
        # The SDK takes half of a start, and only this agent needs it.
        from proxy.drive.builtin import builtin

        return builtin(options.model, stream=options.stream)
    if kind == "http":
        return http_agents(_address(agent), model=options.model, body=_body(options.body))
    if kind == "function":
        if missing := missing_part(agent):
            raise AgentError(
                f"--agent {agent}: no {missing} in {os.getcwd()} or on Python's path: "
                "start drive in the module's folder, or check its name"
            )
        return functions(agent, environ=environ, hidden=options.hidden)
    command = _command(agent, environ)
    return programs(command, per=_per(options, command), environ=environ, hidden=options.hidden)


def _per(options: AgentOptions, command: list[str]) -> Per:
    in_command = any("{turn}" in word for word in command)
    if in_command and options.per == "session":
        raise AgentError(
            "{turn} in --agent needs --per turn: with --per session the prompts come on standard input"
        )
    return options.per or ("turn" if in_command else "session")


def _command(text: str, environ: Mapping[str, str]) -> list[str]:
    """The words of a command, as a shell splits them, whose first one can be run."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise AgentError(f"--agent {text!r} cannot be split into words ({error}): check its quotes") from None
    if not words:
        raise AgentError(
            "--agent is empty: give a command, 'builtin', module:function or the http:// address of a server"
        )
    if "{" not in words[0] and shutil.which(words[0], path=environ.get("PATH")) is None:
        raise AgentError(
            f"--agent: there is no program {words[0]!r} that can be run: check its name, "
            "or give a path such as ./agent (no shell reads the command: no ~, $ or |)"
        )
    return words


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(ord(character) <= 32 for character in url):
        raise AgentError(
            f"--agent {display_url(url)} is no address: give one such as http://127.0.0.1:9000/v1"
        )
    return url


def _body(text: str | None) -> Any:
    if text is None:
        return None
    try:
        body = json.loads(text)
    except ValueError as error:
        raise AgentError(f"--agent-body is not JSON ({error})") from None
    if "{turn}" not in text:
        raise AgentError('--agent-body lacks {turn}, where the prompt goes: for example {"input": "{turn}"}')
    return body
