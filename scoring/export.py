"""Sessions in the form of the released harness's result file. Pure.

The released evaluation code, given the result lines, says what the scorer `wildtoolbench`
says of the same log. Where that code would crash (facts: section 5, rows 13, 30 and 32)
the line is written so that it finds the error that the scorer finds, and goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scenarios.arguments import CRASH, check_arguments
from scenarios.history import as_sent, date_text, encode, gold_history
from scenarios.matcher import Match, State, allowed, match_calls, start
from scenarios.reference import Batch, depth
from scenarios.steps import take_step
from scenarios.types import PSEUDO_ACTIONS, Node, Reply, Scenario, Tool
from scoring.transcript import as_text, plain_calls, results, spoken
from scoring.types import CORRECT, ERROR, JSON

if TYPE_CHECKING:
    from scoring.logs.detail import Message, SessionDetail, StepDetail

CANDIDATES = 8
"""At a wrong step the first so many of the batches that were allowed there are listed, each once.

The released harness lists one for every path through the Reference, thousands in large ones.
Its evaluation code does not read them.
"""

MOST_TASKS = 4
"""The released evaluation code has no place for the figures of a fifth Task."""

UNCHECKABLE = "cannot be checked: "
"""Before arguments that crash the released checker. So they are no JSON, which it reports."""

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
        taken = take_step(state, reply)
        match = taken if isinstance(taken, Match) else None
        steps.append(_Step(state, reply, match, (detail and detail.sent) or messages, detail))
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
    yield spoken(step.reply, step.detail)
    if step.match.kind == "ask":
        yield {"role": "user", "content": nodes[step.match.nodes[0]].user_input}
    else:
        yield from results(step.reply, step.detail, "")


def _result_task(scenario: Scenario, number: int, steps: Sequence[_Step]) -> JSON:
    nodes = scenario.tasks[number].nodes
    last = steps[-1].match
    closed = last is not None and last.kind == "close"
    log: JSON = {"task_idx": number, "begin_of_current_task": steps[0].messages[-1]}
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
    return {
        "inference_input": {"messages": list(step.messages), "tools": _evaluable_tools(scenario, step)},
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
    """The tool calls of a reply; those that the released checker gets to see so that it can read them."""
    if not step.reply.calls or step.detail is None:
        return None
    calls = plain_calls(step.reply, step.detail)
    if step.match is None:
        return step.detail.message.get("tool_calls") or calls
    if _is_checked(step):
        for function in (call["function"] for call in calls):
            if _crashes(scenario, function["name"], function["arguments"]):
                function["arguments"] = UNCHECKABLE + as_text(function["arguments"])
    return calls


def _is_checked(step: _Step) -> bool:
    """Does the released checker look at the calls? It skips a Step by the first name in order."""
    names = [call.name for call in step.reply.calls]
    return bool(names) and step.match is not None and min(names) not in PSEUDO_ACTIONS


def _crashes(scenario: Scenario, name: str, arguments: Any) -> bool:
    """Whatever the Reference says: the checker crashes on the arguments or the schema alone."""
    schemas = {tool.name: tool.parameters for tool in scenario.tools}
    return name not in schemas or check_arguments(as_sent(schemas[name]), arguments, {}).startswith(CRASH)


def _evaluable_tools(scenario: Scenario, step: _Step) -> list[Any]:
    """What was sent, with every tool that the released checker looks up, in a form that it can read."""
    needed = {tool.name: _evaluable_tool(tool) for tool in scenario.tools}
    if _is_checked(step):
        for call in step.reply.calls:
            empty = {"name": call.name, "parameters": {}}
            needed.setdefault(call.name, {"type": "function", "function": empty})
    sent = step.detail.tools if step.detail else None
    return [*(tool for tool in sent or () if _tool_name(tool) not in needed), *needed.values()]


def _tool_name(tool: Any) -> Any:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else None


def _evaluable_tool(tool: Tool) -> JSON:
    spec = as_sent(tool.spec)
    if check_arguments(spec["function"].get("parameters", {}), "{}", {}).startswith(CRASH):
        spec["function"]["parameters"] = {}
    return spec
