"""What an agent gets, and the log says, of a provider that breaks HTTP, JSON or all bounds."""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.wires import (
    CUT,
    FULL,
    HUNG,
    MODES,
    Endless,
    Mode,
    Part,
    Told,
    answer,
    chunked,
    completion,
    delta,
    fronted,
    json_answer,
    piece,
    saying,
    told_text,
    traced,
)

from proxy.limits import MB, Limits

WHOLE = json.dumps(completion("Whole.")).encode()
HTML = b"<html>busy</html>"
LIMIT = 1 * MB
SIZE, PIECES, LINE = 10 * 1024 * MB, 100_000, 50 * MB
"""A bomb, pieces of a stream, the longest line of one: in full, and as often as not."""
if not FULL:
    SIZE, PIECES, LINE = 64 * MB, 4_000, 1 * MB


@dataclass(frozen=True)
class Fault:
    """What a provider says, and what comes of it.

    `played` is the error code that the agent gets in a Session, None where it gets an answer. `recorded` is
    what it gets where its traffic is only recorded: a status and the bytes that pass, `broken` if the
    connection ends before the answer, an error code if there is none. `logged` is (finish_state, error_type).
    """

    said: tuple[Part, ...]
    played: str | None
    recorded: tuple[int, bytes] | str
    logged: tuple[str, str | None]
    stream: bool = False
    text: str = "Whole."


OK = ("complete", None)
NOT_JSON = ("provider_error", "not_json")
NOT_HTTP = ("provider_error", "protocol_error")
LOST = ("provider_abort", "connection_lost")
SILENT = ("provider_abort", "read_timeout")
LONG = ("provider_error", "answer_too_long")

