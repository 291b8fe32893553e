"""Numbers, texts, dates, URLs, arrays: what means the same, and what only looks so."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.strict import values
from scenarios.strict.arguments import compare, prepare
from scenarios.strict.values import exactly
from scenarios.types import NO_NOTES, Tool, ToolNotes

STRING = {"type": "string"}


def faults(
    actual: Any, expected: Any, schema: Any = None, name: str = "q", notes: ToolNotes = NO_NOTES
) -> list[tuple[str, str, bool]]:
    """(rule, path, coercible) of what is wrong with one argument."""
    properties = {} if schema is None else {name: schema}
    rules = prepare(Tool("t", "", {"type": "object", "properties": properties}, {}), notes)
    found = compare(rules, f"{{{json.dumps(name)}: {actual}}}", {name: expected})
    return [(it.rule, it.path, it.coercible) for it in found.faults]


def text_rules(actual: str, expected: str, schema: Any = STRING, name: str = "q") -> list[str]:
    return [rule for rule, _, _ in faults(json.dumps(actual), expected, schema, name)]


# --- Numbers, booleans, types ------------------------------------------------


@pytest.mark.parametrize("spelling", ["1", "1.0", "1e0", "10E-1", "1.000"])
@pytest.mark.parametrize("kind", ["integer", "number", "float", "string"])
def test_numbers_are_equal_by_value_however_they_are_spelt(spelling: str, kind: str) -> None:
    assert (faults(spelling, 1, {"type": kind}), faults(spelling, 1.0, {"type": kind})) == ([], [])


@pytest.mark.parametrize(
    ("actual", "expected", "rule", "coercible"),
    [
        ("2", 1, "args.number", False),
        ("1.0000001", 1, "args.number", False),
        ("9007199254740993", 9007199254740992, "args.number", False),
        ("true", 1, "args.type", True),
        ("0", False, "args.type", True),
        ("false", True, "args.boolean", False),
        ('"1"', 1, "args.type", True),
        ('" 1.0 "', 1, "args.type", True),
        ('"2"', 1, "args.type", False),
        ('"one"', 1, "args.type", False),
        ('"true"', True, "args.type", True),
        ('"True"', True, "args.type", True),
        ('"false"', True, "args.type", False),
        ("1", "1", "args.type", True),
        ("1", "2", "args.type", False),
        ("true", "true", "args.type", True),
        ('"null"', None, "args.type", True),
        ('""', None, "args.type", False),
        ("null", "", "args.type", False),
        ('"[1, 2]"', [1, 2], "args.type", True),
        ('["a"]', "a", "args.type", False),
        ('{"a": 1}', [1], "args.type", False),
        ('"{}"', {}, "args.type", True),
        ('"[\\"A\\"]"', ["A"], "args.type", True),
        ("[]", {}, "args.type", False),
    ],
)
def test_another_value_or_type_is_a_fault_and_text_that_reads_as_the_value_is_coercible(
    actual: str, expected: Any, rule: str, coercible: bool
) -> None:
    """Rows 6 and 7 of the defects."""
    assert faults(actual, expected) == [(rule, "$.q", coercible)]


# --- Texts -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("las  vegas ", "Las Vegas"),
        ("Cafe\u0301", "Café"),
        ("２０２４年", "2024年"),
        ("ＡＢＣ", "abc"),
        ("STRASSE", "straße"),
        ("a\u00a0b\n", "A B"),
        ("CO₂", "CO2"),
        ("50 m²", "50 m2"),
    ],
)
def test_texts_are_equal_but_for_case_blanks_and_unicode_forms(actual: str, expected: str) -> None:
    assert (text_rules(actual, expected), text_rules(expected, actual)) == ([], [])


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("LasVegas", "Las Vegas"),
        ("-5", "5"),
        ("1.5", "15"),
        ("1.0", "1"),
        ("Rome to Paris", "Paris to Rome"),
        ("do cancel my booking", "do not cancel my booking"),
        ("192.168.15.99", "192.168.15.24"),
        ("Bejing", "Beijing"),
        ("", "a"),
        ("\ud800", "\ud801"),
        ("10²", "102"),
        ("1½", "11/2"),
        ("1½", "1"),
    ],
)
def test_texts_that_only_look_alike_differ(actual: str, expected: str) -> None:
    """Rows 9 and 11 of the defects."""
    assert (text_rules(actual, expected), text_rules(expected, actual)) == (["args.text"], ["args.text"])


@pytest.mark.parametrize(
    ("schema", "name", "rule"),
    [
        ({"type": "string", "enum": ["a", "b"]}, "q", "args.enum"),
        ({"type": "string", "enum": ["a", "A"]}, "q", "args.exact"),
        ({"type": "string", "enum": ["b"]}, "q", "args.exact"),
        ({"const": "a"}, "q", "args.enum"),
        ({"type": "string", "pattern": "a"}, "q", "args.exact"),
        ({"type": "string", "format": "uuid"}, "q", "args.exact"),
        *[
            (STRING, name, "args.exact")
            for name in (
                "id", "user_id", "userId", "userID", "user-id", "orderIDs", "userid", "APIKey", "api_key",
                "countryCode", "SKU", "sha256", "id2", "password", "accessToken", "regexp", "filename",
            )
        ],
    ],
)  # fmt: skip
def test_text_of_a_fixed_form_and_identifiers_are_exact(schema: Any, name: str, rule: str) -> None:
    assert (text_rules("A", "a", schema, name), text_rules("a", "a", schema, name)) == ([rule], [])


@pytest.mark.parametrize(
    "name", ["keyword", "paid", "grid", "video", "codec", "idea", "monkey", "q", "", "identity"]
)
def test_names_that_only_contain_such_a_word_are_no_identifiers(name: str) -> None:
    assert text_rules("A", "a", STRING, name) == []


def test_items_of_an_array_of_identifiers_are_exact() -> None:
    assert faults('["a1"]', ["A1"], {"type": "array", "items": STRING}, "userIds") == [
        ("args.exact", "$.userIds[0]", False)
    ]


# --- Dates, times, URLs ------------------------------------------------------

SAME = [
    ["2024-7-13", "2024-07-13", "2024/07/13", "2024年7月13日", "2024年07月13号", " ２０２４-07-13"],
    ["8:00", "08:00", "08:00:00", "8 am", "8:00AM", "8 a.m."],
    ["20:00", "8 pm", "8PM", "8:00 p.m.", "20:00:00.000"],
    ["00:00", "12 am", "12:00 AM"],
    ["12:00", "12 pm"],
    ["13:00", "1 pm"],
    ["20:00:30", "8:00:30 pm"],
    ["20:00:00.5", "8:00:00.50 pm"],
    ["20:00:00.05"],
    ["23:59:59", "11:59:59 pm"],
    ["20:00Z", "20:00+00:00", "8 pm UTC", "20:00 +0000", "20:00 GMT", "20:00-00:00"],
    ["20:00+05:00", "8 pm +05"],
    ["20:00+05:30"],
    ["20:00-05:00"],
    ["20:00+10:00"],
    ["2024-07-13T08:00", "2024-7-13 8:00", "2024/07/13 08:00:00", "2024年7月13日 8:00", "2024-07-13 8 am"],
    ["2024-07-13T08:00:00Z", "2024-07-13 08:00+00:00", "2024-07-13t08:00z", "2024-07-13T08:00:00.0+00"],
    ["2024-07-13T08:00+08:00", "2024-7-13 8:00:00+0800"],
    ["2024-07-14"],
    ["08:01"],
    ["2024-07-13T00:00"],
]  # fmt: skip
"""Each row is one moment; two rows are two."""


@pytest.mark.parametrize("row", SAME, ids=lambda row: row[0])
def test_spellings_of_one_date_or_time_are_equal(row: list[str]) -> None:
    """Row 10 of the defects."""
    assert [pair for pair in itertools.product(row, row) if text_rules(*pair)] == []


def test_different_dates_and_times_differ() -> None:
    pairs = [(one[-1], other[0]) for one, other in itertools.permutations(SAME, 2)]
    assert [pair for pair in pairs if text_rules(*pair) != ["args.date"]] == []


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("2024-13-45", "2024/13/45"),
        ("2024-02-30", "2024-2-30"),
        ("24:00", "24:00:00"),
        ("25:00", "25:00:00"),
        ("8:60", "08:60"),
        ("8:00:60", "08:00:60"),
        ("13 pm", "1 pm"),
        ("8", "8:00"),
        ("2024-7-13 or so", "2024-07-13 or so"),
    ],
)
def test_what_no_calendar_or_clock_has_is_text(actual: str, expected: str) -> None:
    assert text_rules(actual, expected) == ["args.text"]


@pytest.mark.parametrize("form", ["date", "date-time", "time"])
def test_a_format_of_dates_or_times_keeps_the_canonical_form(form: str) -> None:
    assert text_rules("2024/7/13", "2024-07-13", {"type": "string", "format": form}) == []


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        ("HTTP://Example.COM", "http://example.com/", True),
        ("http://example.com:80/a", "http://example.com/a", True),
        ("https://example.com:443", "https://example.com", True),
        ("https://example.com:8443", "https://example.com", False),
        ("http://a.b/%7Euser/%41", "http://a.b/~user/A", True),
        ("http://a.b/%2f", "http://a.b/%2F", True),
        ("http://a.b/%2F", "http://a.b//", False),
        ("http://a.b/é", "http://a.b/%C3%A9", True),
        ("http://a.b/Path", "http://a.b/path", False),
        ("http://a.b/?q=1", "http://a.b/?q=2", False),
        ("http://a.b/?q=A", "http://a.b/?q=a", False),
        ("http://a.b/#x", "http://a.b/", False),
        ("http://a.b", "https://a.b", False),
        ("http://u@a.b", "http://a.b", False),
        ("http://a.b", "http://a.c", False),
        ("http://a.b:8443", "http://a.c:8443", False),
        ("http://[::1]:8080", "http://[::1:8080]", False),
        ("http://a.b/%2F", "http://a.b/2F", False),
        ("http://a.b/\ud800", "http://a.b/\ud801", False),
    ],
)
def test_urls_are_compared_in_canonical_form(actual: str, expected: str, same: bool) -> None:
    """RFC 3986, 6.2.2 and 6.2.3."""
    for schema in (STRING, {"type": "string", "format": "uri"}):
        assert text_rules(actual, expected, schema) == ["args.url"] * (not same)


@pytest.mark.parametrize(
    ("expected", "form"),
    [
        ("2024/7/13 8:00:30 pm +0800", "2024-07-13T20:00:30+08:00"),
        ("2024-7-13T8:00:00Z", "2024-07-13T08:00+00:00"),
        ("HTTP://A.b:80/%2f%7E?q=1#é", "http://a.b/%2F~?q=1#%C3%A9"),
    ],
)
def test_a_fault_shows_the_canonical_form(expected: str, form: str) -> None:
    """ISO 8601; RFC 3986, 6.2.2: scheme and host in lower case, escapes in upper case."""
    rules = prepare(Tool("t", "", {"properties": {"q": STRING}}, {}))
    actual = "1999-01-01" if expected[0] == "2" else "http://c.d/"
    (found,) = compare(rules, json.dumps({"q": actual}), {"q": expected}).faults
    assert (found.expected_form, found.actual_form) == (form, actual)


@pytest.mark.parametrize(
    "broken", ["http://[", "http://a:99999", "http://a:x/", "http://", "://", "http://[::1]:0/"]
)
def test_a_url_that_is_none_is_text(broken: str) -> None:
    assert (text_rules(broken, broken.upper()), text_rules(broken, "http://a.b") != []) == ([], True)


# --- Arrays, objects ---------------------------------------------------------

UNORDERED = ToolNotes(unordered=frozenset({"q", "q[].tags"}))


def test_the_order_of_an_array_matters() -> None:
    assert faults('["b", "a"]', ["a", "b"]) == [
        ("args.text", "$.q[0]", False),
        ("args.text", "$.q[1]", False),
    ]


@pytest.mark.parametrize(
    ("schema", "notes"), [({"type": "array", "uniqueItems": True}, NO_NOTES), ({"type": "array"}, UNORDERED)]
)
def test_it_does_not_matter_where_the_schema_or_the_notes_say_so(schema: Any, notes: ToolNotes) -> None:
    assert faults('["B ", "c", "a"]', ["a", "b", "C"], schema, notes=notes) == []
    assert faults('["B ", " A"]', ["a", "b"], schema, notes=notes) == []


def test_items_listed_by_position_may_come_in_any_order_too() -> None:
    assert faults('["b", "a"]', ["a", "b"], {"prefixItems": [{}, {}]}, notes=UNORDERED) == []


def test_the_longer_of_two_arrays_is_no_better_partner_than_an_equal_one() -> None:
    assert faults("[[1, 2, 3], [1, 2]]", [[1, 2], [1, 2, 3]], notes=UNORDERED) == []


def test_every_item_is_compared_whatever_stands_beside_it() -> None:
    assert faults('[1, {"a": 1}]', [2, {"a": 1}]) == [("args.number", "$.q[0]", False)]


def test_an_item_is_used_once() -> None:
    assert faults('["a", "a"]', ["a", "b"], notes=UNORDERED) == [("args.text", "$.q[1]", False)]


def test_pairing_is_optimal_where_the_first_fit_would_fail() -> None:
    """`{}` is both `{"n": 1}` (its default) and itself; taken first come, `{"n": 1}` has no partner left."""
    items = {"properties": {"n": {"default": 1}, "m": {"default": 2}}}
    actual = '[{}, {"n": 1, "m": 2}, {"m": 2}]'
    for expected in itertools.permutations([{"m": 2}, {"n": 1}, {}]):
        assert faults(actual, list(expected), {"items": items}, notes=UNORDERED) == []


def test_the_fault_of_an_unordered_array_is_told_of_the_nearest_item() -> None:
    actual = '[{"a": 1, "b": 2}, {"a": 5, "b": 6}]'
    assert faults(actual, [{"a": 5, "b": 7}, {"a": 1, "b": 2}], notes=UNORDERED) == [
        ("args.number", "$.q[1].b", False)
    ]


def test_inner_arrays_follow_their_own_notes() -> None:
    assert faults('[{"tags": [1, 2]}]', [{"tags": [2, 1]}], notes=UNORDERED) == []


@pytest.mark.parametrize("notes", [NO_NOTES, UNORDERED])
def test_an_array_of_another_length_has_that_one_fault(notes: ToolNotes) -> None:
    assert faults("[1, 2, 3]", [1, 2], notes=notes) == [("args.array_length", "$.q", False)]


@pytest.mark.parametrize("size", [5, 50, 51, 1000])
def test_arrays_of_any_size_are_compared_without_an_order(size: int) -> None:
    """All items are spelt otherwise: numbers, texts, dates inside objects."""
    expected = [[it, {"text": f"Item {it}", "day": f"2024-01-{it % 31 + 1:02}"}] for it in range(size)]
    actual = [
        [float(it), {"day": f"2024/1/{it % 31 + 1}", "text": f" item  {it}"}] for it in reversed(range(size))
    ]
    assert faults(json.dumps(actual), expected, notes=UNORDERED) == []
    actual[0][1]["text"] = "another"
    assert faults(json.dumps(actual), expected, notes=UNORDERED) == [("args.text", "$.q[0][1].text", False)]


@pytest.mark.parametrize(
    ("schema", "name", "items"),
    [
        ({}, "q", [f"item {it}" for it in range(51)]),
        ({}, "userIds", [f"{kind}{it}" for it in range(26) for kind in "aA"]),
        ({}, "q", [{"n": it} for it in range(51)]),
        ({}, "q", [{f"key{it}": 1} for it in range(51)]),
        ({}, "q", [None, True, 1, 1.5, False, 0, *range(2, 50)]),
        (
            {"items": {"prefixItems": [{"enum": ["a", "A"]}]}},
            "q",
            [[kind, it] for it in range(26) for kind in "aA"],
        ),
    ],
    ids=["texts", "identifiers", "values", "keys", "types", "places"],
)
def test_each_of_very_many_items_without_an_order_finds_its_equal(
    schema: Any, name: str, items: list[Any]
) -> None:
    notes = ToolNotes(unordered=frozenset({name}))
    assert faults(json.dumps(items[::-1]), items, schema, name, notes) == []


def test_very_many_items_of_another_number_have_that_one_fault() -> None:
    found = faults(json.dumps(list(range(60))), list(range(100, 170)), notes=UNORDERED)
    assert found == [("args.array_length", "$.q", False)]


def test_the_best_pairing_of_50_items_is_found_though_equals_would_part_otherwise() -> None:
    """Null is as good as absent, and absent as the default 1, but null is not 1: `{}` is for `{"n": 1}`."""
    items = {"properties": {"n": {"type": ["integer", "null"], "default": 1}}}
    more = list(range(48))
    actual = json.dumps([{}, {"n": None}, *more])
    assert faults(actual, [{}, {"n": 1}, *more], {"items": items}, notes=UNORDERED) == []


def test_of_very_many_differing_items_the_rest_go_by_position() -> None:
    found = faults(json.dumps(list(range(150))), list(range(50, 200)), notes=UNORDERED)
    assert found == [("args.number", f"$.q[{it}]", False) for it in range(50)]
    found = faults(json.dumps(list(range(150))), list(range(1000, 1150)), notes=UNORDERED)
    assert found == [("args.number", f"$.q[{it}]", False) for it in range(150)]


def test_arrays_within_arrays_without_an_order_are_not_all_compared_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three levels of eight different items each are 512 numbers, and 262,144 pairs of them."""

    def nested(levels: int, first: int) -> Any:
        return [nested(levels - 1, 8 * first + it) for it in range(8)] if levels else first

    compared = 0

    def counting(left: Any, right: Any) -> bool:
        nonlocal compared
        compared += 1
        return exactly(left, right)

    monkeypatch.setattr(values, "exactly", counting)
    notes = ToolNotes(unordered=frozenset("q" + "[]" * level for level in range(3)))
    assert faults(json.dumps(nested(3, 10_000)), nested(3, 1), notes=notes)
    assert 0 < compared < 100 * 512


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["a", "A ", "b", "2024-7-13", "2024/07/13"]), max_size=6), st.randoms())
def test_an_unordered_array_equals_itself_in_any_order(items: list[str], random: Any) -> None:
    turned = random.sample(items, len(items))
    assert faults(json.dumps(turned), items, notes=UNORDERED) == []


def test_the_order_of_keys_never_matters() -> None:
    assert faults('{"b": {"d": 1, "c": 2}, "a": 3}', {"a": 3, "b": {"c": 2, "d": 1.0}}) == []
