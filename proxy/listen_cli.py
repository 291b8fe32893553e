"""The options that say where a proxy listens, and whom it lets in."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from proxy.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def listen_options(command: F) -> F:
    options = [
        click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=8787,
            show_default=True,
            help="0 takes a free one.",
        ),
        click.option(
            "--token-env",
            metavar="NAME",
            help="Environment variable with a token that agents must show: in the base URL (/t/TOKEN/v1), as "
            "the API key, or in the header x-eval-token. Needed where --host lets other machines in.",
        ),
        click.option(
            "--allow-host",
            "allowed_hosts",
            multiple=True,
            metavar="HOST",
            help="A name by which the proxy may be asked too, or whose pages may ask it; may be repeated.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def listening(settings: Settings, options: dict[str, Any]) -> Settings:
    """With what the options of `listen_options` say. Raises UsageError for a variable with no token in it."""
    return replace(
        settings,
        host=options["host"],
        port=options["port"],
        agent_token=_agent_token(options["token_env"]),
        allowed_hosts=options["allowed_hosts"],
    )


def _agent_token(name: str | None) -> str | None:
    token = None if name is None else os.environ.get(name, "").strip()
    if token == "":
        raise click.UsageError(
            f"--token-env {name}: this environment variable is not set: put a token into it, "
            "such as what `openssl rand -hex 16` prints."
        )
    return token
