"""Sessions in the forms of others: the released harness's result file, and chat transcripts. Pure.

The released evaluation code, given the result lines, says what the scorer `wildtoolbench`
says of the same log. Where that code would crash (facts: section 5, rows 13, 30 and 32)
the line is written so that it finds the error that the scorer finds, and goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.history import (
    as_sent,
    date_text,
    encode,
    gold_history,
    observation_text,
    released_tools,
)
from scenarios.matcher import Match, State, allowed, match_calls, start
from scenarios.reference import Batch, depth
from scenarios.types import Node, Scenario, Tool
from scoring.arguments import CRASH, check_arguments
from scoring.log_detail import Message, SessionDetail, StepDetail
from scoring.types import CORRECT, ERROR, JSON, Reply
from scoring.wildtoolbench import match_reply

CANDIDATES = 8
"""At a wrong step so many of the batches that were allowed there are listed, smallest first.

The released harness repeats one for every path through the Reference; nothing reads them.
"""

MOST_TASKS = 4
"""The released evaluation code has no place for the figures of a fifth Task."""

UNCHECKABLE = "cannot be checked: "
"""Before arguments that crash the released checker. So they are no JSON, which it reports."""

UNANSWERED = "[no result: the task ended with this call]"
"""In transcripts, what a call is told that was told nothing: chat formats want a result."""

# What the released harness writes as `error_reason`; tools that read its files go by it.
_EMPTY = "tool_calls and content are None"
_WRONG = "action name not in candidate_answer_function_list"
_BROKEN = "parse tool_calls failed, error: a tool call has no function name"

_NUMBERED = re.compile(r".*_[0-9]+", re.DOTALL)


def why_unfinished(detail: SessionDetail) -> str | None:
    """Why a Session cannot be judged as a whole; None if it can."""
    for number, task in enumerate(detail.trajectory.tasks, start=1):
        if not task.finished:
            return f"task {number} was not scored ({task.unfinished_reason})"
    return None


def why_unreadable(detail: SessionDetail) -> str | None:
    """Why the released evaluation code cannot read a Session; None if it can."""
    scenario = detail.trajectory.scenario
    if not _NUMBERED.fullmatch(scenario.id):
        return "the released code finds a scenario by the number at the end of its id: NAME_NUMBER"
    if len(scenario.tasks) > MOST_TASKS:
        return f"the released code has no place for more than {MOST_TASKS} tasks"
    return None


def models(details: Sequence[SessionDetail]) -> tuple[str, ...]:
    """The models that the Steps asked for, in alphabetical order."""
    return tuple(
        sorted({step.model for detail in details for task in detail.tasks for step in task if step.model})
    )


# --- The released result file ------------------------------------------------


def result_line(detail: SessionDetail, model: str) -> JSON:
    """A Session as the released harness writes it; every Task must have been played to its end."""
    scenario = detail.trajectory.scenario
    tasks = zip(detail.trajectory.tasks, detail.tasks, strict=True)
    return {
        "id": scenario.id,
        "model_name": model,
        "result": [
            _result_task(scenario, number, _play(scenario, number, task.replies, details))
            for number, (task, details) in enumerate(tasks)
        ],
    }


@dataclass(frozen=True, slots=True)
class _Step:
    """A reply where the Reference stood at `state`. `messages` is what it answers.

    `detail` is None for the empty reply that the released harness would have got when the
    agent had nothing more to say.
    """

    state: State
    reply: Reply
    match: Match | None
    messages: tuple[Message, ...]
    detail: StepDetail | None


def _play(
    scenario: Scenario, number: int, replies: Sequence[Reply], details: Sequence[StepDetail]
) -> list[_Step]:
    """The Steps that the released harness would have asked for: up to the first wrong or closing one."""
    nodes = scenario.tasks[number].nodes
    state = start(nodes)
    messages = _opening(scenario, number)
    steps: list[_Step] = []
    for reply, detail in (*zip(replies, details, strict=True), (Reply(None), None)):
        match, _ = match_reply(state, reply)
        steps.append(_Step(state, reply, match, detail.sent if detail else messages, detail))
        if match is None or match.kind == "close":
            break
        state = match.state
        messages = (*steps[-1].messages, *_exchanged(steps[-1], nodes))
    return steps


def _opening(scenario: Scenario, number: int) -> tuple[Message, ...]:
    """What the released harness sends at the start of a Task."""
    return (
        {"role": "system", "content": date_text(scenario)},
        *gold_history(scenario, number),
        {"role": "user", "content": scenario.tasks[number].text},
    )


def _exchanged(step: _Step, nodes: Sequence[Node]) -> Iterator[Message]:
    """An accepted Step and its answer, as the next request would have held them."""
    assert step.match is not None and step.detail is not None
    yield _spoken(step.reply, step.detail)
    if step.match.kind == "ask":
        yield {"role": "user", "content": nodes[step.match.nodes[0]].user_input}
    else:
        yield from _results(step.reply, step.detail, "")


def _result_task(scenario: Scenario, number: int, steps: Sequence[_Step]) -> JSON:
    nodes = scenario.tasks[number].nodes
    last = steps[-1].match
    closed = last is not None and last.kind == "close"
    log: JSON = {"task_idx": number, "begin_of_current_task": (steps[0].messages or (None,))[-1]}
    for position, step in enumerate(steps):
        log[f"step_{position}"] = _step_record(scenario, nodes, step)
    known = [step.detail for step in steps]
    return {
        "action_name_label": CORRECT if closed else ERROR,
        "is_optimal": closed and len(steps) == depth(nodes),
        "inference_log": log,
        # One entry per request; 0 where the log has no figure, which the released form cannot say.
        "latency": [max((detail and detail.latency) or 0.0, 0.0) for detail in known],
        "input_token_count": [(detail and detail.input_tokens) or 0 for detail in known],
        "output_token_count": [(detail and detail.output_tokens) or 0 for detail in known],
    }


def _step_record(scenario: Scenario, nodes: Sequence[Node], step: _Step) -> JSON:
    message = step.detail.message if step.detail else None
    output: JSON = {
        "reasoning_content": message.get("reasoning_content") if isinstance(message, Mapping) else None,
        "content": step.reply.content,
        "tool_calls": _output_calls(scenario, step),
    }
    if step.match:
        output["current_action_name_label"] = CORRECT
        answers = [_right_answer(nodes, step.match)]
    else:
        output["current_action_name_label"] = ERROR
        output["error_reason"] = _error_reason(step.reply)
        answers = [_candidate(nodes, batch) for batch in _allowed_batches(step.state)]
    sent = step.detail.tools if step.detail else None
    return {
        "inference_input": {"messages": list(step.messages), "tools": _evaluable_tools(scenario, sent or ())},
        "inference_output": output,
        # There even for an empty reply: the released code reads it before it looks at the label.
        "inference_answer": {
            f"candidate_{i}_answer_function_list": answer for i, answer in enumerate(answers)
        },
    }


def _error_reason(reply: Reply) -> str:
    if any(not call.name for call in reply.calls):
        return _BROKEN
    return _WRONG if reply.calls or reply.content else _EMPTY


def _right_answer(nodes: Sequence[Node], match: Match) -> JSON:
    return _candidate(nodes, match.nodes) if match.kind != "call" else _actions(nodes, match.nodes)


def _candidate(nodes: Sequence[Node], batch: Batch) -> JSON:
    """The actions of a batch, and the words of the ask or closing node in it."""
    answer = _actions(nodes, batch)
    for node in (nodes[i] for i in batch if not nodes[i].is_call):
        answer["observation"] = node.observation
        if node.is_ask:
            answer["user_input"] = node.user_input
    return answer


def _actions(nodes: Sequence[Node], batch: Batch) -> JSON:
    by_name = sorted((nodes[i] for i in batch), key=lambda node: node.name)
    return {"action": [{"arguments": encode(node.arguments), "name": node.name} for node in by_name]}


def _allowed_batches(state: State) -> Iterator[Batch]:
    seen: set[Batch] = set()
    for names in allowed(state, CANDIDATES):
        match = match_calls(state, names)
        if match and match.nodes not in seen:
            seen.add(match.nodes)
            yield match.nodes


def _output_calls(scenario: Scenario, step: _Step) -> Any:
    """The tool calls of a reply; those of an accepted one so that the released checker can read them."""
    if not step.reply.calls or step.detail is None:
        return None
    if step.match is None:
        return step.detail.message.get("tool_calls") or _calls(step.reply, step.detail)
    parameters = {tool.name: as_sent(tool.parameters) for tool in scenario.tools}
    calls = _calls(step.reply, step.detail)
    for call in calls:
        function = call["function"]
        text = function["arguments"]
        if check_arguments(parameters.get(function["name"], {}), text, {}).startswith(CRASH):
            function["arguments"] = UNCHECKABLE + (text if isinstance(text, str) else encode(text))
    return calls


def _evaluable_tools(scenario: Scenario, sent: Sequence[Any]) -> list[Any]:
    """What was sent, with the Scenario's tools under their own names and readable by the checker."""
    names = {tool.name for tool in scenario.tools}
    own = [tool for tool in sent if _tool_name(tool) not in names]
    return [*own, *map(_evaluable_tool, scenario.tools)]


