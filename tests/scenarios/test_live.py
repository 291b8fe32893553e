"""What each Step comes to where a wrong one does not end its Task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import scenes
from support.references import orderly_reference

from scenarios.live import Answer, LiveStep, Progress, Rule, begin_task, call_key, take
from scenarios.load import read_file
from scenarios.reference import minimal_path
from scenarios.types import Node, Reply, Scenario, Tool, ToolCall, ToolNotes

SHOP = scenes.scenario(scenes.SHOP)
TWINS = scenes.scenario(scenes.TWINS)
TEXT = Reply("Here you are.")
LAMP, CHAIR = {"thing": "lamp"}, {"thing": "chair"}


def begun(task: int = 0, of: Scenario = SHOP, before: Progress | None = None) -> Progress:
    return begin_task(of.tools, of.tasks[task].nodes, before)


def of(*nodes: Node) -> Progress:
    """A Task with these nodes, whose tools take any arguments."""
    properties = {"q": {"type": "string"}, "n": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties, "required": []}
    names = dict.fromkeys(node.name for node in nodes if node.is_call)
    return begin_task([Tool(name, "", parameters, {}) for name in names], nodes)


def call(name: str, arguments: Any) -> ToolCall:
    return ToolCall(None, name, arguments if isinstance(arguments, str) else json.dumps(arguments))


def calling(*calls: tuple[str, Any]) -> Reply:
    return Reply(None, tuple(call(name, arguments) for name, arguments in calls))


def play(progress: Progress, *replies: Reply) -> list[LiveStep]:
    steps = []
    for reply in replies:
        steps.append(take(progress, reply))
        progress = steps[-1].progress
    return steps


def told(step: LiveStep) -> list[str | None]:
    return [answer.text for answer in step.answers]


def test_a_call_that_is_due_is_served_and_a_text_then_closes_the_complete_task() -> None:
    served, closed = play(begun(), calling(("getPrice", LAMP)), TEXT)

    assert (served.kind, served.nodes) == ("calls", (0,))
    assert served.answers == (Answer('{"price": 3, "unit": "€"}', 0),)
    assert served.progress.complete
    assert (closed.kind, closed.nodes) == ("close", (1,))
    assert closed.progress.done == {0, 1}


def test_a_task_that_is_closed_too_early_was_not_complete() -> None:
    assert not begun().complete
    (closed,) = play(begun(), TEXT)
    assert (closed.kind, closed.nodes) == ("close", (1,))


def test_chat_is_complete_from_the_start() -> None:
    assert begun(3).complete


def test_order_does_not_matter_so_that_a_call_before_its_turn_is_served() -> None:
    weigh, lamp, chair = play(
        begun(of=TWINS),
        calling(("weigh", {"thing": "lamp", "kilos": 1.5})),
        calling(("getPrice", LAMP)),
        calling(("getPrice", CHAIR)),
    )
    assert told(weigh) == ["light"]
    assert (told(lamp), told(chair)) == (['{"price": 3}'], ['{"price": 7}'])
    assert not lamp.progress.complete
    assert chair.progress.complete


def test_each_call_of_a_batch_is_told_what_it_asked_for() -> None:
    (step,) = play(begun(of=TWINS), calling(("getPrice", CHAIR), ("getPrice", LAMP)))
    assert told(step) == ['{"price": 7}', '{"price": 3}']
    assert (step.nodes, [answer.node for answer in step.answers]) == ((0, 1), [1, 0])


@pytest.mark.parametrize(
    "reply",
    [
        calling(("getPrice", {"thing": "sofa"})),
        calling(("getPrice", {})),
        calling(("getPrice", "{")),
        calling(("countStock", LAMP)),
        calling(("teleport", LAMP)),
        calling(("", "")),
        calling(("prepare_to_answer", {"answer_type": "tool"})),
        Reply(None, (ToolCall(None, "getPrice", None),)),
    ],
)
def test_a_call_that_the_reference_does_not_have_is_told_nothing_and_changes_nothing(reply: Reply) -> None:
    (step,) = play(begun(), reply)
    assert step == LiveStep("calls", begun(), (), (Answer(),))


def test_what_is_right_beside_what_is_wrong_is_served() -> None:
    (step,) = play(begun(), calling(("teleport", {}), ("getPrice", LAMP)))
    assert step.answers == (Answer(), Answer('{"price": 3, "unit": "€"}', 0))
    assert step.progress.complete


def test_a_repeat_gets_the_same_again_and_is_redundant() -> None:
    steps = play(begun(), *[calling(("getPrice", LAMP))] * 3)
    price = '{"price": 3, "unit": "€"}'
    assert [step.answers for step in steps] == [
        (Answer(price, 0),),
        (Answer(price, 0, redundant=True),),
        (Answer(price, 0, redundant=True),),
    ]
    assert [step.nodes for step in steps] == [(0,), (), ()]


def test_of_two_equal_calls_in_one_batch_the_second_is_redundant() -> None:
    (step,) = play(begun(), calling(("getPrice", LAMP), ("getPrice", '{ "thing":"lamp" }')))
    assert [answer.redundant for answer in step.answers] == [False, True]


def test_an_exact_repeat_is_told_the_same_though_it_resembles_another_call_too() -> None:
    """Where texts are compared by their words, a call can fit two nodes; it was told of one."""
    words = "what does the red lamp in the hall cost on {} today"
    first, second = ({"q": words.format(day)} for day in ("monday", "tuesday"))
    progress = of(Node("f", first, "on Monday"), Node("f", second, "on Tuesday"))
    together, again = play(progress, calling(("f", first), ("f", second)), calling(("f", second)))

    assert told(together) == ["on Monday", "on Tuesday"]
    assert again.answers == (Answer("on Tuesday", 1, redundant=True),)


MONDAY, TUESDAY, SUNDAY = (
    {"q": f"what does the red lamp in the hall cost on {day} today"}
    for day in ("monday", "tuesday", "sunday")
)


def test_calls_that_each_resemble_both_nodes_are_told_of_the_one_that_they_equal() -> None:
    progress = of(Node("f", MONDAY, "on Monday"), Node("f", TUESDAY, "on Tuesday"))
    (together,) = play(progress, calling(("f", TUESDAY), ("f", MONDAY)))
    assert together.answers == (Answer("on Tuesday", 1), Answer("on Monday", 0))


def test_a_call_is_told_of_the_node_that_it_equals_though_one_that_it_resembles_comes_first() -> None:
    progress = of(Node("f", MONDAY, "on Monday", (1,)), Node("f", TUESDAY, "on Tuesday"))
    (early,) = play(progress, calling(("f", MONDAY)))
    assert early.answers == (Answer("on Monday", 0),)


def test_what_a_call_was_told_that_resembles_one_done_is_told_again_in_the_next_task() -> None:
    progress = of(Node("f", MONDAY, "on Monday"))
    _, alike = play(progress, calling(("f", MONDAY)), calling(("f", SUNDAY)))
    (later,) = play(begin_task([], (Node("f", {"n": 1}, "other"),), alike.progress), calling(("f", SUNDAY)))
    assert alike.answers == (Answer("on Monday", 0, redundant=True),)
    assert later.answers == (Answer("on Monday", None, redundant=True),)


def test_of_two_unequal_answers_for_one_call_of_a_batch_the_last_is_told_again() -> None:
    progress = of(Node("f", {"n": 1}, "first"), Node("f", {"n": 1}, "second"))
    both, again = play(progress, calling(*[("f", {"n": 1})] * 3), calling(("f", {"n": 1})))
    assert both.answers == (Answer("first", 0), Answer("second", 1), Answer("second", 1, redundant=True))
    assert again.answers == (Answer("second", 1, redundant=True),)


@pytest.mark.parametrize("arguments", [{"undefined": 1}, {}])
def test_the_very_arguments_of_the_reference_are_served_though_the_tool_does_not_allow_them(
    arguments: dict[str, Any],
) -> None:
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    nodes = (Node("f", arguments, "told"),)
    progress = begin_task([Tool("f", "", parameters, {})], nodes, rule="released")
    assert take(progress, calling(("f", arguments))).answers == (Answer("told", 0),)


def test_a_call_of_an_earlier_task_is_redundant_in_a_later_one() -> None:
    (first,) = play(begun(0), calling(("getPrice", LAMP)))
    steps = play(begun(1, before=first.progress), calling(("getPrice", LAMP)), calling(("getPrice", CHAIR)))

    assert steps[0].answers == (Answer('{"price": 3, "unit": "€"}', None, redundant=True),)
    assert steps[1].answers == (Answer('{"price": 7}', 0),)


def test_a_call_that_a_later_task_wants_again_is_served_with_what_is_true_then() -> None:
    now, later = of(Node("f", {"n": 1}, "old")), (Node("f", {"n": 1}, "new"),)
    (first,) = play(now, calling(("f", {"n": 1})))
    steps = play(begin_task([], later, first.progress), *[calling(("f", {"n": 1}))] * 2)

    assert [step.answers for step in steps] == [(Answer("new", 0),), (Answer("new", 0, redundant=True),)]


def test_a_task_begins_with_nothing_done_but_knows_what_was_told() -> None:
    (first,) = play(begun(0), calling(("getPrice", LAMP)))
    second = begun(1, before=first.progress)
    assert (second.done, second.told) == (frozenset(), first.progress.told)
    assert begun(1).told == {}


def test_a_ready_node_is_served_before_one_of_the_same_arguments_that_is_not() -> None:
    progress = of(Node("f", {"n": 1}, "second", (1,)), Node("f", {"n": 1}, "first"))
    steps = play(progress, *[calling(("f", {"n": 1}))] * 2)
    assert [told(step) for step in steps] == [["first"], ["second"]]


def test_text_is_the_ask_where_one_is_ready_and_its_dependents_are_not_all_done() -> None:
    asked, booked, closed = play(
        begun(2), Reply("Which day?"), calling(("book", {"thing": "lamp", "day": "Monday"})), TEXT
    )
    assert (asked.kind, asked.nodes, asked.progress.complete) == ("ask", (0,), False)
    assert booked.progress.complete
    assert closed.kind == "close"


def test_an_ask_whose_dependents_are_all_done_is_skipped() -> None:
    booked, closed = play(begun(2), calling(("book", {"thing": "lamp", "day": "Monday"})), TEXT)
    assert booked.progress.complete
    assert closed.kind == "close"


def test_a_closing_node_that_waits_for_the_ask_as_well_does_not_keep_it_from_being_skipped() -> None:
    task = [
        scenes.ask("Which day?", "Monday."),
        scenes.call("book", {"thing": "lamp", "day": "Monday"}, "booked", 0),
        scenes.close("Done.", 0, 1),
    ]
    progress = begun(of=scenes.scenario(scenes.record("own", ("Book it.", task))))
    booked, closed = play(progress, calling(("book", {"thing": "lamp", "day": "Monday"})), TEXT)
    assert booked.progress.complete
    assert closed.kind == "close"


def test_an_ask_that_waits_for_a_call_is_not_due_before_it() -> None:
    record = scenes.record(
        "late",
        (
            "Book it if it is cheap.",
            [
                scenes.call("getPrice", LAMP, "3"),
                scenes.ask("Which day?", "Monday.", 0),
                scenes.call("book", {"thing": "lamp", "day": "Monday"}, "booked", 1),
                scenes.close("Done.", 2),
            ],
        ),
    )
    progress = begun(of=scenes.scenario(record))
    assert [step.kind for step in play(progress, TEXT)] == ["close"]
    assert [step.kind for step in play(progress, calling(("getPrice", LAMP)), TEXT)] == ["calls", "ask"]


@pytest.mark.parametrize("reply", [Reply(None), Reply("")])
def test_an_empty_reply_is_nothing(reply: Reply) -> None:
    assert play(begun(), reply) == [LiveStep("nothing", begun())]


def test_text_beside_calls_is_ignored() -> None:
    (step,) = play(begun(), Reply("Let me see.", calling(("getPrice", LAMP)).calls))
    assert told(step) == ['{"price": 3, "unit": "€"}']


@pytest.mark.parametrize(
    ("rule", "served"), [("released", ["told", None]), ("strict", [None, "told"]), ("either", ["told"] * 2)]
)
def test_a_call_is_served_by_the_argument_rules_of_the_scorer_or_of_either(
    rule: Rule, served: list[str | None]
) -> None:
    """ROUGE takes another last number for the same text (facts: section 5, row 25), `strict` a default."""
    address = {"type": "string", "description": "The address."}
    parameters = {"type": "object", "properties": {"q": address, "n": {"type": "integer"}}}
    notes = {"f": ToolNotes(defaults={"n": 1})}
    nodes = (Node("f", {"q": "192.168.15.24", "n": 1}, "told"),)
    progress = begin_task([Tool("f", "", parameters, {})], nodes, notes=notes, rule=rule)
    alike, filled_in = {"q": "192.168.15.99", "n": 1}, {"q": "192.168.15.24"}
    assert [told(take(progress, calling(("f", sent))))[0] for sent in (alike, filled_in)] == served


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ('{"a": 1, "b": 2}', '{ "b":2,"a":1 }', True),
        ("", "{}", True),
        ("{", "{", True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 1}', '{"a": true}', False),
        ("{", "[", False),
        ("[" * 10_000, "[" * 10_001, False),
    ],
)
def test_a_repeat_is_exact_whatever_its_spacing_and_the_order_of_its_keys(
    left: str, right: str, equal: bool
) -> None:
    assert (call_key(call("f", left)) == call_key(call("f", right))) is equal
    assert call_key(call("f", left)) != call_key(call("g", left))


def test_a_thousand_calls_at_once_are_judged_like_one() -> None:
    progress = of(*(Node("f", {"n": n}, f"told {n}") for n in range(5)))
    (step,) = play(progress, calling(*(("f", {"n": n % 500}) for n in range(1000))))
    assert told(step)[:6] == [*(f"told {n}" for n in range(5)), None]
    assert [n for n, answer in enumerate(step.answers) if answer.redundant] == list(range(500, 505))


# --- Properties --------------------------------------------------------------

WORDS = ["please", "tell", "me", "what", "one", "large", "red", "garden", "lamp", "costs"]
QUESTIONS = [{"q": " ".join(WORDS[i : i + 6])} for i in range(5)]
"""Texts of which each resembles the ones beside it, and no other."""


def alike(progress: Progress, made: ToolCall, node: int) -> bool:
    """Is the call the node's? Told from a Task in which no other node is open."""
    others = frozenset(range(len(progress.nodes))) - {node}
    step = take(Progress(progress.nodes, progress.schemas, others), Reply(None, (made,)))
    return step.nodes == (node,)


