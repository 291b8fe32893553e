"""HTTP/1.1 in bytes, for both ends of a probe: libraries hide much of what a proxy must pass on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")
Headers = list[tuple[str, str]]

MAX_HEAD = 2**20
"""Bytes that a stream reader holds: the head of a message must fit."""
_PIECE = 2**20


class Failed(Exception):
    """A probe did not see what it wanted; one line."""


class Broken(ConnectionError):
    """A message ended before its framing said so."""


async def within(limit: float, awaitable: Awaitable[T], what: str) -> T:
    """What `awaitable` gives. Raises Failed if it takes more than `limit` seconds."""
    try:
        async with asyncio.timeout(limit):
            return await awaitable
    except TimeoutError:
        raise Failed(f"waited {limit:g} s for {what}") from None


def values(headers: Iterable[tuple[str, str]], name: str) -> list[str]:
    """The values of every header called `name` (in any case), in their order."""
    return [value for key, value in headers if key.lower() == name.lower()]


def value(headers: Iterable[tuple[str, str]], name: str) -> str | None:
    """The headers called `name` as one, None if there is none."""
    found = values(headers, name)
    return ", ".join(found) if found else None


async def read_head(reader: asyncio.StreamReader) -> tuple[str, Headers]:
    """The first line and the headers of a message. Raises Broken at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as exc:
        raise Broken("the connection ended without an answer") from exc
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, [(name, text.strip()) for name, _, text in pairs]


def head(first: str, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [first, *(f"{name}: {text}" for name, text in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def read_body(
    reader: asyncio.StreamReader, headers: Headers, *, to_the_end: bool
) -> AsyncIterator[bytes]:
    """The body in the pieces it comes in; `to_the_end` is for answers, which may have no length."""
    if "chunked" in (value(headers, "Transfer-Encoding") or "").lower():
        while size := await _chunk_size(reader):
            async for piece in _exactly(reader, size):
                yield piece
            await _line(reader)
        while await _line(reader):
            pass
    elif (length := value(headers, "Content-Length")) is not None:
        async for piece in _exactly(reader, int(length)):
            yield piece
    elif to_the_end:
        while piece := await reader.read(_PIECE):
            yield piece


async def _chunk_size(reader: asyncio.StreamReader) -> int:
    return int((await _line(reader)).partition(b";")[0], 16)


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise Broken("the body broke off")
    return line.strip()


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size:
        piece = await reader.read(min(size, _PIECE))
        if not piece:
            raise Broken("the body broke off")
        size -= len(piece)
        yield piece
