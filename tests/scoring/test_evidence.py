"""What the evidence of a wrong Step says: the rule, the call to blame, what would have been right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import scenes
from support.scenes import ask, call, close

from scenarios.text import clip
from scenarios.types import ASK, CLOSE, Reply, ToolCall
from scoring.types import Evidence, Nearest, TaskScore
from scoring.verdicts.evidence import RULES
from scoring.verdicts.strict import score_task

TEXT = Reply("Some words.")
LAMP = ("getPrice", {"thing": "lamp"})
CHAIR = ("getPrice", {"thing": "chair"})
STOCK = ("countStock", {"thing": "lamp"})
WEIGHT = ("weigh", {"thing": "lamp", "kilos": 1.5})
BOOKING = ("book", {"thing": "lamp", "day": "Monday"})

ASKING = [ask("Which day?", "On Monday."), call("book", BOOKING[1], "ok", 0), close("Booked.", 1)]
CHAIN = [
    call("getPrice", LAMP[1], "3"),
    call("getPrice", CHAIR[1], "7"),
    call("countStock", STOCK[1], "12", 0),
    call("weigh", WEIGHT[1], "light", 0, 1),
    close("Done.", 2, 3),
]
LATE = [
    call("getPrice", LAMP[1], "3"),
    call("countStock", STOCK[1], "12", 0),
    call("getPrice", CHAIR[1], "7"),
    close("Done.", 1, 2),
]
"""A call that waits stands before one that does not."""
AGAIN = [call("getPrice", LAMP[1], "3"), call("getPrice", CHAIR[1], "7", 0), close("Done.", 1)]
"""A call that is due, and one of its tool that waits."""
WEIGHTS = [
    call("getPrice", LAMP[1], "3"),
    call("countStock", STOCK[1], "12"),
    call("weigh", WEIGHT[1], "light", 0),
    call("weigh", {"thing": "chair", "kilos": 2.5}, "heavy", 1),
    close("Done.", 2, 3),
]
CHAT = [close("You are welcome.")]


def calls(*wanted: tuple[str, Any]) -> Reply:
    return Reply(
        None,
        tuple(
            ToolCall(f"c{i}", name, given if isinstance(given, str) else json.dumps(given))
            for i, (name, given) in enumerate(wanted)
        ),
    )


def scored(nodes: list[scenes.Record], *replies: Reply) -> TaskScore:
    scenario = scenes.scenario(scenes.record("own", ("Do it.", nodes)))
    return score_task(scenario.tools, scenario.tasks[0].nodes, replies)


def evidence(nodes: list[scenes.Record], *replies: Reply) -> Evidence:
    found = scored(nodes, *replies).evidence
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("rule", "nodes", "replies"),
    [
        ("step.no_reply", CHAIN, [calls(LAMP)]),
        ("step.no_reply", CHAT, []),
        ("step.empty_reply", CHAT, [Reply("")]),
        ("step.text_instead_of_call", CHAIN, [TEXT]),
        ("step.text_instead_of_call", ASKING, [TEXT, TEXT]),
        ("step.unknown_tool", CHAIN, [calls(("getWeather", {}))]),
        ("step.unknown_tool", CHAT, [calls(("", None))]),
        ("step.call_instead_of_question", ASKING, [calls(BOOKING)]),
        ("step.call_instead_of_answer", CHAT, [calls(LAMP)]),
        ("step.call_instead_of_answer", ASKING, [TEXT, calls(BOOKING), calls(BOOKING)]),
        ("step.redundant_call", CHAIN, [calls(LAMP), calls(LAMP)]),
        ("step.redundant_call", CHAIN, [calls(LAMP, LAMP)]),
        ("step.redundant_call", CHAIN, [calls(LAMP, CHAIR, CHAIR)]),
        ("step.wrong_tool", CHAIN, [calls(BOOKING)]),
        ("step.too_early", CHAIN, [calls(STOCK)]),
        ("step.too_early", CHAIN, [calls(LAMP, STOCK)]),
        ("step.too_early", LATE, [calls(CHAIR), calls(STOCK)]),
        ("step.too_early", CHAIN, [calls(("weigh", {"thing": "bed", "kilos": 9}))]),
        ("args.text", AGAIN, [calls(("getPrice", {"thing": "bed"}))]),
        ("step.extra_call", CHAIN, [calls(LAMP, CHAIR, ("getPrice", {"thing": "bed"}))]),
        ("args.text", CHAIN, [calls(("getPrice", {"thing": "bed"}))]),
        ("args.invalid_json", CHAIN, [calls(("getPrice", "{"))]),
        ("args.missing", CHAIN, [calls(("getPrice", {}))]),
    ],
)
def test_each_rule_says_what_was_done_instead_of_the_right_thing(
    rule: str, nodes: list[scenes.Record], replies: list[Reply]
) -> None:
    found = scored(nodes, *replies)
    assert found.evidence is not None
    assert found.evidence.rule == rule
    assert found.reason == f"step {found.evidence.step}: {found.evidence.message}"
    assert "\n" not in found.reason
    assert found.evidence.rule in RULES or found.evidence.faults[0].rule == rule


def test_text_while_calls_are_due_is_told_with_the_names_of_all_that_are() -> None:
    assert evidence(CHAIN, calls(LAMP), TEXT) == Evidence(
        step=1,
        rule="step.text_instead_of_call",
        message="replied in text while calls are due: getPrice + countStock",
        allowed=(("getPrice",), ("countStock",), ("getPrice", "countStock")),
        nearest=Nearest("call", 1, "getPrice", {"thing": "chair"}),
    )


def test_a_call_without_a_name_and_a_very_long_name_are_told() -> None:
    assert evidence(CHAIN, calls(("", {}))).message == "something without a name: is none of the tools"
    message = evidence(CHAIN, calls(("n" * 81, {}))).message
    assert message == f"{clip('n' * 81, 80)}: is none of the tools"


def test_a_call_that_is_too_early_is_told_of_the_waiting_node_it_is_most_like_or_of_the_first() -> None:
    right, alike, unlike = (
        evidence(WEIGHTS, calls(("weigh", {"thing": thing, "kilos": kilos})))
        for thing, kilos in (("chair", 2.5), ("chair", 9.5), ("bed", 9.5))
    )
    assert [right.message, alike.message] == ["weigh: waits for countStock"] * 2
    assert unlike.message == "weigh: waits for getPrice"


def test_a_call_that_is_made_too_often_is_told_how_often_it_is_due() -> None:
    bed = ("getPrice", {"thing": "bed"})
    twice, once = evidence(CHAIN, calls(LAMP, CHAIR, bed)), evidence(CHAIN, calls(LAMP), calls(CHAIR, bed))
    assert twice.message == "call 3 of 3, getPrice: is due 2 times and was called more often"
    assert once.message == "call 2 of 2, getPrice: is due once and was called more often"


@pytest.mark.parametrize(
    ("nodes", "replies", "message", "nearest"),
    [
        (ASKING, [calls(BOOKING)], "book: called where the user is to be asked", Nearest("ask", 0)),
        (CHAT, [calls(LAMP)], "getPrice: called where only the closing text was left", Nearest("close", 0)),
    ],
)
def test_a_call_in_place_of_a_text_has_that_text_as_nearest(
    nodes: list[scenes.Record], replies: list[Reply], message: str, nearest: Nearest
) -> None:
    found = evidence(nodes, *replies)
    assert (found.message, found.nearest) == (message, nearest)


def test_a_repeat_says_of_what() -> None:
    answered, same = "repeats a call that was answered in this task", "repeats a call of the same reply"
    assert evidence(CHAIN, calls(LAMP), calls(LAMP)).message == f"getPrice: {answered}"
    assert evidence(CHAIN, calls(LAMP, LAMP)).message == f"call 2 of 2, getPrice: {same}"


def test_the_rule_of_a_step_is_the_first_in_priority_that_a_call_breaks_whatever_their_order() -> None:
    bed = ("getPrice", {"thing": "bed"})
    worst_first = [("getWeather", {}), LAMP, BOOKING, WEIGHT, bed]
    rules = ["step.unknown_tool", "step.redundant_call", "step.wrong_tool", "step.too_early", "args.text"]
    for first, rule in enumerate(rules):
        batch = worst_first[first:]
        assert evidence(CHAIN, calls(LAMP), calls(*batch)).rule == rule
        assert evidence(CHAIN, calls(LAMP), calls(*reversed(batch))).rule == rule


def test_wrong_arguments_are_told_with_the_node_they_are_nearest_to() -> None:
    wrong = ("book", {"thing": "lamp", "day": "Tuesday"})
    assert evidence(ASKING, TEXT, calls(wrong)) == Evidence(
        step=1,
        rule="args.text",
        message='book: $.day: "Tuesday" is not "Monday"',
        allowed=(("book",),),
        nearest=Nearest("call", 1, "book", {"thing": "lamp", "day": "Monday"}),
        call=0,
        tool="book",
        faults=scored(ASKING, TEXT, calls(wrong)).evidence.faults,  # type: ignore[union-attr]
    )


def test_a_fault_has_its_path_both_values_and_the_forms_that_were_compared() -> None:
    (fault,) = evidence(CHAIN, calls(("getPrice", {"thing": "  BED "}))).faults
    assert (fault.rule, fault.path, fault.expected, fault.actual) == (
        "args.text",
        "$.thing",
        "lamp",
        "  BED ",
    )
    assert (fault.expected_form, fault.actual_form) == ("lamp", "bed")


def test_of_a_batch_that_is_right_in_part_the_call_that_is_not_is_named() -> None:
    found = scored(CHAIN, calls(CHAIR, ("getPrice", {"thing": "bed"})))
    assert found.evidence is not None
    assert (found.evidence.call, found.evidence.tool) == (1, "getPrice")
    assert found.evidence.message == 'call 2 of 2, getPrice: $.thing: "bed" is not "lamp"'
    assert found.evidence.nearest == Nearest("call", 0, "getPrice", {"thing": "lamp"})
    assert found.steps[0].checks == ("correct", 'args.text: $.thing: "bed" is not "lamp"')
    assert found.matched == 1


def test_of_two_wrong_calls_the_one_for_the_earlier_node_is_blamed() -> None:
    wrong = ("book", {"thing": "lamp", "day": "Friday"}), ("getPrice", {})
    nodes = [call("getPrice", LAMP[1], "3"), call("book", BOOKING[1], "ok"), close("Done.", 0, 1)]
    assert (evidence(nodes, calls(*wrong)).call, evidence(nodes, calls(*wrong)).tool) == (1, "getPrice")
    assert evidence(nodes, calls(*reversed(wrong))).call == 0


def test_of_calls_that_are_equally_wrong_the_same_one_is_blamed_in_whatever_order_they_come() -> None:
    wrong = ("book", {"thing": "lamp", "day": "Friday"}), ("book", {"thing": "lamp", "day": "Sunday"})
    days = [call("book", {"thing": "lamp", "day": day}, "ok") for day in ("Monday", "Tuesday")]
    nodes = [*days, close("Done.", 0, 1)]
    there, back = evidence(nodes, calls(*wrong)), evidence(nodes, calls(*reversed(wrong)))
    assert (there.faults, there.nearest) == (back.faults, back.nearest)
    assert {there.call, back.call} == {0, 1}


def test_of_equal_calls_the_later_ones_are_the_repeats() -> None:
    nodes = [call("getPrice", LAMP[1], "3"), close("Done.", 0)]
    found = scored(nodes, calls(CHAIR, CHAIR))
    assert found.steps[0].checks == (
        'args.text: $.thing: "chair" is not "lamp"',
        "step.redundant_call: repeats a call of the same reply",
    )
    assert evidence(nodes, calls(CHAIR, CHAIR)).call == 1
    assert evidence(nodes, calls(STOCK, STOCK)).rule == "step.wrong_tool"


def test_a_call_that_is_too_early_is_told_what_it_waits_for() -> None:
    found = evidence(CHAIN, calls(LAMP), calls(WEIGHT))
    assert found.message == "weigh: waits for getPrice"
    assert found.nearest == Nearest("call", 2, "countStock", {"thing": "lamp"})
    both = evidence(CHAIN, calls(WEIGHT))
    assert both.message == "weigh: waits for getPrice + getPrice"


def test_a_call_whose_arguments_are_those_of_a_waiting_node_is_too_early_and_not_wrong() -> None:
    nodes = [call("getPrice", LAMP[1], "3"), call("getPrice", CHAIR[1], "7", 0), close("Done.", 0, 1)]
    assert evidence(nodes, calls(CHAIR)).rule == "step.too_early"


def test_allowed_are_the_ready_nodes_one_by_one_and_the_calls_among_them_as_one() -> None:
    assert evidence(CHAIN, TEXT).allowed == (("getPrice",), ("getPrice", "getPrice"))
    assert evidence(CHAIN, calls(LAMP), TEXT).allowed == (
        ("getPrice",),
        ("countStock",),
        ("getPrice", "countStock"),
    )
    assert evidence(ASKING, calls(BOOKING)).allowed == ((ASK,),)
    assert evidence(CHAT, calls(LAMP)).allowed == ((CLOSE,),)
    beside = [ask("Which?", "This."), *CHAIN[:1], close("Done.", 0, 1)]
    assert evidence(beside, calls(BOOKING)).allowed == ((ASK,), ("getPrice",))


def test_no_more_than_eight_batches_are_told_and_all_calls_at_once_among_them() -> None:
    tools = [scenes.tool(f"tool{n}", x="string") for n in range(10)]
    nodes = [call(f"tool{n}", {"x": "a"}, n) for n in range(10)]
    record = {**scenes.record("wide", ("All.", [*nodes, close("Done.", *range(10))])), "tools": tools}
    scenario = scenes.scenario(record)
    found = score_task(scenario.tools, scenario.tasks[0].nodes, [TEXT]).evidence
    assert found is not None
    assert found.allowed == (*((f"tool{n}",) for n in range(7)), tuple(f"tool{n}" for n in range(10)))


def test_nearest_to_a_wrong_text_is_what_was_due() -> None:
    assert evidence(CHAIN, TEXT).nearest == Nearest("call", 0, "getPrice", {"thing": "lamp"})
    assert evidence(ASKING, Reply("")).nearest == Nearest("ask", 0)
    assert evidence(CHAT, Reply("")).nearest == Nearest("close", 0)


def test_nearest_to_a_wrong_tool_is_a_ready_call_that_no_right_call_stands_for() -> None:
    found = evidence(CHAIN, calls(LAMP, ("book", {"thing": "chair", "day": "Monday"})))
    assert found.nearest == Nearest("call", 1, "getPrice", {"thing": "chair"})
    # Else the one whose arguments agree most; of equal ones the first.
    chair, unlike = (
        evidence(CHAIN, calls(("book", {"thing": it, "day": "Monday"}))) for it in ("chair", "bed")
    )
    assert (chair.rule, chair.nearest) == ("step.wrong_tool", Nearest("call", 1, "getPrice", CHAIR[1]))
    assert (unlike.rule, unlike.nearest) == ("step.wrong_tool", Nearest("call", 0, "getPrice", LAMP[1]))


def test_names_that_a_terminal_would_obey_are_spelt_out() -> None:
    found = evidence(CHAIN, calls(("bad\x1b[31m\nname", {})))
    assert found.message == "bad\\x1b[31m\\nname: is none of the tools"
    assert found.tool == "bad\x1b[31m\nname"


def test_a_repeat_by_meaning_is_a_repeat() -> None:
    assert evidence(CHAIN, calls(LAMP), calls(("getPrice", {"thing": "LAMP"}))).rule == "step.redundant_call"
