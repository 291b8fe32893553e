"""Keys, wherever one can be, are nowhere afterwards: in no file, on no terminal, on no page, in no export."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shlex
import sys
import traceback
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support import scenes
from support.commands import Process, process, run_in
from support.playing import rows
from yarl import URL

CHAT = "/v1/chat/completions"
PLACES = (
    "authorization",
    "basic",
    "bare",
    "apikeyheader",
    "xapikey",
    "googkey",
    "proxyauth",
    "authtoken",
    "azurekey",
    "cookie",
    "query",
    "subscription",
    "bodyfield",
    "metadata",
    "urluser",
    "urlpassword",
    "urlquery",
    "provider",
    "default",
    "command",
    "assignment",
    "environment",
    "control",
    "agents",
)
CANARY = {name: f"C4nary.{name}.7Zq9xW2kLm" for name in PLACES}
"""By place. None looks like the key of an issuer: it is known by where it stands, or not at all."""

HEADERS = {
    "api-key": CANARY["apikeyheader"],
    "x-api-key": CANARY["xapikey"],
    "x-goog-api-key": CANARY["googkey"],
    "Proxy-Authorization": f"Basic {CANARY['proxyauth']}",
    "X-Auth-Token": CANARY["authtoken"],
    "Ocp-Apim-Subscription-Key": CANARY["azurekey"],
    "Cookie": f"session={CANARY['cookie']}; theme=dark",
    "x-request-id": f"of-{CANARY['authtoken']}",
    "User-Agent": f"agent/1 ({CANARY['xapikey']})",
}
AUTHORIZATIONS = (
    f"Bearer {CANARY['authorization']}",
    f"Basic {CANARY['basic']}",
    CANARY["bare"],
)
QUERY = f"?api_key={CANARY['query']}&subscription-key={CANARY['subscription']}&api-version=1"
FIELDS = {
    "api_key": CANARY["bodyfield"],
    "metadata": {"access_token": CANARY["metadata"], "user": "me"},
}
ENVIRONMENT = {
    "OPENAI_API_KEY": CANARY["default"],
    "PROVIDER_KEY": CANARY["provider"],
    "MY_SECRET": CANARY["environment"],
    "AGENTS_TOKEN": CANARY["agents"],
    "EVAL_TOKEN": CANARY["control"],
}
AGENT = """
import os, sys
print("environment:", dict(os.environ), "words:", sys.argv, file=sys.stderr)
raise SystemExit(f"no way with {sys.argv}")
"""


def forms(secret: str) -> list[bytes]:
    """A secret as it is, and as Basic credentials or an address hide it."""
    return [
        secret.encode(),
        base64.b64encode(secret.encode()).rstrip(b"=")[:-1],
        secret.encode().hex().encode(),
    ]


def leaks(text: bytes) -> list[str]:
    return [name for name, secret in CANARY.items() if any(form in text for form in forms(secret))]


def unpacked(page: bytes) -> Iterable[bytes]:
    """What a report holds compressed."""
    return (
        gzip.decompress(base64.b64decode(found)) for found in re.findall(rb"H4sI[A-Za-z0-9+/=]{40,}", page)
    )


def echo(request: Any) -> str:
    """All that the provider was sent and can give back, in one text."""
    return f"{dict(request.headers)} {request.query} {request.raw.decode()}"


def answering(provider: Any, *known: str) -> None:
    """A provider that says in every place what it was told: texts, arguments, headers, errors."""
    urls = " ".join(CANARY[name] for name in ("urluser", "urlpassword", "urlquery", *known))

    def answer(request: Any) -> Any:
        said = f"{echo(request)} {urls}"
        headers = {"x-request-id": said[:4000], "Set-Cookie": f"k={CANARY['cookie']}", "openai-version": urls}
        body = request.body if isinstance(request.body, dict) else {}
        kind = len(provider.requests) % 4
        if kind == 0:
            error = {"message": f"Incorrect API key provided: {said}", "type": said, "code": said}
            return provider.as_json({"error": error}, 401, headers)
        if kind == 1:
            whole = provider.message(request, said, id=said, model=said)
        elif kind == 2:
            whole = provider.message(request, None, calls=[("getPrice", {"thing": said}, "call_1")])
        else:
            whole = provider.message(request, said, reasoning=said, finish_reason=said)
        assert body is not None
        return type(whole)(whole.parts, whole.status, {**whole.headers, **headers})

    provider.script(answer)


@asynccontextmanager
async def serving(provider: Any, folder: Path, *options: object) -> AsyncIterator[Process]:
    user = f"{CANARY['urluser']}:{CANARY['urlpassword']}@"
    url = provider.url.replace("://", f"://{user}") + f"?code={CANARY['urlquery']}"
    told = ("--provider", url, "--log", folder / "log.db", "--port", 0, "--token-env", "AGENTS_TOKEN")
    async with process(
        "--debug", "serve", *told, "--provider-retries", 0, *options, env=ENVIRONMENT
    ) as running:
        yield running


async def everything_asked(url: str, sessions: Iterable[str]) -> bytes:
    """Requests with every canary, each in its place; gives what came back to those that were refused."""
    refused = b""
    async with aiohttp.ClientSession() as http:
        for session in sessions:
            for turn, (stream, authorization) in enumerate(product((False, True), AUTHORIZATIONS), 1):
                words = {"role": "user", "content": f"[[next-user-turn {turn}]]"}
                body = {"model": "m", "messages": [words], "stream": stream, **FIELDS}
                address = URL(f"{url}/t/{CANARY['agents']}{session}{CHAT}{QUERY}", encoded=True)
                headers = {**HEADERS, "Authorization": authorization}
                async with http.post(address, json=body, headers=headers) as response:
                    await response.read()
        for wrong in ({"x-eval-token": CANARY["control"]}, {"Authorization": f"Bearer {CANARY['provider']}"}):
            async with http.get(URL(f"{url}{CHAT}{QUERY}", encoded=True), headers=wrong) as response:
                refused += repr(response.headers).encode() + await response.read()
    return refused


async def live_data(url: str, log: Path, run: str) -> bytes:
    """All that the live page and a driver are told."""
    found = b""
    ids = [row["id"] for row in rows(log, "SELECT id FROM exchanges ORDER BY arrival")]
    paths = [
        "/eval/run",
        "/eval/sessions/shop.e1",
        "/eval/sessions",
        "/ui/api/sessions",
        "/ui/api/exchanges",
        "/ui/api/errors",
        *(f"/ui/api/session?id={run}%2F{name}" for name in ("shop.e1", "chat.e1")),
        *(f"/ui/api/exchange?id={it}" for it in ids),
        *(f"/ui/api/raw?id={it}" for it in ids),
    ]
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {CANARY['control']}"}) as http:
        for path in paths:
            async with http.get(URL(url + path, encoded=True)) as response:
                found += await response.read()
    assert b"getPrice" in found, "else nothing was told"
    return found


def printed(folder: Path, *arguments: object) -> bytes:
    """A command's output, its errors, and the traceback that `--debug` shows."""
    done = run_in(folder, "--debug", *arguments, env=ENVIRONMENT)
    trace = "".join(traceback.format_exception(*done.exc_info)) if done.exc_info else ""
    return f"{done.output}\n{trace}".encode("utf-8", "backslashreplace")


