"""Where a wrong Step does not end its Task: what each call is told, without any network."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import scenes

from proxy.play import begin, judge, open_turn
from proxy.record import step_row
from proxy.refusals import NO_DATA, refusal
from proxy.session import TASK_OVER, Decision, Session
from proxy.settings import PlayConfig
from proxy.wire.chat import reply_of
from scenarios.types import Tool, ToolCall

LAMP, CHAIR = ("getPrice", {"thing": "lamp"}), ("getPrice", {"thing": "chair"})
STOCK = ("countStock", {"thing": "lamp"})
BOOK = ("book", {"thing": "lamp", "day": "Monday"})
WEIGH = ("weigh", {"thing": "lamp", "kilos": 1.5})


def opened(record: scenes.Record = scenes.SHOP, **config: Any) -> Session:
    settings = PlayConfig(**{"on_mismatch": "continue", "history": "live", **config})
    return spoken(Session(record["id"] + ".e1", scenes.scenario(record), settings))


def spoken(session: Session) -> Session:
    """The user speaks, and the agent asks for the turn."""
    session = open_turn(session)
    assert session.turn is not None
    return begin(session, {"role": "user", "content": session.turn.words})


def calling(*wanted: tuple[str, Any]) -> dict[str, Any]:
    entries = [
        {
            "id": f"c{i}",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for i, (name, given) in enumerate(wanted)
    ]
    return {"role": "assistant", "content": None, "tool_calls": entries}


def say(session: Session, message: dict[str, Any] | str | None) -> tuple[Session, Decision]:
    if not isinstance(message, dict):
        message = {"role": "assistant", "content": message}
    return judge(session, message, *reply_of(message))


def played(session: Session, *messages: dict[str, Any] | str) -> Session:
    for message in messages:
        session, _ = say(session, message)
    return session


def outcomes(decision: Decision) -> list[tuple[str, int | None]]:
    return [(it.outcome, it.node) for it in decision.served]


def test_a_call_that_came_too_early_gets_its_observation() -> None:
    session, decision = say(opened(scenes.TWINS), calling(WEIGH))
    assert decision.action == "observe"
    assert [(it.observation, it.outcome) for it in decision.served] == [("light", "served")]
    session, decision = say(session, calling(CHAIR, LAMP))
    assert [it.node for it in decision.served] == [1, 0]
    session, decision = say(session, "Done.")
    assert (decision.action, session.ends, session.names_right) == ("close", ("closed",), (False,))


def test_calls_of_a_batch_are_told_apart_by_their_arguments() -> None:
    _, decision = say(opened(scenes.TWINS), calling(CHAIR, ("getPrice", {"thing": "sofa"}), LAMP))
    assert outcomes(decision) == [("served", 1), ("no_data", None), ("served", 0)]


def test_a_repeat_gets_the_same_observation_and_is_flagged() -> None:
    session, first = say(opened(), calling(LAMP))
    session, again = say(session, calling(LAMP))
    assert outcomes(again) == [("redundant", 0)]
    assert again.served[0].observation == first.served[0].observation
    assert again.reason is not None


def test_a_repeat_of_an_earlier_tasks_call_gets_the_same_observation() -> None:
    session = spoken(played(opened(), calling(LAMP), "A lamp costs 3."))
    _, decision = say(session, calling(("getPrice", '{ "thing" : "lamp" }')))
    assert [(it.outcome, it.node, it.observation) for it in decision.served] == [
        ("redundant", None, '{"price": 3, "unit": "€"}')
    ]


def test_twice_the_same_call_in_one_batch_is_one_call_and_a_repeat() -> None:
    _, decision = say(opened(), calling(LAMP, LAMP))
    assert outcomes(decision) == [("served", 0), ("redundant", 0)]


@pytest.mark.parametrize(
    ("call", "outcome", "kind"),
    [
        (("fly", {"to": "moon"}), "unknown_tool", "unknown_tool"),
        (("getPrice", {}), "invalid_arguments", "invalid_arguments"),
        (("getPrice", {"thing": 3}), "invalid_arguments", "invalid_arguments"),
        (("getPrice", "not JSON"), "invalid_arguments", "invalid_arguments"),
        (("getPrice", "[1]"), "invalid_arguments", "invalid_arguments"),
        (("weigh", {"thing": "lamp", "kilos": "heavy"}), "invalid_arguments", "invalid_arguments"),
        (("getPrice", {"thing": "sofa"}), "no_data", "not_found"),
        (("book", {"thing": "sofa", "day": "Monday"}), "no_data", "not_found"),
    ],
)
def test_a_wrong_call_gets_the_error_that_a_real_tool_would_give(call: Any, outcome: str, kind: str) -> None:
    session, decision = say(opened(), calling(call))
    [served] = decision.served
    assert (decision.action, served.outcome, served.node) == ("observe", outcome, None)
    assert json.loads(served.observation or "")["error"]["type"] == kind
    assert session.thread[-1] == {"role": "tool", "content": served.observation, "tool_call_id": served.id}
    assert not session.ends


def test_an_error_gives_nothing_of_the_reference_away() -> None:
    _, decision = say(opened(), calling(("getPrice", {"thing": "sofa"}), ("fly", {})))
    told = " ".join(it.observation or "" for it in decision.served)
    assert NO_DATA in told
    assert "lamp" not in told


def test_after_a_wrong_call_the_right_one_is_served_and_the_task_can_be_closed() -> None:
    session = played(opened(), calling(("getPrice", {"thing": "sofa"})), calling(LAMP))
    assert session.done == {0}
    session, decision = say(session, "A lamp costs 3.")
    assert (decision.action, session.ends, session.names_right) == ("close", ("closed",), (False,))


def test_without_a_wrong_step_a_closed_task_is_right() -> None:
    session = played(opened(), calling(LAMP), "A lamp costs 3.")
    assert (session.ends, session.names_right) == (("closed",), (True,))


def third_task() -> Session:
    session = spoken(played(opened(), calling(LAMP), "3"))
    return spoken(played(session, calling(CHAIR, STOCK), "7, 12"))


def test_text_while_calls_are_due_is_the_ask_if_one_is_ready() -> None:
    session, decision = say(third_task(), "Which day?")
    assert (decision.action, decision.nodes, session.reply) == ("ask", (0,), "On Monday.")


def test_an_ask_is_skipped_once_what_depends_on_it_is_done() -> None:
    session, decision = say(third_task(), calling(BOOK))
    assert outcomes(decision) == [("served", 1)]
    session, decision = say(session, "Booked for Monday.")
    assert (decision.action, session.ends[-1]) == ("close", "closed")


def test_text_while_calls_are_due_and_no_ask_is_ready_closes_the_task() -> None:
    session, decision = say(opened(), "I do not know.")
    assert (decision.action, session.ends, session.names_right) == ("close", ("closed",), (False,))
    assert decision.reason is not None


@pytest.mark.parametrize("content", ["", None])
def test_a_reply_without_text_and_calls_ends_the_task(content: str | None) -> None:
    session, decision = say(opened(), content)
    assert (decision.action, session.ends) == ("stop", ("stopped",))
    assert session.thread[-1]["content"] == TASK_OVER


def test_max_steps_bounds_a_task() -> None:
    session = opened(max_steps=3)
    for _ in range(2):
        session, decision = say(session, calling(("fly", {})))
        assert decision.action == "observe"
    session, decision = say(session, calling(LAMP))
    assert (decision.action, session.ends) == ("stop", ("stopped",))
    assert "--max-steps" in (decision.reason or "")


def test_the_last_step_that_is_allowed_may_close_the_task() -> None:
    _, decision = say(played(opened(max_steps=2), calling(LAMP)), "3.")
    assert decision.action == "close"


def test_a_live_session_ends_with_the_task_that_the_agent_left() -> None:
    session = open_turn(played(opened(), calling(LAMP)))
    assert session.ends == ("agent_stopped", "not_reached", "not_reached", "not_reached")
    assert session.over


def test_with_gold_history_the_next_task_follows_all_the_same() -> None:
    session = open_turn(played(opened(history="gold"), calling(LAMP)))
    assert session.ends == ("agent_stopped",)


def test_a_schema_that_is_none_has_nothing_against_any_arguments() -> None:
    for parameters in ({"type": "objekt"}, {"$ref": "https://example.org/x"}, {"pattern": "(", "type": 3}):
        odd = Tool("odd", "", parameters, {"type": "function", "function": {"name": "odd"}})
        assert refusal([odd], ToolCall(None, "odd", "{}"))[0] == "no_data"


def test_a_long_value_is_not_quoted_in_full() -> None:
    text = refusal(scenes.scenario().tools, ToolCall(None, "getPrice", json.dumps({"thing": ["x" * 9000]})))[
        1
    ]
    assert len(text) < 400


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ('{"thing":  "lamp"}', '{"thing":  "lamp"}'),
        ({"thing": "Lämpchen"}, '{"thing": "Lämpchen"}'),
        (["lamp"], '["lamp"]'),
        (None, None),
    ],
)
def test_the_row_of_a_call_has_its_arguments_also_where_a_provider_gives_no_text(
    given: Any, stored: str | None
) -> None:
    session = opened()
    entry = {"id": "c0", "function": {"name": "getPrice", "arguments": given}}
    message = {"role": "assistant", "content": None, "tool_calls": [entry]}
    _, decision = say(session, message)
    row = step_row("s1", session, decision, message, reply_of(message)[1], exchange_id="x1", now=1.0)
    assert [call.arguments for call in row.calls] == [stored]