def _tool_name(tool: Any) -> Any:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else None


def _evaluable_tool(tool: Tool) -> JSON:
    spec = as_sent(tool.spec)
    if check_arguments(spec["function"].get("parameters", {}), "{}", {}).startswith(CRASH):
        spec["function"]["parameters"] = {}
    return spec


# --- Transcripts -------------------------------------------------------------


def transcript_line(detail: SessionDetail, run: str) -> JSON:
    """A Session as one chat, the Tasks one after the other as they were played.

    `messages`: the system message as the LLM got it, then of each Task what the user said
    (in the agent's own template), what the LLM said, and what its tool calls were told. With
    gold history the LLM was shown the References of earlier Tasks in place of what it had
    said there; the transcript has what it said.
    """
    trajectory = detail.trajectory
    steps = [step for task in detail.tasks for step in task]
    tools = next((list(step.tools) for step in steps if step.tools), None)
    return {
        "session": trajectory.session,
        "scenario": trajectory.scenario.id,
        "epoch": trajectory.epoch,
        "run": run,
        "model": ", ".join(models([detail])) or None,
        "tools": released_tools(trajectory.scenario) if tools is None else tools,
        "messages": [*_leading(steps[0].sent if steps else ()), *_played(detail)],
    }


def _leading(sent: Sequence[Message]) -> Iterator[Message]:
    for message in sent:
        if _role(message) == "user":
            return
        yield message


