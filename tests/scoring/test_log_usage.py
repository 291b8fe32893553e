"""Tokens, seconds and tries, from logs that were written row by row and from one that was played."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support import logs, scenes
from support.playing import Proxy, playing

from proxy.log.rows import HandoverRow, Row
from proxy.log.writer import LogWriter
from scoring.logs.reader import open_log, read_trajectories
from scoring.logs.usage import read_usage
from scoring.metrics.usage import ModelCall, StepUsage, Usage
from scoring.types import Trajectory

FAILED: dict[str, Any] = {"finish_state": "provider_error", "status": 503}
NOTHING = ModelCall("m", None, None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def write(path: Path, *rows: Row) -> Path:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*rows)
    return path


def read(path: Path) -> Usage:
    return open_log(path).ask(lambda connection: read_usage(connection, "r1"))


def asked(
    name: str,
    given: int | None = None,
    made: int | None = None,
    session: str = "s1",
    turn: int = 1,
    **end: Any,
) -> list[Row]:
    """An exchange with the provider from 4 s to 5 s, the first chunk after 0.5 s."""
    finish = logs.finish(name, input_tokens=given, output_tokens=made, **end)
    return [logs.start(name, session, side="provider", turn=turn), finish]


def aside(name: str, reason: str, **values: Any) -> list[Row]:
    """An exchange of the agent beside the conversation."""
    started = logs.start(name, values.pop("session", "s1"), reason=reason, request_model="small")
    return [started, logs.finish(name, **values)]


def step(number: int, exchange: str, task: int = 0, session: str = "s1") -> Row:
    return logs.step(number, task, session, exchange_id=exchange)


def took(given: int | None, made: int | None, tries: int = 1) -> StepUsage:
    return StepUsage("m", given, made, 1.0, 0.5, tries)


def test_each_step_has_the_tokens_and_the_seconds_of_the_exchange_that_it_came_of(path: Path) -> None:
    write(
        path,
        *logs.opened(),
        logs.turn(),
        logs.start("agent"),
        logs.start("x1", side="provider", request_model="alpha", started_at=10.25, stream=True),
        logs.finish("x1", finished_at=12.5, time_to_first_chunk=0.125, input_tokens=100, output_tokens=7),
        step(0, "x1"),
        logs.start("x2", side="provider", request_model="beta", started_at=13.0),
        logs.finish("x2", finished_at=13.5, time_to_first_chunk=None, input_tokens=120, output_tokens=9),
        step(1, "x2"),
        logs.end(0),
        logs.turn(2, 1),
        *asked("x3", 200, 30, turn=2),
        step(0, "x3", task=1),
        logs.finish("agent", input_tokens=420, output_tokens=46),
    )

    assert read(path) == Usage(
        sessions=1,
        steps={
            ("shop_1", 1, 0): (
                StepUsage("alpha", 100, 7, 2.25, 0.125, 1),
                StepUsage("beta", 120, 9, 0.5, None, 1),
            ),
            ("shop_1", 1, 1): (took(200, 30),),
        },
        seconds={("shop_1", 1, 0): 4.0},
    )


def test_failures_before_a_step_are_tries_of_it_and_those_that_no_step_came_after_are_not(path: Path) -> None:
    write(
        path,
        *logs.opened(),
        logs.turn(),
        logs.turn(2, 1),
        *asked("f1", **FAILED),
        *asked("f2", **FAILED),
        *asked("x1", 10, 1),
        step(0, "x1"),
        *asked("x2", 20, 2),
        step(1, "x2"),
        *asked("f3", finish_state="client_abort", status=None),
        *asked("x3", 30, 3, turn=2),
        step(0, "x3", task=1),
        *asked("f4", 5, 0, turn=2, status=200, finish_state="provider_error"),
    )

    found = read(path)

    assert found.steps == {
        ("shop_1", 1, 0): (took(10, 1, tries=3), took(20, 2)),
        ("shop_1", 1, 1): (took(30, 3),),
    }
    assert found.failed == (NOTHING, NOTHING, NOTHING, ModelCall("m", 5, 0))


def test_calls_beside_the_conversation_are_in_no_step_and_those_that_no_llm_saw_are_no_calls(
    path: Path,
) -> None:
    write(
        path,
        *logs.opened(),
        logs.turn(),
        *aside("title", "it has no tools", input_tokens=8, output_tokens=2),
        *aside("router", "it does not ask for a turn", **FAILED),
        *aside("tools", "mcp"),
        *aside("refused", "refused", finish_state="proxy_error", status=400),
        logs.start("open", reason="it has no tools"),
        *asked("x1", 10, 1),
        step(0, "x1"),
    )

    found = read(path)

    assert found.steps == {("shop_1", 1, 0): (took(10, 1),)}
    assert found.side_calls == (ModelCall("small", 8, 2), ModelCall("small", None, None))
    assert found.failed == ()


def test_a_call_of_a_control_tool_is_no_step_and_takes_the_failures_before_it(path: Path) -> None:
    write(
        path,
        *logs.opened(),
        logs.turn(),
        *asked("f1", **FAILED),
        *asked("c1", 10, 1),
        HandoverRow("s1", 1, 0, 0, "c1", logs.call_message(("transfer_to_sales", "{}")), {}),
        *asked("x1", 20, 2),
        step(0, "x1"),
    )

    found = read(path)

    assert found.steps == {("shop_1", 1, 0): (took(20, 2, tries=1),)}
    assert (found.control_calls, found.failed) == ((ModelCall("m", 10, 1),), (NOTHING,))


def test_only_the_last_attempt_counts(path: Path) -> None:
    write(
        path,
        *logs.opened(),
        logs.turn(),
        *asked("old", 1000, 100),
        step(0, "old"),
        *asked("f1", **FAILED),
        *aside("old title", "it has no tools", input_tokens=8, output_tokens=2),
        logs.end(),
        logs.session("s2", attempt=2),
        logs.turn(session_id="s2"),
        *asked("new", 10, 1, "s2"),
        step(0, "new", session="s2"),
    )

    assert read(path) == Usage(1, {("shop_1", 1, 0): (took(10, 1),)}, {})


def test_other_runs_have_no_part_in_it(path: Path) -> None:
    write(
        path,
        *logs.opened(),
        logs.run("r2"),
        logs.session("s2", run_id="r2"),
        logs.turn(session_id="s2"),
        *asked("x2", 10, 1, "s2"),
        step(0, "x2", session="s2"),
    )

    assert read(path) == Usage(1, {}, {})


def test_what_the_provider_did_not_tell_is_not_known(path: Path) -> None:
    start = logs.start("x1", side="provider", request_model=None)
    write(
        path, *logs.opened(), logs.turn(), start, logs.finish("x1", time_to_first_chunk=None), step(0, "x1")
    )

    found = read(path)

    assert found.steps == {("shop_1", 1, 0): (StepUsage(None, None, None, 1.0, None, 1),)}
    assert [call.tokens for call in found.all_calls()] == [None]


def test_what_is_still_open_is_not_counted(path: Path) -> None:
    write(path, *logs.opened(), logs.turn(), logs.start("x1", side="provider"))

    assert read(path) == Usage(1, {}, {})


def test_a_task_is_open_from_its_first_turn_to_its_end(path: Path) -> None:
    turns = [
        replace(logs.turn(n, task), opened_at=at) for n, task, at in ((1, 0, 3.0), (2, 0, 6.5), (3, 1, 9.0))
    ]
    write(
        path,
        *logs.opened(),
        *turns,
        replace(logs.end(0), ended_at=8.25),
        replace(logs.end(1), ended_at=9.5),
        logs.session("s2", epoch=2),
        logs.end(0, "not_reached", "s2"),
    )

    assert read(path).seconds == {("shop_1", 1, 0): 5.25, ("shop_1", 1, 1): 0.5}


def test_the_order_of_writing_changes_nothing(tmp_path: Path) -> None:
    def session(number: int) -> list[Row]:
        name, x = f"s{number}", f"x{number}"
        played = [logs.session(name, epoch=number), logs.turn(session_id=name), *asked(x, number, 1, name)]
        return [*played, step(0, x, session=name), *asked(f"f{number}", number, 0, name, **FAILED)]

    forth = write(tmp_path / "a.db", logs.run(), logs.scenario(), *session(1), *session(2))
    back = write(tmp_path / "b.db", logs.run(), logs.scenario(), *session(2), *session(1))

    assert repr(read(forth)) == repr(read(back)) == repr(read(forth))
    assert list(read(back).steps) == [("shop_1", 1, 0), ("shop_1", 2, 0)]


@asynccontextmanager
async def provider_giving(*answers: tuple[int, str, tuple[int, int] | None]) -> AsyncIterator[str]:
    """A provider that gives these (status, text, tokens), one after another; its base URL."""
    left = iter(answers)

    async def answer(request: web.Request) -> web.Response:
        status, text, tokens = next(left)
        if status != 200:
            return web.json_response(
                {"error": {"message": text}}, status=status, headers={"Retry-After": "0"}
            )
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        whole: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "choices": [choice]}
        if tokens:
            whole["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
        return web.json_response(whole)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def play(proxy: Proxy) -> None:
    """Two turns of an agent with tools, and a title in between."""
    tools = [scenes.tool("search", words="string")]
    title = {"model": "small", "messages": [{"role": "user", "content": "Title for: [[next-user-turn 1]]"}]}
    assert (await proxy.chat("chat", 1, tools=tools)).status == 200
    assert (await proxy.send("POST", "/s/chat/v1/chat/completions", json=title)).status == 200
    assert (await proxy.chat("chat", 2, tools=tools)).status == 200


async def test_what_a_session_took_that_was_played_through_the_proxy(tmp_path: Path) -> None:
    answers = ((503, "busy", None), (200, "One.", (40, 4)), (200, "Lamps", (9, 1)), (200, "Two.", None))
    async with (
        provider_giving(*answers) as provider,
        playing(tmp_path, provider, scenes.chat("chat"), provider_retries=1) as proxy,
    ):
        await play(proxy)
        run = proxy.run_id

    def both(connection: Any) -> tuple[list[Trajectory], Usage]:
        return read_trajectories(connection, proxy.log, run), read_usage(connection, run)

    (trajectory,), found = open_log(proxy.log).ask(both)

    steps = {
        key: [(it.model, it.input_tokens, it.output_tokens, it.tries) for it in found.steps[key]]
        for key in found.steps
    }
    assert steps == {
        ("chat", 1, 0): [("some-model", 40, 4, 2)],
        ("chat", 1, 1): [("some-model", None, None, 1)],
    }
    assert found.side_calls == (ModelCall("small", 9, 1),)
    assert found.failed == (ModelCall("some-model", None, None),)
    assert set(found.seconds) == set(found.steps)
    times = [it.latency for it in found.all_steps()]
    assert all(it is not None and it > 0 for it in times)
    assert [len(task.replies) for task in trajectory.tasks] == [1, 1]
