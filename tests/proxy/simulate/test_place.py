"""Finding the place in a scenario from the messages alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.simulate.place import Index, Place, build_index, find_place
from scenarios.history import gold_history, released_tools
from scenarios.load import parse_record
from scenarios.reference import ready
from scenarios.types import Scenario


def where(place: Place | None) -> tuple[str, int, int, set[int]] | None:
    return place and (place.scenario.id, place.task, place.step, set(place.done))


# On the real sessions


def test_every_released_history_is_at_the_start_of_its_task(shared: Path, real_index: Index) -> None:
    lines = (shared / "parity" / "history.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    found = [where(find_place(real_index, case["messages"], None)) for case in cases]
    assert found == [(case["id"], case["task"], 0, set()) for case in cases]
    assert len(cases) == 40


@pytest.mark.parametrize("policy", ["oracle", "serial"])
def test_every_step_of_a_play_is_found_with_the_nodes_behind_it(
    policy: str, real: tuple[Scenario, ...], real_index: Index, play: Callable[..., Any]
) -> None:
    for scenario in real:
        for task in range(len(scenario.tasks)):
            played = play(policy, real_index, scenario, task)
            behind: set[int] = set()
            for step, (request, match) in enumerate(zip(played.requests, played.matches, strict=True)):
                tools = released_tools(scenario)
                assert where(find_place(real_index, request, tools)) == (scenario.id, task, step, behind)
                behind |= set(match.nodes)


def test_a_task_alone_is_found_without_the_earlier_ones(
    real: tuple[Scenario, ...], real_index: Index, start_of: Callable[..., Any]
) -> None:
    for scenario in real:
        for task in range(len(scenario.tasks)):
            first, *_, last = start_of(scenario, task)
            place = find_place(real_index, [first, last], released_tools(scenario))
            assert where(place) == (scenario.id, task, 0, set())


def test_no_history_loses_its_place_in_an_agents_own_template(
    real: tuple[Scenario, ...], real_index: Index, play: Callable[..., Any]
) -> None:
    def dressed(message: dict[str, Any]) -> dict[str, Any]:
        if message["role"] != "user":
            return message
        words = message["content"].replace(" ", "\n ")
        parts = [{"type": "text", "text": f"## Request\n<user>{words}</user>\nAnswer in one step."}]
        return {"role": "user", "content": parts}

    own = [{"role": "developer", "content": "You are a helpful agent."}]
    for scenario in real:
        for task in range(len(scenario.tasks)):
            for request in play("oracle", real_index, scenario, task).requests:
                tools = released_tools(scenario)
                plain = find_place(real_index, request, tools)
                assert where(find_place(real_index, own + [dressed(m) for m in request], tools)) == where(
                    plain
                )


# Which scenario


@pytest.fixture
def twins(write: Any) -> tuple[Scenario, ...]:
    """Four scenarios with one first sentence: other second tasks, dates and tools."""

    def twin(id: str, tools: list[str], second: str, date: str) -> Scenario:
        first = ("What is the weather?", [write.call(tools[0]), write.close("Fine.", 0)])
        return write.scenario(
            id, [write.tool(name) for name in tools], first, (second, [write.close("Ok.")]), date=date
        )

    return (
        twin("a", ["rain", "wind"], "And tomorrow?", "2025-01-01 08:00:00 Wednesday"),
        twin("b", ["rain", "wind"], "And in Rome?", "2025-01-02 08:00:00 Thursday"),
        twin("c", ["rain"], "And in Oslo?", "2025-01-01 08:00:00 Wednesday"),
        twin("d", ["rain", "snow", "wind"], "And in Bonn?", "2025-01-03 08:00:00 Friday"),
    )


def test_the_most_tasks_in_order_win_over_the_date(twins: tuple[Scenario, ...], write: Any) -> None:
    messages = [
        {"role": "system", "content": f"Current Date: {twins[0].date}"},
        write.user("What is the weather?"),
        write.assistant("Fine."),
        write.user("And in Bonn?"),
    ]
    assert where(find_place(build_index(twins), messages, None)) == ("d", 1, 0, set())


def test_of_scenarios_with_one_first_sentence_the_date_decides(
    twins: tuple[Scenario, ...], write: Any
) -> None:
    for scenario in (twins[1], twins[3]):
        system = {"role": "system", "content": f"Be brief.\n\nCurrent Date: {scenario.date}"}
        messages = [system, write.user("What is the weather?")]
        assert where(find_place(build_index(twins), messages, None)) == (scenario.id, 0, 0, set())


def test_of_scenarios_with_one_sentence_and_date_the_tools_decide(
    twins: tuple[Scenario, ...], write: Any
) -> None:
    index = build_index(twins)
    system = {"role": "system", "content": f"Current Date: {twins[0].date}"}
    for scenario in (twins[0], twins[2]):
        messages = [system, write.user("What is the weather?")]
        place = find_place(index, messages, [*released_tools(scenario), write.tool("own_tool")])
        assert where(place) == (scenario.id, 0, 0, set())


def test_of_scenarios_that_are_the_same_the_first_is_taken(library: Scenario, write: Any) -> None:
    index = build_index([library, replace(library, id="copy")])
    assert where(find_place(index, [write.user("Thank you!")], None)) == ("library", 2, 0, set())


def test_a_conversation_about_something_else_has_no_place(library: Scenario, write: Any) -> None:
    index = build_index([library])
    assert find_place(index, [write.user("Who wrote Emma?")], released_tools(library)) is None
    assert find_place(index, [write.assistant("Remind me.")], None) is None
    assert find_place(build_index([]), [write.user("Remind me.")], None) is None


def test_the_longest_words_at_one_place_are_the_ones_meant(write: Any) -> None:
    chat = [write.close("Ok.")]
    short = write.scenario("short", [], ("And Rome?", chat))
    long = write.scenario(
        "long", [], ("Yes", chat), ("How is Oslo? And Rome? Yes please", chat), ("And Rome?", chat)
    )
    place = find_place(build_index([short, long]), [write.user("How is Oslo? And Rome? Yes please")], None)
    assert where(place) == ("long", 1, 0, set())


def test_short_words_must_stand_alone(write: Any) -> None:
    chat = [write.close("Ok.")]
    index = build_index([write.scenario("s", [], ("OK", chat), ("继续", chat))])
    assert find_place(index, [write.user("LOOK THERE")], None) is None
    assert where(find_place(index, [write.user("(OK)")], None)) == ("s", 0, 0, set())
    assert where(find_place(index, [write.user("请继续吧")], None)) == ("s", 1, 0, set())


def test_a_text_that_two_tasks_share_is_the_next_of_them(write: Any) -> None:
    chat = [write.close("Ok.")]
    index = build_index([write.scenario("s", [], ("One more.", chat), ("Stop.", chat), ("One more.", chat))])
    messages: list[Any] = []
    for text, task in (("One more.", 0), ("Stop.", 1), ("One more.", 2)):
        messages += [write.user(text)]
        assert where(find_place(index, messages, None)) == ("s", task, 0, set())
        messages += [write.assistant("Ok.")]


def test_a_message_that_quotes_earlier_turns_is_at_its_last_task(library: Scenario, write: Any) -> None:
    text = "So far:\nuser: Remind me.\nassistant: Of which book?\n\nNow: Thank you!"
    assert where(find_place(build_index([library]), [write.user(text)], None)) == ("library", 2, 0, set())


def test_the_language_that_was_loaded_is_the_one_recognised(write: Any) -> None:
    record = {
        "id": "zh",
        "env_info": "2025-03-01 09:00:00 星期六",
        "english_env_info": "2025-03-01 09:00:00 Saturday",
        "tools": [write.tool("weather")],
        "english_tools": [write.tool("weather")],
        "tasks": ["今天天气怎么样？"],
        "english_tasks": ["How is the weather today?"],
        "answer_list": [[write.close("晴。")]],
        "english_answer_list": [[write.close("Sunny.")]],
    }
    index = build_index([parse_record(record, "zh")])
    assert where(find_place(index, [write.user("用户：今天天气怎么样？")], None)) == ("zh", 0, 0, set())
    assert find_place(index, [write.user("How is the weather today?")], None) is None


# Which nodes are done

DUNE = ("c1", "find", '{"title": "Dune"}')
EMMA = ("c2", "find", '{"title": "Emma"}')


@pytest.fixture
def at(library: Scenario, write: Any) -> Callable[..., Any]:
    """at(*messages): the place in the library's first Task after these messages."""
    index = build_index([library])
    first = write.user(library.tasks[0].text)
    return lambda *messages: where(find_place(index, [first, *messages], released_tools(library)))


