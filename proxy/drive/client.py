"""The driver's side of the proxy's control API."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from proxy.drive.agent import Delivery
from proxy.drive.states import Opened, RunInfo, ScenarioInfo, SessionState, Turn, delivery_of, session_state

TIMEOUT_S = 60.0
"""For one control request. None of them waits for the LLM, but opening a turn may have to
wait until the proxy has given up the one before (`Settings.abandon_after`)."""
POLL_S = 20.0
"""How long one request waits at the proxy for a turn to be answered."""
GRACE_S = 5.0
"""How long an agent whose request failed or was refused may take to ask again."""
PAUSE_S = 0.2
"""Between such requests to a proxy that answers them without waiting."""


class ControlError(Exception):
    """The proxy did not do what it was asked. One line. `status` is None without an HTTP answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ProxyLost(ControlError):
    """No further request can succeed: the proxy is not there, or does not accept the token."""


class ControlClient:
    """Asks the proxy at `base_url` (`http://HOST:PORT`) to open Sessions and turns.

    An async context manager. Every method raises ControlError, and its subclass ProxyLost
    when there is no use in asking again. `again`: a Session that was begun, and not ended by
    its agent, is begun anew. `patience`: seconds for which a proxy that cannot be reached is
    asked again, for one that may be started anew.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float = TIMEOUT_S,
        again: bool = False,
        patience: float = 0.0,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._again = again
        self._patience = patience
        self._headers = {"Authorization": f"Bearer {token.strip()}"}
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._poll = min(POLL_S, timeout / 2)
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Each Session in turn holds a connection: there is no number that would be enough.
        connector = aiohttp.TCPConnector(limit=0)
        self._http = aiohttp.ClientSession(connector=connector, timeout=self._timeout, headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.close()

    async def run(self) -> RunInfo:
        """What is being played."""
        body = await self._ask("GET", "/eval/run")
        with _reading(body):
            scenarios = tuple(
                ScenarioInfo(str(item["id"]), str(item["hash"]), int(item["tasks"]))
                for item in body["scenarios"]
            )
            return RunInfo(str(body["run"]), scenarios, dict(body["config"]))

    async def plan(self, sessions: Iterable[tuple[str, int]]) -> None:
        """Says which Sessions (scenario, epoch) shall be played, so that the log knows of what is missing."""
        wanted = [{"scenario": scenario, "epoch": epoch} for scenario, epoch in sessions]
        try:
            await self._ask("POST", "/eval/plan", {"sessions": wanted})
        except ControlError as error:
            # A proxy of an earlier version: its log does without.
            if error.status != 404:
                raise

    async def create(self, scenario: str, epoch: int, *, again: bool = False) -> Opened:
        """Opens a Session, or finds it if it is open already; `again` as for the client."""
        wanted = {"scenario": scenario, "epoch": epoch, "again": again or self._again}
        body = await self._ask("POST", "/eval/sessions", wanted)
        with _reading(body):
            mcp = body.get("mcp_url")
            return Opened(
                session=str(body["session"]),
                url=self.base_url + str(body["url"]),
                over=bool(body["over"]),
                mcp_url=None if mcp is None else self.base_url + str(mcp),
                turn=int(body.get("turn") or 0),
                process=str(body.get("process") or ""),
            )

    async def open_turn(self, session: str, after: int | None = None, *, wait: bool = False) -> Turn | None:
        """The Session's next user turn; None when it is over.

        `after` is the number of the turn before, so that asking twice opens one. `wait`: should
        that turn still be played, it is not given up.
        """
        body = await self._ask("POST", f"{_path(session)}/turns", {"after": after, "wait": wait})
        with _reading(body):
            if body["over"]:
                return None
            text = body.get("text")
            return Turn(int(body["turn"]), str(body["prompt"]), None if text is None else str(text))

    async def state(self, session: str, query: str = "") -> SessionState:
        body = await self._ask("GET", _path(session) + query)
        with _reading(body):
            return session_state(body)

    async def playing(self) -> tuple[SessionState, ...]:
        """The Sessions that are being played, whoever drives them."""
        body = await self._ask_once("GET", "/eval/sessions", None)
        with _reading(body):
            return tuple(map(session_state, body["sessions"]))

    async def some_ask(self, but: Set[str], timeout: float = GRACE_S) -> bool:
        """Has the agent of a Session that is being played asked, or does one, at most `timeout` seconds
        later? Those of the Sessions `but`, which may grow meanwhile, are not waited for."""
        clock = asyncio.get_running_loop().time
        end = clock() + timeout
        while True:
            playing = await self.playing()
            asked = any(state.asked for state in playing)
            if asked or clock() >= end or all(state.session in but for state in playing):
                return asked
            await asyncio.sleep(PAUSE_S)

    async def delivery(self, session: str, turn: int, timeout: float | None = None) -> Delivery:
        """What became of a turn; waits until it was answered or failed, at most `timeout` seconds.

        Without a `timeout` the agent is still at it, and after a request that failed or was
        refused it may ask again: only if it does not for GRACE_S was that all.
        """
        clock = asyncio.get_running_loop().time
        end = math.inf if timeout is None else clock() + timeout
        patience, grace = GRACE_S if timeout is None else 0.0, math.inf
        while True:
            wait = max(0.0, min(self._poll, end - clock()))
            delivery = delivery_of(await self.state(session, f"?answered={turn}&wait={wait:.3f}"), turn)
            over = delivery in ("failed", "refused")
            grace = min(grace, clock() + patience) if over else math.inf
            if delivery == "answered" or clock() >= min(end, grace):
                return delivery
            await asyncio.sleep(min(PAUSE_S, max(0.0, min(end, grace) - clock())))

    async def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        clock = asyncio.get_running_loop().time
        end = clock() + self._patience
        while True:
            try:
                return await self._ask_once(method, path, body)
            except ProxyLost as lost:
                if lost.status is not None or clock() >= end:
                    raise
            await asyncio.sleep(PAUSE_S)

    async def _ask_once(self, method: str, path: str, body: Any) -> dict[str, Any]:
        assert self._http is not None, "use `async with ControlClient(...)`"
        url = self.base_url + path
        try:
            async with self._http.request(method, url, json=body, allow_redirects=False) as response:
                return _checked(response.status, await response.read(), f"{method} {url}")
        except TimeoutError:
            raise ControlError(f"the proxy gave no answer to {method} {path} in time") from None
        except ValueError:  # aiohttp.InvalidURL is one
            raise ProxyLost(f"{self.base_url!r} is no address of a proxy: give http://HOST:PORT") from None
        except aiohttp.ClientError as error:
            reason = str(error) or type(error).__name__
            raise ProxyLost(f"the proxy at {self.base_url} cannot be reached ({reason})") from None


def _path(session: str) -> str:
    # A scenario id, and so a session's name, may hold any character, a slash too.
    return f"/eval/sessions/{quote(session, safe='')}"


def _checked(status: int, raw: bytes, request: str) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if status in (401, 403):
        raise ProxyLost(f"the proxy does not accept the control token ({_message(body)})", status)
    if status >= 300:
        raise ControlError(f"{request}: HTTP {status}: {_message(body)}", status)
    if not isinstance(body, dict):
        raise ControlError(f"{request}: the answer is no JSON object; is this the proxy's address?", status)
    return body


def _message(body: Any) -> str:
    try:
        return " ".join(str(body["error"]["message"]).split())
    except (TypeError, KeyError):
        return "no message"


@contextmanager
def _reading(body: Mapping[str, Any]) -> Iterator[None]:
    """Turns a missing or misshapen field of an answer into ControlError."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise ControlError(
            f"the proxy's answer cannot be read ({type(error).__name__}: {error}; it has "
            f"{', '.join(body) or 'no field'}): do driver and proxy have the same version?"
        ) from error
