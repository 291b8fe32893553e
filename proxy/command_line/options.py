"""What an option is called in the environment and in a settings file."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

PREFIX = "WILDPROXY"

_PLAYING = ("serve", "drive")
_READING = ("scenarios list", "scenarios show", "scenarios validate")

SHARED = {
    "scenarios": (*_PLAYING, "simulate", "judge"),
    "provider": _PLAYING,
    "model": _PLAYING,
    "log": _PLAYING,
    "language": (*_PLAYING, "simulate", "judge", "score", *_READING),
    "history": _PLAYING,
    "history-from": _PLAYING,
    "tools": _PLAYING,
    "on-mismatch": _PLAYING,
    "max-steps": _PLAYING,
    "agent-tools": _PLAYING,
    "keep-tool": _PLAYING,
    "observations": _PLAYING,
    "provider-api": _PLAYING,
    "provider-key-env": _PLAYING,
    "provider-retries": _PLAYING,
}
"""Options that can be set once for several commands, and for which. Others of one name mean
different things: `--force`, `--model` of `export`, `--scenarios` of `score`."""


def options(command: click.Command) -> list[click.Option]:
    """The options of a command that hold a value: all but `--help` and `--version`."""
    return [it for it in command.params if isinstance(it, click.Option) and it.expose_value]


def key_of(option: click.Option) -> str:
    """The option's long name without dashes before it: `provider-retries`."""
    names = [name for name in option.opts if name.startswith("--")] or option.opts
    return names[0].lstrip("-")


def is_shared(words: Sequence[str], key: str) -> bool:
    """Is this option of the command one that is set for several commands?"""
    return " ".join(words) in SHARED.get(key, ())


def variables(words: Sequence[str], option: click.Option) -> list[str]:
    """The environment variables an option is read from, the one of this command alone first."""
    key = key_of(option)
    named = [_variable(*words, key)]
    return [*named, _variable(key)] if is_shared(words, key) else named


def variable_in_use(parameter: click.Parameter) -> str:
    """The environment variable that gives a parameter its value; "" for none. An empty one gives none."""
    names = [parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar or []
    return next((name for name in names if os.environ.get(name)), "")


def _variable(*words: str) -> str:
    return "_".join((PREFIX, *words)).replace("-", "_").upper()
