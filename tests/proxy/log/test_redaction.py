from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import logs

from proxy.log.redaction import (
    allowed_headers,
    forms,
    is_maskable,
    key_hash,
    mask,
    mask_bytes,
    scrub,
    scrub_bytes,
    scrub_json,
)
from proxy.log.writer import LogWriter

CANARY = "sk-canary-4f6b2a90c1d84e7f"


def test_only_headers_on_the_list_are_kept() -> None:
    headers = {
        "Authorization": "Bearer x",
        "Cookie": "a=b",
        "Set-Cookie": "a=b",
        "api-key": "k",
        "x-api-key": "k",
        "openai-organization": "org-1",
        "Content-Type": "application/json",
        "X-Stainless-Retry-Count": "1",
        "x-ratelimit-remaining-requests": "9",
        "X-Request-ID": "req_1",
        "Retry-After": "3",
        "x-should-retry": "false",
        "x-eval-session": "ledger_1.e1",
        "OpenAI-Processing-Ms": "12",
        "User-Agent": "agent/1",
    }

    assert allowed_headers(headers) == {
        "content-type": "application/json",
        "x-stainless-retry-count": "1",
        "x-ratelimit-remaining-requests": "9",
        "x-request-id": "req_1",
        "retry-after": "3",
        "x-should-retry": "false",
        "x-eval-session": "ledger_1.e1",
        "openai-processing-ms": "12",
        "user-agent": "agent/1",
    }


def test_repeated_headers_are_joined_and_their_values_scrubbed() -> None:
    pairs = [("User-Agent", "a"), ("user-agent", f"b {CANARY}")]

    assert allowed_headers(pairs) == {"user-agent": "a, b [masked]"}


def test_key_hashes_tell_keys_apart_and_are_twelve_hex_digits() -> None:
    assert re.fullmatch("[0-9a-f]{12}", key_hash(CANARY))
    assert key_hash(CANARY) == key_hash(CANARY)
    assert key_hash(CANARY) != key_hash(CANARY + "0")
    assert re.fullmatch("[0-9a-f]{12}", key_hash("\udcff"))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Incorrect API key provided: sk-proj-AbC-123_xyz.", "Incorrect API key provided: [masked]."),
        ("key sk-abcd****************wxyz is bad", "key [masked] is bad"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [masked]"),
        ("basic dXNlcjpwYXNz", "basic [masked]"),
        ("https://me:pass@host/v1", "https://[masked]@host/v1"),
        (
            "/v1/models?api_key=abc&key=d&token=e&x=1",
            "/v1/models?api_key=[masked]&key=[masked]&token=[masked]&x=1",
        ),
        ("OPENAI_API_KEY=abc python agent.py", "OPENAI_API_KEY=[masked] python agent.py"),
        ("MY_SECRET=abc TOKEN=def ./agent", "MY_SECRET=[masked] TOKEN=[masked] ./agent"),
        ("agent --api-key abc --auth-token=def -v", "agent --api-key [masked] --auth-token=[masked] -v"),
        ('{"api_key": "abc", "b": 1}', '{"api_key": "[masked]", "b": 1}'),
        ("{'Authorization': 'abc'}", "{'Authorization': '[masked]'}"),
        ("gsk_0123456789abcdefghij", "[masked]"),
    ],
)
def test_what_looks_like_a_secret_is_masked_in_errors_and_urls(text: str, clean: str) -> None:
    assert scrub(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "Bearer sk-eval-ledger_1.e1",
        "key sk-eval-ledger_1.e1 names no session",
        "max_tokens=5 is too few; key=value",
        "agent --max-tokens 5 --token --verbose",
        "risk-assessment-of-everything",
        "https://host/v1?a=1",
        "mail me@host or https://host/@me",
        "the bearer of bad news",
    ],
)
def test_ordinary_text_and_our_own_placeholders_stay(text: str) -> None:
    assert scrub(text) == text


