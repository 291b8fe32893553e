"""Agents that are commands: how they are started, spoken to, listened to and ended."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.agent_runs import command, has_ended, played, seat
from support.playing import rows

from proxy.drive import client
from proxy.drive.agent import (
    Agent,
    AgentAnswer,
    AgentError,
    AgentFailure,
    AgentKilled,
    AgentUnusable,
    Delivery,
)
from proxy.drive.process import Processes, abridged, exit_text
from proxy.drive.programs import Per, programs

Started = Callable[..., Awaitable[Agent]]

SECRET = "sk-proj-abcdefghijklmnop1234"
RECORDS_LINES = """
import pathlib, sys
with pathlib.Path(sys.argv[1]).open("w") as file:
    for line in sys.stdin:
        file.write(line)
"""
TELLS_ALL = """
import json, os, pathlib, sys
told = {"arguments": sys.argv[2:], "input": sys.stdin.read(), "environment": dict(os.environ)}
pathlib.Path(sys.argv[1]).write_text(json.dumps(told))
"""


UNUSABLE = [
    (127, "unasked", True),
    (126, "unasked", True),
    (1, "unasked", False),
    (127, "waiting", False),
]


@pytest.fixture
async def start() -> AsyncIterator[Started]:
    """`await start([word, ...], per="turn", session=seat(...))` gives an agent; all end with the test."""
    contexts = []

    async def begin(
        words: list[str],
        *,
        per: Per = "session",
        session: Any = None,
        environ: Any = os.environ,
        **options: Any,
    ) -> Agent:
        contexts.append(programs(words, per=per, environ=environ, **options))
        factory = await contexts[-1].__aenter__()
        return factory(session or seat("answered"))

    yield begin
    for context in contexts:
        await context.__aexit__(None, None, None)


def python(program: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", program, *map(str, arguments)]


async def failure(agent: Agent, number: int = 1) -> str:
    with pytest.raises(AgentFailure) as failed:
        await agent.turn(f"[[next-user-turn {number}]]", number)
    return str(failed.value)


async def test_each_prompt_is_a_line_on_the_standard_input_of_one_process(
    start: Started, tmp_path: Path
) -> None:
    agent = await start(python(RECORDS_LINES, tmp_path / "lines"))
    assert await agent.turn("one", 1) == AgentAnswer()
    await agent.turn("two", 2)
    await agent.close()
    assert (tmp_path / "lines").read_text() == "one\ntwo\n"


async def test_a_prompt_of_several_lines_is_one_line(start: Started, tmp_path: Path) -> None:
    agent = await start(python(RECORDS_LINES, tmp_path / "lines"))
    await agent.turn("one\ntwo\r\nthree\rfour\u2028five ü", 1)
    await agent.close()
    lines = (tmp_path / "lines").read_bytes().decode()
    assert lines == "one two three four\u2028five ü\n"


async def test_the_next_prompt_waits_for_the_answer_to_the_one_before(start: Started, tmp_path: Path) -> None:
    delivered = asyncio.Event()

    async def delivery(turn: int, timeout: float | None) -> Delivery:
        await delivered.wait()
        return "answered"

    session = replace(seat("answered"), delivery=delivery)
    agent = await start(python(RECORDS_LINES, tmp_path / "lines"), session=session)
    turn = asyncio.create_task(agent.turn("one", 1))
    await asyncio.wait({turn}, timeout=0.2)
    assert not turn.done()
    delivered.set()
    await turn


async def told(agent: Agent, file: Path, prompt: str = "[[next-user-turn 1]]") -> dict[str, Any]:
    await agent.turn(prompt, 1)
    result: dict[str, Any] = json.loads(file.read_text())
    return result


async def test_the_prompt_stands_in_the_command_and_no_shell_sees_it(start: Started, tmp_path: Path) -> None:
    session = seat("answered", name="a.e1", base_url="http://127.0.0.1:9/s/a.e1/v1")
    words = ["--say={turn}", "{session} {base_url}", "$HOME; ls | {other} *"]
    agent = await start([*python(TELLS_ALL, tmp_path / "told"), *words], per="turn", session=session)
    prompt = 'it\'s $(touch x) {session} "quoted"'
    assert await told(agent, tmp_path / "told", prompt) | {"environment": None} == {
        "arguments": [f"--say={prompt}", "a.e1 http://127.0.0.1:9/s/a.e1/v1", "$HOME; ls | {other} *"],
        "input": "",
        "environment": None,
    }


async def test_without_a_place_in_the_command_the_prompt_comes_on_standard_input(
    start: Started, tmp_path: Path
) -> None:
    agent = await start(python(TELLS_ALL, tmp_path / "told"), per="turn")
    assert (await told(agent, tmp_path / "told"))["input"] == "[[next-user-turn 1]]\n"


async def test_the_environment_leads_to_the_proxy_and_nowhere_else(start: Started, tmp_path: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "OPENAI_API_KEY": SECRET,
        "PROVIDER_KEY": SECRET,
        "EVAL_TOKEN": "the control token",
        "OPENAI_CUSTOM_HEADERS": "x-team: red\nX-Eval-Session: another",
        "HTTP_PROXY": "http://proxy.example:3128",
        "NO_PROXY": "intranet.example",
        "OPENAI_TIMEOUT": "30",
    }
    session = replace(seat("answered"), api_key=SECRET)
    agent = await start(
        python(TELLS_ALL, tmp_path / "told"),
        per="turn",
        session=session,
        environ=environ,
        hidden=("PROVIDER_KEY",),
    )
    environment = (await told(agent, tmp_path / "told"))["environment"]
    environment.pop("LC_CTYPE", None)  # Python's own, where the locale is C.
    assert environment == {
        "PATH": os.environ["PATH"],
        "HTTP_PROXY": "http://proxy.example:3128",
        "NO_PROXY": "intranet.example,127.0.0.1",
        "no_proxy": "intranet.example,127.0.0.1",
        "OPENAI_BASE_URL": session.base_url,
        "OPENAI_API_BASE": session.base_url,
        "OPENAI_API_KEY": "sk-eval-a.e1",
        "OPENAI_CUSTOM_HEADERS": "x-team: red\nx-eval-session: a.e1",
        "OPENAI_TIMEOUT": "30",
        "EVAL_SESSION": "a.e1",
        "EVAL_BASE_URL": session.base_url,
        "EVAL_MCP_URL": "http://127.0.0.1:9/s/a.e1/mcp",
        "PYTHONUNBUFFERED": "1",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "OTEL_SDK_DISABLED": "true",
        "AGNO_TELEMETRY": "false",
    }


async def test_a_name_that_no_header_can_hold_is_not_put_into_one(start: Started, tmp_path: Path) -> None:
    session = seat("answered", name="ü.e1", base_url="http://127.0.0.1:9/s/%C3%BC.e1/v1")
    agent = await start(python(TELLS_ALL, tmp_path / "told"), per="turn", session=session)
    environment = (await told(agent, tmp_path / "told"))["environment"]
    assert environment["OPENAI_API_KEY"].isascii()
    assert "ü" not in environment.get("OPENAI_CUSTOM_HEADERS", "")
    assert environment["EVAL_SESSION"] == "ü.e1"


@pytest.mark.parametrize("per", ["session", "turn"])
async def test_an_exit_before_the_answer_is_a_failure_with_the_end_of_standard_error(
    start: Started, per: Per
) -> None:
    program = "import sys; print('lost', file=sys.stderr); print('ignored'); sys.exit(3)"
    agent = await start(python(program), per=per, session=seat("waiting"))
    assert await failure(agent) == "exited with code 3 before the turn was answered; its last words: lost"


@pytest.mark.parametrize(
    ("delivery", "said"),
    [
        ("unasked", "without having sent the proxy a request for the turn that could be played"),
        ("waiting", "before the turn was answered"),
        ("failed", "after the provider had failed"),
    ],
)
async def test_it_is_told_how_the_answer_was_missed(start: Started, delivery: Delivery, said: str) -> None:
    agent = await start(python("pass"), per="turn", session=seat(delivery))
    assert await failure(agent) == f"exited with code 0 {said}"


async def test_an_exit_after_the_answer_costs_a_note_if_it_was_no_success(start: Started) -> None:
    agent = await start(python("import sys; sys.exit('too late')"), per="turn")
    assert await agent.turn("x", 1) == AgentAnswer(
        note="exited with code 1 after the turn was answered; its last words: too late"
    )
    assert await (await start(python("pass"), per="turn")).turn("x", 1) == AgentAnswer()


async def test_a_process_for_the_session_that_has_exited_is_not_started_again(
    start: Started, tmp_path: Path
) -> None:
    program = (
        "import os, pathlib, sys; pathlib.Path(sys.argv[1]).open('a').write('x'); os.kill(os.getpid(), 9)"
    )
    agent = await start(python(program, tmp_path / "starts"), session=seat("unasked"))
    await failure(agent, 1)
    assert [await failure(agent, number) for number in (2, 3)] == [
        "its process was ended by SIGKILL in or after turn 1 and is not started again"
    ] * 2
    assert (tmp_path / "starts").read_text() == "x"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_an_agent_that_is_killed_between_its_turns_has_not_failed_by_itself(
    start: Started, number: int
) -> None:
    program = f"import os, signal; signal.signal({number}, signal.SIG_DFL) if {number} != 9 else 0; input(); "
    agent = await start(python(f"{program}os.kill(os.getpid(), {number})"), session=seat("answered"))
    with pytest.raises(AgentKilled, match=r"in or after turn [1-9]"):
        # It has the answer to each turn that it lives to see.
        for turn in range(1, 10_000):
            await agent.turn("x", turn)


async def test_the_last_words_of_a_process_are_told_once(start: Started) -> None:
    agent = await start(python("import sys; input(); sys.exit('lost')"), session=seat("waiting"))
    assert [await failure(agent, number) for number in (1, 2, 3)] == [
        "exited with code 1 before the turn was answered; its last words: lost",
        *["its process exited with code 1 in or after turn 1 and is not started again"] * 2,
    ]


async def test_an_agent_that_ends_between_its_turns_has_failed(start: Started) -> None:
    agent = await start(python("input()"), session=seat("answered"))
    with pytest.raises(AgentFailure, match=r"exited with code 0 in or after turn [1-9]") as failed:
        for turn in range(1, 10_000):
            await agent.turn("x", turn)
    assert not isinstance(failed.value, AgentKilled)


async def test_an_agent_that_closes_its_input_does_not_keep_the_turn_waiting(start: Started) -> None:
    program = "import os, threading; os.close(0); threading.Event().wait()"
    agent = await start(python(program), session=seat("unasked"))
    assert (await failure(agent)).startswith("closed its standard input without having sent the proxy")


@pytest.mark.parametrize("per", ["session", "turn"])
@pytest.mark.parametrize("what", ["./no-such-program", "."])
async def test_what_cannot_be_started_fails_its_turns(start: Started, per: Per, what: str) -> None:
    agent = await start([what], per=per)
    assert (await failure(agent)).startswith("cannot be started (")
    with pytest.raises(AgentUnusable):
        await agent.turn("x", 2)
    await agent.close()


@pytest.mark.parametrize("per", ["session", "turn"])
@pytest.mark.parametrize(("code", "delivery", "unusable"), UNUSABLE)
async def test_what_a_shell_could_not_run_is_no_agent_unless_it_has_asked_the_proxy(
    start: Started, per: Per, code: int, delivery: Delivery, unusable: bool
) -> None:
    program = f"import sys; sys.stderr.write('my-agent: not found'); sys.exit({code})"
    agent = await start(python(program), per=per, session=seat(delivery))
    with pytest.raises(AgentFailure) as failed:
        await agent.turn("x", 1)
    assert isinstance(failed.value, AgentUnusable) is unusable


async def test_a_drive_of_a_program_that_is_not_there_says_so_once_and_charges_nobody(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with pytest.raises(AgentError) as told:
        await played(log, "sh -c no-such-program-here", concurrency=2)
    assert str(told.value).startswith("no session can be played: the agent exited with code 127 without")
    assert "no-such-program-here" in str(told.value)
    assert rows(log, "SELECT * FROM tasks") == []


async def test_a_command_that_the_system_cannot_hold_fails_its_turn(start: Started) -> None:
    agent = await start(python("pass", "{turn}"), per="turn")
    with pytest.raises(AgentFailure, match="null byte"):
        await agent.turn("a\0b", 1)
    with pytest.raises(AgentFailure, match="Argument list too long"):
        await agent.turn("x" * 10_000_000, 2)


LEAVES_A_CHILD = """
import subprocess, sys, pathlib
child = subprocess.Popen(["sleep", "1000"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
"""


async def test_what_an_agent_leaves_behind_ends_with_it(start: Started, tmp_path: Path) -> None:
    agent = await start(python(LEAVES_A_CHILD, tmp_path / "pid"), per="turn")
    await agent.turn("x", 1)
    assert has_ended(int((tmp_path / "pid").read_text()))


TRAPS = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "1000"])
fifo = open(sys.argv[1], "w")
print(os.getpid(), child.pid, file=fifo, flush=True)
signal.pause()
"""


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


async def pids(fifo: Path) -> list[int]:
    def read() -> list[int]:
        with fifo.open() as file:
            return [int(word) for word in file.readline().split()]

    return await asyncio.to_thread(read)


@pytest.mark.parametrize("per", ["session", "turn"])
async def test_a_cancelled_turn_and_a_close_leave_no_process(start: Started, fifo: Path, per: Per) -> None:
    agent = await start(python(TRAPS, fifo), per=per, session=seat("waiting"))
    turn = asyncio.create_task(agent.turn("x", 1))
    running = await pids(fifo)
    turn.cancel()
    await asyncio.wait({turn})
    await agent.close()
    assert all(has_ended(pid) for pid in running)
    # The leader is no zombie either.
    with pytest.raises(ProcessLookupError):
        os.kill(running[0], 0)


async def test_no_process_outlives_the_context_whatever_happened_to_its_agent(fifo: Path) -> None:
    with pytest.raises(KeyError):
        async with programs(python(TRAPS, fifo), per="session", environ=os.environ) as factory:
            await factory(seat("answered")).turn("x", 1)
            running = await pids(fifo)
            raise KeyError
    assert all(has_ended(pid) for pid in running)


async def test_an_agent_that_ends_when_its_input_does_is_not_killed(start: Started, tmp_path: Path) -> None:
    program = "import sys, pathlib; sys.stdin.read(); pathlib.Path(sys.argv[1]).write_text('done')"
    agent = await start(python(program, tmp_path / "end"))
    await agent.turn("x", 1)
    await agent.close()
    assert (tmp_path / "end").read_text() == "done"


async def test_last_words_are_the_end_without_secrets_and_without_what_a_terminal_obeys(
    start: Started,
) -> None:
    program = f"""
import sys
sys.stderr.write("e" * 100000 + "\\n")
sys.stderr.buffer.write(b"\\xff\\x1b]0;title\\x07 {SECRET} and hunter2-hunter2\\n  ^^^^^\\n\\n")
sys.exit(1)
"""
    environ = {**os.environ, "MY_SERVICE_TOKEN": "hunter2-hunter2"}
    agent = await start(python(program), per="turn", session=seat("waiting"), environ=environ)
    reason = await failure(agent)
    assert reason.endswith(r"its last words: �\x1b]0;title\x07 [masked] and [masked]")


async def test_standard_output_is_quoted_where_standard_error_is_empty(start: Started) -> None:
    agent = await start(python("print('Traceback'); exit(1)"), per="turn", session=seat("waiting"))
    assert (await failure(agent)).endswith("its last words: Traceback")


def test_last_words_are_whole_lines_where_they_fit_and_both_ends_of_a_longer_one() -> None:
    assert abridged(["a" * 300, "one", "  ", "two  words"]) == "one | two words"
    assert abridged(["first", "x" * 200 + "y" * 200]) == "x" * 99 + "…" + "y" * 60
    assert abridged(["", "----"]) == ""


def test_an_exit_is_put_into_words() -> None:
    assert [exit_text(code) for code in (0, 3, -signal.SIGTERM, -99)] == [
        "exited with code 0",
        "exited with code 3",
        "was ended by SIGTERM",
        "was ended by signal 99",
    ]


async def test_only_the_end_of_an_output_is_kept() -> None:
    async with Processes({}) as processes:
        process = await processes.start(
            python("import sys; sys.stderr.write('e' * 5_000_000 + '\\nend')"), os.environ
        )
        assert await process.ended() == 0
        assert process.last_words() == "end"


async def test_a_turn_whose_agent_asks_again_after_a_failure_goes_on(tmp_path: Path, provider: Any) -> None:
    provider.fail(500)
    provider.script(lambda request: provider.message(request, "Fine."))
    report = await played(tmp_path / "log.db", command("asks_again"), provider=provider.url, only=("home_6",))
    assert report.failures == ()
    assert {task.end for task in report.played[0].state.tasks} <= {"closed", "stopped"}


async def test_a_provider_that_fails_is_told_from_an_agent_that_does(
    tmp_path: Path, provider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "GRACE_S", 0.1)
    provider.script(lambda request: provider.as_json({"error": {"message": "no credit"}}, 402))
    program = "import plain, sys; [plain.sent([plain.user(p)]).getresponse().read() for p in plain.prompts()]"
    folder = Path(shlex.split(command("plain"))[1]).parent
    agent = shlex.join(python(f"import sys; sys.path.insert(0, {str(folder)!r}); {program}"))
    report = await played(tmp_path / "log.db", agent, provider=provider.url, only=("home_6",))
    assert {failure.reason for failure in report.failures} == {"the provider failed"}
    assert [task.end for task in report.played[0].state.tasks] == ["infrastructure"] * 4
