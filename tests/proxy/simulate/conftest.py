"""Scenarios to play, and a small loop that plays them as the released harness does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proxy.simulate.place import Index, build_index
from proxy.simulate.policies import Answer, Policy, parse_policy, respond
from scenarios.assign import assign_calls
from scenarios.history import date_text, gold_history, observation_text, released_tools
from scenarios.load import load, parse_record
from scenarios.matcher import Match, State, match_calls, match_text, start
from scenarios.types import Scenario, ToolCall

Message = dict[str, Any]


@dataclass
class Played:
    """One Task as it went: the answers, what each was taken for, and each request's messages."""

    answers: list[Answer]
    matches: list[Match | None]
    requests: list[list[Message]]

    @property
    def correct(self) -> bool:
        last = self.matches[-1]
        return last is not None and last.kind == "close"


def opening(scenario: Scenario, task: int) -> list[Message]:
    """The request at the start of a Task, as released."""
    return [
        {"role": "system", "content": date_text(scenario)},
        *gold_history(scenario, task),
        {"role": "user", "content": scenario.tasks[task].text},
    ]


def said(answer: Answer) -> Message:
    if not answer.calls:
        return {"role": "assistant", "content": answer.text}
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
        for c in answer.calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def what_follows(scenario: Scenario, task: int, answer: Answer, match: Match) -> list[Message]:
    """The Observations, each with the call that asked for it, or the scripted reply."""
    nodes = scenario.tasks[task].nodes
    if match.kind == "ask":
        return [{"role": "user", "content": nodes[match.nodes[0]].user_input}]
    assigned = assign_calls(nodes, match.nodes, answer.calls)
    return [
        {"role": "tool", "tool_call_id": call.id, "content": observation_text(nodes[i].observation)}
        for call, i in zip(answer.calls, assigned, strict=True)
        if i is not None
    ]


def judge(state: State, answer: Answer) -> Match | None:
    if answer.calls:
        return match_calls(state, [call.name for call in answer.calls])
    return match_text(state) if answer.text else None


def play_task(
    scenario: Scenario, task: int, answer_to: Callable[[list[Message], list[Any]], Answer]
) -> Played:
    """Plays one Task with gold history until it is over; twice its nodes are steps enough."""
    messages, tools = opening(scenario, task), released_tools(scenario)
    played = Played([], [], [])
    state = start(scenario.tasks[task].nodes)
    for _ in range(2 * len(scenario.tasks[task].nodes)):
        answer = answer_to(list(messages), tools)
        match = judge(state, answer)
        played.requests.append(list(messages))
        played.answers.append(answer)
        played.matches.append(match)
        if match is None or match.kind == "close":
            return played
        state = match.state
        messages += [said(answer), *what_follows(scenario, task, answer, match)]
    raise AssertionError(f"{scenario.id} task {task} does not end")


@pytest.fixture(scope="session")
def start_of() -> Callable[[Scenario, int], list[Message]]:
    return opening


@pytest.fixture(scope="session")
def play() -> Callable[..., Played]:
    """play(policy, index, scenario, task, session=None) -> Played"""

    def run(
        policy: str | Policy, index: Index, scenario: Scenario, task: int, session: str | None = None
    ) -> Played:
        parsed = parse_policy(policy) if isinstance(policy, str) else policy
        return play_task(scenario, task, lambda m, t: respond(parsed, index, m, t, session))

    return run


@pytest.fixture(scope="session")
def play_with() -> Callable[..., Played]:
    return play_task


@pytest.fixture(scope="session")
def real(real_session_files: list[Path]) -> tuple[Scenario, ...]:
    return tuple(scenario for file in load(real_session_files) for scenario in file.scenarios)


@pytest.fixture(scope="session")
def real_index(real: tuple[Scenario, ...]) -> Index:
    return build_index(real)


def tool(name: str, *required: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": key} for key in required}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


def call(name: str, after: Sequence[int] = (), says: Any = "done", **arguments: Any) -> dict[str, Any]:
    return {
        "action": {"name": name, "arguments": arguments},
        "observation": says,
        "dependency_list": list(after),
    }


def ask(question: str, reply: str, after: Sequence[int] = ()) -> dict[str, Any]:
    node = call("ask_user_for_required_parameters", after, question)
    return {**node, "user_input": reply}


def close(answer: str, *after: int) -> dict[str, Any]:
    return call("prepare_to_answer", after, answer)


def scenario_of(id: str, tools: Sequence[Any], *tasks: tuple[str, list[Any]], date: str = "") -> Scenario:
    """A Scenario of Tasks (text, nodes), read as from a file."""
    return parse_record(
        {
            "id": id,
            "env_info": date or "2025-03-01 09:00:00 Saturday",
            "tools": list(tools),
            "tasks": [text for text, _ in tasks],
            "answer_list": [nodes for _, nodes in tasks],
        }
    )


@dataclass(frozen=True)
class Write:
    """Builders of scenarios, for tests that need one of a certain shape."""

    tool: Callable[..., dict[str, Any]] = tool
    call: Callable[..., dict[str, Any]] = call
    ask: Callable[..., dict[str, Any]] = ask
    close: Callable[..., dict[str, Any]] = close
    scenario: Callable[..., Scenario] = scenario_of
    message: Callable[[Answer], Message] = said

    @staticmethod
    def calls(*pairs: tuple[str, str, str]) -> Message:
        """An assistant message with calls (id, name, arguments)."""
        return said(Answer("", tuple(ToolCall(*pair) for pair in pairs), ""))

    @staticmethod
    def told(call_id: str, content: Any) -> Message:
        return {"role": "tool", "tool_call_id": call_id, "content": content}

    @staticmethod
    def user(content: Any) -> Message:
        return {"role": "user", "content": content}

    @staticmethod
    def assistant(content: Any) -> Message:
        return {"role": "assistant", "content": content}


@pytest.fixture(scope="session")
def write() -> Write:
    return Write()


@pytest.fixture(scope="session")
def library(write: Write) -> Scenario:
    """Three Tasks: a run of equal names with more behind it, one with an ask, and a chat."""
    tools = [tool("find", "title"), tool("lend", "book", "days"), tool("remind", "book")]
    lending = [
        call("find", says={"book": 1}, title="Dune"),
        call("find", says={"book": 2}, title="Emma"),
        call("lend", [0], {"due": "2025-03-15"}, book="1", days="14"),
        call("lend", [1], {"due": "2025-03-22"}, book="2", days="21"),
        close("Both are yours.", 2, 3),
    ]
    reminder = [
        ask("Of which book?", "The second one", []),
        call("remind", [0], "set", book="2"),
        close("I will remind you.", 1),
    ]
    return scenario_of(
        "library",
        tools,
        ("Lend me Dune for 14 days and Emma for 21.", lending),
        ("Remind me.", reminder),
        ("Thank you!", [close("You are welcome.")]),
    )