def test_calls_in_any_order_are_matched_to_nodes_by_their_arguments(at: Any, write: Any) -> None:
    assert at(write.calls(EMMA)) == ("library", 0, 1, {1})
    assert at(write.calls(EMMA, DUNE)) == ("library", 0, 1, {0, 1})
    loan = ("c3", "lend", '{"days":"21","book":"2"}')
    assert at(write.calls(DUNE, EMMA), write.calls(loan)) == ("library", 0, 2, {0, 1, 3})


def test_a_call_with_other_arguments_is_done_if_it_was_told_the_observation(at: Any, write: Any) -> None:
    calls = write.calls(("c1", "find", '{"title": "Dunes"}'))
    for told in (
        '{"book": 1}',
        '{"book":1}',
        json.dumps('{"book": 1}'),
        [{"type": "text", "text": '{"book": 1.0}'}],
    ):
        assert at(calls, write.told("c1", told)) == ("library", 0, 1, {0})


def test_a_call_that_was_refused_is_not_done(at: Any, write: Any) -> None:
    wrong = write.calls(("c1", "find", '{"title": "Dunes"}'), ("c2", "fnd", "{}"), ("c3", "find", "not json"))
    refused = [write.told(f"c{i}", '{"error": "no data for these arguments"}') for i in (1, 2, 3)]
    assert at(wrong, *refused) == ("library", 0, 1, set())
    assert at(wrong, *refused, write.calls(DUNE)) == ("library", 0, 2, {0})


