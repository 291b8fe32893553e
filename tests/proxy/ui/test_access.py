"""Who may look at the live page, and what browsers may do with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.playing import Proxy, playing, recording, until
from support.watching import LENT, asked, bearer, data, watching

PUBLIC = ["/ui", "/ui/", "/ui/assets/ui.js", "/ui/assets/ui.css"]
DATA = [
    "/ui/api/events",
    "/ui/api/events?run=nothing",
    "/ui/api/sessions",
    "/ui/api/session?id=nothing",
    "/ui/api/exchanges",
    "/ui/api/exchange?id=nothing",
    "/ui/api/errors",
    "/ui/api/raw?id=nothing",
    "/ui/api/words",
]
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "data:",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
}
SECRET = "the-observation-that-nobody-may-see"
WORDS = (SECRET, "argument-of-the-reference", "getPrice")


def spy() -> scenes.Record:
    nodes = [scenes.call("getPrice", {"thing": "argument-of-the-reference"}, SECRET), scenes.close(SECRET, 0)]
    return scenes.record("spy", ("Words of the user.", nodes), ("More words.", nodes))


@pytest.mark.parametrize("given", [None, "Bearer wrong", "Bearer ", "Bearer schlüssel"])
async def test_without_the_token_no_data_is_given(provider: Any, tmp_path: Path, given: str | None) -> None:
    async with playing(tmp_path, provider.url, lent=LENT) as proxy:
        for path in DATA:
            answer = await proxy.send("GET", path, headers={} if given is None else {"Authorization": given})
            assert (answer.status, answer.error["type"]) == (401, "authentication_error"), path
            assert "paste the token" in answer.error["message"]
            assert proxy.token not in answer.raw.decode()


async def test_the_token_is_taken_from_no_other_place(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, lent=LENT) as proxy:
        answer = await proxy.send("GET", f"/ui/api/sessions?token={proxy.token}")
        assert answer.status == 401
        answer = await proxy.send("GET", "/ui/api/sessions", headers={"Cookie": f"token={proxy.token}"})
        assert answer.status == 401


async def test_no_word_of_a_reference_is_given_without_the_token(provider: Any, tmp_path: Path) -> None:
    provider.reply("No idea.")
    provider.fail(400)
    async with playing(tmp_path, provider.url, spy(), lent=LENT) as proxy:
        await proxy.chat("spy", 1)
        await proxy.chat("spy", 2)
        rows = await data(proxy, "sessions")
        session, exchange = rows["sessions"][0]["id"], proxy.exchanges("provider")[0]["id"]
        owners = (await asked(proxy, "session", id=session)).raw.decode()
        assert all(word in owners for word in WORDS), "else there would be nothing to give away"
        paths = [*PUBLIC, *DATA, f"/ui/api/session?id={session}", f"/ui/api/exchange?id={exchange}"]
        for path in [*paths, f"/ui/api/raw?id={exchange}", "/ui/nothing", "/eval/run"]:
            answer = await proxy.send("GET", path)
            told = json.dumps(dict(answer.headers)) + answer.raw.decode()
            assert not [word for word in (*WORDS, proxy.token) if word in told], path


async def test_the_reference_of_a_task_is_told_when_that_is_over(provider: Any, tmp_path: Path) -> None:
    provider.reply("No idea.")
    held = provider.hang("No idea.")
    async with playing(tmp_path, provider.url, spy(), lent=LENT) as proxy:
        await proxy.chat("spy", 1)
        await proxy.control("POST", "/sessions/spy.e1/turns")
        [row] = (await data(proxy, "sessions"))["sessions"]
        first, second = (await data(proxy, "session", id=row["id"]))["tasks"]
        assert [node["name"] for node in first["reference"]["nodes"]] == ["getPrice", "prepare_to_answer"]
        assert (second["user"], second["reference"], second["verdicts"]) == ("More words.", None, {})
        held.set()


async def test_every_answer_tells_the_browser_to_trust_nothing(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, lent=LENT) as proxy:
        for path in [*PUBLIC, "/ui/nothing", "/ui/api/sessions", "/ui/api/session?id=x"]:
            headers = (await proxy.send("GET", path, headers=bearer(proxy))).headers
            policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
            assert policy == POLICY, path
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cache-Control"] == ("no-cache" if path in PUBLIC else "no-store")


async def test_the_page_holds_no_script_and_no_style_of_its_own(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, lent=LENT) as proxy:
        page = await proxy.send("GET", "/ui")
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        text = page.raw.decode()
        assert "<style" not in text
        assert " style=" not in text
        assert "></script>" in text
        script = await proxy.send("GET", "/ui/assets/ui.js")
        assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in script.raw.decode()


async def test_an_asset_that_the_browser_has_is_not_sent_again(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, lent=LENT) as proxy:
        etag = (await proxy.send("GET", "/ui/assets/ui.js")).headers["ETag"]
        again = await proxy.send("GET", "/ui/assets/ui.js", headers={"If-None-Match": etag})
        assert (again.status, again.raw) == (304, b"")


HOSTS = {
    "127.0.0.1:{port}": 200,
    "localhost:{port}": 200,
    "LOCALHOST": 200,
    "[::1]:{port}": 200,
    "rebound.example": 421,
    "rebound.example:{port}": 421,
    "127.0.0.1.rebound.example": 421,
    "localhost@rebound.example": 421,
    "[broken": 421,
    "": 421,
}


async def test_only_names_of_this_machine_are_served(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url, lent=LENT) as proxy:
        for name, status in HOSTS.items():
            host = {"Host": name.format(port=proxy.url.rpartition(":")[2])}
            for path in ("/ui", "/ui/api/sessions", "/eval/run"):
                answer = await proxy.send("GET", path, headers={**bearer(proxy), **host})
                assert answer.status == status, (name, path)


async def test_a_proxy_that_others_can_reach_is_asked_by_any_name(provider: Any, tmp_path: Path) -> None:
    async with playing(
        tmp_path, provider.url, lent=LENT, host="0.0.0.0", agent_token="token-of-the-agents"
    ) as proxy:
        proxy = Proxy(
            proxy.url.replace("0.0.0.0", "127.0.0.1"), proxy.token, proxy.run_id, proxy.log, proxy.http
        )
        answer = await proxy.send("GET", "/ui/api/sessions", headers={**bearer(proxy), "Host": "box.example"})
        assert answer.status == 200


async def test_what_the_page_does_not_have_never_reaches_the_provider(provider: Any, tmp_path: Path) -> None:
    async with recording(tmp_path, provider.url, lent=LENT) as proxy:
        for method, path in [
            ("POST", "/ui/api/sessions"),
            ("GET", "/ui/api/nothing"),
            ("GET", "/ui/assets/../start.js"),
            ("GET", "/ui/assets/start.js"),
            ("PUT", "/ui"),
            ("GET", "/ui/v1/models"),
        ]:
            answer = await proxy.send(method, path, headers=bearer(proxy))
            assert answer.status == 404, path
    assert provider.requests == []


async def test_without_a_look_there_is_no_page(provider: Any, tmp_path: Path) -> None:
    async with recording(tmp_path, provider.url) as proxy:
        for path in ("/ui", "/ui/", "/ui/api/sessions"):
            assert (await proxy.send("GET", path, headers=bearer(proxy))).status == 404
    assert provider.requests == []


async def test_looking_writes_nothing(provider: Any, tmp_path: Path) -> None:
    provider.reply("Fine.")
    async with playing(tmp_path, provider.url, scenes.chat("chat"), lent=LENT) as proxy:
        await proxy.chat("chat", 1)
        await until(lambda: proxy.exchanges()[0]["delivered_at"] is not None)
        before = proxy.rows("SELECT value FROM meta WHERE key = 'seq'")
        async with watching(proxy) as board:
            await board.once(lambda it: it.session("chat.e1"))
            for path in PUBLIC:
                await proxy.send("GET", path)
            await data(proxy, "session", id=board.session("chat.e1")["id"])
        assert proxy.rows("SELECT value FROM meta WHERE key = 'seq'") == before
        assert len(proxy.exchanges()) == 1


async def test_more_pages_than_are_served_are_told_so(
    provider: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.ui.routes.MAX_PAGES", 1)
    async with playing(tmp_path, provider.url, lent=LENT) as proxy, watching(proxy) as board:
        await board.once(lambda it: True)
        refused = await asked(proxy, "events")
        assert (refused.status, refused.error["code"]) == (503, "too_many")
