from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import logs

from proxy.log.answers import DICTIONARY, pack, unpack
from proxy.log.chains import json_text
from proxy.log.database import open_for_writing
from proxy.log.inspect import exchange_document
from proxy.log.merge import merge_logs
from proxy.log.migrations import MIGRATIONS, migrate
from proxy.log.vacuum import vacuum_log
from proxy.log.writer import LogWriter

OLD = b'{"id": "chatcmpl-old"}'
MESSAGES = st.builds(lambda text, times: text * times, st.text(), st.sampled_from([1, 50, 5000]))
ANSWERS = st.builds(lambda data, times: data * times, st.binary(), st.sampled_from([1, 50, 5000]))


def completion(message: dict[str, Any], **layout: Any) -> bytes:
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3141, "completion_tokens": 59, "total_tokens": 3200}
    body = {
        "id": "chatcmpl-8a1f",
        "object": "chat.completion",
        "created": 1_700_000_123,
        "model": "some-model",
    }
    return json.dumps({**body, "choices": [choice], "usage": usage}, **layout).encode()


@given(ANSWERS, MESSAGES)
def test_an_answer_comes_back_byte_for_byte(answer: bytes, message: str) -> None:
    said = json_text({"role": "assistant", "content": message})
    for dictionary in (DICTIONARY + said, DICTIONARY):
        assert unpack(pack(answer, dictionary.encode()), dictionary) == answer
        assert unpack(pack(said.encode() + answer, dictionary.encode()), dictionary) == said.encode() + answer


@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"separators": (",", ":")}], ids=str)
@pytest.mark.parametrize("words", [40, 1200])
def test_an_answer_takes_little_more_than_the_message_that_is_stored_beside_it(
    layout: dict[str, Any], words: int
) -> None:
    message = logs.text_message(" ".join(str(7919 * word % 10007) for word in range(words)))
    answer, dictionary = completion(message, **layout), DICTIONARY + json_text(message)

    assert len(pack(answer, dictionary.encode())) < 200 < len(zlib.compress(answer))


def test_logs_that_are_there_are_read_with_the_dictionary_that_they_were_written_with() -> None:
    assert zlib.adler32(DICTIONARY.encode()) == 0xAD26DFB3  # it stands in every answer: see RFC 1950


def test_no_more_of_an_answer_is_made_than_is_asked_for() -> None:
    packed = pack(b"a" * 10**6, DICTIONARY.encode())

    assert unpack(packed, DICTIONARY, 1000) == b"a" * 1000
    assert unpack(packed, DICTIONARY, 2 * 10**6) == b"a" * 10**6


def test_what_is_damaged_is_not_taken_for_an_answer() -> None:
    packed = pack(OLD, DICTIONARY.encode())
    for data, dictionary in ((packed, DICTIONARY + "{}"), (packed[:-1], DICTIONARY), (b"", DICTIONARY)):
        with pytest.raises(zlib.error):
            unpack(data, dictionary)


def test_answers_of_an_older_log_outlast_its_migration(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, lambda: 1.0, MIGRATIONS[:5])
        connection.execute("INSERT INTO messages VALUES ('m1', '\"one\"')")
        connection.execute(
            """INSERT INTO exchanges (id, seq, arrival, side, method, path, started_at, finish_state, stream,
            request_sha256, request_headers, changes, output_message, raw) VALUES
            ('x1', 1, 1, 'agent', 'POST', '/', 1.0, 'complete', 0, '', '{}', '[]', 'm1', ?)""",
            (zlib.compress(OLD),),
        )

    open_for_writing(path, now=lambda: 2.0).close()

    assert exchange_document(path, "x1")[1] == OLD


def test_answers_outlast_a_vacuum_and_a_merge(tmp_path: Path) -> None:
    path, merged = tmp_path / "log.db", tmp_path / "merged.db"
    message = logs.text_message("It is 3.")
    with LogWriter.open(path) as writer:
        rows = (logs.turn(), logs.start(), logs.finish(message=message, raw=completion(message)))
        writer.commit_blocking(*logs.opened(), *rows)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO messages VALUES ('nobody''s', '{}')")

    assert vacuum_log(path).removed["messages"] == 1
    merge_logs([path], merged, lambda: 1.0)

    assert logs.answer(path) == logs.answer(merged) == completion(message)
