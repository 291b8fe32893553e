"""Writes what happens into the log: gives it ids and times, keeps secrets out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from proxy.live_history import Finding
from proxy.log.redaction import allowed_headers, key_hash
from proxy.log.rows import ExchangeDelivered, ExchangeFinish, ExchangeStart, Row
from proxy.provider import Answer
from proxy.wire.chat import read_message, summary

Body = dict[str, Any]

LOG_FAILED = "log_failed"
"""The error code of requests that could not be recorded."""


class Log(Protocol):
    """Where rows go: `put` never waits, `commit` returns when all put so far is durable.

    What `hide` is told is masked in everything written from then on.
    """

    @property
    def failed(self) -> Exception | None: ...

    def hide(self, secret: str) -> None: ...

    def put(self, *rows: Row) -> None: ...

    async def commit(self, *rows: Row) -> None: ...


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an exchange belongs: its Session and turn, its parent, and how that was found.

    `findings` are what the agent has lost or changed of its history, by this request.
    """

    session_id: str | None = None
    turn: int | None = None
    parent_id: str | None = None
    correlation: str | None = None
    reason: str | None = None
    findings: tuple[Finding, ...] = ()


class Journal:
    """The proxy's side of the log. `now` gives Unix seconds, `new_id` a fresh exchange id.

    The methods that give an exchange's last row (`answered`, `given`, `told`, `failed`, `unrecorded`,
    `left`) are for the moment at which it is handed over: they hide once more what may not be in it.
    """

    def __init__(self, log: Log, run_id: str, now: Callable[[], float], new_id: Callable[[], str]) -> None:
        self.log = log
        self.run_id = run_id
        self.now = now
        self.new_id = new_id
        self._open: dict[str, tuple[str, ...]] = {}
        """Exchanges without a last row, and what may not be in that, however many keys came since."""

    def received(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        raw: bytes,
        body: Any,
        key: str | None,
        origin: Origin,
        changes: Sequence[str] = (),
        secrets: Sequence[str] = (),
    ) -> str:
        """A request of an agent has arrived, with these `secrets` in it; returns the exchange's id."""
        hidden = tuple(dict.fromkeys((*secrets, key) if key else secrets))
        return self._start("agent", method, path, headers, raw, body, key, origin, changes, hidden)

    def sent(
        self, path: str, raw: bytes, body: Body, key: str | None, origin: Origin, changes: Sequence[str]
    ) -> str:
        """A request goes to the provider; returns the exchange's id."""
        hidden = (key,) if key else ()
        return self._start("provider", "POST", path, {}, raw, body, key, origin, changes, hidden)

    def _start(
        self,
        side: str,
        method: str,
        path: str,
        headers: Mapping[str, str],
        raw: bytes,
        body: Any,
        key: str | None,
        origin: Origin,
        changes: Sequence[str],
        secrets: tuple[str, ...],
    ) -> str:
        exchange_id = self.new_id()
        self._open[exchange_id] = secrets
        self._hide(secrets)
        fields = body if isinstance(body, dict) else {}
        messages, model = fields.get("messages"), fields.get("model")
        self.log.put(
            ExchangeStart(
                id=exchange_id,
                run_id=self.run_id,
                side=side,
                parent_id=origin.parent_id,
                session_id=origin.session_id,
                turn=origin.turn,
                correlation=origin.correlation,
                reason=origin.reason,
                method=method,
                path=path,
                started_at=self.now(),
                stream=bool(fields.get("stream")),
                request_model=model if isinstance(model, str) else None,
                raw=raw,
                key_hash=key_hash(key) if key else None,
                headers=allowed_headers(headers),
                messages=messages if isinstance(messages, list) else None,
                body={name: value for name, value in fields.items() if name != "messages"} or None,
                changes=tuple(changes),
                findings=tuple(asdict(finding) for finding in origin.findings),
            )
        )
        return exchange_id

    def _hide(self, secrets: Iterable[str]) -> None:
        for secret in secrets:
            self.log.hide(secret)

    def is_open(self, exchange_id: str) -> bool:
        """Whether an exchange has no last row yet."""
        return exchange_id in self._open

    def ending(self, exchange_id: str) -> None:
        """To be called before an exchange's last row is handed over: its secrets are hidden in that too."""
        self._hide(self._open.pop(exchange_id, ()))

    def answered(self, exchange_id: str, answer: Answer) -> ExchangeFinish:
        """The row that ends a provider exchange."""
        self.ending(exchange_id)
        seen = summary(answer.response)
        return ExchangeFinish(
            id=exchange_id,
            finished_at=answer.finished_at,
            finish_state=answer.finish_state,
            status=answer.status,
            time_to_first_chunk=answer.time_to_first_chunk,
            response_id=seen.response_id,
            response_model=seen.response_model,
            finish_reasons=seen.finish_reasons,
            input_tokens=seen.input_tokens,
            output_tokens=seen.output_tokens,
            message=read_message(answer.response),
            headers=allowed_headers(answer.headers),
            raw=answer.raw,
            error_type=answer.error_type,
            error=answer.error,
        )

    def given(self, exchange_id: str, response: Body) -> ExchangeFinish:
        """The row that ends an agent exchange with a completion."""
        self.ending(exchange_id)
        seen = summary(response)
        return ExchangeFinish(
            id=exchange_id,
            finished_at=self.now(),
            finish_state="complete",
            status=200,
            time_to_first_chunk=None,
            response_id=seen.response_id,
            response_model=seen.response_model,
            finish_reasons=seen.finish_reasons,
            input_tokens=seen.input_tokens,
            output_tokens=seen.output_tokens,
            message=read_message(response),
        )

    def told(self, exchange_id: str, status: int, raw: bytes, error: str | None) -> ExchangeFinish:
        """The row that ends an exchange that is no completion; `error` is what was odd about it."""
        self.ending(exchange_id)
        return ExchangeFinish(
            id=exchange_id,
            finished_at=self.now(),
            finish_state="complete",
            status=status,
            time_to_first_chunk=None,
            raw=raw,
            error_type=None if error is None else "beside_the_conversation",
            error=error,
        )

    def failed(
        self, exchange_id: str, finish_state: str, *, status: int | None, error_type: str, error: str
    ) -> ExchangeFinish:
        """The row that ends an exchange without a completion."""
        self.ending(exchange_id)
        return ExchangeFinish(
            id=exchange_id,
            finished_at=self.now(),
            finish_state=finish_state,
            status=status,
            time_to_first_chunk=None,
            error_type=error_type,
            error=error,
        )

    def unrecorded(self, exchange_id: str) -> ExchangeFinish:
        """The row that ends an exchange whose own could not be written, for when one can be again."""
        return self.failed(
            exchange_id,
            "proxy_error",
            status=503,
            error_type=LOG_FAILED,
            error="the log could not be written, so the answer was not given",
        )

    def left(self, exchange_id: str) -> ExchangeFinish:
        """The row that ends an agent exchange of which nobody waits for the answer any more."""
        return self.failed(
            exchange_id,
            "client_abort",
            status=None,
            error_type="client_disconnected",
            error="the agent left before its answer was written",
        )

    def delivered(self, exchange_id: str) -> None:
        """The answer's last byte was handed to the agent's connection."""
        self.log.put(ExchangeDelivered(exchange_id, self.now()))
