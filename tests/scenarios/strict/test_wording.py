"""Free text: what may be worded differently, and what must agree."""

from __future__ import annotations

import json

import pytest

from scenarios.strict.arguments import compare, prepare
from scenarios.types import Tool, ToolNotes

NOTES = ToolNotes(free_text=frozenset({"note", "people[].note"}))
RULES = prepare(Tool("t", "", {"type": "object"}, {}), NOTES)


def broken(actual: str, expected: str) -> list[str]:
    return [it.rule for it in compare(RULES, json.dumps({"note": actual}), {"note": expected}).faults]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Please water the plants", "please water the plants!"),
        ("Please do not cancel the order", "please don't cancel the order"),
        ("please don’t cancel the order", "Please do not cancel the order"),
        ("Meet Alice at 8 pm", "Meet Alice at 20:00"),
        ("Meeting on 2024-7-13 at 8:00", "Meeting on 2024/07/13 at 08:00"),
        ("2024/7/13", "2024-07-13"),
        ("Buy 1,000 shares of Apple", "Buy 1000.0 shares of Apple"),
        ("Order three pizzas for the team", "Order 3 pizzas for the team"),
        ("Book the rooms 3, 5 and 7 for us", "Book the rooms 7, 3 and 5 for us"),
        ("Gift cards of $20 and $30 please", "Gift cards of $30 and $20 please"),
        ("Compare the 10% and 20% discounts", "Compare the 20% and 10% discounts"),
        ("Find 3-star and 4-star hotels", "Find 4-star and 3-star hotels"),
        ("Call me at 3:00 or at 5:00 today", "Call me at 5:00 or at 3:00 today"),
        ("Clean the rooms 101/102 today", "Clean the rooms 102/101 today"),
        ("提醒我3号和5号交房租", "提醒我5号和3号交房租"),
        ("请总结第3章与第5章", "请总结第5章与第3章"),
        ("Tell him not to be late for it", "Tell him to not be late for it"),
        ("Why is it not working today?", "Why isn't it working today?"),
        ("It was +5 degrees this morning", "It was 5 degrees this morning"),
        ("It was -05 degrees this morning", "It was -5.0 degrees this morning"),
        ("It was -0 degrees this morning", "It was 0 degrees this morning"),
        ("Wait in room 007 for the others", "Wait in room 7 for the others"),
        ("The dog is out. Please feed the cat tonight", "The dog is out. Kindly feed the cat tonight"),
        ("Tell the driver: (Please wait at the door)", "Tell the driver: (Kindly wait at the door)"),
        (" " * 12 + "Please water the plants tonight", " " * 12 + "Kindly water the plants tonight"),
        ("Book a flight from Rome to Paris", "Book flight from Rome to Paris"),
        ('Send "Dune" to Bob', "Send “dune” to Bob"),
        ('Send the book "Dune" to Bob', "Send the book Dune to Bob"),
        ("The Museum is closed today", "the museum is closed today"),
        ("明天下午三点开会", "明天下午3点开会"),
        ("这家店不错，请预订", "这家店很好，请预订。"),
        ("我特别想去北京看长城", "我想去北京看长城"),
        ("Bejing", "Beijing"),
        ("wake me up at noon tomorrow, please", "please wake me up at noon tomorrow"),
        ("", "  "),
    ],
)
def test_other_words_for_the_same_are_right(one: str, other: str) -> None:
    assert (broken(one, other), broken(other, one)) == ([], [])


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        ("Call the office tomorrow", "Buy bread and milk", "args.free_text"),
        ("", "Buy bread and milk", "args.free_text"),
        ("Move 7 boxes to room 5.", "Move 5 boxes to room 7.", "args.free_text_number"),
        ("Move two boxes to room three", "Move three boxes to room two", "args.free_text_number"),
        ("Wake me at 6:30, leave at 7:15.", "Wake me at 7:15, leave at 6:30.", "args.free_text_number"),
        ("Fly on 2024-07-13, back 2024-07-20", "Fly on 2024-07-20, back 2024-07-13", "args.free_text_number"),
        ("Put 7 boxes and 5 bags there", "Put 5 boxes and 7 bags there", "args.free_text_number"),
        ("Go from room 3 to room 5 now", "Go from room 5 to room 3 now", "args.free_text_number"),
        ("爸爸吃辣，妈妈不吃辣", "爸爸不吃辣，妈妈吃辣", "args.free_text_negation"),
        ("我不想订酒店，想订机票", "我想订酒店，不想订机票", "args.free_text_negation"),
        ("I cannot go there but he can", "I can go there but he cannot", "args.free_text_negation"),
        (
            "Tell Ann we will come but Bob will not.",
            "Tell Ann we will not come but Bob will.",
            "args.free_text_negation",
        ),
        ("Meet me at the station at 8 pm", "Meet me at the station at 7 pm", "args.free_text_number"),
        ("Meet me on 2024-07-13 please", "Meet me on 2024-07-14 please", "args.free_text_number"),
        ("It was -5 degrees this morning", "It was 5 degrees this morning", "args.free_text_number"),
        ("Pay him 1.5 dollars right now", "Pay him 15 dollars right now", "args.free_text_number"),
        ("Pay him 1.5 dollars right now", "Pay him 1.25 dollars right now", "args.free_text_number"),
        ("Pay him 1.5 dollars right now", "Pay him 1.05 dollars right now", "args.free_text_number"),
        ("Pay him 100 dollars right now", "Pay him 10 dollars right now", "args.free_text_number"),
        ("Install version 1.2.3 of it now", "Install version 1.2.30 of it now", "args.free_text_number"),
        ("Ping the host 192.168.15.24", "Ping the host 192.168.15.99", "args.free_text_number"),
        ("Order two pizzas for the team", "Order three pizzas for the team", "args.free_text_number"),
        ("Order 2 pizzas and 2 cokes", "Order 2 pizzas and cokes", "args.free_text_number"),
        ("请给我订三个房间", "请给我订两个房间", "args.free_text_number"),
        ("预订二十个房间", "预订三十个房间", "args.free_text_number"),
        ("转账一百元给小王", "转账两百元给小王", "args.free_text_number"),
        ("八点半开会讨论计划", "八点开会讨论计划", "args.free_text_number"),
        ("Invite sixty people for dinner", "Invite seventy people for dinner", "args.free_text_number"),
        ("仅限非会员使用优惠券", "仅限会员使用优惠券", "args.free_text_negation"),
        ("预订不同的两个房间", "预订相同的两个房间", "args.free_text_negation"),
        ("do not cancel my order please", "do cancel my order please", "args.free_text_negation"),
        ("I can't come to the party", "I can come to the party", "args.free_text_negation"),
        ("a pizza without onions please", "a pizza with onions please", "args.free_text_negation"),
        ("a non-smoking room please", "a smoking room please", "args.free_text_negation"),
        ("请不取消我的订单", "请取消我的订单", "args.free_text_negation"),
        ("请勿打扰我的客人", "请打扰我的客人", "args.free_text_negation"),
        ("Rome to Paris", "Paris to Rome", "args.free_text_name"),
        ("Book a flight from Rome to Paris", "Book a flight from Paris to Rome", "args.free_text_name"),
        ("fly from rome to paris", "fly from paris to rome", "args.free_text_name"),
        ("从北京到上海的机票", "从上海到北京的机票", "args.free_text_name"),
        ('Copy "alpha" to "beta" now', 'Copy "beta" to "alpha" now', "args.free_text_name"),
        ('Rename the file to "alpha one"', 'Rename the file to "alpha two"', "args.free_text_name"),
        (
            "Call Alice about the invoice this afternoon",
            "Call Bob about the invoice this afternoon",
            "args.free_text_name",
        ),
        ("1 Rome ticket for tomorrow, please", "1 Paris ticket for tomorrow, please", "args.free_text_name"),
        ("请播放《红豆》这首歌", "请播放《红日》这首歌", "args.free_text_name"),
        (
            "Send the report to Alice in accounting",
            "Send the report to Bob in accounting",
            "args.free_text_name",
        ),
    ],
)
def test_what_must_agree_is_told_by_name_where_it_does_not(one: str, other: str, rule: str) -> None:
    """Row 9 of the defects."""
    assert (rule in broken(one, other), rule in broken(other, one)) == (True, True)