@settings(deadline=None)
@example(QUESTIONS[1:], QUESTIONS[:4])
@given(
    st.lists(st.sampled_from(QUESTIONS), max_size=4),
    st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=4),
)
def test_as_many_calls_of_a_batch_as_possible_are_served_each_by_a_node_of_its_own(
    wanted: list[dict[str, str]], asked: list[dict[str, str]]
) -> None:
    progress = of(*(Node("f", arguments, f"told {i}") for i, arguments in enumerate(wanted)))
    made = [call("f", arguments) for arguments in asked]
    step = take(progress, Reply(None, tuple(made)))

    fresh = [
        (i, answer.node)
        for i, answer in enumerate(step.answers)
        if answer.node is not None and not answer.redundant
    ]
    assert sorted(node for _, node in fresh) == list(step.nodes) == sorted(step.progress.done)
    assert all(alike(progress, made[i], node) for i, node in fresh)
    assert len(fresh) == most_pairs(
        [[alike(progress, it, node) for node in range(len(wanted))] for it in made]
    )


def most_pairs(fits: Sequence[Sequence[bool]]) -> int:
    """The size of a largest matching, by trying all."""
    columns = [*range(len(fits[0])), *[None] * len(fits)]
    return max(len(matched(fits, order)) for order in permutations(columns, len(fits)))


