"""What stands side by side: how each is started, and what it is asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from machine import HERE
from traffic import SCENARIO, Traffic

ROOT = HERE.parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wildproxy-benchmarks"
REFERENCE, RECORD, EVALUATION, LITELLM = "bare + log", "record", "evaluation", "litellm"
CHAT = "/v1/chat/completions"
SESSION = f"/s/{SCENARIO}.e@num@/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a contender runs: a folder for its files, the provider's port and its own."""

    folder: Path
    traffic: Traffic
    provider: int
    port: int

    @property
    def provider_url(self) -> str:
        return f"http://127.0.0.1:{self.provider}"


class Contender:
    """Something between the load generator and the provider."""

    name: str
    path = CHAT
    streams = True
    """Whether a stream is passed on while it comes."""

    def missing(self) -> str | None:
        """What keeps it from being measured here."""
        return None

    def command(self, place: Place) -> list[str]:
        """How it is started; nothing for the provider itself."""
        raise NotImplementedError

    def environ(self) -> Mapping[str, str]:
        return {}

    def bodies(self, traffic: Traffic) -> tuple[Path, ...]:
        return traffic.plain


@dataclass(frozen=True, slots=True)
class Direct(Contender):
    """The provider, with nothing in between."""

    name: str = "direct"

    def command(self, place: Place) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class Bare(Contender):
    """reference.py, with or without its log."""

    name: str
    logs: bool

    def missing(self) -> str | None:
        return _uninstalled("reference")

    def command(self, place: Place) -> list[str]:
        log = [str(place.folder / "log.db")] if self.logs else []
        return [_python("reference"), str(HERE / "reference.py"), str(place.port), place.provider_url, *log]


@dataclass(frozen=True, slots=True)
class Ours(Contender):
    """This project's `serve`, which commits every exchange before its answer ends.

    `tools` is None in record mode; else the tool mode in which sessions are played: a request is one step
    with `relay`, and a whole task of two steps with `intercept`.
    """

    name: str
    tools: str | None = None
    path: str = field(init=False)
    streams: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", SESSION if self.tools else CHAT)
        object.__setattr__(self, "streams", self.tools is None)

    def command(self, place: Place) -> list[str]:
        log, provider = str(place.folder / "log.db"), f"{place.provider_url}/v1"
        command = [sys.executable, str(ROOT / "run_proxy.py"), "--config", "", "serve", "--log", log]
        if self.tools:
            command += ["--scenarios", str(place.traffic.scenarios), "--tools", self.tools]
        return [*command, "--provider", provider, "--port", str(place.port)]

    def bodies(self, traffic: Traffic) -> tuple[Path, ...]:
        return {None: traffic.plain, "relay": traffic.session, "intercept": traffic.turns}[self.tools]


CONTENDERS: tuple[Contender, ...] = (
    Direct(),
    Bare("bare", logs=False),
    Bare(REFERENCE, logs=True),
    Ours(RECORD),
    Ours(EVALUATION, "relay"),
)


def _python(name: str) -> str:
    return str(CACHE / name / "bin" / "python")


def _uninstalled(name: str) -> str | None:
    return None if Path(_python(name)).exists() else f"{CACHE / name} is not there: run with --install"