def _played(detail: SessionDetail) -> Iterator[Message]:
    for task, steps in zip(detail.trajectory.tasks, detail.tasks, strict=True):
        for reply, step in zip(task.replies, steps, strict=True):
            if step.sent and _role(step.sent[-1]) == "user":
                yield step.sent[-1]
            yield _spoken(reply, step)
            yield from _results(reply, step, UNANSWERED)


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, Mapping) else None


# --- Both --------------------------------------------------------------------


def _spoken(reply: Reply, detail: StepDetail) -> Message:
    """What the LLM said, in plain chat form: no more than what is sent back to it."""
    thought = detail.message.get("reasoning_content") if isinstance(detail.message, Mapping) else None
    reasoning = {} if thought is None else {"reasoning_content": thought}
    if not reply.calls:
        return {"role": "assistant", **reasoning, "content": reply.content or ""}
    calls = _calls(reply, detail)
    for call in calls:
        if not isinstance(call["function"]["arguments"], str):
            call["function"]["arguments"] = encode(call["function"]["arguments"])
    return {"role": "assistant", **reasoning, "content": reply.content, "tool_calls": calls}


def _calls(reply: Reply, detail: StepDetail) -> list[JSON]:
    """The tool calls in plain form, by the ids they went by."""
    return [
        {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call, call_id in zip(reply.calls, _ids(reply, detail), strict=True)
    ]


def _ids(reply: Reply, detail: StepDetail) -> list[str]:
    logged = detail.call_ids if len(detail.call_ids) == len(reply.calls) else [None] * len(reply.calls)
    return [
        call_id or call.id or f"call_{position}"
        for position, (call, call_id) in enumerate(zip(reply.calls, logged, strict=True))
    ]


def _results(reply: Reply, detail: StepDetail, missing: str) -> Iterator[Message]:
    told: Sequence[str | None] = detail.observations
    if len(told) != len(reply.calls):
        told = [None] * len(reply.calls)
    for call_id, observation in zip(_ids(reply, detail), told, strict=True):
        content = missing if observation is None else observation_text(observation)
        yield {"role": "tool", "content": content, "tool_call_id": call_id}
