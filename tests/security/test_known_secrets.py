"""What is known to be a key: of the owner for ever, of agents wherever they put it."""

from __future__ import annotations

import base64
import itertools
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from support import logs, scenes
from support.playing import prompt, recording, rows, serving
from support.wires import completion

from proxy.drive.environment import secrets_in
from proxy.journal import Journal, Origin
from proxy.log.answers import OWN_DICTIONARY, unpack
from proxy.log.writer import SECRETS_LIMIT, LogWriter
from proxy.wire.endpoint import Endpoint

OWNERS = "C4nary.owner.7Zq9xW2kLm"


def test_no_number_of_agents_keys_makes_the_owners_forgotten(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with LogWriter.open(log) as writer:
        writer.hide(OWNERS, always=True)
        for number in range(SECRETS_LIMIT + 1):
            writer.hide(f"key-of-an-agent-{number:06}")
        writer.commit_blocking(*logs.opened(), logs.start(messages=[{"role": "user", "content": OWNERS}]))
        assert OWNERS.encode() not in b"".join(it.read_bytes() for it in tmp_path.iterdir())
    assert b"[masked]" in log.read_bytes()


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": OWNERS},
        {"Authorization": f"Token {OWNERS}"},
        {"Proxy-Authorization": f"Basic {OWNERS}"},
        {"X-Auth-Token": OWNERS},
        {"cf-aig-authorization": f"Bearer {OWNERS}"},
        {"Cookie": f"theme=dark; session={OWNERS}"},
    ],
    ids=str,
)
async def test_a_key_in_any_header_is_masked_where_the_model_repeats_it(
    provider: Any, tmp_path: Path, headers: dict[str, str]
) -> None:
    provider.reply(f"Your key is {OWNERS}.")
    async with recording(tmp_path, provider.url) as proxy:
        answer = await proxy.send("POST", "/v1/chat/completions", json=prompt(1), headers=headers)
        assert answer.text == f"Your key is {OWNERS}."
    assert OWNERS.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


KEY = "Zx9/Q7+canary=KEY88/plus77"


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        quote(KEY, safe=""),
        KEY.replace("/", "\\/"),
        "".join(f"\\u{ord(char):04x}" for char in KEY),
    ],
    ids=["as it is", "in an address", "as PHP writes JSON", "all escaped"],
)
async def test_a_key_is_masked_in_an_answer_however_it_is_written(
    provider: Any, tmp_path: Path, written: str
) -> None:
    whole = json.dumps(completion("Your key is KEY.")).replace("KEY", written)
    provider.body(whole.encode())
    async with recording(tmp_path, provider.url) as proxy:
        headers = {"Authorization": f"Bearer {KEY}"}
        await proxy.send("POST", "/v1/chat/completions", json=prompt(1), headers=headers)
    assert not any(form in it for it in stored(proxy.log) for form in (KEY, written))


@pytest.mark.parametrize("played", [False, True])
async def test_a_key_that_a_model_streams_in_pieces_is_not_in_the_bytes_of_its_answer(
    provider: Any, tmp_path: Path, played: bool
) -> None:
    provider.reply(f"Your key is {KEY}.", piece=4)
    files = (scenes.write(tmp_path, scenes.chat("chat", 1)),) if played else ()
    path = "/s/chat/v1/chat/completions" if played else "/v1/chat/completions"
    async with serving(tmp_path, provider.url, environ={}, scenarios=files) as proxy:
        headers = {"Authorization": f"Bearer {KEY}"}
        await proxy.send("POST", path, json=prompt(1, stream=True), headers=headers)
    texts = stored(proxy.log)
    pieces = re.findall(r'"content": "([^"]*)"', "".join(texts))
    assert not any(KEY in it for it in ("".join(pieces), *texts))
    assert any("[masked]: a secret was spelt out in these bytes" in it for it in texts)


async def test_a_key_in_pieces_is_not_kept_where_the_whole_comes_too_or_never(
    provider: Any, tmp_path: Path
) -> None:
    """Responses end with the whole text, and a stream that fails has no message."""
    pieces = [KEY[at : at + 4] for at in range(0, len(KEY), 4)]
    deltas = [{"type": "response.output_text.delta", "delta": it} for it in pieces]
    whole = {"type": "response.output_text.done", "text": KEY}
    provider.stream([*deltas, whole])
    provider.stream([{"choices": [{"index": 0, "delta": {"content": it}}]} for it in pieces] + [provider.CUT])
    async with recording(tmp_path, provider.url) as proxy:
        headers = {"Authorization": f"Bearer {KEY}"}
        await proxy.send("POST", "/v1/responses", json={"input": "hi", "stream": True}, headers=headers)
        with pytest.raises(aiohttp.ClientPayloadError):
            await proxy.send("POST", "/v1/chat/completions", json=prompt(1, stream=True), headers=headers)
    kept = [it for it in stored(proxy.log) if "delta" in it or "masked" in it]
    assert kept == ["[masked]: a secret was spelt out in these bytes; the message is stored without it"] * 2