def test_the_fault_shows_what_was_compared() -> None:
    (found,) = compare(RULES, '{"note": "wake me at 7 pm"}', {"note": "wake me at 8 pm"}).faults
    assert (found.rule, found.path, found.expected_form, found.actual_form) == (
        "args.free_text_number",
        "$.note",
        ["20:00"],
        ["19:00"],
    )


def test_only_the_paths_that_the_notes_name_are_free() -> None:
    actual = {"people": [{"note": "Water the plants.", "task": "Water the plants."}]}
    expected = {"people": [{"note": "Water the plants", "task": "Water the plants"}]}
    found = compare(RULES, json.dumps(actual), expected)
    assert [(it.rule, it.path) for it in found.faults] == [("args.text", "$.people[0].task")]


@pytest.mark.parametrize(
    "text",
    [
        "\ud800 lone",
        "a" * 50_000,
        "A b " * 5_000,
        "1:" * 5_000,
        '"' * 5_001,
        "no " * 5_000,
        "从" * 500,
        "9" * 5_000,
        "二" * 5_000,
        "亿" * 5_000,
        "hundred " * 5_000,
        " ".join(f"Name-{'abcdefghij'[it % 10] * (it // 10 + 1)}" for it in range(300)),
    ],
    ids=lambda text: ascii(text[:6]),
)
def test_long_and_odd_texts_are_compared_without_an_error(text: str) -> None:
    assert broken(text, text + " indeed") in ([], ["args.free_text"])
    assert broken(text, "x") != []
