"""The control client: what it reads, and how it fails."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from proxy.drive import client
from proxy.drive.agent import Delivery
from proxy.drive.client import ControlClient, ControlError, ProxyLost
from proxy.drive.states import Opened, RunInfo, ScenarioInfo, SessionState, TaskState, Turn


def answering(body: Any = None, *, text: str | None = None, status: int = 200) -> Any:
    """A control hook that answers everything in the same way."""
    if text is None:
        return lambda method, path: web.json_response(body, status=status)
    return lambda method, path: web.Response(text=text, status=status)


async def test_the_run_lists_its_scenarios_and_configuration(serve: Any, connect: Any) -> None:
    control = await connect(await serve({"a": 2, "b": 1}))
    assert await control.run() == RunInfo(
        "r1",
        (ScenarioInfo("a", "hash of a", 2), ScenarioInfo("b", "hash of b", 1)),
        {"history": "gold"},
    )


async def test_a_session_is_created_with_the_whole_base_url_of_its_agent(serve: Any, connect: Any) -> None:
    stand_in = await serve({"a": 2})
    control = await connect(stand_in)
    assert await control.create("a", 3) == Opened("a.e3", f"{stand_in.url}/s/a.e3/v1", over=False)


async def test_turns_are_opened_until_the_session_is_over(serve: Any, connect: Any) -> None:
    control = await connect(await serve({"a": 2}))
    await control.create("a", 1)
    assert [await control.open_turn("a.e1") for _ in range(3)] == [
        Turn(1, "[[next-user-turn 1]]", "words of turn 1"),
        Turn(2, "[[next-user-turn 2]]", "words of turn 2"),
        None,
    ]


async def test_the_state_tells_each_task(serve: Any, connect: Any) -> None:
    control = await connect(await serve({"a": 2}))
    await control.create("a", 1)
    await control.open_turn("a.e1")
    assert await control.state("a.e1") == SessionState(
        session="a.e1",
        scenario="a",
        epoch=1,
        turn=1,
        over=False,
        tasks=(TaskState(1, "agent_stopped", False), TaskState(2, None, None)),
        input_tokens=0,
        output_tokens=0,
        provider_errors=0,
    )


async def test_any_scenario_id_can_stand_in_a_path(serve: Any, connect: Any) -> None:
    control = await connect(await serve({"a/b ?#%2F é": 1}))
    opened = await control.create("a/b ?#%2F é", 1)
    turn = await control.open_turn(opened.session)
    assert turn == Turn(1, "[[next-user-turn 1]]", "words of turn 1")


async def test_a_refused_request_carries_the_proxy_s_message_and_status(serve: Any, connect: Any) -> None:
    refusal = {"error": {"message": "no session\nis called that"}}
    control = await connect(await serve({}, control=answering(refusal, status=404)))
    with pytest.raises(ControlError, match="HTTP 404: no session is called that") as caught:
        await control.state("a.e1")
    assert caught.value.status == 404
    assert not isinstance(caught.value, ProxyLost)


async def test_a_wrong_token_is_final_and_not_shown(serve: Any, connect: Any) -> None:
    control = await connect(await serve({}), token="a-wrong-token")
    with pytest.raises(ProxyLost, match="does not accept the control token") as caught:
        await control.run()
    assert "a-wrong-token" not in str(caught.value)


async def test_a_proxy_that_is_not_there_is_final() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        async with ControlClient(f"http://127.0.0.1:{port}/", "t") as control:
            with pytest.raises(ProxyLost, match=f"the proxy at http://127.0.0.1:{port} cannot be reached"):
                await control.run()


@pytest.mark.parametrize("address", ["", "localhost:80", "http://host:port", "http://"])
async def test_what_is_no_address_is_called_so(address: str) -> None:
    async with ControlClient(address, "t") as control:
        with pytest.raises(ProxyLost, match=r"is no address of a proxy|cannot be reached"):
            await control.run()


@pytest.mark.parametrize("text", ["<html>", "[]", "null", ""])
async def test_an_answer_that_is_no_object_asks_whether_this_is_the_proxy(
    serve: Any, connect: Any, text: str
) -> None:
    control = await connect(await serve({}, control=answering(text=text)))
    with pytest.raises(ControlError, match="is this the proxy's address"):
        await control.run()


@pytest.mark.parametrize(
    "body", [{}, {"run": 1}, {"run": "r", "scenarios": [{"id": "a"}], "config": {}}, {"scenarios": 5}]
)
async def test_an_answer_with_other_fields_asks_about_versions(serve: Any, connect: Any, body: Any) -> None:
    control = await connect(await serve({}, control=answering(body)))
    with pytest.raises(ControlError, match="the same version"):
        await control.run()


async def test_a_proxy_that_does_not_answer_in_time_fails_only_that_request() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with ControlClient(address, "t", timeout=0.05) as control:
            with pytest.raises(ControlError, match="no answer to GET /eval/run in time") as caught:
                await control.run()
    assert not isinstance(caught.value, ProxyLost)


async def test_the_plan_is_told_to_the_proxy(serve: Any, connect: Any) -> None:
    stand_in = await serve({"a": 1})
    await (await connect(stand_in)).plan([("a", 1), ("a", 2)])
    assert stand_in.plans == [
        {"sessions": [{"scenario": "a", "epoch": 1}, {"scenario": "a", "epoch": 2}]},
    ]


async def test_a_proxy_that_wants_no_plan_is_driven_without(serve: Any, connect: Any) -> None:
    await (await connect(await serve({}, control=answering({}, status=404)))).plan([("a", 1)])
    with pytest.raises(ControlError, match="HTTP 500"):
        await (await connect(await serve({}, control=answering({}, status=500)))).plan([("a", 1)])


ASKED = SessionState("a.e1", "a", 1, 1, False, (), 0, 0, 0, asked=1)
UNASKED = replace(ASKED, asked=0)
ANSWERED = replace(ASKED, answered=1)
FAILED = replace(ASKED, failed_turn=1)
REFUSED = replace(UNASKED, refused_turn=1)


class Seen(ControlClient):
    """A client that finds a Session in one state after the other, then in the last one for ever."""

    def __init__(self, states: Sequence[SessionState]) -> None:
        super().__init__("http://127.0.0.1:9", "t")
        self.left = list(states)

    async def state(self, session: str, query: str = "") -> SessionState:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAUSE_S", 0.0)
    monkeypatch.setattr(client, "GRACE_S", 0.05)


@pytest.mark.usefixtures("in_a_hurry")
@pytest.mark.parametrize(
    ("states", "delivery"),
    [
        ([UNASKED, ASKED, ANSWERED], "answered"),
        ([FAILED], "failed"),
        ([FAILED, ANSWERED], "answered"),
        # It has asked again: however long that takes, it is waited for.
        ([FAILED, *[ASKED] * 1000, ANSWERED], "answered"),
        ([REFUSED], "refused"),
        ([REFUSED, *[ASKED] * 1000, ANSWERED], "answered"),
        ([FAILED, ASKED, FAILED], "failed"),
    ],
)
async def test_an_agent_whose_request_failed_or_was_refused_may_ask_again(
    states: list[SessionState], delivery: Delivery
) -> None:
    assert await Seen(states).delivery("a.e1", 1) == delivery


async def test_of_an_agent_that_is_done_no_further_request_is_waited_for() -> None:
    for state, delivery in ((FAILED, "failed"), (REFUSED, "refused"), (ANSWERED, "answered")):
        seen = Seen([state, UNASKED])
        assert await seen.delivery("a.e1", 1, 60.0) == delivery
        assert seen.left == [UNASKED]