def every_command(folder: Path, log: Path) -> bytes:
    """What every command says of a log, and what it writes beside it."""
    ids = [row["id"] for row in rows(log, "SELECT id FROM exchanges ORDER BY arrival")]
    commands: list[tuple[object, ...]] = [
        ("score", log, "-v", "--save"),
        *(("score", log, "--format", it) for it in ("json", "csv", "junit")),
        ("report", log, "-o", folder / "report.html"),
        ("export", log, "--format", "openai", "-o", folder / "chats.jsonl"),
        ("export", log, "-o", folder / "results"),
        ("tail", log, "--wide", "--color", "always"),
        ("tail", log, "--format", "json"),
        ("log", "info", log),
        ("log", "runs", "list", log),
        ("log", "merge", log, "-o", folder / "merged.db"),
        *(("log", "show", log, it, "--full", "--raw", "--format", "json") for it in ids),
        *(("log", "show", log, it) for it in ids[:1]),
    ]
    return b"\n".join(printed(folder, *command) for command in commands)


def written(folder: Path) -> bytes:
    """Every byte of every file in the folder, and what pages hold compressed."""
    files = [file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()]
    pages = [part for file in folder.rglob("*.html") for part in unpacked(file.read_bytes())]
    assert pages or not list(folder.rglob("*.html"))
    return b"\n".join([*files, *pages])


