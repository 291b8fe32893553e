"""Validation: the Reference must score correct, nothing near it may, and what is odd is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.records import ask, close

from scenarios import Finding, Node, Scenario, Tool, ToolCall, load, parse_record, validate
from scenarios.labels import derived_label
from scenarios.mutations import mutations, reference_replies, steps
from scenarios.types import Reply
from scenarios.validate import Judge
from scoring.verdicts.wildtoolbench import score_task

Record = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    label: str | None
    reason: str | None = None


def lenient(accepts: Callable[[Sequence[Node], list[list[ToolCall]]], bool]) -> Any:
    """A judge that accepts the Reference, and besides what `accepts` says of the calls made."""

    def judge(tools: Sequence[Tool], nodes: Sequence[Node], replies: Sequence[Reply]) -> Verdict:
        exact = tuple(replies) == reference_replies(nodes)
        made = [list(reply.calls) for reply in replies]
        return Verdict("correct" if exact or accepts(nodes, made) else "error")

    return judge


def call(*dependencies: int, name: str = "weigh", **arguments: Any) -> Record:
    action = {"name": name, "arguments": arguments or {"item": "pear"}}
    return {"action": action, "observation": "180 g", "dependency_list": list(dependencies)}


def tool(name: str, required: Sequence[str] = ("item",), **properties: Any) -> Record:
    schema = {
        "type": "object",
        "properties": {"item": {"type": "string"}, **properties},
        "required": required,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": "", "parameters": {**schema, "required": list(required)}},
    }


def scenario(*nodes: Record, **changes: Any) -> Scenario:
    """A Scenario with one Task."""
    record = {
        "id": "s",
        "env_info": "2025-03-14 09:00:00 Friday",
        "tools": [tool("weigh"), tool("price")],
        "tasks": ["t"],
        "answer_list": [list(nodes)],
    }
    return parse_record({**record, **changes})


def found(level: str, *nodes: Record, **changes: Any) -> list[tuple[str, str]]:
    findings = validate(scenario(*nodes, **changes), score_task)
    return [(finding.field, finding.reason) for finding in findings if finding.level == level]


# Sound References


@pytest.mark.parametrize(
    "nodes",
    [
        [close()],
        [call(), close(0)],
        [ask(), call(0), close(1)],
        [call(), ask(0), call(1, name="price"), close(2)],
        [call(), call(item="fig"), close(0, 1)],
        [call(), call(0, name="price"), call(0, item="fig"), close(1, 2)],
        [call(), call(0), call(1), close(2)],
        [ask(), ask(0), call(1), call(1, name="price"), close(2, 3)],
    ],
)
def test_a_sound_reference_has_no_findings(nodes: list[Record]) -> None:
    assert validate(scenario(*nodes), score_task) == []


def test_a_task_without_calls_and_tools_has_nothing_to_mutate() -> None:
    assert validate(scenario(close(), tools=[]), score_task) == []


# The Reference under the scorer


def test_a_reference_that_is_not_correct_under_the_scorer_is_an_error() -> None:
    judge = lenient(lambda nodes, made: False)

    def never(tools: Sequence[Tool], nodes: Sequence[Node], replies: Sequence[Reply]) -> Verdict:
        return Verdict("error", "step 0: no")

    sound = scenario(call(), close(0))
    assert validate(sound, judge) == []
    (finding,) = validate(sound, never)
    assert finding == Finding(
        "error", "s", 1, "answer_list[0]", "the Reference itself is not correct under the scorer: step 0: no"
    )


def test_a_reference_argument_against_its_schema_is_an_error() -> None:
    ((field, reason),) = found("error", call(item=5), close(0))
    assert field == "answer_list[0]"
    assert "not correct under the scorer" in reason


def test_a_reference_without_a_required_key_is_an_error() -> None:
    assert found("error", call(colour="red"), close(0), tools=[tool("weigh", colour={"type": "string"})]) == [
        ("answer_list[0][0].action.arguments", "lack 'item', which weigh requires")
    ]


def test_a_reference_with_an_undeclared_key_is_an_error() -> None:
    assert found("error", call(item="pear", colour="red"), close(0)) == [
        ("answer_list[0][0].action.arguments", "have 'colour', which weigh does not declare")
    ]


# Mutations: for each kind a judge that overlooks it, and the error that says so


def names(made: list[list[ToolCall]]) -> list[str]:
    return sorted(call.name for batch in made for call in batch)


def keys(made: list[list[ToolCall]]) -> set[tuple[str, ...]]:
    return {tuple(json.loads(call.arguments)) for batch in made for call in batch}


def reasons(judge: Any, *nodes: Record) -> set[str]:
    return {f"{finding.field}: {finding.reason}" for finding in validate(scenario(*nodes), judge)}


CHAIN = (call(), call(0, name="price"), close(1))


def test_a_judge_that_overlooks_a_dropped_call_is_found_out() -> None:
    judge = lenient(lambda nodes, made: names(made) in (["price"], ["weigh"]) and [] not in made[:-1])
    assert reasons(judge, *CHAIN) == {
        "answer_list[0][0]: scores correct with the call dropped",
        "answer_list[0][1]: scores correct with the call dropped",
    }


def test_a_judge_that_overlooks_an_added_call_is_found_out() -> None:
    judge = lenient(lambda nodes, made: len(names(made)) == 3)
    assert reasons(judge, *CHAIN) == {
        "answer_list[0][1]: scores correct with a call added before the first step",
        "answer_list[0][1]: scores correct with a call added before the closing text",
        "answer_list[0][0]: scores correct with the call made twice",
        "answer_list[0][1]: scores correct with the call made twice",
    }


def test_a_judge_that_overlooks_a_call_in_a_chat_task_is_found_out() -> None:
    judge = lenient(lambda nodes, made: names(made) == ["weigh"])
    assert reasons(judge, close()) == {
        "answer_list[0]: scores correct with a call added before the first step",
        "answer_list[0]: scores correct with a call added before the closing text",
    }


def test_a_judge_that_overlooks_an_unknown_tool_is_found_out() -> None:
    judge = lenient(lambda nodes, made: len(names(made)) == 2 and names(made) != ["price", "weigh"])
    assert reasons(judge, *CHAIN) == {
        "answer_list[0][0]: scores correct with an unknown tool called instead",
        "answer_list[0][1]: scores correct with an unknown tool called instead",
    }


def test_a_judge_that_overlooks_text_instead_of_a_call_is_found_out() -> None:
    judge = lenient(lambda nodes, made: len(made) == 3 and len(names(made)) == 1)
    assert reasons(judge, *CHAIN) == {
        "answer_list[0][0]: scores correct with text instead of the call",
        "answer_list[0][1]: scores correct with text instead of the call",
    }


def test_a_judge_that_overlooks_a_missing_required_key_is_found_out() -> None:
    judge = lenient(lambda nodes, made: () in keys(made))
    assert reasons(judge, *CHAIN) == {
        "answer_list[0][0]: scores correct with the required key item missing",
        "answer_list[0][1]: scores correct with the required key item missing",
    }


def test_a_batch_is_mutated_call_by_call() -> None:
    nodes = scenario(call(), call(name="price"), close(0, 1)).tasks[0].nodes
    made = {
        (m.what, m.node): [[c.name for c in reply.calls] for reply in m.replies]
        for m in mutations(scenario(close()).tools, nodes)
    }
    assert made[("the call dropped", 0)] == [["price"], []]
    assert made[("the call dropped", 1)] == [["weigh"], []]
    assert made[("an unknown tool called instead", 1)] == [["weigh", "no_such_tool"], []]
    assert made[("the call made twice", 1)] == [["weigh", "price", "price"], []]
    assert made[("text instead of the call", 0)] == [[], []]


def test_the_unknown_tool_is_unknown() -> None:
    named = scenario(call(name="no_such_tool"), close(0), tools=[tool("no_such_tool"), tool("no_such_tool_")])
    made = [
        m.replies[0].calls[0].name
        for m in mutations(named.tools, named.tasks[0].nodes)
        if "unknown" in m.what
    ]
    assert made == ["no_such_tool__"]


def test_an_optional_key_may_be_missing() -> None:
    tools = [tool("weigh", required=(), colour={"type": "string"})]
    made = mutations(
        scenario(close(), tools=tools).tools, scenario(call(), close(0), tools=tools).tasks[0].nodes
    )
    assert not [mutation for mutation in made if "required key" in mutation.what]


# Asks and closing nodes


def test_a_closing_node_that_waits_for_nothing_is_found() -> None:
    nodes = (call(), close())
    warnings = found("warning", *nodes)
    assert (
        "answer_list[0][1].dependency_list",
        "the closing node does not wait for node 0; add the dependency",
    ) in (warnings)
    alone = "the closing node falls in one step with node 0; link them by dependencies"
    assert ("answer_list[0][1].dependency_list", alone) in warnings
    assert ("answer_list[0][0]", "scores correct with the call dropped") in found("error", *nodes)


def test_a_closing_node_that_misses_one_node_is_a_warning() -> None:
    nodes = (call(), call(0, name="price"), call(0, name="price"), close(1))
    assert found("warning", *nodes) == [
        ("answer_list[0][3].dependency_list", "the closing node does not wait for node 2; add the dependency")
    ]


def test_a_closing_node_may_wait_through_others() -> None:
    assert found("warning", call(), call(0), close(1)) == []


def test_an_ask_beside_a_call_is_a_warning() -> None:
    assert found("warning", ask(), call(), close(0, 1)) == [
        (
            "answer_list[0][0].dependency_list",
            "the ask falls in one step with node 1; link them by dependencies",
        )
    ]


def test_a_step_that_mixes_text_and_calls_is_played_one_after_the_other() -> None:
    nodes = scenario(close(), ask(), call()).tasks[0].nodes
    assert steps(nodes) == ((2,), (1,), (0,))


def test_two_closing_nodes_are_an_error() -> None:
    reason = "has 2 closing nodes (1, 2); the first of them ends the task"
    assert ("answer_list[0]", reason) in found("error", call(), close(0), close(0, 1))


def test_a_node_after_the_closing_node_is_an_error() -> None:
    reason = "waits for the closing node 0, after which nothing is played"
    assert ("answer_list[0][1].dependency_list", reason) in found("error", close(), call(0))


# The rest of a Scenario


def test_a_weekday_that_is_not_the_dates_is_a_warning() -> None:
    assert found("warning", close(), env_info="2025-03-14 09:00:00 Monday") == [
        ("env_info", "'2025-03-14 09:00:00 Monday' is a Friday")
    ]


@pytest.mark.parametrize(
    "date",
    [
        "2025-03-14 09:00:00 Friday",
        "2025-03-14 09:00:00 星期五",
        "2025-03-14 09:00:00",
        "today",
        "2025-13-40 Monday",
    ],
)
def test_a_date_without_a_wrong_weekday_is_fine(date: str) -> None:
    assert found("warning", close(), env_info=date) == []


def test_a_tool_name_that_providers_refuse_is_a_warning() -> None:
    ((field, reason),) = found("warning", close(), tools=[tool("weigh it")])
    assert field == "tools[0].function.name"
    assert "'weigh it'" in reason


def test_a_required_key_that_is_not_declared_is_a_warning() -> None:
    assert found("warning", close(), tools=[tool("weigh", required=("item", "unit"))]) == [
        ("tools[0].function.parameters.required", "'unit' is required but not declared")
    ]


def test_a_label_that_does_not_fit_the_reference_is_a_note() -> None:
    notes = found("note", ask(), call(0), close(1), task_types=["Parallel Multi-Tool"])
    assert notes == [("task_types[0]", "is Parallel Multi-Tool, but the Reference has the shape of Clarify")]


def described(words: str) -> Record:
    return {"type": "string", "description": words}


def test_defaults_in_prose_are_notes_at_any_depth() -> None:
    nested = {
        "type": "array",
        "items": {"type": "object", "properties": {"unit": described("Defaults to g.")}},
    }
    tools = [
        tool(
            "weigh",
            size=described("The size. The default value is 1.5 or 'small'. Optional."),
            tare=described("The tare, default is 0"),
            plain=described("No word about it."),
            list=nested,
            schema={**described("The default is 3."), "default": 3},
        )
    ]
    path = "tools[0].function.parameters.properties"
    assert found("note", close(), tools=tools) == [
        (f"{path}.size.description", "gives its default in words: The default value is 1.5 or 'small'."),
        (f"{path}.tare.description", "gives its default in words: The tare, default is 0"),
        (f"{path}.list.items.properties.unit.description", "gives its default in words: Defaults to g."),
    ]


@pytest.mark.parametrize(
    "parameters",
    [{}, {"properties": []}, {"properties": {"a": 3}}, {"required": "item"}, {"required": [1]}, {"items": 5}],
)
def test_a_misshapen_schema_does_not_stop_validation(parameters: Record) -> None:
    tools = [{"type": "function", "function": {"name": "weigh", "parameters": parameters}}]
    assert [finding.level for finding in validate(scenario(close(), tools=tools), score_task)] == []


def test_findings_tell_the_scenario_and_the_task() -> None:
    two = scenario(
        tasks=["a", "b"],
        answer_list=[[call(), close(0)], [call(colour="red"), close(0)]],
        env_info="2025-03-14 Sunday",
    )
    assert [(f.scenario, f.task, f.level) for f in validate(two, score_task)] == [
        ("s", None, "warning"),
        ("s", 2, "error"),
        ("s", 2, "error"),
    ]


# Several scorers


def test_each_scorer_must_mark_the_reference_correct_and_is_named_where_it_does_not() -> None:
    def never(tools: Sequence[Tool], nodes: Sequence[Node], replies: Sequence[Reply]) -> Verdict:
        return Verdict("error", "step 0: no")

    judges: dict[str, Judge] = {"sound": score_task, "broken": never}
    assert [(f.level, f.field, f.reason) for f in validate(scenario(call(), close(0)), judges)] == [
        (
            "error",
            "answer_list[0]",
            "the Reference itself is not correct under the scorer broken: step 0: no",
        )
    ]


def test_a_mutation_names_the_scorers_that_it_gets_past() -> None:
    def is_blind_to(*wrong: list[int]) -> Judge:
        """To so many calls in each reply."""
        judge: Judge = lenient(lambda nodes, made: [len(batch) for batch in made] in wrong)
        return judge

    judges = {"sound": score_task, "one": is_blind_to([0, 0]), "other": is_blind_to([0, 0], [1, 1, 0])}
    found = {f"{finding.field}: {finding.reason}" for finding in validate(scenario(call(), close(0)), judges)}
    assert found == {
        "answer_list[0][0]: scores correct with text instead of the call (under one and other)",
        "answer_list[0][0]: scores correct with a call added before the first step (under other)",
        "answer_list[0][0]: scores correct with a call added before the closing text (under other)",
    }


# Annotations


def also(*alternatives: Record, **arguments: Any) -> Record:
    return {**call(**arguments), "alternatives": list(alternatives)}


def test_an_alternative_that_its_tool_takes_is_fine() -> None:
    assert validate(scenario(also({"item": "pears"}), close(0)), score_task) == []


def test_an_alternative_needs_the_required_keys_and_no_others() -> None:
    assert found("error", also({"item": "fig"}, {}, {"item": "fig", "colour": "red"}), close(0)) == [
        ("answer_list[0][0].alternatives[1]", "lack 'item', which weigh requires"),
        ("answer_list[0][0].alternatives[2]", "have 'colour', which weigh does not declare"),
    ]


def test_an_alternative_against_its_schema_is_an_error() -> None:
    ((field, reason),) = found("error", also({"item": 5}), close(0))
    assert field == "answer_list[0][0].alternatives[0]"
    assert reason.startswith("is not correct under the scorer even in place of the arguments: step 0:")


AMBIGUOUS = (
    "is ambiguous: node {} can be ready at the same time and takes the very same call; "
    "let them differ, or link them by dependencies"
)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([call(), call(), close(0, 1)], [(1, "0")]),
        ([call(), call(), call(), close(0, 1, 2)], [(1, "0"), (2, "0, 1")]),
        ([also({"item": "fig"}), also({"item": "fig"}, item="plum"), close(0, 1)], [(1, "0")]),
        ([also({"item": "fig"}), call(item="fig"), close(0, 1)], [(1, "0")]),
        # Each of the two waits for something of its own, and both can have got it.
        ([call(name="price"), call(0), call(item="fig"), call(2), close(1, 3)], [(3, "1")]),
        ([call(), call(0), close(1)], []),
        ([call(), call(0, name="price"), call(1), close(2)], []),
        ([call(), call(name="price"), close(0, 1)], []),
        ([call(), call(item="fig"), close(0, 1)], []),
    ],
)
def test_calls_that_cannot_be_told_apart_are_a_note(
    nodes: list[Record], expected: list[tuple[int, str]]
) -> None:
    assert found("note", *nodes, task_types=[derived_label(scenario(*nodes).tasks[0].nodes)]) == [
        (f"answer_list[0][{i}]", AMBIGUOUS.format(others)) for i, others in expected
    ]


def test_free_text_with_an_enum_is_a_warning() -> None:
    colour = {"anyOf": [{"type": "string", "enum": ["red"]}, {"type": "null"}]}
    annotations = {"weigh": {"free_text": ["item", "colour"]}}
    assert found("warning", close(), tools=[tool("weigh", colour=colour)], annotations=annotations) == [
        (
            "annotations.weigh.free_text",
            "'colour' has an enum, and no other words stand for a value of an enum; take it out",
        )
    ]


def test_a_default_of_a_required_parameter_is_a_warning() -> None:
    assert found("warning", close(), annotations={"weigh": {"defaults": {"item": "pear"}}}) == [
        ("annotations.weigh.defaults", "'item' is required, so a default is of no use")
    ]


# Real sessions


def test_the_real_sessions_have_no_errors_and_no_warnings(real_session_files: list[Path]) -> None:
    sessions = [scenario for file in load(real_session_files) for scenario in file.scenarios]
    findings = [finding for each in sessions for finding in validate(each, score_task)]
    assert [finding for finding in findings if finding.level != "note"] == []
    in_words = [finding for finding in findings if "default in words" in finding.reason]
    assert len(in_words) == 104