def matched(fits: Sequence[Sequence[bool]], order: Sequence[int | None]) -> list[int]:
    return [column for row, column in zip(fits, order, strict=True) if column is not None and row[column]]


@settings(deadline=None)
@given(orderly_reference(), st.data())
def test_the_calls_of_a_reference_complete_it_in_any_order_and_grouping(
    nodes: tuple[Node, ...], data: st.DataObject
) -> None:
    progress = of(*nodes)
    left = data.draw(st.permutations([i for i, node in enumerate(nodes) if node.is_call]))
    served: dict[int, str | None] = {}
    while left:
        size = data.draw(st.integers(1, len(left)))
        batch, left = left[:size], left[size:]
        step = take(progress, calling(*((nodes[i].name, nodes[i].arguments) for i in batch)))
        served.update(zip(batch, told(step), strict=True))
        progress = step.progress
    while not progress.complete:
        step = take(progress, TEXT)
        assert step.kind == "ask"
        progress = step.progress

    assert served == {i: f"observation {i}" for i, node in enumerate(nodes) if node.is_call}
    assert take(progress, TEXT).kind == "close"


ANY_REPLY = st.builds(
    Reply,
    st.sampled_from([None, "", "Hm."]),
    st.lists(
        st.builds(
            ToolCall,
            st.none(),
            st.sampled_from(["a", "b", "c", "d", ""]),
            st.integers(0, 4).map(lambda n: json.dumps({"n": n})) | st.sampled_from([None, "{", "[]"]),
        ),
        max_size=3,
    ).map(tuple),
)


