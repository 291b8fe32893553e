"""Who is let in: by which name, from which page, with which token; and what a token never reaches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.playing import Answer, Proxy, playing, prompt, recording, until
from support.watching import LENT, bearer

from proxy.server import StartError, running
from proxy.settings import PlayConfig, Settings

TOKEN = "agents-token-9f2c41d7"
CHAT = "/v1/chat/completions"
ROUTES = [
    ("POST", CHAT),
    ("POST", "/s/shop/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("GET", "/v1/models"),
    ("POST", "/s/shop/mcp"),
    ("OPTIONS", CHAT),
    ("GET", "/healthz"),
    ("POST", "/healthz"),
    ("GET", "/ui"),
    ("GET", "/ui/api/sessions"),
    ("GET", "/eval/run"),
    ("POST", "/eval/sessions"),
    ("GET", "/eval/nothing"),
]

REBOUND = [
    "rebound.example",
    "rebound.example:{port}",
    "127.0.0.1.rebound.example",
    "localhost@rebound.example",
]
NO_HOSTS = [
    "",
    "[broken",
    "localhost.rebound.example",
    "docker.internal",
    "box",
    "host.docker.internal.example",
]
OURS = [
    "127.0.0.1:{port}",
    "127.8.8.8",
    "LOCALHOST:{port}",
    "localhost.",
    "my.localhost:{port}",
    "[::1]:{port}",
    "172.17.0.1:{port}",
    "[fd00::1]:{port}",
    "host.docker.internal:{port}",
    "host.containers.internal",
]

SITES: list[Mapping[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "http://evil.example:8787"},
    {"Origin": "null"},
    {"Origin": "http://[broken"},
    {"Origin": "chrome-extension://abcdef"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
]
PAGES: list[Mapping[str, str]] = [
    {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://127.0.0.1:5173"},
    {"Origin": "https://[::1]"},
    {"Origin": "http://app.localhost:3000", "Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
]


async def asked(proxy: Proxy, method: str, path: str, headers: Mapping[str, str]) -> Answer:
    """As a page can ask without asking first: a text that happens to be JSON."""
    body = None if method == "GET" else json.dumps(prompt(1))
    return await proxy.send(method, path, headers={"Content-Type": "text/plain", **headers}, data=body)


def at(proxy: Proxy, host: str) -> Mapping[str, str]:
    return {"Host": host.format(port=proxy.url.rpartition(":")[2])}


async def check_refused(proxy: Proxy, provider: Any, headers: Mapping[str, str], code: str) -> None:
    for method, path in ROUTES:
        answer = await asked(proxy, method, path, headers)
        assert answer.error["code"] == code, (method, path, headers)
        assert "--allow-host" in answer.error["message"]
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert provider.requests == []
    assert proxy.exchanges() == []


@pytest.mark.parametrize("host", REBOUND)
@pytest.mark.parametrize("plays", [True, False])
async def test_a_name_that_leads_here_by_somebody_elses_dns_is_refused_everywhere(
    provider: Any, tmp_path: Path, host: str, plays: bool
) -> None:
    async with (playing if plays else recording)(tmp_path, provider.url, lent=LENT) as proxy:
        await check_refused(proxy, provider, at(proxy, host), "foreign_host")


@pytest.mark.parametrize("site", SITES, ids=str)
@pytest.mark.parametrize("plays", [True, False])
async def test_a_page_of_another_site_is_refused_everywhere_and_leaves_no_trace(
    provider: Any, tmp_path: Path, site: Mapping[str, str], plays: bool
) -> None:
    async with (playing if plays else recording)(tmp_path, provider.url, lent=LENT) as proxy:
        await check_refused(proxy, provider, site, "foreign_origin")


@pytest.mark.parametrize("host", OURS)
async def test_agents_on_this_machine_and_in_its_containers_are_let_in(
    provider: Any, tmp_path: Path, host: str
) -> None:
    provider.reply("Hello.")
    async with recording(tmp_path, provider.url) as proxy:
        answer = await asked(proxy, "POST", CHAT, at(proxy, host))
        assert (answer.status, answer.text) == (200, "Hello.")


@pytest.mark.parametrize("page", PAGES, ids=str)
async def test_a_page_of_this_machine_is_let_in_and_told_nothing_of_others(
    provider: Any, tmp_path: Path, page: Mapping[str, str]
) -> None:
    provider.reply("Hello.")
    async with recording(tmp_path, provider.url) as proxy:
        answer = await asked(proxy, "POST", CHAT, page)
        assert (answer.status, answer.text) == (200, "Hello.")
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


async def test_a_name_that_is_allowed_may_be_asked_for_and_its_pages_may_ask(
    provider: Any, tmp_path: Path
) -> None:
    async with recording(tmp_path, provider.url, allowed_hosts=("Box.Example",)) as proxy:
        for headers in (
            {"Host": "box.example:80"},
            {"Host": "BOX.example."},
            {"Origin": "https://box.example"},
        ):
            provider.reply("Hello.")
            assert (await asked(proxy, "POST", CHAT, headers)).status == 200, headers
        other = await asked(proxy, "POST", CHAT, {"Host": "box.example", "Origin": "https://other.example"})
        assert other.error["code"] == "foreign_origin"


async def test_the_live_page_can_be_reached_by_a_link(provider: Any, tmp_path: Path) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    async with recording(tmp_path, provider.url, lent=LENT) as proxy:
        assert (await proxy.send("GET", "/ui", headers=link)).status == 200
        assert (await proxy.send("GET", "/v1/models", headers=link)).status == 403
        assert (await proxy.send("POST", "/ui", headers=link)).status == 403


def ways(token: str) -> list[tuple[str, Mapping[str, str]]]:
    """Every way to show a token: what stands before the path, and the headers."""
    return [
        (f"/t/{token}", {}),
        ("", {"X-Eval-Token": token}),
        ("", {"Authorization": f"Bearer {token}"}),
        ("", {"authorization": f"bearer  {token}"}),
        ("", {"api-key": token}),
        ("", {"X-Api-Key": token}),
        (f"/t/{token}", {"x-eval-token": token, "Authorization": f"Bearer {token}"}),
    ]


@pytest.mark.parametrize("way", range(len(ways(TOKEN))))
@pytest.mark.parametrize("plays", [True, False])
async def test_an_agent_with_the_token_is_served_and_the_token_goes_nowhere(
    provider: Any, tmp_path: Path, way: int, plays: bool
) -> None:
    before, headers = ways(TOKEN)[way]
    provider.reply("Hello.")
    said = "[task over]" if plays else "Hello."
    server = (playing if plays else recording)(tmp_path, provider.url, agent_token=TOKEN)
    async with server as proxy:
        session = "/s/shop" if plays else ""
        answer = await proxy.send(
            "POST", f"{before}{session}{CHAT}?api-version=1", json=prompt(1), headers=headers
        )
        assert (answer.status, answer.text) == (200, said)
        [seen] = provider.requests
        assert (seen.path, seen.query) == (CHAT, "api-version=1")
        assert TOKEN not in repr((seen.headers, seen.raw))
        await until(lambda: proxy.exchanges()[0]["delivered_at"] is not None)
        assert proxy.exchanges()[0]["path"] == f"{session}{CHAT}?api-version=1"
    assert TOKEN.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


async def test_an_agents_own_key_goes_to_the_provider_beside_the_token(provider: Any, tmp_path: Path) -> None:
    key = {"Authorization": "Bearer sk-of-the-agent-0001"}
    async with recording(tmp_path, provider.url, agent_token=TOKEN) as proxy:
        for before, headers in ((f"/t/{TOKEN}", key), ("", {"x-eval-token": TOKEN, **key})):
            provider.reply("Hello.")
            await proxy.send("POST", f"{before}{CHAT}", json=prompt(1), headers=headers)
    assert [it.headers["Authorization"] for it in provider.requests] == [key["Authorization"]] * 2


async def test_where_the_token_was_the_key_the_proxy_has_its_own(provider: Any, tmp_path: Path) -> None:
    provider.reply("Hello.")
    environ = {"OPENAI_API_KEY": "sk-of-the-proxy-00001"}
    async with recording(tmp_path, provider.url, agent_token=TOKEN, environ=environ) as proxy:
        await proxy.send("POST", CHAT, json=prompt(1), headers={"Authorization": f"Bearer {TOKEN}"})
    assert provider.requests[0].headers["Authorization"] == "Bearer sk-of-the-proxy-00001"


WRONG = ["", "x", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "schlüssel"]


@pytest.mark.parametrize("token", WRONG)
async def test_without_the_token_no_agent_is_served_and_nothing_is_written(
    provider: Any, tmp_path: Path, token: str
) -> None:
    async with playing(tmp_path, provider.url, lent=LENT, agent_token=TOKEN) as proxy:
        for before, headers in [
            ("", {}),
            *ways(token)[1:5],
            (f"/t/{quote(token)}", {}),
            (f"/t/{quote(token)}/t/{TOKEN}", {}),
        ]:
            for method, path in [*ROUTES[:6], ("POST", "/healthz"), ("GET", "/eval/nothing")]:
                answer = await asked(proxy, method, f"{before}{path}", headers)
                assert (answer.status, answer.error["code"]) == (401, "no_token"), (before, path, headers)
                assert TOKEN not in answer.raw.decode()
        assert provider.requests == []
        assert proxy.exchanges() == []
        assert (await proxy.send("GET", "/healthz")).status == 200


async def test_neither_token_opens_what_is_the_others(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, lent=LENT, agent_token=TOKEN) as proxy:
        agents = {"Authorization": f"Bearer {TOKEN}", "x-eval-token": TOKEN}
        for path in ("/eval/run", "/ui/api/sessions", f"/t/{TOKEN}/eval/run"):
            assert (await proxy.send("GET", path, headers=agents)).status in (401, 404), path
        assert (await proxy.send("POST", CHAT, json=prompt(1), headers=bearer(proxy))).status == 401


async def test_a_driver_is_told_addresses_that_have_the_token_in_them(provider: Any, tmp_path: Path) -> None:
    config = PlayConfig(tools="mcp", agent_tools="keep")
    async with playing(tmp_path, provider.url, agent_token=TOKEN, play=config) as proxy:
        opened = await proxy.control("POST", "/sessions", json={"scenario": "shop"})
        assert opened.json["url"] == f"/t/{TOKEN}/s/shop.e1/attempt/1/v1"
        assert opened.json["mcp_url"] == f"/t/{TOKEN}/s/shop.e1/attempt/1/mcp"


async def test_a_stream_breaks_off_for_the_provider_when_an_agent_with_a_token_leaves(
    provider: Any, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    provider.stream([{"choices": [{"index": 0, "delta": {"content": "Hel"}}]}, gate])
    async with recording(tmp_path, provider.url, agent_token=TOKEN) as proxy:
        asking = proxy.http.post(f"{proxy.url}/t/{TOKEN}{CHAT}", json=prompt(1, stream=True))
        async with asking as response:
            await response.content.readany()
            response.close()
        async with asyncio.timeout(30):
            await provider.disconnected.wait()
        assert (await proxy.finished(1))[0]["finish_state"] == "client_abort"


async def test_where_a_proxy_has_no_token_one_in_the_path_is_taken_off_all_the_same(
    provider: Any, tmp_path: Path
) -> None:
    provider.reply("Hello.")
    async with recording(tmp_path, provider.url) as proxy:
        answer = await proxy.send(
            "POST", f"/t/{TOKEN}{CHAT}", json=prompt(1), headers={"x-eval-token": TOKEN}
        )
        assert answer.status == 200
        assert proxy.exchanges()[0]["path"] == CHAT
    assert provider.requests[0].path == CHAT


def told(folder: Path, **settings: Any) -> Settings:
    return replace(Settings(log=folder / "log.db", provider="sim:oracle", scenarios=("bundled",)), **settings)


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"host": "0.0.0.0"}, "--token-env NAME"),
    ({"host": "::"}, "--token-env NAME"),
    ({"agent_token": "short"}, "fewer than 16 characters"),
    ({"agent_token": "with a blank in it"}, "letters, digits and . _ ~ -"),
    ({"agent_token": "with/a/slash/in/it"}, "letters, digits and . _ ~ -"),
    ({"agent_token": TOKEN, "token": TOKEN}, "choose another"),
    ({"host": "0.0.0.0", "agent_token": TOKEN, "token": "k3y"}, "EVAL_TOKEN has fewer than 16"),
]


@pytest.mark.parametrize("settings, reason", REFUSALS, ids=str)
async def test_a_proxy_that_would_keep_nobody_out_does_not_start(
    tmp_path: Path, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(StartError) as refused:
        async with running(told(tmp_path, **settings), environ={}):
            pass
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not [value for name, value in settings.items() if "token" in name and value in str(refused.value)]
    assert list(tmp_path.iterdir()) == []
