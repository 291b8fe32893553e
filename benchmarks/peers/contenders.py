"""What stands side by side: how each is started, and what it is asked."""

from __future__ import annotations

import json
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from installed import CACHE, python, uninstalled
from machine import HERE
from traffic import SCENARIO, Traffic

ROOT = HERE.parent.parent
DIRECT, REFERENCE, RECORD, EVALUATION, LITELLM = "direct", "bare + log", "record", "evaluation", "litellm"
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


class Contender(ABC):
    """Something between the load generator and the provider."""

    name: str

    @abstractmethod
    def command(self, place: Place) -> list[str]:
        """How it is started; nothing for the provider itself."""

    def missing(self) -> str | None:
        """What keeps it from being measured here."""
        return None

    @property
    def path(self) -> str:
        return CHAT

    @property
    def streams(self) -> bool:
        """Whether it passes a stream on while it comes."""
        return True

    def environ(self) -> Mapping[str, str]:
        return {}

    def bodies(self, traffic: Traffic) -> tuple[Path, ...]:
        return traffic.plain


@dataclass(frozen=True, slots=True)
class Direct(Contender):
    """The provider, with nothing in between."""

    name: str = DIRECT

    def command(self, place: Place) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class Bare(Contender):
    """reference.py, with or without its log."""

    name: str
    logs: bool

    def missing(self) -> str | None:
        return uninstalled("reference")

    def command(self, place: Place) -> list[str]:
        log = [str(place.folder / "log.db")] if self.logs else []
        return [python("reference"), str(HERE / "reference.py"), str(place.port), place.provider_url, *log]


@dataclass(frozen=True, slots=True)
class Ours(Contender):
    """This project's `serve`, which commits every exchange before its answer ends.

    `tools` is None in record mode; else the tool mode in which sessions are played: a request is one step
    with `relay`, and a whole task of two steps with `intercept`.
    """

    name: str
    tools: str | None = None

    @property
    def path(self) -> str:
        return SESSION if self.tools else CHAT

    @property
    def streams(self) -> bool:
        return self.tools is None

    def command(self, place: Place) -> list[str]:
        log, provider = str(place.folder / "log.db"), f"{place.provider_url}/v1"
        command = [sys.executable, str(ROOT / "run_proxy.py"), "--config", "", "serve", "--log", log]
        if self.tools:
            command += ["--scenarios", str(place.traffic.scenarios), "--tools", self.tools]
        return [*command, "--provider", provider, "--port", str(place.port)]

    def bodies(self, traffic: Traffic) -> tuple[Path, ...]:
        return {None: traffic.plain, "relay": traffic.session, "intercept": traffic.turns}[self.tools]


@dataclass(frozen=True, slots=True)
class Nginx(Contender):
    """One worker of nginx that passes on and writes nothing down: what a proxy costs in C."""

    name: str = "nginx"

    def missing(self) -> str | None:
        return None if shutil.which("nginx") else "nginx is not there: apt-get install nginx-light"

    def command(self, place: Place) -> list[str]:
        config = place.folder / "nginx.conf"
        config.write_text(_NGINX.format(provider=place.provider, port=place.port), encoding="ascii")
        return ["nginx", "-p", str(place.folder), "-c", str(config), "-e", str(place.folder / "error.log")]


@dataclass(frozen=True, slots=True)
class LiteLlm(Contender):
    """The proxy of LiteLLM with one worker, which writes nothing down."""

    name: str = LITELLM

    def missing(self) -> str | None:
        return uninstalled("litellm")

    def command(self, place: Place) -> list[str]:
        sent = {"model": "openai/bench-model", "api_base": f"{place.provider_url}/v1", "api_key": "none"}
        config = place.folder / "config.yaml"  # JSON is YAML too.
        models = [{"model_name": "bench-model", "litellm_params": sent}]
        keyless = {"dangerously_permit_weak_or_unset_master_key": True}  # Checking keys would cost it time.
        config.write_text(json.dumps({"model_list": models, "general_settings": keyless}), encoding="utf-8")
        start = [python("litellm"), "-c", "from litellm import run_server; run_server()"]
        return [*start, "--config", str(config), "--host", "127.0.0.1", "--port", str(place.port)]

    def environ(self) -> Mapping[str, str]:
        return {"LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


@dataclass(frozen=True, slots=True)
class LlmObserve(Contender):
    """llm-observe-proxy, which writes into SQLite while a request waits."""

    name: str = "llm-observe"

    def missing(self) -> str | None:
        return uninstalled("llm-observe") or (None if self._tokenizers() else uninstalled("litellm"))

    def command(self, place: Place) -> list[str]:
        log = f"sqlite:///{place.folder / 'log.db'}"
        start = [python("llm-observe"), "-m", "llm_observe_proxy", "--host", "127.0.0.1"]
        provider = ["--upstream-url", f"{place.provider_url}/v1"]
        return [*start, "--port", str(place.port), "--database-url", log, *provider]

    def environ(self) -> Mapping[str, str]:
        # It would fetch the vocabulary of its tokenizer from the network; LiteLLM brings it along.
        return {"TIKTOKEN_CACHE_DIR": str(self._tokenizers())}

    def _tokenizers(self) -> Path | None:
        inside = "lib/*/site-packages/litellm/litellm_core_utils/tokenizers"
        return next((CACHE / "litellm").glob(inside), None)


CONTENDERS: tuple[Contender, ...] = (
    Direct(),
    Nginx(),
    Bare("bare", logs=False),
    Bare(REFERENCE, logs=True),
    Ours(RECORD),
    Ours(EVALUATION, "relay"),
    Ours("intercept", "intercept"),
    LiteLlm(),
    LlmObserve(),
)

_NGINX = """
daemon off; master_process off; pid nginx.pid;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_max_body_size 1g; client_body_buffer_size 1m; keepalive_requests 1000000;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  upstream provider {{ server 127.0.0.1:{provider}; keepalive 128; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }}
  }}
}}
"""
