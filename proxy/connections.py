"""The connections of agents: none may wait for ever with half a request, and there may not be too many."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Awaitable, Callable

from aiohttp import web

from proxy.limits import Limits

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_OWN_FILES = 64
"""File descriptors for all that is no connection: the log, its readers, the terminal."""

_WAITING = 1024
"""Connections that may wait to be accepted."""


def allow_files() -> None:
    """As many open files as the system lets this process have: the usual 1024 are few connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 20 if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= most:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ValueError, OSError):
        return  # some systems allow less than they say: what there is must do


def _room() -> int:
    """Connections that there are files for, where each may need another one to the provider."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if soft == resource.RLIM_INFINITY else max(1, (soft - _OWN_FILES) // 2)


class Connections:
    """Watches over the connections of a server.

    One is idle but while a request is being served, from its whole head to its answer.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._most = min(limits.connections, _room())
        self._all: dict[asyncio.BaseTransport, _Connection] = {}
        self._idle: dict[_Connection, None] = {}

    async def listen(self, make: Callable[[], asyncio.Protocol], bound: socket.socket) -> asyncio.Server:
        """`make` gives the protocol that speaks HTTP on a connection."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Connection(self, make()), sock=bound, backlog=_WAITING)

    def made(self, connection: _Connection, transport: asyncio.BaseTransport) -> None:
        self._all[transport] = connection
        self._idle[connection] = None
        if len(self._all) > self._most:
            # The first is the one that has been idle for longest; not the new one, if there is another.
            oldest = next(iter(self._idle))
            oldest.close()
            # That it is lost is heard later, and until then more may come.
            self.lost(oldest)

    def lost(self, connection: _Connection) -> None:
        self._idle.pop(connection, None)
        if connection.transport is not None:
            self._all.pop(connection.transport, None)

    async def serve(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answers a request, as a middleware does."""
        connection = None if request.transport is None else self._all.get(request.transport)
        if connection is None:
            return await handler(request)
        self._idle.pop(connection, None)
        connection.begin()
        try:
            return await handler(request)
        finally:
            connection.end()
            if connection.is_open:
                self._idle[connection] = None


class _Connection(asyncio.Protocol):
    """Stands before the protocol that speaks HTTP."""

    def __init__(self, connections: Connections, inner: asyncio.Protocol) -> None:
        self.is_open = False
        self._connections = connections
        self._inner = inner
        self._serving = False
        self.transport: asyncio.BaseTransport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._serving = True
        self._forget_deadline()

    def end(self) -> None:
        self._serving = False

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.is_open, self.transport = True, transport
        self._set_deadline()
        self._inner.connection_made(transport)
        self._connections.made(self, transport)

    def data_received(self, data: bytes) -> None:
        if not self._serving and self._deadline is None:
            self._set_deadline()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._forget_deadline()
        self._connections.lost(self)
        self._inner.connection_lost(exc)

    def _set_deadline(self) -> None:
        self._deadline = asyncio.get_running_loop().call_later(self._connections.limits.head_s, self.close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