@settings(deadline=None)
@given(orderly_reference(), st.lists(ANY_REPLY, max_size=6))
def test_what_is_done_stays_done_and_what_was_told_once_is_always_told(
    nodes: tuple[Node, ...], replies: list[Reply]
) -> None:
    progress, known = of(*nodes), {}
    for reply in replies:
        step = take(progress, reply)
        assert step.progress.done == progress.done | set(step.nodes)
        assert not progress.done & set(step.nodes) or step.kind == "close"
        assert len(step.answers) == len(reply.calls)
        for made, answer in zip(reply.calls, step.answers, strict=True):
            assert answer.text is not None or call_key(made) not in known
            assert not answer.redundant or answer.text is not None
            if answer.text is not None:
                known[call_key(made)] = answer.text
        progress = step.progress


def test_the_annotated_answers_of_real_sessions_complete_every_task_with_nothing_redundant(
    real_session_files: list[Path],
) -> None:
    scenarios = [scenario for file in real_session_files for scenario in read_file(file).scenarios]
    for scenario in scenarios:
        for task in range(len(scenario.tasks)):
            progress = begun(task, scenario)
            for batch in minimal_path(scenario.tasks[task].nodes):
                assert all(progress.nodes[i].is_call for i in batch) or len(batch) == 1
                complete, step = progress.complete, take(progress, gold_reply(progress, batch))
                assert step.nodes == batch
                assert not any(answer.redundant for answer in step.answers)
                progress = step.progress
            assert complete, (scenario.id, task)
            assert step.kind == "close"


def gold_reply(progress: Progress, batch: Sequence[int]) -> Reply:
    nodes = [progress.nodes[i] for i in batch]
    return calling(*((node.name, node.arguments) for node in nodes)) if nodes[0].is_call else TEXT