SCENES = (scenes.SHOP, scenes.chat("chat"))


@pytest.mark.parametrize("plays", [True, False], ids=["playing", "recording"])
async def test_no_key_is_left_anywhere(provider: Any, tmp_path: Path, plays: bool) -> None:
    answering(provider, *(() if plays else ("provider",)))
    log = tmp_path / "log.db"
    playing = ("--scenarios", scenes.write(tmp_path, *SCENES))
    # Once the agent's own key goes to the provider, once the proxy's in its place.
    options = playing if plays else ("--provider-key-env", "PROVIDER_KEY")
    async with serving(provider, tmp_path, *options) as proxy:
        sessions = ["/s/shop.e1", "/s/chat.e1"] if plays else [""]
        refused = await everything_asked(proxy.url, sessions)
        [run] = [row["id"] for row in rows(log, "SELECT id FROM runs")]
        told = await live_data(proxy.url, log, run)
        assert (tmp_path / "log.db-wal").exists()
        running = written(tmp_path)
        assert await proxy.stop() == 0
    assert len(provider.requests) >= 4, "else the provider gave nothing back"
    assert b"[masked]" in told
    said = every_command(tmp_path, log)
    places = {
        "refusals": refused,
        "the live page": told,
        "files, while it ran": running,
        "the terminal of serve": proxy.said,
        "the terminals of other commands": said,
        "files, afterwards": written(tmp_path),
    }
    assert {place: found for place, text in places.items() if (found := leaks(text))} == {}


def test_no_key_of_a_command_line_or_the_environment_is_left_by_drive(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT, "utf-8")
    agent = shlex.join([sys.executable, "agent.py", "--api-key", CANARY["command"]])
    settings = {"agent": f"env OPENAI_API_KEY={CANARY['assignment']} {agent}", "scenarios": ["bundled"]}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (tmp_path / "settings.toml").write_text("\n".join(["[drive]", *lines]) + "\n", "utf-8")
    said = printed(
        tmp_path,
        "--config",
        "settings.toml",
        *("drive", "--limit", 1, "--provider", "sim:oracle", "--log", "log.db"),
    )
    (tmp_path / "settings.toml").unlink()
    assert b"environment:" in said or b"no way with" in said, said
    places = {
        "drive": said,
        "other commands": every_command(tmp_path, tmp_path / "log.db"),
        "files": written(tmp_path),
    }
    assert {place: found for place, text in places.items() if (found := leaks(text))} == {}


@pytest.mark.parametrize(
    "url",
    [
        "ftp://{urluser}:{urlpassword}@host/v1?code={urlquery}",
        "http://{urluser}:{urlpassword}@/v1?code={urlquery}",
        "http://{urluser}:{urlpassword}@host:99999/v1?code={urlquery}",
        "http://{urluser}:{urlpassword}@127.0.0.1:9/v1?code={urlquery}",
        "http://{urluser}:{urlpassword}@[broken/v1?code={urlquery}",
    ],
)
def test_a_provider_that_is_of_no_use_is_told_without_its_keys(tmp_path: Path, url: str) -> None:
    words = ("drive", "--agent", "builtin", "--log", "log.db", "--provider", url.format_map(CANARY))
    said = printed(tmp_path, *words)
    assert b"provider" in said
    assert leaks(said + written(tmp_path)) == []
