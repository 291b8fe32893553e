"""Lines as text: columns that fit a terminal, fields for a pipe, JSON."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.tail.compact import Wide
from proxy.tail.events import Event, Place, ToolCalled, Verdict
from proxy.tail.lines import Cost, Line
from proxy.tail.shapes import Columns, Fields, json_line
from proxy.terminal.look import Look
from scenarios.text import width

AT = datetime(2026, 1, 2, 10, 20, 30, tzinfo=UTC).timestamp()
HERE = Place("r1", "shop_1.e1", 0, 2)
COST = Cost(1234, 56, 1.2)
PLAIN = Look()
EVIL = "\x1b[31m\x07\u202e\n\x9b2J"
SPELT = r"\x1b[31m\x07\u202e ⏎ \x9b2J"


def columns(
    *lines: Line, wide: int = 80, look: Look = PLAIN, alone: bool = False, of_events: bool = False
) -> list[str]:
    """What is shown on a terminal of `wide` columns, but for the day."""
    shape = Columns(look, zone=UTC, alone=alone, wide=of_events)
    return [row for line in lines for row in shape.text(line, wide).split("\n")][1:]


def fields(line: Line, **options: bool) -> str:
    return Fields(Look(), zone=UTC, **options).text(line, 0)


def test_a_line_has_time_session_place_mark_kind_text_and_at_the_right_edge_what_it_cost() -> None:
    line = Line(AT, HERE, "calls", "findPrice", "calls", cost=COST)
    [shown] = columns(line)
    assert shown == "10:20:30 shop_1.e1 1.2  → calls   findPrice                      1,234→56  1.20s"
    assert width(shown) == 80


def test_a_session_that_is_alone_is_not_named() -> None:
    line = Line(AT, HERE, "user", "Hello", color="user")
    assert columns(line, alone=True) == ["10:20:30 1.2    user    Hello"]


@pytest.mark.parametrize(
    ("length", "end"),
    [
        # 46 columns are left: the tokens and seconds take 19 of them, the seconds alone 7.
        (27, "x" * 27 + "    1,234→56  1.20s"),
        (28, "x" * 28 + " " * 12 + " 1.20s"),
        (39, "x" * 39 + "  1.20s"),
        (40, "x" * 40),
        (46, "x" * 46),
        (47, "x" * 45 + "…"),
    ],
)
def test_a_long_text_takes_the_place_of_the_tokens_then_of_the_seconds_and_is_cut_last(
    length: int, end: str
) -> None:
    [shown] = columns(Line(AT, HERE, "says", "x" * length, cost=COST))
    assert shown == "10:20:30 shop_1.e1 1.2    says    " + end


@pytest.mark.parametrize("wide", [36, 49, 50, 60, 80, 140])
@pytest.mark.parametrize("text", ["x" * 300, "图书馆" * 100, "e\u0301" * 300, EVIL * 40, "one two " * 60])
def test_no_line_is_wider_than_the_terminal(text: str, wide: int) -> None:
    lines = [
        Line(
            AT,
            Place("r1", "商店" * 20, 11, 12),
            "calls",
            text,
            "calls",
            "bad",
            cost=Cost(99_999, 9_999, 99.9),
        ),
        Line(AT, HERE, "task", text, "wrong", "bad", "wrong", COST),
        Line(AT, HERE, "run", text, color="rule"),
    ]
    for of_events in (False, True):
        assert all(width(row) <= wide for row in columns(*lines, wide=wide, of_events=of_events))


def test_wide_a_text_goes_on_below_itself_broken_at_blanks_and_at_its_own_line_breaks() -> None:
    text = "one two three four five six\nseven eightnineteneleventwelvethirteen"
    rows = columns(Line(AT, HERE, "told", text), wide=50, alone=True, of_events=True)
    before = "10:20:30 1.2    told    "
    texts = ["one two three four five", "six", "seven", "eightnineteneleventwelveth", "irteen"]
    assert rows == [before + texts[0], *(" " * len(before) + text for text in texts[1:])]


def test_wide_a_text_that_never_ends_is_cut_with_the_count_of_what_is_missing() -> None:
    rows = columns(Line(AT, HERE, "told", "x" * 1000), wide=50, alone=True, of_events=True)
    assert len(rows) == 12
    # Eleven lines of 26, and in the last what there is room for beside the count.
    assert rows[-1].strip() == "x" * 18 + "… (+696)"


def test_a_new_day_and_a_run_are_rules_across_the_terminal() -> None:
    shape = Columns(Look(), zone=UTC)
    run = Line(AT, Place("r1"), "run", "run r1", color="rule")
    rows = shape.text(run, 40).split("\n")
    assert rows == ["── 2026-01-02 " + "─" * 26, "── 10:20:30 run r1 " + "─" * 21]
    assert shape.text(run, 40) == rows[1]
    later = Line(AT + 86_400, HERE, "user", "Hi")
    assert shape.text(later, 40).split("\n")[0] == "── 2026-01-03 " + "─" * 26


def test_sessions_have_colours_of_their_own_and_keep_them() -> None:
    shape = Columns(Look(color=True), zone=UTC)
    rows = [shape.text(Line(AT, Place("r1", name), "begin", "x"), 80) for name in ("a", "b", "a")]
    codes = [row.split("a ")[0].split("b ")[0][-4:] for row in (rows[0].split("\n")[1], *rows[1:])]
    assert codes[0] == codes[2] != codes[1]


def test_colours_say_nothing_that_the_line_does_not_say_without_them() -> None:
    line = Line(AT, HERE, "task", "wrong at step 1/2", "wrong", "bad", "wrong", COST)
    shape = Columns(Look(color=True), zone=UTC)
    colored = shape.text(line, 80).split("\n")[1]
    assert "\x1b[31m✗\x1b[0m" in colored
    plain = colored
    for code in ("2", "36", "31", "0"):
        plain = plain.replace(f"\x1b[{code}m", "")
    assert plain == columns(line)[0]


def test_an_encoding_without_our_marks_gets_others_of_the_same_width() -> None:
    line = Line(AT, HERE, "calls", "findPrice ×2", "calls", cost=COST)
    [shown] = columns(line, look=Look(encoding="ascii"))
    assert shown == "10:20:30 shop_1.e1 1.2  > calls   findPrice x2                   1,234>56  1.20s"


def test_fields_stand_in_their_order_with_a_dash_for_what_there_is_not() -> None:
    assert fields(Line(AT, HERE, "calls", "findPrice ×2", "calls", cost=COST)).split() == [
        "2026-01-02T10:20:30.000+00:00",
        "shop_1.e1",
        "1.2",
        "calls",
        "-",
        "1234",
        "56",
        "1.20",
        "findPrice",
        "×2",
    ]
    assert fields(Line(AT, Place(), "proxy", "started")).split() == [
        "2026-01-02T10:20:30.000+00:00",
        *["-", "-", "proxy", "-", "-", "-", "-"],
        "started",
    ]


@given(st.text(), st.text(), st.booleans())
def test_fields_are_one_line_without_a_control_character_and_eight_before_the_text(
    session: str, text: str, wide: bool
) -> None:
    line = Line(AT, Place("r1", session, 1, 2), "calls", text, "calls", cost=COST)
    shown = fields(line, wide=wide)
    assert shown.splitlines() == [shown]
    assert not any(unicodedata.category(char)[0] == "C" for char in shown)
    assert [shown.split()[i] for i in (2, 3, 5, 6, 7)] == ["2.2", "calls", "1234", "56", "1.20"]


def test_a_field_of_text_is_cut_unless_all_is_wanted() -> None:
    line = Line(AT, HERE, "told", "x" * 1000)
    assert fields(line).endswith(" " + "x" * 300 + "… (+700)")
    assert fields(line, wide=True).endswith(" " + "x" * 1000)


def test_json_has_the_event_as_it_is_with_its_name_and_nothing_that_a_terminal_obeys() -> None:
    call = ToolCalled(HERE, AT, "find", EVIL)
    shown = json_line(call)
    assert shown.isascii() and shown.isprintable()
    assert json.loads(shown) == {
        "event": "tool_called",
        "place": {"run": "r1", "session": "shop_1.e1", "task": 0, "turn": 2},
        "at": AT,
        "name": "find",
        "arguments": EVIL,
    }
    assert json.loads(json_line(Verdict(HERE, AT, 0, "stop", "did", "why")))["reason"] == "why"


def test_nothing_that_comes_from_outside_is_obeyed_by_a_terminal() -> None:
    place = Place(EVIL, EVIL, 0, 1)
    event: Event = ToolCalled(place, AT, EVIL, EVIL)
    for line in Wide().lines(event):
        [shown] = columns(line, wide=200)
        assert shown.isprintable()
        assert shown.count(SPELT.split("⏎")[0].strip()) == 3
        assert fields(line).isprintable()