def test_a_call_with_the_right_arguments_is_done_however_its_result_was_rewritten(
    at: Any, write: Any
) -> None:
    assert at(write.calls(DUNE), write.told("c1", "[result removed]")) == ("library", 0, 1, {0})


def test_swapped_observations_of_one_batch_do_not_undo_it(at: Any, write: Any) -> None:
    calls = write.calls(("c1", "find", '{"title": "DUNE 2"}'), ("c2", "find", '{"title": "EMMA 2"}'))
    told = [write.told("c1", '{"book": 2}'), write.told("c2", '{"book": 1}')]
    assert at(calls, *told) == ("library", 0, 1, {0, 1})


def test_a_node_that_was_called_too_early_is_done_if_it_was_called_exactly(at: Any, write: Any) -> None:
    exact = write.calls(("c1", "lend", '{"book": "2", "days": "21"}'))
    assert at(exact, write.told("c1", '{"due": "2025-03-22"}')) == ("library", 0, 1, {3})
    assert at(write.calls(("c1", "lend", '{"book": "9"}'))) == ("library", 0, 1, set())


def test_empty_messages_are_steps_and_nothing_else(at: Any, write: Any) -> None:
    assert at(write.assistant(""), write.assistant(None)) == ("library", 0, 2, set())


def test_text_while_calls_are_due_does_nothing(at: Any, write: Any) -> None:
    assert at(write.assistant("Wait."), write.user("Go on.")) == ("library", 0, 1, set())


def test_calls_are_read_whatever_dialect_or_name_they_came_in(library: Scenario, write: Any) -> None:
    index = build_index([library])
    first = write.user(library.tasks[0].text)
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": EMMA[2]}}
    assert where(find_place(index, [first, legacy], None)) == ("library", 0, 1, {1})
    renamed = [write.tool(f"books-{tool.name}") for tool in library.tools]
    place = find_place(index, [first, write.calls(("c1", "books-find", EMMA[2]))], renamed)
    assert where(place) == ("library", 0, 1, {1})
    assert place is not None and place.offered["lend"] == "books-lend"


def test_a_tool_is_never_taken_for_a_renamed_one_of_the_same_scenario(write: Any) -> None:
    tools = [write.tool("info"), write.tool("get_info")]
    index = build_index([write.scenario("s", tools, ("Hi there.", [write.close("Hello.")]))])
    place = find_place(index, [write.user("Hi there.")], [write.tool("get_info")])
    assert place is not None and place.offered == {"get_info": "get_info"}


@pytest.fixture
def reminded(library: Scenario, write: Any) -> Callable[..., Any]:
    """reminded(*messages): the place in the library's second Task, the one with an ask."""
    index = build_index([library])
    before = [*gold_history(library, 1), write.user(library.tasks[1].text)]
    return lambda *messages: where(find_place(index, [*before, *messages], None))


