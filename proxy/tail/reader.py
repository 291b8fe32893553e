"""What happened, in order: rows of the log as events. Pure.

A row is a mapping whose `kind` is the table's singular (`session`, `turn`, `step`, `task`,
`exchange`), with the columns that `follow` asks for. Rows come in the order of their `seq`;
one that is written again comes again, and makes its event only once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proxy.tail.events import (
    RECORDED,
    AgentFailure,
    AssistantText,
    Call,
    Event,
    HistoryFinding,
    Observed,
    Place,
    ProviderCall,
    RunBegun,
    SessionOpened,
    SideCall,
    TaskEnded,
    ToolCalled,
    UserTurn,
    Verdict,
)
from proxy.tail.messages import calls_of, in_short, said, text_of
from scenarios.replies import read_reply
from scenarios.steps import did

_REMEMBERED = 10_000
"""Agent exchanges: more than are ever on their way at a time."""

Row = Mapping[str, Any]


@dataclass(slots=True)
class Reader:
    """Makes events of rows; remembers what it has told."""

    _run: str | None = None
    _turns: dict[str, int] = field(default_factory=dict)
    _told: dict[str, None] = field(default_factory=dict)
    _found: set[tuple[str | None, str | None, int, str]] = field(default_factory=set)

    def events(self, rows: Iterable[Row], runs: Mapping[str, RunBegun]) -> Iterator[Event]:
        """The events of these rows. `runs` are told of whenever the Run is another than before."""
        for row in rows:
            for event in self._events(row):
                run = event.place.run
                if run is not None and run != self._run and run in runs:
                    self._run = run
                    yield replace(runs[run], at=event.at)
                yield event

    def _events(self, row: Row) -> Iterable[Event]:
        place, at = _place(row), row["at"]
        match row["kind"]:
            case "session":
                return [SessionOpened(place, at)]
            case "turn":
                return self._turn(row, place, at)
            case "step":
                return _step(row, place, at)
            case "task":
                return [TaskEnded(place, at, row["ending"])]
            case _:
                return self._exchange(row, place, at)

    def _turn(self, row: Row, place: Place, at: float) -> list[Event]:
        # Turns of a Session are opened in order; one that an agent begins is written again.
        if row["turn"] <= self._turns.get(row["session_id"], 0):
            return []
        self._turns[row["session_id"]] = row["turn"]
        return [UserTurn(place, at, row["turn_kind"], row["text"])]

    def _exchange(self, row: Row, place: Place, at: float) -> list[Event]:
        if row["finish_state"] == "pending":
            return []
        call = _call(row)
        if row["side"] == "provider":
            return [*self._findings(row, place, at), ProviderCall(place, at, call)]
        if self._is_told(row["id"]):
            return []
        if row["reason"] == RECORDED:
            return _recorded(row, place, at, call)
        if row["reason"] is not None:
            return [SideCall(place, at, row["reason"], call, in_short(_json(row["answer"])))]
        return [AgentFailure(place, at, call)] if call.failed else []

    def _findings(self, row: Row, place: Place, at: float) -> Iterator[Event]:
        """What this request lacks, but for what an earlier one of the Session lacked too."""
        for it in _json(row["findings"]) or ():
            key = (place.run, place.session, it["turn"], it["what"])
            if key not in self._found:
                self._found.add(key)
                yield HistoryFinding(place, at, it["turn"], it["what"], it["detail"])

    def _is_told(self, exchange: str) -> bool:
        """Also remembers it: an agent's exchange is written once more when it was delivered."""
        told = exchange in self._told
        self._told[exchange] = None
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        return told


def _place(row: Row) -> Place:
    attempt, session = row["attempt"], row["session"]
    name = f"{session}#{attempt}" if session is not None and attempt and attempt > 1 else session
    return Place(row["run"], name, row["task"], row["turn"])


def _step(row: Row, place: Place, at: float) -> Iterator[Event]:
    message = _json(row["body"])
    if text := said(message):
        yield AssistantText(place, at, text)
    for call in row["calls"]:
        yield ToolCalled(place, at, call["name"], call["arguments"])
        if call["observation"] is not None:
            yield Observed(place, at, call["observation"], call["outcome"])
    yield Verdict(place, at, row["step"], row["decision"], did(read_reply(message)), row["reason"])


def _recorded(row: Row, place: Place, at: float, call: Call) -> list[Event]:
    """A passed-through exchange: what was said last, what it cost, what was answered."""
    asked, answer = _json(row["asked"]), _json(row["answer"])
    events: list[Event] = []
    if isinstance(asked, dict):
        text = text_of(asked.get("content"))
        if asked.get("role") == "user":
            events.append(UserTurn(place, row["started_at"], RECORDED, text))
        elif asked.get("role") in ("tool", "function"):
            events.append(Observed(place, row["started_at"], text))
    events.append(SideCall(place, at, row["reason"], call, ""))
    if text := said(answer):
        events.append(AssistantText(place, at, text))
    events += [ToolCalled(place, at, name, arguments) for name, arguments in calls_of(answer)]
    return events


def _call(row: Row) -> Call:
    error = ": ".join(part for part in (row["error_type"], row["error"]) if part)
    ended = row["finished_at"]
    return Call(
        model=row["response_model"] or row["request_model"],
        status=row["status"],
        state=row["finish_state"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        seconds=None if ended is None else ended - row["started_at"],
        first_chunk=row["time_to_first_chunk"],
        error=error or None,
    )


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
