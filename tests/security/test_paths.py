"""A request chooses neither the provider nor a place at it, and no name chooses a file."""

from __future__ import annotations

import asyncio
import json
import posixpath
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from support import logs, scenes
from support.commands import error_line, run
from support.playing import Proxy, prompt, recording

from proxy.log.writer import LogWriter
from tests.proxy.conftest import ScriptedProvider

ELSEWHERE = [
    "GET http://{evil}/v1/models",
    "POST http://{evil}/v1/chat/completions",
    "GET //{evil}/v1/models",
    "GET /v1//{evil}/models",
    "GET /v1/@{evil}/models",
    "GET @{evil}/v1/models",
    "GET /v1/http://{evil}/models",
    "GET /v1/%2f%2f{evil}/models",
    "GET /v1/models?base_url=http://{evil}/v1&host={evil}",
    "GET /v1/models%0d%0aHost:%20{evil}",
    "GET /v1/models#@{evil}",
    "GET /s/{evil}/v1/models",
    "GET /\\{evil}\\models",
    "CONNECT {evil}",
]
TRAVERSALS = [
    "/v1/../admin",
    "/v1/%2e%2e/admin",
    "/v1/models/..%2f..%2fadmin",
    "/v1/%2e%2e%2fadmin",
    "/v1/..%5cadmin",
    "/v1/models/..\\..\\admin",
    "/v1/.%2E/admin",
    "/v1/models/..;/..;/admin",
    "/s/x/v1/..%2fadmin",
]
FORWARDED = {
    "X-Forwarded-Host": "{evil}",
    "X-Forwarded-Proto": "http",
    "Forwarded": "host={evil}",
    "X-Original-URL": "http://{evil}/v1/models",
    "X-Rewrite-URL": "http://{evil}/v1/models",
    "X-Eval-Provider": "http://{evil}/v1",
    "OpenAI-Base-URL": "http://{evil}/v1",
}


@pytest.fixture
async def evil() -> AsyncIterator[ScriptedProvider]:
    scripted = ScriptedProvider()
    await scripted.start()
    yield scripted
    await scripted.stop()


async def sent(proxy: Proxy, line: str, headers: dict[str, str]) -> int:
    """A request as it is, on a connection of its own; gives the status, 0 if there was none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    body = json.dumps({**prompt(1), "base_url": "http://elsewhere.example/v1"})
    given = {"Host": "127.0.0.1", "Connection": "close", "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    writer.write(f"{line} HTTP/1.1\r\n{head}\r\n{body}".encode())
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    return int(answer.split()[1]) if answer else 0


def beyond(provider: Any) -> list[str]:
    """What was asked for at the provider outside of its base URL, however it reads a path."""
    paths = [
        posixpath.normpath(unquote(it.path).replace("\\", "/").replace(";", "")) for it in provider.requests
    ]
    return [path for path in paths if not path.startswith("/v1")]


async def test_no_request_chooses_the_provider(provider: Any, evil: ScriptedProvider, tmp_path: Path) -> None:
    provider.script(lambda request: provider.message(request, "Hello."))
    other = evil.url.removeprefix("http://").removesuffix("/v1")
    async with recording(tmp_path, provider.url) as proxy:
        for line in ELSEWHERE:
            await sent(proxy, line.format(evil=other), {})
        headers = {name: value.format(evil=other) for name, value in FORWARDED.items()}
        assert await sent(proxy, "POST /v1/chat/completions", headers) == 200
    assert evil.requests == []
    assert beyond(provider) == []
    assert {it.headers["Host"] for it in provider.requests} == {provider.url[len("http://") : -len("/v1")]}


@pytest.mark.parametrize("path", TRAVERSALS)
async def test_no_path_leads_out_of_the_providers_base_url(provider: Any, tmp_path: Path, path: str) -> None:
    provider.script(lambda request: provider.message(request, "Hello."))
    async with recording(tmp_path, provider.url) as proxy:
        assert await sent(proxy, f"GET {path}", {}) == 400
    assert provider.requests == []


async def test_where_a_provider_leads_to_is_not_followed(
    provider: Any, evil: ScriptedProvider, tmp_path: Path
) -> None:
    provider.body(b"", status=307, headers={"Location": f"{evil.url}/chat/completions"})
    async with recording(tmp_path, provider.url) as proxy:
        answer = await proxy.send(
            "POST", "/v1/chat/completions", json=prompt(1), allow_redirects=False, headers={"api-key": "x"}
        )
        assert answer.status == 307
    assert evil.requests == []


NAMES = ["../evil", "..", ".", "/etc/evil", "a/b", "a\\b", "a\0b", "~root/x", "a\nb", "%2e%2e", "=1+1"]


@pytest.mark.parametrize("name", NAMES)
def test_a_scenarios_id_is_no_path(tmp_path: Path, name: str) -> None:
    file = scenes.write(tmp_path, {**scenes.SHOP, "id": name})
    assert "id" in error_line(run("scenarios", "list", file), 2)


def played(path: Path, name: str, model: str = "m") -> None:
    """A log, of somebody else's making, of a Session with this name and model."""
    with LogWriter.open(path) as writer:
        said = logs.text_message("Fine.")
        asked = [{"role": "user", "content": "Hello."}]
        writer.commit_blocking(
            *logs.opened(scenario_id=name),
            logs.turn(),
            logs.start("x1", messages=asked, side="provider", reason=None, turn=1, request_model=model),
            logs.finish("x1", message=said, raw=b"{}"),
            *(row for task in (0, 1) for row in (logs.step(task=task, message=said), logs.end(task))),
        )


@pytest.mark.parametrize("model", ["../../evil", "/abs/evil", "..", "a/../../evil", "-rf", "=cmd()"])
def test_the_name_of_a_model_makes_no_folder_elsewhere(tmp_path: Path, model: str) -> None:
    folder = tmp_path / "inner" / "out"
    folder.parent.mkdir()
    played(tmp_path / "log.db", "shop_1", model)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    result = run("export", tmp_path / "log.db", "-o", folder)
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert result.exit_code in (0, 2), result.output
    assert all(path.parent.parent == folder for path in made), made
    assert result.exit_code == 2 or len(made) == 1


@pytest.mark.parametrize("words", [("report", "-o"), ("export", "--format", "openai", "--force", "-o")])
def test_a_link_in_the_place_of_an_output_does_not_lead_to_what_it_points_to(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    played(tmp_path / "log.db", "shop_1")
    precious, link = tmp_path / "precious", tmp_path / "out"
    precious.write_text("precious")
    link.symlink_to(precious)
    run(words[0], tmp_path / "log.db", *words[1:], link)
    assert precious.read_text() == "precious"
