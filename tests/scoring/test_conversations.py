"""Which Task each message of a recorded conversation belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support import scenes

from scenarios.history import gold_history
from scenarios.mutations import reference_replies
from scenarios.types import Reply, Scenario
from scoring.conversations import NOT_IN_CONVERSATION, ConversationError, trajectory
from scoring.types import AGENT_STOPPED, TaskTrajectory

Message = dict[str, Any]

LAMP, CHAIR, BOOK, THANKS = (task.text for task in scenes.scenario().tasks)
NEVER_BEGUN = TaskTrajectory((), None, finished=False, unfinished_reason=NOT_IN_CONVERSATION)


def user(text: Any) -> Message:
    return {"role": "user", "content": text}


def says(text: str) -> Message:
    return {"role": "assistant", "content": text}


def calls(name: str = "getPrice", arguments: str = '{"thing": "lamp"}', call_id: Any = "c1") -> Message:
    function = {"name": name, "arguments": arguments}
    entry = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [entry]}


def result(call_id: Any = "c1") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": "3"}


def split(*messages: Message, of: Scenario | None = None, task: int | None = None) -> list[list[str]]:
    """What was said or called in each Task that was begun, in short."""
    played = trajectory(of or scenes.scenario(), list(messages), case="x", task=task)
    return [[short(reply) for reply in it.replies] for it in played.tasks if it.finished]


def short(reply: Reply) -> str:
    return "+".join(call.name for call in reply.calls) or reply.content or ""


def refused(*messages: Any, of: Scenario | None = None, task: int | None = None) -> str:
    with pytest.raises(ConversationError) as caught:
        trajectory(of or scenes.scenario(), list(messages), case="x", task=task)
    return str(caught.value)


def clarifying(question_after: Sequence[Message] = ()) -> Scenario:
    """Two Tasks, the first with a question in it."""
    nodes = [
        *question_after,
        scenes.ask("Which day?", "On Monday.", *range(len(question_after))),
        scenes.call("book", {"thing": "lamp", "day": "Monday"}, "ok", len(question_after)),
        scenes.close("Booked.", len(question_after) + 1),
    ]
    return scenes.scenario(scenes.record("day", ("Book a lamp.", nodes), ("Thanks!", [scenes.close("Bye.")])))


def test_a_conversation_is_a_session_with_the_replies_of_each_task() -> None:
    played = trajectory(
        scenes.scenario(),
        [
            {"role": "system", "content": "Be kind."},
            user(LAMP),
            calls(),
            result(),
            says("It costs 3."),
            user(CHAIR),
            calls("countStock", call_id="c2"),
        ],
        case="mine",
    )
    assert (played.session, played.epoch, played.scenario) == ("mine", 1, scenes.scenario())
    price, closing = played.tasks[0].replies
    assert [(it.id, it.name, it.arguments) for it in price.calls] == [("c1", "getPrice", '{"thing": "lamp"}')]
    assert (played.tasks[0].ending, closing) == (None, Reply("It costs 3."))
    assert (played.tasks[1].ending, len(played.tasks[1].replies)) == (AGENT_STOPPED, 1)
    assert played.tasks[2:] == (NEVER_BEGUN, NEVER_BEGUN)


def test_a_task_without_any_reply_was_left_by_the_agent() -> None:
    played = trajectory(scenes.scenario(), [user(LAMP)], case="x")
    assert played.tasks == (TaskTrajectory((), AGENT_STOPPED), NEVER_BEGUN, NEVER_BEGUN, NEVER_BEGUN)


def test_tasks_may_be_asked_for_in_other_words() -> None:
    said = [user("The lamp?"), says("3"), user("And chairs?"), says("7"), user("Book it."), says("Day?")]
    assert split(*said) == [["3"], ["7"], ["Day?"]]


def test_texts_are_the_same_but_for_case_spaces_and_unicode_form() -> None:
    said = [user(LAMP), says("3"), user(" BOOK\n a ＬＡＭＰ. "), says("no")]
    assert split(*said, of=clarifying_second()) == [["3"], ["no"]]


def clarifying_second() -> Scenario:
    return scenes.scenario(
        scenes.record("s", ("?", [scenes.close("!")]), ("Book a lamp.", [scenes.close("!")]))
    )


def test_the_next_task_begins_even_where_a_question_is_open() -> None:
    assert split(user("Book a lamp."), says("Which day?"), user("thanks!"), says("Bye"), of=clarifying()) == [
        ["Which day?"],
        ["Bye"],
    ]


def test_a_scripted_answer_belongs_to_its_task_wherever_it_comes() -> None:
    said = [user("Book a lamp."), calls("book"), result(), user("on monday."), says("Booked.")]
    assert split(*said, of=clarifying()) == [["book", "Booked."]]


def test_an_answer_in_other_words_belongs_to_the_question_that_was_due() -> None:
    said = [
        user("Book a lamp."),
        says("Which day?"),
        user("Tomorrow"),
        says("Booked."),
        user("Ta"),
        says("Bye"),
    ]
    assert split(*said, of=clarifying()) == [["Which day?", "Booked."], ["Bye"]]


def test_a_question_that_was_not_due_is_a_close() -> None:
    said = [user("What is a lamp?"), says("Which one?"), user("The red one."), says("Ah.")]
    assert split(*said) == [["Which one?"], ["Ah."]]


@pytest.mark.parametrize("thing", ["lamp", "chair"])
def test_a_question_is_due_after_a_call_by_name_be_its_arguments_wrong(thing: str) -> None:
    of = clarifying([scenes.call("getPrice", {"thing": "lamp"}, 3)])
    said = [user("Book a lamp."), calls(arguments=f'{{"thing": "{thing}"}}'), result(), says("When?")]
    assert split(*said, user("Soon"), says("Done"), of=of) == [["getPrice", "When?", "Done"]]


def test_a_question_is_due_after_calls_that_the_released_rules_do_not_allow() -> None:
    of = clarifying([scenes.call("getPrice", {"thing": "lamp"}, 3)])
    said = [user("Book a lamp."), calls("weigh"), result(), calls(call_id="c2"), result("c2"), says("When?")]
    assert split(*said, user("Soon"), says("Done"), of=of) == [["weigh", "getPrice", "When?", "Done"]]


def test_user_messages_in_a_row_are_one_turn() -> None:
    said = [
        user("<context>"),
        user(LAMP),
        user("(hurry)"),
        says("3"),
        user("<context>"),
        user("x"),
        says("7"),
    ]
    assert split(*said) == [["3"], ["7"]]


def test_user_messages_in_a_row_are_two_tasks_if_the_later_one_is_the_next_tasks() -> None:
    assert split(user(LAMP), user(CHAIR), says("7")) == [[], ["7"]]


def test_parts_of_content_are_read_and_legacy_calls_too() -> None:
    parts = [{"type": "text", "text": "What does "}, {"type": "text", "text": "a lamp cost?"}]
    called = {"role": "assistant", "content": None, "function_call": {"name": "getPrice", "arguments": "{}"}}
    told = {"role": "function", "name": "getPrice", "content": "3"}
    spoken = {"role": "assistant", "content": [{"type": "text", "text": "It is 3."}]}
    said = [user("hello"), user(parts), called, told, spoken]
    assert split(*said) == [["getPrice", "It is 3."]]


def test_what_comes_before_the_first_user_message_is_context() -> None:
    said = [{"role": "developer", "content": "x"}, says("Welcome!"), user(LAMP), says("3")]
    assert split(*said) == [["3"]]


def test_of_one_task_alone_everything_before_its_text_is_context() -> None:
    of = scenes.scenario()
    history = gold_history(of, 2)
    played = trajectory(
        of, [*history, user(BOOK), says("Which day?"), user("On Friday."), says("x")], case="x", task=3
    )
    assert played.tasks[2] == TaskTrajectory((Reply("Which day?"), Reply("x")), None)
    assert [played.tasks[i] for i in (0, 1, 3)] == [NEVER_BEGUN] * 3


def test_of_one_task_alone_the_last_message_with_its_text_begins_it() -> None:
    assert split(user(CHAIR), says("old"), user(CHAIR), says("new"), task=2) == [["new"]]


def test_of_one_task_alone_in_other_words_the_first_user_message_begins_it() -> None:
    assert split(says("Hi"), user("So?"), says("7, and 12."), task=2) == [["7, and 12."]]


def test_a_played_reference_is_split_as_it_was_played() -> None:
    of = scenes.scenario()
    assert (
        split(*gold_history(of, 4))
        == [[short(reply) for reply in reference_replies(task.nodes)] for task in of.tasks]
        == [
            ["getPrice", "A lamp costs 3."],
            ["getPrice+countStock", "7, and 12."],
            ["Which day?", "book", "Booked for Monday."],
            ["You are welcome."],
        ]
    )


def test_a_result_without_an_id_is_that_of_a_call_without_one() -> None:
    told = {"role": "tool", "content": "3"}
    assert split(user(LAMP), calls(call_id=None), told, says("3")) == [["getPrice", "3"]]
    assert refused(user(LAMP), calls(), told) == "messages[2]: is a tool result without tool_call_id"


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([says("3")], "messages: has no user message, so no task is begun"),
        (["hello"], "messages[0]: must be a chat message, not text"),
        (
            [user(LAMP), {"role": "bot", "content": "3"}],
            'messages[1].role: "bot" is no role; '
            "known are system, developer, user, assistant, tool, function",
        ),
        (
            [{"content": "3"}],
            "messages[0].role: is missing; known are system, developer, user, assistant, tool, function",
        ),
        (
            [user(LAMP), calls(), result("c2")],
            'messages[2]: is the result of "c2", but no call before it has this id',
        ),
        (
            [user(LAMP), result(), calls()],
            'messages[1]: is the result of "c1", but no call before it has this id',
        ),
        (
            [user(LAMP), calls(), {"role": "function", "name": "weigh", "content": "3"}],
            'messages[2]: is the result of "weigh", but no call before it has this name',
        ),
        (
            [user(LAMP), says("3"), user(THANKS)],
            "messages[2]: is the text of task 4, but task 2 is the next; "
            "give each task a line of its own, with its number as task",
        ),
    ],
)
def test_messages_that_cannot_be_told_apart_are_named(messages: list[Any], error: str) -> None:
    assert refused(*messages) == error


def test_a_user_message_too_many_is_named() -> None:
    said = [message for i in range(3) for message in (user(f"task {i}"), says("so"))]
    assert refused(*said, of=scenes.scenario(scenes.chat("talk", 2))) == (
        "messages[4]: is one user message too many: talk has 2 tasks, and no question is open"
    )


def test_of_one_task_alone_a_second_request_is_named() -> None:
    assert refused(user(LAMP), says("3"), user(CHAIR), task=1) == (
        "messages[2]: begins another task, but the messages are said to be of task 1 alone; "
        "leave out task, or what comes after it"
    )


@pytest.mark.parametrize(("messages", "kind"), [({}, "an object"), (None, "null"), ("x", "text")])
def test_messages_that_are_no_list_are_refused(messages: object, kind: str) -> None:
    with pytest.raises(ConversationError, match=f"^messages: must be a list of chat messages, not {kind}$"):
        trajectory(scenes.scenario(), messages, case="x")