BAD_UTF8 = WHOLE.replace(b"Whole.", b"\xff\xfe.")
NUL = WHOLE.replace(b"Whole.", b"\x00")
FAULTS = {
    "JSON that ends in the middle": Fault((answer(b'{"id": '),), "not_json", (200, b'{"id": '), NOT_JSON),
    "HTML": Fault((answer(HTML, kind="text/html"),), "not_json", (200, HTML), NOT_JSON),
    "HTML where a stream was asked for": Fault(
        (answer(HTML, kind="text/html"),),
        "stream_ended_early",
        (200, HTML),
        ("provider_abort", "stream_ended_early"),
        True,
    ),
    "nothing": Fault((answer(b""),), "not_json", (200, b""), NOT_JSON),
    "a list": Fault((answer(b"[]"),), "not_an_object", (200, b"[]"), ("provider_error", "not_an_object")),
    "bytes that are not UTF-8": Fault((answer(BAD_UTF8),), "not_json", (200, BAD_UTF8), NOT_JSON),
    "a NUL byte": Fault((answer(NUL),), "not_json", (200, NUL), NOT_JSON),
    "an escaped NUL": Fault(
        (json_answer("a\0b"),), None, (200, json.dumps(completion("a\0b")).encode()), OK, text="a\0b"
    ),
    "a header without a colon": Fault(
        (b"HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 2\r\n\r\n{}",),
        "protocol_error",
        "protocol_error",
        NOT_HTTP,
    ),
    "a header with a NUL": Fault(
        (b"HTTP/1.1 200 OK\r\nX-Odd: a\0b\r\nContent-Length: 2\r\n\r\n{}",),
        "protocol_error",
        "protocol_error",
        NOT_HTTP,
    ),
    "two lengths": Fault(
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",),
        "protocol_error",
        "protocol_error",
        NOT_HTTP,
    ),
    "a header of 100 KB": Fault(
        (answer(WHOLE, X_Long="x" * 100_000),), "protocol_error", "protocol_error", NOT_HTTP
    ),
    "early hints first": Fault(
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 3 + answer(WHOLE),), None, (200, WHOLE), OK
    ),
    "fewer bytes than promised": Fault(
        (answer(WHOLE, length=len(WHOLE) + 9), CUT), "connection_lost", "broken", LOST
    ),
    "more bytes than promised": Fault(
        (answer(WHOLE, length=20),), "protocol_error", "protocol_error", NOT_HTTP
    ),
    "garbage behind the answer": Fault(
        (answer(WHOLE) + b"}}garbage\r\n\r\n",), "protocol_error", "protocol_error", NOT_HTTP
    ),
    "two answers at once": Fault((answer(WHOLE) + json_answer("Somebody else's."),), None, (200, WHOLE), OK),
    "half a piece, then the end": Fault(
        (chunked() + b"1000\r\ndata: {", CUT), "connection_lost", "broken", LOST, True
    ),
    "half a piece, then nothing": Fault(
        (chunked() + b"1000\r\ndata: {", HUNG), "read_timeout", "broken", SILENT, True
    ),
    "nothing behind the head": Fault((chunked(), HUNG), "read_timeout", "broken", SILENT, True),
    "no answer at all": Fault((HUNG,), "read_timeout", "read_timeout", SILENT),
    "a stream that stalls": Fault(
        (chunked() + piece(delta("Hel")), HUNG), "read_timeout", "broken", SILENT, True
    ),
    "a piece without a size": Fault(
        (chunked() + b"zz\r\n",), "protocol_error", "protocol_error", NOT_HTTP, True
    ),
    "a stream without end": Fault(
        (chunked(), Endless(piece(delta("x" * 1000)))), "answer_too_long", "broken", LONG, True
    ),
    "a stream of comments without end": Fault(
        (chunked(), Endless(piece(b": wait\n" * 1000))), "answer_too_long", "broken", LONG, True
    ),
    "one line without end": Fault(
        (chunked(), Endless(piece(b"x" * 9000))), "answer_too_long", "broken", LONG, True
    ),
    "blanks without end": Fault(
        (chunked(kind="application/json"), Endless(piece(b" " * 9000))), "answer_too_long", "broken", LONG
    ),
    "an answer of more than the limit": Fault(
        (json_answer("x" * 2 * LIMIT),), "answer_too_long", "broken", LONG
    ),
    "a coding that is not known": Fault(
        (answer(WHOLE, Content_Encoding="gzip"),), "protocol_error", "broken", NOT_HTTP
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_of_the_provider_is_told_logged_and_over(name: str, mode: Mode, tmp_path: Path) -> None:
    fault = FAULTS[name]
    limits = Limits(answer=LIMIT, silence_s=0.5)
    async with saying(fault.said) as wire, fronted(mode, tmp_path, wire.url, limits=limits) as front:
        told = await front.ask(stream=fault.stream)
        [row] = await front.rows()
        assert (row["finish_state"], row["error_type"]) == fault.logged
        if mode == "play":
            _check_played(told, fault)
        else:
            _check_recorded(told, fault)
        after = await front.ask(2 if fault.played is None else 1)
        assert (after.status, after.text, after.broken) == (200, "Hi.", False)
        last = (await front.rows(2))[-1]
        assert (last["finish_state"], last["status"]) == ("complete", 200)


def _check_played(told: Told, fault: Fault) -> None:
    if fault.played is None:
        assert (told.status, told.text, told.broken) == (200, fault.text, False)
    else:
        assert (told.status, told.error["code"], told.broken) == (502, fault.played, False)


def _check_recorded(told: Told, fault: Fault) -> None:
    if fault.recorded == "broken":
        assert (told.status, told.broken) == (200, True)
    elif isinstance(fault.recorded, str):
        assert (told.status, told.error["code"], told.broken) == (502, fault.recorded, False)
    else:
        assert (told.status, told.raw, told.broken) == (*fault.recorded, False)


def bomb(size: int) -> bytes:
    """A thousandth of `size`, which gzip makes `size` zeros of."""
    packer = zlib.compressobj(wbits=31)
    zeros = b"\0" * MB
    return b"".join(packer.compress(zeros) for _ in range(size // MB)) + packer.flush()


@pytest.mark.parametrize("mode", MODES)
async def test_a_compressed_bomb_is_broken_off_before_it_takes_room(mode: Mode, tmp_path: Path) -> None:
    said = answer(bomb(SIZE), Content_Encoding="gzip")
    limits = Limits(answer=LIMIT)
    async with saying(said) as wire, fronted(mode, tmp_path, wire.url, limits=limits) as front:
        with traced() as peak:
            told = await front.ask()
        assert peak() < 16 * MB
        [row] = await front.rows()
        assert (row["finish_state"], row["error_type"]) == LONG
        assert told.broken if mode == "record" else told.error["code"] == "answer_too_long"
        assert (await front.ask()).text == "Hi."


@pytest.mark.parametrize("mode", MODES)
async def test_a_stream_without_end_takes_no_more_room_than_an_answer_may(mode: Mode, tmp_path: Path) -> None:
    said = (chunked(), Endless(piece(delta("x" * 1000) * 50)))
    limits = Limits(answer=LIMIT)
    async with saying(said) as wire, fronted(mode, tmp_path, wire.url, limits=limits) as front:
        with traced() as peak:
            await front.ask(stream=True)
        assert peak() < 24 * MB
        assert (await front.ask()).text == "Hi."


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("coding", ["br", "zstd"])
async def test_what_cannot_be_decompressed_here_is_not_passed_off_as_an_answer(
    mode: Mode, coding: str, tmp_path: Path
) -> None:
    said = answer(b"\x1b\x00\xf8\xff" * 100, Content_Encoding=coding)
    async with saying(said) as wire, fronted(mode, tmp_path, wire.url) as front:
        told = await front.ask()
        assert told.broken or told.error["code"] == "protocol_error"
        [row] = await front.rows()
        assert (row["finish_state"], row["error_type"]) == NOT_HTTP
        assert (await front.ask()).text == "Hi."


@pytest.mark.parametrize("mode", MODES)
async def test_a_stream_of_very_many_pieces_arrives_whole(mode: Mode, tmp_path: Path) -> None:
    pieces = [delta(f"{number} ") for number in range(PIECES)]
    said = (chunked(), *map(piece, [*pieces, delta("", "stop"), b"data: [DONE]\n\n"]), piece(b""))
    async with saying(said) as wire, fronted(mode, tmp_path, wire.url) as front:
        told = await front.ask(stream=True)
        assert not told.broken
        assert told_text(told.raw) == "".join(f"{number} " for number in range(PIECES))
        [row] = await front.rows()
        assert (row["finish_state"], row["status"]) == ("complete", 200)


@pytest.mark.parametrize("mode", MODES)
async def test_a_line_of_megabytes_in_a_stream_arrives_whole(mode: Mode, tmp_path: Path) -> None:
    text = "long " * (LINE // 5)
    said = (chunked(), piece(delta(text)), piece(delta("", "stop")), piece(b"data: [DONE]\n\n"), piece(b""))
    async with saying(said) as wire, fronted(mode, tmp_path, wire.url) as front:
        assert told_text((await front.ask(stream=True)).raw) == text
        assert (await front.rows())[0]["finish_state"] == "complete"


@pytest.mark.parametrize("mode", MODES)
async def test_a_redirect_is_not_followed(mode: Mode, tmp_path: Path) -> None:
    said = answer(
        b"moved", status="307 Temporary Redirect", kind="text/plain", Location="http://127.0.0.1:1/v1"
    )
    async with saying(said) as wire, fronted(mode, tmp_path, wire.url) as front:
        if mode == "record":
            async with front.proxy.http.post(front.url, json={}, allow_redirects=False) as response:
                assert (response.status, response.headers["Location"]) == (307, "http://127.0.0.1:1/v1")
        else:
            told = await front.ask()
            assert (told.status, told.error["code"]) == (502, "307")
            assert "use the address it leads to" in told.error["message"]
        [row] = await front.rows()
        assert (row["finish_state"], row["error_type"], row["status"]) == ("provider_error", "307", 307)
        assert wire.served == 1


async def test_two_answers_under_way_at_once_are_not_mixed_up(tmp_path: Path) -> None:
    """One breaks off while the other is still being read."""
    broken = (chunked(), *(piece(delta("a")) for _ in range(50)), CUT)
    whole = (chunked(), *(piece(delta("b")) for _ in range(50)), piece(delta("", "stop")), piece(b""))
    async with saying(broken, whole) as wire, fronted("record", tmp_path, wire.url) as front:
        told = await asyncio.gather(front.ask(stream=True), front.ask(stream=True))
        assert {(it.broken, told_text(it.raw)) for it in told} == {(True, "a" * 50), (False, "b" * 50)}
        ends = {(row["finish_state"], row["error_type"]) for row in await front.rows(2)}
        assert ends == {LOST, OK}
