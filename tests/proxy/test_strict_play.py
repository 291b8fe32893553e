"""What play serves and where it ends a Task, held against the scorer `strict`."""

from __future__ import annotations

import json
from typing import Any

from support import scenes

from proxy.play import begin, judge, open_turn
from proxy.session import Session
from scenarios.types import Reply, ToolCall
from scoring.verdicts.strict import score_task

DAY = {"type": "string", "description": "The day."}
RECORD: dict[str, Any] = {
    **scenes.record(
        "days",
        (
            "What is on, on both days?",
            [
                scenes.call("agenda", {"day": "2024-01-02"}, "a dentist"),
                scenes.call("agenda", {"day": "2024-01-03"}, "a party"),
                scenes.call("invite", {"day": "2024-01-03"}, "invited", 1),
                scenes.close("Done.", 0, 2),
            ],
        ),
    ),
    "tools": [scenes.tool("agenda", day="string"), scenes.tool("invite", day="string")],
}


def call(name: str, day: str) -> ToolCall:
    return ToolCall(f"call_{name}_{day}", name, json.dumps({"day": day}))


def opened() -> Session:
    session = open_turn(Session("days.e1", scenes.scenario(RECORD)))
    assert session.turn is not None
    return begin(session, {"role": "user", "content": session.turn.words})


def played(*replies: Reply) -> tuple[Session, list[str | None]]:
    """Where the Session stands, and what the calls were told."""
    session, told = opened(), []
    for reply in replies:
        message = {"role": "assistant", "content": reply.content}
        session, decision = judge(session, message, reply.content, reply.calls)
        told += [it.observation for it in decision.served]
    return session, told


def test_calls_that_mean_a_node_get_its_observation_however_they_spell_it() -> None:
    both = Reply(None, (call("agenda", "2024/01/03"), call("agenda", "2024-1-2")))
    assert played(both)[1] == ["a party", "a dentist"]


def test_what_waits_for_a_call_that_was_spelt_otherwise_goes_on() -> None:
    replies = (
        Reply(None, (call("agenda", "2024/01/03"),)),
        Reply(None, (call("invite", "2024/1/3"),)),
        Reply(None, (call("agenda", "2024/01/02"),)),
        Reply("Done."),
    )
    session, told = played(*replies)
    assert (told, session.ends) == (["a party", "invited", "a dentist"], ("closed",))
    nodes = session.scenario.tasks[0].nodes
    assert score_task(session.scenario.tools, nodes, replies).label == "correct"