def test_given_secrets_are_masked_whatever_their_shape() -> None:
    assert scrub("a hunter2-secret b", forms(["hunter2-secret"])) == "a [masked] b"
    assert scrub('{"k": "a\\"b\\\\c12345"}', forms(['a"b\\c12345'])) == '{"k": "[masked]"}'


@pytest.mark.parametrize("word", ["unused", "anything", "not-needed", "placeholder", "sk-eval-ledger_1.e1"])
def test_evidence_is_not_changed_for_words_that_people_give_as_keys(word: str) -> None:
    assert not is_maskable(word)
    assert mask(f"about {word} here", forms([word])) == f"about {word} here"


@pytest.mark.parametrize("key", ["QWERTYuiopASDFGHjklzxcvbnmQWERTY", "abcdefghijklmnopqrst"])
def test_a_key_of_letters_alone_is_masked_in_evidence(key: str) -> None:
    assert mask(f"about {key} here", forms([key])) == "about [masked] here"


def test_evidence_loses_the_given_secrets_and_nothing_else() -> None:
    text = f"{CANARY} and sk-other-0123456789abcdef"

    assert mask(text, forms([CANARY])) == "[masked] and sk-other-0123456789abcdef"
    assert mask_bytes(f"\xff{CANARY}".encode("latin-1"), forms([CANARY])) == b"\xff[masked]"


@given(st.binary())
def test_bytes_of_an_error_answer_are_otherwise_left_alone(data: bytes) -> None:
    head = data.replace(b"sk-", b"").replace(b"@", b"").replace(b"=", b"").replace(b'"', b"") + b" "

    assert scrub_bytes(head + CANARY.encode()) == head + b"[masked]"


def test_json_is_scrubbed_at_every_depth_and_not_changed_in_place() -> None:
    value = {"a": [{"api_key": "abc", "url": "http://u:p@h/"}], "max_tokens": 5, "token": "t", "n": None}

    assert scrub_json(value) == {
        "a": [{"api_key": "[masked]", "url": "http://[masked]@h/"}],
        "max_tokens": 5,
        "token": "[masked]",
        "n": None,
    }
    assert value["token"] == "t"


def test_a_canary_key_is_nowhere_in_the_files_of_a_log(tmp_path: Path) -> None:
    log, wal = tmp_path / "log.db", tmp_path / "log.db-wal"
    unknown = "sk-unknown-77d0e1f2a3b4c5d6"
    with LogWriter.open(log) as writer:
        writer.hide(CANARY)
        leaky = {"authorization": f"Bearer {CANARY}", "user-agent": f"agent {CANARY}", "cookie": CANARY}
        writer.commit_blocking(
            *logs.opened(), logs.run("r2", provider=f"http://me:{CANARY}@host/?key={CANARY}")
        )
        writer.commit_blocking(
            logs.start(
                headers=leaky,
                path=f"/v1/chat/completions?api_key={unknown}",
                request_model=CANARY,
                key_hash=key_hash(CANARY),
                messages=[{"role": "user", "content": f"my key is {CANARY}"}],
                body={"tools": [{"note": CANARY}], "api_key": "short", "metadata": {"k": [CANARY, unknown]}},
                changes=(f"dropped {CANARY}",),
            ),
            logs.finish(
                finish_state="provider_error",
                status=401,
                headers=leaky,
                error=f"Incorrect API key provided: {unknown}, {CANARY}",
                error_type=CANARY,
                response_id=CANARY,
                response_model=CANARY,
                message={"role": "assistant", "content": CANARY},
                raw=f'{{"error": "{CANARY} {unknown}"}}'.encode(),
            ),
            logs.step(
                message=logs.call_message((CANARY, CANARY)),
                reason=CANARY,
                calls=(logs.call(0, CANARY, f'"{CANARY}"', CANARY),),
            ),
        )
        files = log.read_bytes() + wal.read_bytes()
        raw = logs.answer(log)

    assert b"key is [masked]" in files
    assert raw == b'{"error": "[masked] [masked]"}'
    for data in (files, log.read_bytes(), raw):
        assert CANARY.encode() not in data
        assert unknown.encode() not in data
        assert b'"short"' not in data
