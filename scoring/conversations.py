"""Conversations that were recorded elsewhere, split into the Tasks of their Scenario. Pure.

A user message begins the next Task or answers a question, decided in this order: its text is that of
the next Task; it is a scripted answer of the Task that is open; the last reply was a text where the
Reference has a question due; else it begins the next Task. Texts are compared but for case, spaces and
Unicode form.

User messages with no reply between them are one turn, unless the later one is the text of the next
Task: agents put words of their own before, or after, what the user says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from scenarios import live
from scenarios.matcher import Match, State, start
from scenarios.problems import kind_of, short
from scenarios.replies import read_reply
from scenarios.steps import take_step
from scenarios.strict.texts import normal
from scenarios.text import counted
from scenarios.types import Reply, Scenario
from scoring.types import AGENT_STOPPED, TaskTrajectory, Trajectory

NOT_IN_CONVERSATION = "not in the conversation"
"""Why a Task is not scored that the conversation does not come to."""

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class ConversationError(Exception):
    """Messages that cannot be told apart by Task: which message, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def trajectory(scenario: Scenario, messages: object, *, case: str, task: int | None = None) -> Trajectory:
    """The replies of a conversation in OpenAI chat form, by Task; `case` becomes the Session's name.

    What comes before the first user message is context. `task` (from 1) says that the messages are of
    this Task alone: the last user message with its text begins it, or else the first user message, and
    what comes before that is context.

    A Task that was begun and has no closing text counts as left by the agent. A Task that was never
    begun is unfinished, for the reason NOT_IN_CONVERSATION. Raises ConversationError.
    """
    checked = _checked(messages)
    first, last = (0, len(scenario.tasks)) if task is None else (task - 1, task)
    played: list[_Open] = []
    for position in range(_beginning(scenario, checked, task), len(checked)):
        message = checked[position]
        if message["role"] == "assistant":
            played[-1] = _reply(played[-1], read_reply(message))
        elif message["role"] == "user":
            text = normal(read_reply(message).content or "")
            if played and not _begins_next(scenario, played[-1], text, last):
                played[-1] = _heard(played[-1])
                continue
            number = first + len(played)
            _check_number(scenario, number, task, text, f"messages[{position}]")
            played.append(_begun(scenario, number, played[-1].progress if played else None))
    found = {opened.number: _ended(opened) for opened in played}
    missing = TaskTrajectory((), finished=False, unfinished_reason=NOT_IN_CONVERSATION)
    tasks = tuple(found.get(number, missing) for number in range(len(scenario.tasks)))
    return Trajectory(case, 1, scenario, tasks)


@dataclass(frozen=True, slots=True)
class _Open:
    """A Task as far as the conversation has come.

    `state` is where the released harness stands, None after a Step that it does not allow. `last` is
    what came last: the user, or what the reply was taken for.
    """

    number: int
    progress: live.Progress
    state: State | None
    last: Literal["user", "calls", "ask", "close", "nothing"] = "user"
    replies: tuple[Reply, ...] = ()


def _begun(scenario: Scenario, number: int, before: live.Progress | None) -> _Open:
    nodes = scenario.tasks[number].nodes
    progress = live.begin_task(scenario.tools, nodes, before, notes=scenario.notes)
    return _Open(number, progress, start(nodes))


def _reply(task: _Open, reply: Reply) -> _Open:
    """A text is a question if one is due, be it by the released rules or after calls that went wrong."""
    step = live.take(task.progress, reply)
    taken = None if task.state is None else take_step(task.state, reply)
    match = taken if isinstance(taken, Match) else None
    return replace(
        task,
        progress=step.progress,
        state=None if match is None else match.state,
        last="ask" if match is not None and match.kind == "ask" else step.kind,
        replies=(*task.replies, reply),
    )


def _heard(task: _Open) -> _Open:
    """The user has spoken within the Task."""
    return replace(task, last="user")


def _ended(task: _Open) -> TaskTrajectory:
    return TaskTrajectory(task.replies, None if task.last == "close" else AGENT_STOPPED)


def _begins_next(scenario: Scenario, task: _Open, text: str, last: int) -> bool:
    """Does what the user says begin the next Task, rather than belong to this one?"""
    following = task.number + 1
    if following < last and text == normal(scenario.tasks[following].text):
        return True
    scripted = {normal(node.user_input) for node in task.progress.nodes if node.user_input is not None}
    return text not in scripted and task.last not in ("ask", "user")


def _check_number(scenario: Scenario, number: int, task: int | None, text: str, field: str) -> None:
    """Raises ConversationError where the user message cannot begin Task `number` (from 0)."""
    if task is not None:
        if number >= task:
            reason = f"begins another task, but the messages are said to be of task {task} alone"
            raise ConversationError(field, f"{reason}; leave out task, or what comes after it")
        return
    if number >= len(scenario.tasks):
        reason = f"is one user message too many: {scenario.id} has {counted(len(scenario.tasks), 'task')}"
        raise ConversationError(field, f"{reason}, and no question is open")
    texts = [normal(it.text) for it in scenario.tasks]
    if text != texts[number] and text in texts:
        reason = f"is the text of task {texts.index(text) + 1}, but task {number + 1} is the next"
        raise ConversationError(field, f"{reason}; give each task a line of its own, with its number as task")


def _beginning(scenario: Scenario, messages: Sequence[Mapping[str, Any]], task: int | None) -> int:
    """The position of the user message that begins the first Task that is judged."""
    spoken = [i for i, message in enumerate(messages) if message["role"] == "user"]
    if not spoken:
        raise ConversationError("messages", "has no user message, so no task is begun")
    if task is None:
        return spoken[0]
    wanted = normal(scenario.tasks[task - 1].text)
    same = [i for i in spoken if normal(read_reply(messages[i]).content or "") == wanted]
    return same[-1] if same else spoken[0]


def _checked(messages: object) -> list[dict[str, Any]]:
    """The messages, each an object with a known role, each tool result that of a call before it."""
    if not isinstance(messages, list):
        raise ConversationError("messages", f"must be a list of chat messages, not {kind_of(messages)}")
    ids: set[str | None] = set()
    names: set[str] = set()
    for position, message in enumerate(messages):
        field = f"messages[{position}]"
        if not isinstance(message, dict):
            raise ConversationError(field, f"must be a chat message, not {kind_of(message)}")
        role = message.get("role")
        if role not in ROLES:
            what = f"{short(role)} is no role" if "role" in message else "is missing"
            raise ConversationError(f"{field}.role", f"{what}; known are {', '.join(ROLES)}")
        if role == "assistant":
            calls = read_reply(message).calls
            ids |= {call.id for call in calls}
            names |= {call.name for call in calls}
        for reason in _unasked(message, ids, names):
            raise ConversationError(field, reason)
    return messages


def _unasked(message: Mapping[str, Any], ids: set[str | None], names: set[str]) -> Iterator[str]:
    """Why a tool result is nobody's. Without an id it is that of a call that has none either."""
    if message["role"] == "tool":
        given = message.get("tool_call_id") or None
        if given is None and None not in ids:
            yield "is a tool result without tool_call_id"
        elif given is not None and (not isinstance(given, str) or given not in ids):
            yield f"is the result of {short(given)}, but no call before it has this id"
    elif message["role"] == "function" and message.get("name") not in [*names]:
        yield f"is the result of {short(message.get('name'))}, but no call before it has this name"
