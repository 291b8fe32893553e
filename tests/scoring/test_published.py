"""The rules of the older analysis code, one by one, and that they are looser than the released ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import scenes

from scenarios.arguments import check_arguments
from scenarios.replies import read_reply
from scenarios.types import Reply, ToolCall
from scoring.types import Evidence, Nearest, StepScore, TaskScore, TaskTrajectory, Trajectory
from scoring.verdicts import published, released_evidence, wildtoolbench
from scoring.verdicts.published_arguments import CallScore, score_arguments

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
TEXT = Reply("Some words.")


def parameters(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def one(schema: Any, sent: Any, expected: Any) -> float:
    return score_arguments(parameters(q=schema), json.dumps({"q": sent}), {"q": expected}).score


# Arguments


@pytest.mark.parametrize(
    ("schema", "sent", "expected", "score"),
    [
        (NUMBER, 5, 5.0, 1.0),
        (INTEGER, 5.0, 5, 1.0),
        (INTEGER, 6, 5, 0.0),
        (INTEGER, True, 1, 0.0),
        (INTEGER, "5", 5, 0.0),
        (STRING, None, "x", 0.0),
        (STRING, None, None, 1.0),
        (STRING, "las VEGAS", "LasVegas", 1.0),
        (STRING, "Rome", "Paris", 0.0),
        # Any two pairs of coordinates agree in the older code.
        (STRING, "48.85,2.35", "41.90,12.49", 1.0),
        # With a blank they are text: only the comma of 4 and of 3 words is the same.
        (STRING, "48.85, 2.35", "41.90,12.49", 2 * 1 / (4 + 3)),
    ],
)
def test_a_value_is_compared_by_the_older_rules(schema: Any, sent: Any, expected: Any, score: float) -> None:
    assert one(schema, sent, expected) == pytest.approx(score)


def test_text_is_compared_by_the_longest_common_sequence_of_words_blanks_included() -> None:
    # red, blank, fox against red, blank, old, blank, fox: three words of 3 and of 5.
    assert one(STRING, "red fox", "red old fox") == pytest.approx(2 * 3 / (3 + 5))
    assert one(STRING, "red\nfox", "red fox!") == pytest.approx(2 * 2 / (3 + 4))
    # 今天 / 北京 / 的 / 天气 against 今天 / 上海 / 的 / 天气: three of four.
    assert one(STRING, "今天北京的天气", "今天上海的天气") == pytest.approx(0.75)
    assert one(STRING, "", "a") == 0.0


ITEMS = {"type": "array", "items": STRING}


@pytest.mark.parametrize(
    ("sent", "expected", "score"),
    [
        (["b", "a"], ["a", "b"], 1.0),
        (["B", "a"], ["b", "A"], 1.0),
        (["É", "ê"], ["é", "Ê"], 1.0),
        (["a", "x"], ["b", "a"], 0.5),
        (["a"], ["a", "a"], 0.0),
        ([], [], 1.0),
        ([2, 1.0], [1, 2], 1.0),
    ],
)
def test_arrays_are_compared_sorted_and_by_the_mean_of_their_items(
    sent: Any, expected: Any, score: float
) -> None:
    assert one(ITEMS, sent, expected) == score
    # A schema that is none has no say.
    assert one(None, sent, expected) == score


OBJECT = parameters("a", a=STRING, b={"type": "string", "description": "Default is 'new'."})


@pytest.mark.parametrize(
    ("sent", "expected", "score"),
    [
        ({"a": "X"}, {"a": "x"}, 1.0),
        ({"a": "x"}, {"a": "x", "b": "y"}, 1.0),
        ({"a": "x", "b": "new"}, {"a": "x"}, 1.0),
        ({"a": "x", "b": "old"}, {"a": "x"}, 0.5),
        ({"a": "x", "undeclared": 1}, {"a": "x"}, 0.0),
        ({}, {"a": "x"}, 0.0),
        ({}, {}, 1.0),
    ],
)
def test_objects_are_compared_by_the_mean_of_their_members(sent: Any, expected: Any, score: float) -> None:
    assert one(OBJECT, sent, expected) == score
    assert one({"type": "array", "items": OBJECT}, [sent], [expected]) == score


def test_an_optional_argument_that_was_not_expected_must_stand_in_its_description() -> None:
    sort = {"type": "string", "description": "How to sort, default 'Price'."}
    page = {"type": "integer", "description": "The page; null for all."}
    tool = parameters(q=STRING, sort=sort, page=page)

    def score(**more: Any) -> float:
        return score_arguments(tool, json.dumps({"q": "x", **more}), {"q": "x"}).score

    assert score(sort="price") == 1.0
    assert score(sort="name") == 0.5
    assert score(page=None) == 1.0
    assert score(page=7) == 0.5
    assert score(sort=None) == 0.5


def test_a_key_that_is_expected_and_left_out_is_not_looked_at_unless_it_is_required() -> None:
    expected = {"q": "x", "r": "y"}
    assert score_arguments(parameters(q=STRING, r=STRING), '{"q": "x"}', expected) == CallScore(
        1.0, (("q", 1.0),)
    )
    assert score_arguments(parameters("r", q=STRING, r=STRING), '{"q": "x"}', expected) == CallScore(
        0.0, fault="r is required and missing"
    )


def test_a_key_that_the_tool_does_not_declare_is_wrong_even_where_it_is_expected() -> None:
    assert score_arguments(parameters(), '{"q": 1}', {"q": 1}) == CallScore(0.0, (("q", 0.0),))


def test_no_arguments_are_right_where_none_are_expected() -> None:
    assert score_arguments(parameters(), "{}", {}) == CallScore(1.0)
    assert score_arguments(parameters(q=STRING), "{}", {"q": "x"}) == CallScore(
        0.0, fault="no argument was sent"
    )


@pytest.mark.parametrize("sent", ["", "{", "[]", "5", "null", None, 5, [], '{"q": ' + "9" * 5000 + "}"])
def test_arguments_that_are_no_object_are_wrong_with_a_reason(sent: Any) -> None:
    scored = score_arguments(parameters(), sent, {})
    assert scored.score == 0.0
    assert scored.fault is not None
    assert scored.fault.startswith("the arguments are no JSON ")


def test_arguments_that_are_an_object_and_no_text_are_read() -> None:
    assert score_arguments(parameters(q=STRING), {"q": "x"}, {"q": "x"}).score == 1.0


def test_arguments_nested_too_deeply_are_wrong_with_a_reason() -> None:
    text = '{"q": ' + "[" * 100_000 + "]" * 100_000 + "}"
    scored = score_arguments(parameters(q={"type": "array"}), text, {"q": []})
    assert scored == CallScore(0.0, fault="the arguments are nested too deeply")


def test_an_integer_too_large_for_a_float_is_compared_as_it_is() -> None:
    assert one(INTEGER, 10**400, 10**400) == 1.0
    assert one(INTEGER, 10**400 + 1, 10**400) == 0.0


# Tasks


def tool_of(**properties: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": "find", "description": "Finds.", "parameters": parameters(**properties)},
    }


LETTERS = tuple("abcdefghij")
FIND = tool_of(**dict.fromkeys(LETTERS, INTEGER))


def find(**arguments: Any) -> Reply:
    return Reply(None, (ToolCall("c", "find", json.dumps(arguments)),))


def finds(*calls: dict[str, Any]) -> Reply:
    return Reply(None, tuple(ToolCall(f"c{i}", "find", json.dumps(it)) for i, it in enumerate(calls)))


def score(*replies: Reply, nodes: list[Any], tool: Any = FIND, by: Any = published) -> TaskScore:
    record = {**scenes.record("find", ("Find it.", nodes)), "tools": [tool]}
    scenario = scenes.scenario(record)
    scored: TaskScore = by.score_task(scenario.tools, scenario.tasks[0].nodes, replies)
    return scored


def labels(scored: TaskScore) -> tuple[str | None, str | None, str | None]:
    return scored.label, scored.action_name_label, scored.action_arguments_label


def some_wrong(wrong: int, of: int) -> dict[str, int]:
    return {key: int(number < wrong) for number, key in enumerate(LETTERS[:of])}


@pytest.mark.parametrize(
    ("wrong", "of", "label"), [(3, 10, "correct"), (4, 10, "error"), (1, 3, "error"), (1, 4, "correct")]
)
def test_a_call_is_right_where_its_arguments_score_seven_tenths_or_more_in_the_mean(
    wrong: int, of: int, label: str
) -> None:
    nodes = [scenes.call("find", dict.fromkeys(LETTERS[:of], 0), "found"), scenes.close("Done.", 0)]
    assert score(find(**some_wrong(wrong, of)), TEXT, nodes=nodes).label == label


def test_a_wrong_call_has_its_scores_and_the_node_it_was_paired_with_as_evidence() -> None:
    nodes = [scenes.call("find", {"a": 0, "b": 0}, "found"), scenes.close("Done.", 0)]
    scored = score(find(a=0, b=1), TEXT, nodes=nodes)
    message = "find: the arguments score 0.50, less than 0.7 (b 0.00)"
    assert labels(scored) == ("error", "correct", "error")
    assert scored.reason == f"step 0: {message}"
    nearest = Nearest("call", 0, "find", {"a": 0, "b": 0})
    assert scored.evidence == Evidence(
        0, "published.args.score", message, nearest=nearest, call=0, tool="find"
    )
    assert list(published.RULES) == ["published.args.score"]
    assert [(step.verdict, step.checks) for step in scored.steps] == [
        ("argument_error", (message,)),
        ("correct", None),
    ]


TWO = [scenes.call("find", {"a": 1}, "1"), scenes.call("find", {"a": 2}, "2"), scenes.close("Done.", 0, 1)]


def test_every_field_of_a_correct_task_and_of_one_with_two_wrong_calls() -> None:
    right = score(find(a=2), find(a=1), TEXT, nodes=TWO)
    steps = (
        StepScore(0, "call", "correct", (0,), checks=("correct",)),
        StepScore(1, "call", "correct", (1,), checks=("correct",)),
        StepScore(2, "close", "correct", (2,)),
    )
    # Three replies, where two make the least: both calls at once, then the text.
    assert right == TaskScore("correct", "correct", "correct", False, 3, 3, 2, steps=steps)
    check = "find: the arguments score 0.00, less than 0.7 (a 0.00)"
    both = StepScore(0, "call", "argument_error", (0, 1), f"{check}; {check}", (check, check))
    wrong = score(finds({"a": 8}, {"a": 9}), TEXT, nodes=TWO)
    assert wrong == TaskScore(
        *("error", "correct", "error", False, 2, 3, 2),
        reason=f"step 0: {check}; {check}",
        steps=(both, StepScore(1, "close", "correct", (2,))),
        evidence=Evidence(
            0, published.RULE, check, nearest=Nearest("call", 0, "find", {"a": 1}), call=0, tool="find"
        ),
    )


@pytest.mark.parametrize(
    "replies", [(finds({"a": 2}, {"a": 1}), TEXT), (find(a=2), find(a=1), TEXT)], ids=["batch", "one by one"]
)
def test_calls_of_one_name_are_paired_by_their_scores_over_the_whole_task(
    replies: tuple[Reply, ...],
) -> None:
    assert score(*replies, nodes=TWO).label == "correct"


def test_the_first_call_takes_the_node_it_agrees_with_best_and_none_is_taken_twice() -> None:
    assert score(finds({"a": 1}, {"a": 1}), TEXT, nodes=TWO).reason == (
        "step 0: find: the arguments score 0.00, less than 0.7 (a 0.00)"
    )
    # Pairing is greedy: the first call takes what only the second would have fitted.
    nodes = [
        scenes.call("find", {"a": 1, "b": 2, "c": 3, "d": 4}, "1"),
        scenes.call("find", {"a": 1, "b": 2, "c": 3, "d": 9}, "2"),
        scenes.close("Done.", 0, 1),
    ]
    both = {"a": 1, "b": 2, "c": 3, "d": 7}
    assert score(finds(both, {"a": 8, "b": 2, "c": 3, "d": 4}), TEXT, nodes=nodes).label == "error"
    assert score(finds({"a": 8, "b": 2, "c": 3, "d": 4}, both), TEXT, nodes=nodes).label == "correct"


def test_names_decide_first_and_then_arguments_are_not_looked_at() -> None:
    nodes = [scenes.call("find", {"a": 1}, "1"), scenes.close("Done.", 0)]
    scored = score(find(a=9), find(a=1), nodes=nodes)
    assert labels(scored) == ("error", "error", None)
    assert scored.reason == "step 1: called find; allowed here: prepare_to_answer"


def test_wrong_names_have_the_evidence_that_the_released_scorer_has_for_them() -> None:
    nodes = [scenes.call("find", {"a": 1}, "1"), scenes.close("Done.", 0)]
    # The wrong argument of the first call is not looked at, as the names went wrong after it.
    assert score(find(a=9), find(a=1), nodes=nodes).evidence == Evidence(
        step=1,
        rule="released.action_names",
        message="called find",
        allowed=(("prepare_to_answer",),),
        nearest=Nearest("close", 1),
        call=0,
        tool="find",
    )
    ended = score(find(a=1), nodes=nodes).evidence
    assert ended is not None
    assert (ended.step, ended.rule) == (1, "released.no_reply")


@pytest.mark.parametrize("by", [published, wildtoolbench])
def test_a_step_with_a_pseudo_action_as_a_tool_call_is_not_looked_at(by: Any) -> None:
    nodes = [scenes.ask("Which?", "a."), scenes.call("find", {"a": 1}, "1", 0), scenes.close("Done.", 1)]
    asking = Reply(None, (ToolCall("c", "ask_user_for_required_parameters", "no JSON"),))
    scored = score(asking, find(a=1), TEXT, nodes=nodes, by=by)
    assert labels(scored) == ("correct", "correct", "correct")
    assert not scored.steps[0].checks


def test_progress_is_all_nodes_of_a_correct_task_and_what_came_before_the_error_of_another() -> None:
    assert score(finds({"a": 1}, {"a": 2}), TEXT, nodes=TWO).steps_kept == 3
    assert score(finds({"a": 1}, {"a": 2}), find(a=3), nodes=TWO).steps_kept == 2
    assert score(find(a=1), nodes=TWO).steps_kept == 1
    assert score(TEXT, nodes=TWO).steps_kept == 0
    # Where only arguments are wrong, the older code means to take off the wrong calls and does not.
    assert score(finds({"a": 1}, {"a": 3}), TEXT, nodes=TWO).steps_kept == 3


def test_only_a_correct_task_in_the_least_number_of_steps_is_optimal() -> None:
    assert score(finds({"a": 1}, {"a": 2}), TEXT, nodes=TWO).is_optimal
    assert not score(find(a=1), find(a=2), TEXT, nodes=TWO).is_optimal
    assert not score(finds({"a": 1}, {"a": 3}), TEXT, nodes=TWO).is_optimal


def test_a_session_is_scored_task_by_task_and_what_was_not_played_stays_unscored() -> None:
    scenario = scenes.scenario(scenes.TWINS)
    unfinished = TaskTrajectory((), finished=False, unfinished_reason="provider_error: status 500")
    played = Trajectory("twins.e1", 1, scenario, (unfinished, TaskTrajectory((TEXT,))))
    scored = published.score_session(played)
    assert (scored.session, scored.epoch, scored.scored) == ("twins.e1", 1, False)
    assert [(task.label, task.reason) for task in scored.tasks] == [
        (None, "provider_error: status 500"),
        ("correct", None),
    ]


def test_a_task_that_was_not_reached_has_evidence_and_a_right_or_unscored_one_has_none() -> None:
    scenario = scenes.scenario(scenes.TWINS)
    left = TaskTrajectory((), "agent_stopped"), TaskTrajectory((), "not_reached")
    scored = published.score_session(Trajectory("twins.e1", 1, scenario, left))
    assert [it.evidence and it.evidence.rule for it in scored.tasks] == [
        "released.no_reply",
        "released.not_reached",
    ]
    unfinished = TaskTrajectory((), finished=False)
    played = Trajectory("twins.e1", 1, scenario, (unfinished, TaskTrajectory((TEXT,))))
    assert [(it.label, it.evidence) for it in published.score_session(played).tasks] == [
        (None, None),
        ("correct", None),
    ]


def test_the_scorer_says_that_it_is_a_reconstruction() -> None:
    assert (published.NAME, published.VERSION) == ("published", "1")
    assert "Experimental" in published.NOTE


# Looser than the released rules


def test_every_argument_vector_that_the_released_checker_accepts_is_accepted(data: Path) -> None:
    accepted = 0
    for line in (data / "arguments.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["expect"] == "correct":
            accepted += 1
            schema = case["tool"]["function"]["parameters"]
            found = score_arguments(schema, case["predicted"], case["reference"])
            assert found.score >= published.THRESHOLD, case["case"]
    assert accepted == 341


def test_every_task_vector_that_the_released_scorer_accepts_is_accepted_and_names_decide_alike(
    data: Path,
) -> None:
    by_names = 0
    for line in (data / "tasks.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        scenario = scenes.scenario(
            {**scenes.record(case["case"], ("-", case["answer_list"])), "tools": case["tools"]}
        )
        replies = [read_reply(message) for message in case["replies"]]
        nodes = scenario.tasks[0].nodes
        scored = published.score_task(scenario.tools, nodes, replies)
        if case["expect"]["label"] == "correct":
            # Nothing differs but the progress, which the older code counts in nodes.
            assert (*labels(scored), scored.is_optimal, scored.requests) == (
                *("correct", "correct", "correct"),
                case["expect"]["is_optimal"],
                case["expect"]["requests"],
            )
        elif case["expect"]["action_name_label"] == "error":
            assert scored.action_name_label == "error", case["case"]
            released = wildtoolbench.score_task(scenario.tools, nodes, replies)
            assert scored.evidence == released_evidence.explain(nodes, replies, released), case["case"]
            by_names += 1
    assert by_names > 50


words = st.text("aAbB 1", max_size=6)
leaves = st.one_of(
    st.tuples(st.just(STRING), words),
    st.tuples(st.just(INTEGER), st.integers(-2, 2)),
    st.tuples(st.just(NUMBER), st.sampled_from([0.5, 1.0, 2.0])),
    st.tuples(st.just({"type": "boolean"}), st.booleans()),
    st.tuples(st.just(ITEMS), st.lists(words, max_size=3)),
)
typed = st.recursive(
    leaves,
    lambda inner: st.dictionaries(st.sampled_from("xyz"), inner, min_size=1, max_size=3).map(
        lambda found: (
            parameters(**{key: schema for key, (schema, _) in found.items()}),
            {key: value for key, (_, value) in found.items()},
        )
    ),
    max_leaves=4,
)


def respelt(value: Any, draw: Any) -> Any:
    """The same value in other case and spacing, as the released checker folds them."""
    if isinstance(value, str):
        return draw(st.sampled_from([value, value.upper(), f" {value} ", value.replace(" ", "")]))
    if isinstance(value, list):
        return [respelt(item, draw) for item in value]
    if isinstance(value, dict):
        return {key: respelt(value[key], draw) for key in draw(st.permutations(list(value)))}
    return value


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from("pqr"), typed, max_size=3), st.data())
def test_arguments_that_the_released_checker_accepts_are_accepted(
    found: dict[str, tuple[Any, Any]], data: st.DataObject
) -> None:
    schema = parameters(*found, **{key: it for key, (it, _) in found.items()})
    expected = {key: value for key, (_, value) in found.items()}
    sent = json.dumps(respelt(expected, data.draw))
    assert check_arguments(schema, sent, expected) == "correct"
    assert score_arguments(schema, sent, expected).score == 1.0


odd = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text("aé京 .,1", max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("qtype"), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=120, deadline=None)
@given(
    odd | st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from("qt"), odd), "required": odd}),
    odd | st.dictionaries(st.sampled_from("qt"), odd).map(json.dumps) | st.text(max_size=5),
    st.dictionaries(st.sampled_from("qt"), odd, max_size=2),
)
@example({"properties": {"q": None}}, {"q": 1}, {"q": 2})
def test_scoring_never_raises(schema: Any, sent: Any, expected: dict[str, Any]) -> None:
    assert 0.0 <= score_arguments(schema, sent, expected).score <= 1.0