async def test_an_answer_that_says_masked_is_kept_as_it_came(provider: Any, tmp_path: Path) -> None:
    provider.reply("It is [masked].", piece=3)
    async with recording(tmp_path, provider.url) as proxy:
        headers = {"Authorization": f"Bearer {KEY}"}
        await proxy.send("POST", "/v1/chat/completions", json=prompt(1, stream=True), headers=headers)
    assert any('"delta"' in it for it in stored(proxy.log))


def stored(log: Path) -> list[str]:
    """All texts of a log, answers as received among them."""
    packed = rows(log, f"SELECT raw, {OWN_DICTIONARY} AS dictionary FROM exchanges WHERE raw IS NOT NULL")
    answers = [unpack(row["raw"], row["dictionary"]).decode() for row in packed]
    return [*(row["body"] for row in rows(log, "SELECT body FROM messages")), *answers]


async def test_the_password_of_http_basic_is_a_secret(provider: Any, tmp_path: Path) -> None:
    provider.reply(f"Your password is {OWNERS}.")
    basic = base64.b64encode(f"somebody:{OWNERS}".encode()).decode()
    async with recording(tmp_path, provider.url) as proxy:
        headers = {"Authorization": f"Basic {basic}"}
        await proxy.send("POST", "/v1/chat/completions", json=prompt(1), headers=headers)
    assert not any(OWNERS in it or basic in it for it in stored(proxy.log))


def test_a_user_and_a_password_in_an_address_are_secrets_each() -> None:
    endpoint = Endpoint.parse("https://user-name:p%40ssword-1@host/v1?code=c0de-value")
    assert {"user-name", "p@ssword-1", "user-name:p@ssword-1", "c0de-value"} <= set(endpoint.secrets)


@pytest.mark.parametrize(
    "words",
    [
        ("agent", "--api-key", OWNERS),
        ("agent", "-token", OWNERS),
        ("agent", f"--api-key={OWNERS}"),
        ("env", f"MY_PASSWORD={OWNERS}", "agent"),
    ],
)
def test_what_a_command_says_is_a_key_is_one(words: tuple[str, ...]) -> None:
    assert secrets_in(words, "http://127.0.0.1:1/s/a/v1") == (OWNERS,)


def test_the_proxys_token_in_an_agents_address_is_one_and_other_words_are_none() -> None:
    words = ("agent", "--max-tokens", "100000", "--city", "Berlin-Mitte-10115", "--key")
    assert secrets_in(words, f"http://127.0.0.1:1/t/{OWNERS}/s/a/v1") == (OWNERS,)


async def test_a_key_is_masked_in_its_own_answer_however_many_others_came_meanwhile(tmp_path: Path) -> None:
    ids = map(str, itertools.count())
    with LogWriter.open(tmp_path / "log.db") as writer:
        writer.commit_blocking(logs.run())
        journal = Journal(writer, "r1", lambda: 1.0, lambda: next(ids))

        def asked(key: str) -> str:
            return journal.received("POST", "/v1/chat/completions", {}, b"", {}, key, Origin())

        exchange = asked(OWNERS)
        for number in range(SECRETS_LIMIT + 1):
            asked(f"key-of-an-agent-{number:06}")
        said = {"choices": [{"message": {"role": "assistant", "content": f"Your key is {OWNERS}."}}]}
        await writer.commit(journal.given(exchange, said))
    assert OWNERS.encode() not in b"".join(it.read_bytes() for it in tmp_path.iterdir())


def test_the_key_that_was_not_used_for_longest_is_forgotten_first(tmp_path: Path) -> None:
    keys = [f"key-of-an-agent-{number:06}" for number in range(SECRETS_LIMIT + 1)]
    with LogWriter.open(tmp_path / "log.db") as writer:
        for key in (*keys[:-1], keys[0], keys[-1]):
            writer.hide(key)
        content = " ".join(keys[:3])
        writer.commit_blocking(*logs.opened(), logs.start(messages=[{"role": "user", "content": content}]))
    [(body,)] = logs.query(tmp_path / "log.db", "SELECT body FROM messages")
    assert json.loads(body)["content"] == f"[masked] {keys[1]} [masked]"
