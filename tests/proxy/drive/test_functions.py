"""Agents that are Python functions in worker processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from support.agent_runs import has_ended, played, seat
from support.driving import verdicts

from proxy.drive.agent import Agent, AgentAnswer, AgentFailure, AgentKilled, AgentSession, AgentUnusable
from proxy.drive.functions import functions

Started = Callable[..., Awaitable[Agent]]


@pytest.fixture
async def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Started]:
    """`await start(source, "mine:ask")`: the agent whose module is `mine`, in the current folder."""
    contexts = []
    monkeypatch.chdir(tmp_path)

    async def begin(
        source: str,
        target: str = "mine:ask",
        *,
        session: AgentSession | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Agent:
        Path(f"{target.partition(':')[0]}.py").write_text(source, encoding="utf-8")
        contexts.append(functions(target, environ=environ))
        factory = await contexts[-1].__aenter__()
        return factory(session or seat("answered"))

    yield begin
    for context in contexts:
        await context.__aexit__(None, None, None)


async def failure(agent: Agent, number: int = 1) -> str:
    with pytest.raises(AgentFailure) as failed:
        await agent.turn("a prompt", number)
    return str(failed.value)


async def test_a_function_is_called_with_each_prompt_in_one_process(start: Started) -> None:
    agent = await start(
        "count = 0\ndef ask(prompt):\n    global count; count += 1\n    return f'{count}: {prompt}'"
    )
    assert await agent.turn("one ü\n\u2028", 1) == AgentAnswer("1: one ü\n\u2028")
    assert await agent.turn("two", 2) == AgentAnswer("2: two")


async def test_an_async_function_finds_the_same_event_loop_in_every_turn(start: Started) -> None:
    agent = await start(
        "import asyncio\nloops = set()\n"
        "async def ask(prompt):\n"
        "    loops.add(asyncio.get_running_loop())\n"
        "    return str(len(loops))"
    )
    assert [await agent.turn("x", number) for number in (1, 2)] == [AgentAnswer("1")] * 2


async def test_a_class_is_made_once_and_its_instance_called(start: Started) -> None:
    source = (
        "class Agent:\n"
        "    def __init__(self): self.seen = []\n"
        "    async def __call__(self, prompt):\n"
        "        self.seen.append(prompt)\n"
        "        return ' '.join(self.seen)"
    )
    agent = await start(source, "mine:Agent")
    await agent.turn("one", 1)
    assert await agent.turn("two", 2) == AgentAnswer("one two")


@pytest.mark.parametrize("returned", ["None", "42", "object()"])
async def test_what_is_no_text_is_no_answer_and_no_error(start: Started, returned: str) -> None:
    assert await (await start(f"def ask(prompt): return {returned}")).turn("x", 1) == AgentAnswer("")


async def test_a_text_of_any_length_and_any_characters_comes_through(start: Started) -> None:
    agent = await start("def ask(prompt): return '\\ud800\\n' * 1_000_000")
    assert (await agent.turn("x", 1)).text.startswith("\ud800\n\ud800")


async def test_the_environment_is_set_before_the_module_is_imported(start: Started) -> None:
    session = seat("answered", name="b.e2", base_url="http://127.0.0.1:9/s/b.e2/v1")
    agent = await start(
        "import os\nurl = os.environ['OPENAI_BASE_URL']\ndef ask(prompt): return url", session=session
    )
    assert await agent.turn("x", 1) == AgentAnswer(session.base_url)


async def test_what_a_function_prints_and_reads_cannot_break_the_protocol(start: Started) -> None:
    agent = await start(
        "import os, subprocess, sys\n"
        'print(\'{"turn": 1, "text": "forged"}\', flush=True)\n'
        "def ask(prompt):\n"
        '    print(\'{"turn": 1, "text": "forged"}\', flush=True)\n'
        "    os.write(1, b'raw bytes')\n"
        "    subprocess.run(['echo', 'from a child'], check=True)\n"
        "    return repr(sys.stdin.read())"
    )
    assert await agent.turn("x", 1) == AgentAnswer("''")


async def test_modules_of_the_users_are_found_whatever_ours_are_called(
    start: Started, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text("WORDS = 'the right one'")
    (tmp_path / "plan.py").write_text("def ask(prompt):\n    import agent\n    return agent.WORDS")
    agent = await start((tmp_path / "plan.py").read_text(), "plan:ask")
    assert await agent.turn("x", 1) == AgentAnswer("the right one")


async def test_an_exception_fails_its_turn_alone_and_is_named(start: Started) -> None:
    agent = await start(
        "def ask(prompt):\n"
        "    if prompt == 'a prompt': raise LookupError('no such\\nthing')\n"
        "    return 'fine'",
        session=seat("waiting", "answered"),
    )
    assert await failure(agent) == "LookupError: no such\nthing"
    assert await agent.turn("x", 2) == AgentAnswer("fine")


async def test_an_exception_after_the_answer_costs_a_note(start: Started) -> None:
    agent = await start("async def ask(prompt): raise LookupError('late')")
    assert await agent.turn("x", 1) == AgentAnswer(
        note="raised after the turn was answered: LookupError: late"
    )


async def test_a_function_that_never_asks_the_proxy_is_told(start: Started) -> None:
    agent = await start("def ask(prompt): return 'I know it already'", session=seat("unasked"))
    assert (
        await failure(agent)
        == "returned without having sent the proxy a request for the turn that could be played"
    )


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (
            "import nowhere_to_be_found",
            "mine:ask",
            "ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        ),
        ("ask = 5", "mine:ask", "TypeError: mine:ask is a int, which cannot be called"),
        ("", "mine:ask", "AttributeError: module 'mine' has no attribute 'ask'"),
        ("class A:\n  def __init__(self): raise KeyError('k')", "mine:A", "KeyError: 'k'"),
    ],
)
async def test_what_cannot_be_called_fails_every_turn_and_says_why(
    start: Started, source: str, target: str, reason: str
) -> None:
    agent = await start(source, target, session=seat("unasked"))
    for number in (1, 2):
        with pytest.raises(AgentUnusable) as failed:
            await agent.turn("x", number)
        assert str(failed.value) == f"{target} cannot be used: {reason}"


async def test_a_worker_that_dies_is_told_with_its_last_words_and_not_started_again(start: Started) -> None:
    agent = await start(
        "import os, sys\n"
        "def ask(prompt):\n"
        "    print('out of memory', file=sys.stderr, flush=True)\n"
        "    os._exit(7)",
        session=seat("waiting"),
    )
    assert await failure(agent) == "its worker exited with code 7; its last words: out of memory"
    assert (
        await failure(agent, 2) == "its worker exited with code 7 in or after turn 1 and is not started again"
    )


async def test_a_worker_that_is_killed_has_not_failed_by_itself(start: Started) -> None:
    agent = await start("import os\ndef ask(prompt): os.kill(os.getpid(), 9)", session=seat("waiting"))
    for number, when in ((1, "was ended by SIGKILL"), (2, "was ended by SIGKILL in or after turn 1")):
        with pytest.raises(AgentKilled, match=f"its worker {when}"):
            await agent.turn("a prompt", number)


async def test_a_function_that_exits_the_process_is_a_worker_that_dies(start: Started) -> None:
    agent = await start("import sys\ndef ask(prompt): sys.exit(4)", session=seat("waiting"))
    assert await failure(agent) == "its worker exited with code 4"


async def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one(
    start: Started, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    agent = await start(
        "def ask(prompt):\n    if prompt == 'slow': open('fifo').read()\n    return prompt",
        session=seat("answered"),
    )
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await agent.turn("slow", 1)
    (tmp_path / "fifo").write_text("go on")
    assert await agent.turn("next", 2) == AgentAnswer("next")


async def test_a_worker_ends_with_its_agent(start: Started) -> None:
    agent = await start("import os\ndef ask(prompt): return str(os.getpid())")
    pid = int((await agent.turn("x", 1)).text)
    await agent.close()
    assert has_ended(pid)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_worker_whose_function_does_not_end_is_ended(start: Started, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    agent = await start(
        "import os, signal\n"
        "def ask(prompt):\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    if prompt == 'who': return str(os.getpid())\n"
        "    open('fifo').read()"
    )
    pid = int((await agent.turn("who", 1)).text)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await agent.turn("hang", 2)
    await agent.close()
    assert has_ended(pid)


ORDINARY = """
from openai import {client}

client = {client}()
messages = [{{"role": "system", "content": "You are a helpful assistant."}}]

{define} ask(prompt):
    messages.append({{"role": "user", "content": f"<user>{{prompt}}</user>"}})
    answer = {wait} client.chat.completions.create(model="gpt-4o", messages=messages)
    messages.append(answer.choices[0].message)
    print(answer.choices[0].message.content)
    return answer.choices[0].message.content
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        {"client": "OpenAI", "define": "def", "wait": ""},
        {"client": "AsyncOpenAI", "define": "async def", "wait": "await"},
    ],
    ids=["sync", "async"],
)
async def test_an_ordinary_function_gets_everything_right_with_an_oracle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: dict[str, str]
) -> None:
    # A worker takes a second to import the SDK: two at a time will do.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(ORDINARY.format(**kind))
    report = await played(tmp_path / "log.db", "mine:ask", only=("ledger_1", "home_6"))
    assert [failure.reason for failure in report.failures] == []
    assert report.complete
    assert set(verdicts(tmp_path / "log.db").values()) == {("correct", True)}