def test_an_ask_is_done_once_its_scripted_reply_has_come(reminded: Any, write: Any) -> None:
    asked = write.assistant("Which one do you mean?")
    assert reminded(asked) == ("library", 1, 1, set())
    assert reminded(asked, write.user("[user] The second one")) == ("library", 1, 1, {0})


def test_the_scripted_reply_means_nothing_before_anybody_has_asked(reminded: Any, write: Any) -> None:
    assert reminded(write.user("The second one")) == ("library", 1, 0, set())


def test_an_ask_that_nothing_waits_for_any_more_counts_as_done(reminded: Any, write: Any) -> None:
    call = write.calls(("c1", "remind", '{"book": "2"}'))
    assert reminded(call, write.told("c1", "set")) == ("library", 1, 1, {0, 1})


def test_a_task_that_was_closed_is_complete(reminded: Any, write: Any) -> None:
    asked, reply = write.assistant("Which?"), write.user("The second one")
    call, told = write.calls(("c1", "remind", '{"book": "2"}')), write.told("c1", "set")
    closed = [asked, reply, call, told, write.assistant("Done!")]
    assert reminded(*closed) == ("library", 1, 3, {0, 1, 2})
    assert reminded(*closed, write.user("Hello?")) == ("library", 1, 3, {0, 1, 2})
    assert reminded(*closed, write.user("Thank you!")) == ("library", 2, 0, set())


def test_a_scripted_reply_that_holds_the_next_tasks_words_is_still_a_reply(write: Any) -> None:
    nodes = [write.ask("Sure?", "Yes, go on"), write.call("go", [0]), write.close("Gone.", 1)]
    scenario = write.scenario("s", [write.tool("go")], ("Go.", nodes), ("Yes, go on", [write.close("Ok.")]))
    messages = [write.user("Go."), write.assistant("Sure?"), write.user("Yes, go on")]
    assert where(find_place(build_index([scenario]), messages, None)) == ("s", 0, 1, {0})
    messages += [write.calls(("c", "go", "{}")), write.assistant("Gone."), write.user("Yes, go on")]
    assert where(find_place(build_index([scenario]), messages, None)) == ("s", 1, 0, set())


def test_a_next_task_that_holds_an_open_asks_reply_is_the_next_task(write: Any) -> None:
    nodes = [write.ask("Sure?", "Yes"), write.call("go", [0]), write.close("Gone.", 1)]
    second = ("Yes or no: is it far?", [write.close("Yes.")])
    scenario = write.scenario("s", [write.tool("go")], ("Go.", nodes), second)
    messages = [write.user("Go."), write.assistant("I will not."), write.user("Yes or no: is it far?")]
    assert where(find_place(build_index([scenario]), messages, None)) == ("s", 1, 0, set())


@settings(deadline=None)
@given(data=st.data())
def test_any_legal_play_is_followed_node_by_node(data: st.DataObject, library: Scenario, write: Any) -> None:
    index, nodes = build_index([library]), library.tasks[0].nodes
    messages, done, step = [write.user(library.tasks[0].text)], set[int](), 0
    while calls := [i for i in ready(nodes, frozenset(done)) if nodes[i].is_call]:
        batch = data.draw(st.lists(st.sampled_from(calls), min_size=1, unique=True))
        ids = {i: f"c{step}{i}" for i in batch}
        spaced = data.draw(st.sampled_from([(",", ":"), (", ", ": ")]))
        arguments = [json.dumps(nodes[i].arguments, separators=spaced) for i in batch]
        messages.append(
            write.calls(*((ids[i], nodes[i].name, a) for i, a in zip(batch, arguments, strict=True)))
        )
        results = data.draw(st.permutations(batch))
        messages += [write.told(ids[i], json.dumps(nodes[i].observation, separators=spaced)) for i in results]
        done |= set(batch)
        step += 1
        assert where(find_place(index, messages, None)) == ("library", 0, step, done)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_message = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]) | _json},
    optional={
        "content": st.sampled_from(["Remind me.", "The second one", [{"text": "Thank you!"}]]) | _json,
        "tool_calls": _json | st.lists(st.fixed_dictionaries({"function": _json, "id": _json}), max_size=2),
        "tool_call_id": _json,
        "function_call": _json,
    },
)


@settings(deadline=None)
@given(messages=st.lists(_message, max_size=8), tools=st.lists(_json, max_size=3))
def test_no_message_whatever_is_in_it_raises(
    messages: list[Any], tools: list[Any], library: Scenario
) -> None:
    find_place(build_index([library]), messages, tools)
