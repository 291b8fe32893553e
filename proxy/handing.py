"""Calls that an agent was given to carry out, and how it comes back from them. Pure.

They are the Scenario's (relay, mcp), which are Steps and have their Observations already, or those
of the agent's own control tools, which are no Steps and whose results the LLM gets as they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from proxy.echo import alias_of, call_ids, echo
from proxy.outcomes import Outcome, handed_over, results_of
from proxy.play import heard, place_of
from proxy.session import Message, Session
from proxy.wire.chat import read_message, reply_of
from scenarios.types import ToolCall

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Control:
    """Calls of control tools: the message as it goes into the record, and the agent's ids of its calls.

    `position` counts such messages in the turn, from 0.
    """

    position: int
    said: Message
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Handed:
    """What an agent has to carry out. `given` says that it has got it, `control` is None for Steps."""

    outcome: Outcome
    control: Control | None = None
    given: bool = False

    def results(self, body: Body) -> list[Message]:
        """The agent's results of these calls, as a request brings them."""
        return results_of(body["messages"], reply_of(read_message(self.outcome.response))[1])

    def is_answered(self, body: Body) -> bool:
        """Does a request that is not one of those that got the calls come after them?

        Frameworks drop results, merge them, or put them into a user message: whatever is in it.
        """
        return bool(self.results(body)) or (self.control is None and self.given)


def hand_control(
    session: Session,
    response: Body,
    message: Message,
    calls: Sequence[ToolCall],
    spent: Sequence[int],
    position: int,
) -> tuple[Session, Handed]:
    """The agent is given calls of its control tools; `spent` is as in `outcomes.for_agent`."""
    place = f"{place_of(session)}\x00control{position}"
    known = {it.get("tool_call_id") for it in (*session.past, *session.thread)}
    ids = call_ids(calls, known, place)
    given = [alias_of(place, position) for position in range(len(calls))]
    control = Control(position, echo(message, calls, ids), dict(zip(given, ids, strict=True)))
    outcome = Outcome(handed_over(response, message, spent, given), final=False)
    return known_by(session, control), Handed(outcome, control)


def known_by(session: Session, control: Control) -> Session:
    """The Session in which the agent knows these calls by their aliases."""
    return replace(session, aliases={**session.aliases, **control.aliases})


def carried_out(session: Session, control: Control, results: Iterable[Message]) -> Session:
    """The control calls and what they gave join the record."""
    calls = reply_of(control.said)[1]
    told: dict[str, Message] = {}
    for result in results:
        call_id = control.aliases.get(str(result.get("tool_call_id")))
        if call_id is None:
            # The dialect of `functions` has no ids.
            named = [call.id for call in calls if call.name == result.get("name") and call.id not in told]
            call_id = named[0] if named else None
        if call_id is not None:
            told[call_id] = {"role": "tool", "tool_call_id": call_id, "content": result.get("content")}
    return heard(session, control.said, *told.values(), handed=frozenset(it.id for it in calls if it.id))


class HandedOver:
    """The hand-overs of the turn that is played: what is out, and what each request was given.

    `controls` counts those of control calls.
    """

    def __init__(
        self, out: Handed | None = None, given: Mapping[str, Outcome] | None = None, controls: int = 0
    ) -> None:
        self.out = out
        self.controls = controls
        self._given = dict(given or {})

    def give(self, handed: Handed, sha256s: Iterable[str]) -> None:
        """The requests with these hashes get the calls."""
        self.controls += handed.control is not None and not handed.given
        self.out = replace(handed, given=True)
        self._given.update(dict.fromkeys(sha256s, handed.outcome))

    def again(self, body: Body, sha256: str) -> Outcome | None:
        """What a request gets that is sent again, or comes without the results that are due; else None."""
        if sha256 in self._given and not (self.out and self.out.results(body)):
            return self._given[sha256]
        if self.out is None or self.out.is_answered(body):
            return None
        self.give(self.out, [sha256])
        return self.out.outcome

    def close(self) -> Handed | None:
        """What was out has been carried out."""
        handed, self.out = self.out, None
        return handed
