"""Playing planned Sessions: order, concurrency, failures, cancellation."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from proxy.drive import work
from proxy.drive.agent import AgentAnswer, AgentFailure, AgentSession, AgentUnusable
from proxy.drive.builtin import builtin
from proxy.drive.client import ControlClient
from proxy.drive.driver import DriveReport, drive
from proxy.drive.plan import Planned
from proxy.drive.played import Failure

TOKEN_REFUSED = 403
DEADLOCK_S = 30.0
"""Agents here wait for one another; what they wait for would otherwise be waited for forever."""


class Agents:
    """A factory of agents that do `behave(session, prompt)`, and a record of them all."""

    def __init__(self, behave: Callable[[str, str], Awaitable[object]] | None = None) -> None:
        self._behave = behave
        self.made: list[tuple[str, str, str]] = []
        self.prompts: list[tuple[str, str]] = []
        self.closed: list[str] = []

    def __call__(self, session: AgentSession) -> _Agent:
        self.made.append((session.name, session.base_url, session.api_key))
        return _Agent(self, session.name)

    async def answer(self, session: str, prompt: str) -> None:
        self.prompts.append((session, prompt))
        if self._behave:
            await self._behave(session, prompt)


class _Agent:
    def __init__(self, agents: Agents, session: str) -> None:
        self._agents = agents
        self._session = session

    async def turn(self, prompt: str, number: int) -> AgentAnswer:
        await self._agents.answer(self._session, prompt)
        return AgentAnswer("done")

    def last_words(self) -> str:
        return ""

    async def close(self) -> None:
        self._agents.closed.append(self._session)


def planned(stand_in: Any) -> list[Planned]:
    return [Planned(scenario, 1, tasks) for scenario, tasks in stand_in.scenarios.items()]


@pytest.fixture
def play(connect: Any, diary: Any) -> Callable[..., Awaitable[DriveReport]]:
    """`await play(stand_in, agents)` drives every scenario of the stand-in once."""

    async def run(stand_in: Any, agents: Any, **options: Any) -> DriveReport:
        settings = {"concurrency": 1, "turn_timeout": 60.0, "progress": diary} | options
        async with asyncio.timeout(DEADLOCK_S):
            return await drive(await connect(stand_in), planned(stand_in), agents, **settings)

    return run


async def test_every_turn_of_every_session_is_played_in_the_order_of_the_plan(serve: Any, play: Any) -> None:
    stand_in, agents = await serve({"b": 2, "a": 1}), Agents()
    report = await play(stand_in, agents)
    assert agents.prompts == [
        ("b.e1", "[[next-user-turn 1]]"),
        ("b.e1", "[[next-user-turn 2]]"),
        ("a.e1", "[[next-user-turn 1]]"),
    ]
    assert agents.closed == ["b.e1", "a.e1"]
    assert [(played.session, played.end) for played in report.played] == [("b.e1", "over"), ("a.e1", "over")]
    assert report.complete
    assert report.not_started == ()


async def test_an_agent_is_given_its_session_base_url_and_key(serve: Any, play: Any) -> None:
    stand_in, agents = await serve({"a": 1}), Agents()
    await play(stand_in, agents)
    assert agents.made == [("a.e1", f"{stand_in.url}/s/a.e1/v1", "sk-eval-a.e1")]


async def test_a_key_can_be_given_for_each_session(serve: Any, play: Any) -> None:
    stand_in, agents = await serve({"a": 1}), Agents()
    await play(stand_in, agents, api_key=lambda session: f"key of {session}")
    assert agents.made[0][2] == "key of a.e1"


async def test_as_many_sessions_as_asked_for_are_in_turn_at_once_and_no_more(serve: Any, play: Any) -> None:
    together, in_turn, most = asyncio.Barrier(3), set(), []

    async def behave(session: str, prompt: str) -> None:
        in_turn.add(session)
        most.append(len(in_turn))
        # Only three agents that are in turn at the same time get past this.
        await together.wait()
        in_turn.discard(session)

    stand_in = await serve(dict.fromkeys("abcdef", 2))
    report = await play(stand_in, Agents(behave), concurrency=3)
    assert report.complete
    assert max(most) == 3


async def test_a_slow_session_does_not_hold_up_the_others(serve: Any, play: Any) -> None:
    others_are_done = asyncio.Event()

    async def behave(session: str, prompt: str) -> None:
        if session == "d.e1":
            others_are_done.set()
        if session == "a.e1":
            await others_are_done.wait()

    report = await play(await serve(dict.fromkeys("abcd", 1)), Agents(behave), concurrency=2)
    assert report.complete
    assert [played.session for played in report.played] == ["a.e1", "b.e1", "c.e1", "d.e1"]


async def test_a_session_goes_on_with_its_next_turn_after_its_agent_failed(
    serve: Any, play: Any, diary: Any
) -> None:
    async def behave(session: str, prompt: str) -> None:
        if (session, prompt) == ("a.e1", "[[next-user-turn 1]]"):
            raise AgentFailure("HTTP 502: the provider\nis down")

    agents = Agents(behave)
    report = await play(await serve({"a": 2, "b": 1}), agents)
    failure = Failure("a.e1", 1, "agent", "HTTP 502: the provider is down")
    assert report.failures == (failure,)
    assert diary.failures == [failure]
    assert len(agents.prompts) == 3
    assert [played.end for played in report.played] == ["over", "over"]
    assert not report.complete


async def test_any_exception_of_an_agent_is_told_in_one_short_line_without_secrets(
    serve: Any, play: Any
) -> None:
    async def behave(session: str, prompt: str) -> None:
        raise KeyError("bad key sk-abcdefghijklmnop " + "x" * 1000)

    report = await play(await serve({"a": 1}), Agents(behave))
    reason = report.failures[0].reason
    assert reason.startswith("KeyError: 'bad key [masked] xxx")
    assert len(reason) == work.REASON_LENGTH


async def test_an_agent_that_hangs_is_cancelled_and_its_session_goes_on(serve: Any, play: Any) -> None:
    cancelled = []

    async def behave(session: str, prompt: str) -> None:
        if prompt == "[[next-user-turn 1]]":
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(session)

    stand_in = await serve({"a": 2})
    report = await play(stand_in, Agents(behave), turn_timeout=0.05)
    assert cancelled == ["a.e1"]
    reason = (
        "no answer within 0.05 s: it sent the proxy no request for the turn that could be played; "
        f"does it read OPENAI_BASE_URL? ({stand_in.url}/s/a.e1/v1)"
    )
    assert report.failures == (Failure("a.e1", 1, "timeout", reason),)
    assert report.played[0].end == "over"


async def test_an_agent_that_will_not_be_cancelled_is_left_to_itself(
    serve: Any, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "CANCEL_GRACE_S", 0.05)
    released, ended = asyncio.Event(), asyncio.Event()

    async def behave(session: str, prompt: str) -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        ended.set()

    report = await play(await serve({"a": 1}), Agents(behave), turn_timeout=0.05)
    assert [failure.kind for failure in report.failures] == ["timeout"]
    assert report.played[0].end == "over"
    released.set()
    await ended.wait()


async def test_an_agent_cancelled_from_inside_has_failed(serve: Any, play: Any) -> None:
    async def behave(session: str, prompt: str) -> None:
        raise asyncio.CancelledError

    report = await play(await serve({"a": 1}), Agents(behave))
    assert report.failures == (Failure("a.e1", 1, "agent", "was cancelled from inside"),)
    assert not report.interrupted


async def test_an_agent_that_fails_on_closing_spoils_nothing(serve: Any, play: Any) -> None:
    class Clumsy(_Agent):
        async def close(self) -> None:
            raise OSError("still busy")

    agents = Agents()
    report = await play(await serve({"a": 1}), lambda session: Clumsy(agents, session.name))
    assert report.failures == (Failure("a.e1", None, "agent", "on closing: OSError: still busy"),)
    assert report.played[0].end == "over"


async def test_a_session_whose_control_request_fails_ends_and_the_others_go_on(
    serve: Any, play: Any, bodies: Any
) -> None:
    def control(method: str, path: str) -> Any:
        return bodies.error(500, "disk full") if path == "/eval/sessions/a.e1/turns" else None

    agents = Agents()
    report = await play(await serve({"a": 2, "b": 1}, control=control), agents)
    assert [(played.session, played.end) for played in report.played] == [
        ("a.e1", "failed"),
        ("b.e1", "over"),
    ]
    assert [(failure.session, failure.turn, failure.kind) for failure in report.failures] == [
        ("a.e1", None, "proxy")
    ]
    assert "HTTP 500: disk full" in report.failures[0].reason
    assert agents.closed == ["a.e1", "b.e1"]
    assert report.halted is None


async def test_everything_ends_when_the_proxy_is_lost(serve: Any, play: Any, bodies: Any) -> None:
    a_is_in_turn = asyncio.Event()

    async def behave(session: str, prompt: str) -> None:
        if session == "a.e1":
            a_is_in_turn.set()
            await asyncio.Event().wait()
        await a_is_in_turn.wait()

    def control(method: str, path: str) -> Any:
        return bodies.error(TOKEN_REFUSED, "no more") if path == "/eval/sessions/b.e1" else None

    agents = Agents(behave)
    report = await play(await serve(dict.fromkeys("abcd", 1), control=control), agents, concurrency=2)
    assert report.halted == "the proxy does not accept the control token (no more)"
    assert [(played.session, played.end) for played in report.played] == [
        ("a.e1", "cancelled"),
        ("b.e1", "failed"),
    ]
    assert [item.scenario for item in report.not_started] == ["c", "d"]
    assert sorted(agents.closed) == ["a.e1", "b.e1"]
    assert not report.interrupted


async def test_a_proxy_that_refuses_connections_ends_the_drive_at_once(diary: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with ControlClient(address, "t") as control:
            todo = [Planned(name, 1, 1) for name in "abc"]
            report = await drive(control, todo, Agents(), concurrency=1, turn_timeout=1, progress=diary)
    assert report.halted is not None
    assert f"the proxy at {address} cannot be reached" in report.halted
    assert [item.scenario for item in report.not_started] == ["b", "c"]


async def test_a_cancelled_drive_closes_its_agents_and_reports_what_was_not_played(
    serve: Any, play: Any
) -> None:
    in_turn = asyncio.Event()

    async def behave(session: str, prompt: str) -> None:
        if session == "b.e1":
            in_turn.set()
            await asyncio.Event().wait()

    stand_in, agents = await serve(dict.fromkeys("abcd", 1)), Agents(behave)
    drives = asyncio.create_task(play(stand_in, agents))
    await in_turn.wait()
    drives.cancel()
    report = await drives
    assert report.interrupted
    assert [(played.session, played.end) for played in report.played] == [
        ("a.e1", "over"),
        ("b.e1", "cancelled"),
    ]
    assert [played.session for played in report.unfinished] == ["b.e1"]
    assert [item.scenario for item in report.not_started] == ["c", "d"]
    assert agents.closed == ["a.e1", "b.e1"]
    assert not report.complete


async def test_after_a_cancellation_the_caller_can_go_on(serve: Any, play: Any, connect: Any) -> None:
    in_turn = asyncio.Event()

    async def behave(session: str, prompt: str) -> None:
        in_turn.set()
        await asyncio.Event().wait()

    stand_in = await serve({"a": 1})

    async def drive_then_ask() -> tuple[int | None, int]:
        await play(stand_in, Agents(behave))
        state = await (await connect(stand_in)).state("a.e1")
        task = asyncio.current_task()
        assert task is not None
        return state.turn, task.cancelling()

    both = asyncio.create_task(drive_then_ask())
    await in_turn.wait()
    both.cancel()
    assert await both == (1, 0)


async def test_a_session_that_is_over_already_needs_no_agent(serve: Any, play: Any, diary: Any) -> None:
    stand_in, agents = await serve({"a": 1}), Agents()
    stand_in.turns["a.e1"] = 2
    report = await play(stand_in, agents)
    assert agents.made == []
    assert [(played.end, played.state.over, played.already) for played in report.played] == [
        ("over", True, True)
    ]
    assert diary.finished_ones == list(report.played)


async def test_a_session_that_another_drive_left_in_the_middle_is_begun_anew(serve: Any, play: Any) -> None:
    stand_in, agents = await serve({"a": 2, "b": 1}), Agents()
    stand_in.turns["a.e1"] = 1
    report = await play(stand_in, agents)
    assert stand_in.begun_anew == ["a.e1"]
    assert [prompt for session, prompt in agents.prompts if session == "a.e1"] == [
        "[[next-user-turn 1]]",
        "[[next-user-turn 2]]",
    ]
    assert [(played.session, played.already) for played in report.played] == [
        ("a.e1", False),
        ("b.e1", False),
    ]
    assert report.complete


async def test_a_watcher_that_cannot_write_ends_the_drive_with_its_own_error(serve: Any, play: Any) -> None:
    class Deaf:
        def began(self, session: str, tasks: int) -> None: ...

        def moved(self, state: Any) -> None:
            raise BrokenPipeError(32, "Broken pipe")

        def failed(self, failure: Failure) -> None: ...

        def finished(self, played: Any) -> None: ...

    agents = Agents()
    with pytest.raises(BrokenPipeError):
        await play(await serve({"a": 1}), agents, progress=Deaf())
    assert agents.closed == ["a.e1"]


async def test_the_watcher_is_told_of_each_turn_and_each_session(serve: Any, play: Any, diary: Any) -> None:
    report = await play(await serve({"a": 2, "b": 1}), Agents())
    assert diary.moves == [("a.e1", 1), ("a.e1", 2), ("b.e1", 1)]
    assert diary.finished_ones == list(report.played)


async def test_an_empty_plan_is_played_at_once(serve: Any, play: Any) -> None:
    assert await play(await serve({}), Agents()) == DriveReport((), ())


async def test_the_last_state_of_a_session_is_reported(serve: Any, play: Any) -> None:
    stand_in = await serve({"a": 3})
    async with builtin("m") as factory:
        report = await play(stand_in, factory)
    state = report.played[0].state
    assert state.over
    assert (state.input_tokens, state.output_tokens) == (300, 30)
    assert [task.names_right for task in state.tasks] == [True, True, True]


# The words in the prompt


async def test_with_the_words_injected_an_agent_is_prompted_with_them(serve: Any, play: Any) -> None:
    stand_in, agents = await serve({"a": 2}), Agents()
    report = await play(stand_in, agents, inject="driver")
    assert agents.prompts == [("a.e1", "words of turn 1"), ("a.e1", "words of turn 2")]
    assert report.complete


@pytest.mark.parametrize("blank", ["", " \n"])
async def test_nobody_is_prompted_with_nothing(serve: Any, play: Any, blank: str) -> None:
    agents = Agents()
    await play(await serve({"a": 1}, says=lambda turn: blank), agents, inject="driver")
    assert agents.prompts == [("a.e1", "[[next-user-turn 1]]")]


async def test_a_proxy_that_does_not_tell_the_words_cannot_have_them_injected(serve: Any, play: Any) -> None:
    stand_in, agents = await serve({"a": 1}, says=None), Agents()
    report = await play(stand_in, agents, inject="driver")
    assert agents.prompts == []
    assert [(failure.kind, "--inject" in failure.reason) for failure in report.failures] == [("proxy", True)]
    assert (await play(stand_in, agents)).complete


# No agent at all


async def test_a_drive_without_an_agent_ends_with_its_first_session(
    serve: Any, play: Any, diary: Any
) -> None:
    waiting = asyncio.Event()

    async def behave(session: str, prompt: str) -> None:
        if session == "b.e1":
            waiting.set()
            await asyncio.Event().wait()
        await waiting.wait()
        raise AgentUnusable("cannot be started (No such file):\n check --agent")

    stand_in, agents = await serve(dict.fromkeys("abcd", 2)), Agents(behave)
    with pytest.raises(AgentUnusable) as told:
        await play(stand_in, agents, concurrency=2)
    expected = "no session can be played: the agent cannot be started (No such file): check --agent"
    assert str(told.value) == expected
    assert sorted(agents.closed) == stand_in.created == ["a.e1", "b.e1"]
    # Nothing is charged to an agent that there is none of.
    assert diary.failures == []


async def test_an_agent_that_is_gone_after_an_answer_has_failed_like_any_other(serve: Any, play: Any) -> None:
    stand_in = await serve({"a": 1, "b": 1})
    gone = False

    class Leaving(_Agent):
        async def turn(self, prompt: str, number: int) -> AgentAnswer:
            nonlocal gone
            if gone:
                raise AgentUnusable("cannot be started")
            gone = True
            async with aiohttp.ClientSession() as http:
                url = f"{stand_in.url}/s/{self._session}/v1/chat/completions"
                await http.post(url, json={"messages": []})
            return AgentAnswer()

    agents = Agents()
    report = await play(stand_in, lambda session: Leaving(agents, session.name))
    assert report.failures == (Failure("b.e1", 1, "agent", "cannot be started"),)
    assert [played.end for played in report.played] == ["over", "over"]
