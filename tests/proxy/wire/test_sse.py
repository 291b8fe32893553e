from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.sse import Event, SSEDecoder

AWKWARD = (
    b"\xef\xbb\xbf: hello\r\n"
    b"data: one\r\ndata: more\r\n\r\n"
    b"event: error\rdata: two\rdata:  three\r\r"
    b":keep-alive\n\n"
    b"id: 7\ndata\n\n"
    b"retry: 5\nunknown: x\n"
    b"data: line \xe2\x80\xa8 para \xe2\x80\xa9 nel \xc2\x85 \x0b\x0c\x1c\xe4\xbd\xa0\n\n"
    b"data: [DONE]\n"
)
AWKWARD_EVENTS = [
    Event("one\nmore"),
    Event("two\n three", "error"),
    Event("", id="7"),
    Event("line \u2028 para \u2029 nel \u0085 \x0b\x0c\x1c你", id="7"),
    Event("[DONE]", id="7"),
]


def decode(pieces: list[bytes]) -> tuple[list[Event], list[str]]:
    decoder = SSEDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.flush(), decoder.comments


def test_lines_end_at_cr_lf_and_crlf_only_and_data_lines_are_joined():
    assert decode([AWKWARD]) == (AWKWARD_EVENTS, ["hello", "keep-alive"])


def test_every_split_in_three_gives_the_same_events():
    for first in range(len(AWKWARD) + 1):
        for second in range(first, len(AWKWARD) + 1):
            pieces = [AWKWARD[:first], AWKWARD[first:second], AWKWARD[second:]]
            assert decode(pieces) == (AWKWARD_EVENTS, ["hello", "keep-alive"])


@given(
    st.lists(
        st.sampled_from(
            [b"data: a", b"data:", b"event: e", b"id: 1", b": c", b"\r", b"\n", b"\r\n", b"\xef", b"\xbb"]
        )
    ).map(b"".join),
    st.data(),
)
def test_any_bytes_cut_anywhere_give_the_same_events(stream: bytes, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(pieces) == decode([stream])


def test_an_event_comes_with_the_byte_that_ends_it():
    decoder = SSEDecoder()
    assert decoder.feed(b"data: a\r\n\r") == [Event("a")]
    assert decoder.feed(b"\ndata: b\n") == []
    assert decoder.feed(b"\n") == [Event("b")]


def test_a_line_of_400_kilobytes_in_small_pieces_is_one_event():
    text = "x" * 400_000
    wire = f"data: {text}\n\n".encode()
    pieces = [wire[at : at + 1000] for at in range(0, len(wire), 1000)]
    assert decode(pieces) == ([Event(text)], [])


def test_bytes_that_are_not_utf8_become_replacement_characters():
    assert decode([b"data: a\xffb\n\n"]) == ([Event("a\ufffdb")], [])


def test_an_event_without_data_is_none_and_its_name_does_not_stick():
    assert decode([b"event: ping\n\ndata: x\n\n"]) == ([Event("x")], [])


def test_an_id_with_nul_is_ignored():
    assert decode([b"id: a\0b\ndata: x\n\n"]) == ([Event("x")], [])
