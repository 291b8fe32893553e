"""The released argument checker: vectors, rows where it raises, properties, and `rouge` as oracle."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jieba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge import Rouge
from support.examples import examples

from scenarios.arguments import (
    CORRECT,
    CRASH,
    INVALID_JSON,
    MAX_NESTING,
    check_arguments,
)
from scenarios.similarity import ROUGE_STEPS, rouge_l, segment

ROOT = Path(__file__).resolve().parents[2]
STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def released(tool: Any) -> Any:
    """The tool's parameters as the released harness sends them."""
    return json.loads(
        json.dumps(tool["function"]["parameters"]).replace('"type": "float"', '"type": "number"')
    )


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def parameters(required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def check_one(schema: Any, predicted: Any, reference: Any) -> str:
    """The verdict on the single argument `q`."""
    return check_arguments(parameters(q=schema), json.dumps({"q": predicted}), {"q": reference})


# --- Vectors -----------------------------------------------------------------


def test_gives_the_whole_released_message_for_every_argument_vector(data: Path) -> None:
    rows = lines(data / "arguments.jsonl")
    verdicts = [
        (row["case"], check_arguments(released(row["tool"]), row["predicted"], row["reference"]))
        for row in rows
    ]
    assert len(rows) == 700
    assert verdicts == [(row["case"], row["expect"]) for row in rows]


def test_gives_the_released_checks_of_every_task_whose_calls_pair_in_one_way(data: Path) -> None:
    expected, verdicts = [], []
    for task in lines(data / "tasks.jsonl"):
        for (tool, predicted, reference), expect in judged_calls(task):
            expected.append((task["case"], expect))
            verdicts.append((task["case"], check_arguments(released(tool), predicted, reference)))
    assert len(expected) > 100
    assert verdicts == expected


def judged_calls(task: Any) -> list[tuple[tuple[Any, str, Any], str]]:
    """(tool, predicted, reference) and verdict, for names called as often as the Reference has them."""
    nodes: dict[str, list[Any]] = defaultdict(list)
    for node in task["answer_list"]:
        nodes[node["action"]["name"]].append(node["action"]["arguments"])
    for name in nodes:
        nodes[name].sort(key=lambda arguments: json.dumps(arguments, ensure_ascii=False))
    tools = {tool["function"]["name"]: tool for tool in task["tools"]}
    judged = []
    for reply, checks in zip(task["replies"], task["expect"].get("argument_checks", ()), strict=False):
        calls = sorted(
            (call["function"]["name"], call["function"]["arguments"]) for call in reply["tool_calls"] or ()
        )
        names = [name for name, _ in calls]
        for position, expect in enumerate(checks or ()):
            name, predicted = calls[position]
            if names.count(name) == len(nodes[name]):
                reference = nodes[name][position - names.index(name)]
                judged.append(((tools[name], predicted, reference), expect))
    return judged


# --- Quirks that the facts list ----------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "reference"),
    [
        ("las vegas", "LasVegas"),
        ("192.168.15.99", "192.168.15.24"),
        ("1.2.3.99", "1.2.3.4"),
        ("a.b.c.d/news/1", "a.b.c.d/news/2"),
    ],
)
def test_lets_pass_what_the_released_similarity_lets_pass(predicted: str, reference: str) -> None:
    assert check_one(STRING, predicted, reference) == CORRECT


@pytest.mark.parametrize(
    ("predicted", "reference", "detail"),
    [
        ("2024-7-13", "2024-07-13", "string similarity too low at 'q' (rouge score: 0.00)"),
        ("Bejing", "Beijing", "string similarity too low at 'q' (rouge score: 0.00)"),
        ("abcd", "wxyz", "string similarity too low at 'q' (edit score: 0.00)"),
        ("", "a long reference", "rouge calculation failed at 'q'"),
        ("...", "a long reference", "rouge calculation failed at 'q'"),
        ("x", "", "string similarity too low at 'q' (edit score: 0.00)"),
        ("STRASSE", "straße", "string similarity too low at 'q' (edit score: 0.00)"),
    ],
)
def test_refuses_a_text_with_the_released_reason(predicted: str, reference: str, detail: str) -> None:
    assert check_one(STRING, predicted, reference) == f"error_match: {detail}"


def test_judges_chinese_by_segmented_words() -> None:
    # 今天 / 北京 / 的 / 天气 / 怎么样: four of the five words are in the same order.
    assert check_one(STRING, "今天北京的天气怎么样", "北京今天的天气怎么样") == CORRECT
    assert check_one(STRING, "上海", "我想查询北京明天的天气预报情况").startswith(
        "error_match: string similarity too low at 'q' (rouge score: "
    )


def test_segments_both_texts_where_either_has_a_chinese_character() -> None:
    # 天气 / hello / world against hello / world; as written, only `world` would be in both.
    assert check_one(STRING, "天气hello world", "hello world") == CORRECT
    assert check_one(STRING, "hello world", "天气hello world") == CORRECT


@pytest.mark.parametrize(
    ("schema", "predicted", "reference", "message"),
    [
        ({"type": "number"}, 5, 5.0, "error_match: value type inconsistent at 'q'"),
        (INTEGER, 5.0, 5, "error_schema: nested args type inconsistent"),
        (INTEGER, True, 1, "error_match: value type inconsistent at 'q'"),
        (INTEGER, 2, 1, "error_match: value mismatch at 'q'"),
        (STRING, None, "x", "error_schema: nested args type inconsistent"),
        ({"enum": ["JSON"]}, "json", "JSON", "error_schema: nested args value not in enum"),
        ({"type": "object"}, {"k": 1}, {"k": 1}, "error_schema: nested args not defined"),
        ({"type": "object", "additionalProperties": True}, {"k": 1}, {"k": 1}, CORRECT),
        ({"type": "array", "items": STRING}, ["b", "a"], ["a"], "error_match: array length mismatch at 'q'"),
        ({"anyOf": [STRING, INTEGER]}, 1.5, 1, "error_schema: nested args type inconsistent"),
        ({"anyOf": [STRING, INTEGER]}, 1, 1, CORRECT),
        (
            {"anyOf": [{**STRING, "enum": ["a"]}, INTEGER]},
            "x",
            "x",
            "error_schema: nested args value not in enum",
        ),
        ({"type": "a name of no type"}, [1], [1], CORRECT),
        (
            {"type": "object", "additionalProperties": True, "properties": {"type": "array"}},
            {"n": [["a"]]},
            {"n": [["b"]]},
            "error_match: string similarity too low at 'q.n[0][0]' (edit score: 0.00)",
        ),
        # `schema_info.get("properties", schema_info) if isinstance(schema_info, dict) else {}`
        ({"type": "object", "properties": {"type": {"type": "array"}}}, {"type": []}, {"type": []}, CORRECT),
        ({"type": "object", "additionalProperties": True}, {"type": {"a": 1}}, {"type": {"a": 1}}, CORRECT),
    ],
)
def test_judges_values_by_the_released_rules(
    schema: Any, predicted: Any, reference: Any, message: str
) -> None:
    assert check_one(schema, predicted, reference) == message


def test_reports_a_free_form_member_named_like_a_keyword_as_a_failed_comparison() -> None:
    schema = {"type": "object", "additionalProperties": True}
    failed = "error: comparison failed - 'str' object has no attribute 'get'"
    assert check_one(schema, {"type": ["a"]}, {"type": ["a"]}) == failed
    items = {"type": "array", "items": schema}
    assert check_one(items, [{"type": ["a"]}], [{"type": ["a"]}]) == failed


def test_a_tool_without_properties_takes_no_arguments() -> None:
    assert check_arguments({"type": "object"}, "{}", {}) == CORRECT
    assert check_arguments({"type": "object"}, '{"q": 1}', {"q": 1}) == "error_schema: args not defined"


def test_ignores_additional_properties_at_the_top_level() -> None:
    schema = {**parameters(a=STRING), "additionalProperties": True}
    assert check_arguments(schema, '{"b": "x"}', {"b": "x"}) == "error_schema: args not defined"


def test_takes_the_last_of_doubled_keys() -> None:
    assert check_arguments(parameters(a=INTEGER), '{"a": 1, "a": 2}', {"a": 2}) == CORRECT


def test_lists_missing_and_extra_keys_in_alphabetical_order() -> None:
    schema = parameters(a=STRING, b=STRING, c=STRING, d=STRING)
    assert check_arguments(schema, '{"d": "1", "c": "1"}', {"b": "1", "a": "1"}) == (
        "error_match: args keys mismatch (missing: ['a', 'b'], extra: ['c', 'd'])"
    )


def test_reports_the_first_fault_in_the_order_of_the_predicted_keys() -> None:
    text = '{"b": 1, "undefined": 1, "c": 1.5}'
    assert check_arguments(parameters(b=INTEGER, c=INTEGER), text, {}) == "error_schema: args not defined"
    text = '{"c": 1.5, "undefined": 1}'
    assert (
        check_arguments(parameters(b=INTEGER, c=INTEGER), text, {})
        == "error_schema: nested args type inconsistent"
    )


def test_reports_a_fault_below_an_empty_key_as_one_at_the_top() -> None:
    schema = {"properties": {"": INTEGER}}
    assert check_arguments(schema, '{"": "x"}', {}) == "error_schema: args type inconsistent"


@pytest.mark.parametrize("text", ["", " ", "{", "[" * 800, "\ufeff{}", "{'a': 1}"])
def test_calls_text_that_is_no_json_invalid(text: str) -> None:
    assert check_arguments(parameters(), text, {}) == INVALID_JSON


# --- Where the released checker raises ----------------------------------------


@pytest.mark.parametrize("predicted", [None, {}, {"q": 1}, [], 1, b"{}"])
def test_says_crash_when_the_arguments_are_no_text(predicted: object) -> None:
    assert check_arguments(parameters(q=STRING), predicted, {}).startswith(
        f"{CRASH}: the arguments are not a string but "
    )


@pytest.mark.parametrize("tool", [None, [], {"properties": None}, {"properties": ["a"]}, {"required": None}])
def test_says_crash_when_the_tool_has_no_usable_parameters(tool: Any) -> None:
    assert check_arguments(tool, "no json", {}).startswith(
        f"{CRASH}: the parameters of the tool are unusable ("
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"type": "string", "enum": None},
        {"anyOf": []},
        {"anyOf": [INTEGER, None, STRING]},
        {"type": "a name of no type", "enum": 5},
        True,
        None,
        ["type"],
    ],
)
def test_says_crash_and_where_when_a_schema_is_unusable(schema: Any) -> None:
    message = check_one(schema, "x", "x")
    assert message.startswith(f"{CRASH}: the schema at 'q' is unusable (")
    assert "\n" not in message
    within = {"type": "object", "properties": {"r": schema}}
    assert check_one(within, {"r": "x"}, {"r": "x"}).startswith(f"{CRASH}: the schema at 'q.r' is unusable (")


def test_asks_no_branch_after_one_that_fits() -> None:
    assert check_one({"anyOf": [STRING, None]}, "x", "x") == CORRECT


def test_says_crash_for_an_integer_that_python_refuses_to_read() -> None:
    text = '{"q": ' + "9" * 5000 + "}"
    assert check_arguments(parameters(q=INTEGER), text, {"q": 9}).startswith(
        f"{CRASH}: the arguments cannot be read ("
    )


def test_compares_big_integers_exactly() -> None:
    assert check_one(INTEGER, 10**30, 10**30) == CORRECT
    assert check_one(INTEGER, 10**30 + 1, 10**30) == "error_match: value mismatch at 'q'"


def test_takes_no_nan_for_another_but_infinity_for_infinity() -> None:
    schema = parameters(q={"type": "number"})
    assert check_arguments(schema, '{"q": NaN}', {"q": float("nan")}) == "error_match: value mismatch at 'q'"
    assert check_arguments(schema, '{"q": Infinity}', {"q": float("inf")}) == CORRECT


def test_compares_lone_surrogates_like_other_characters() -> None:
    schema = parameters(q=STRING)
    assert check_arguments(schema, r'{"q": "\ud800"}', {"q": "\ud800"}) == CORRECT
    assert check_arguments(schema, r'{"q": "\ud800"}', {"q": "\udfff 北京"}).startswith("error_match: ")


# --- Depth and length ----------------------------------------------------------


def nested(levels: int) -> tuple[str, Any]:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return "[" * levels + "]" * levels, value


def test_compares_values_as_deep_as_it_reads() -> None:
    text, value = nested(MAX_NESTING - 1)
    schema = parameters(q={"type": "array"})
    assert check_arguments(schema, f'{{"q": {text}}}', {"q": value}) == CORRECT


@pytest.mark.parametrize("levels", [MAX_NESTING, 200_000])
@pytest.mark.parametrize("closed", [True, False])
def test_says_crash_for_text_nested_too_deeply(levels: int, closed: bool) -> None:
    text = '{"q": ' + "[" * levels + ("]" * levels + "}") * closed
    assert check_arguments(parameters(q={"type": "array"}), text, {"q": []}) == (
        f"{CRASH}: the arguments are nested more than {MAX_NESTING} levels deep"
    )


def test_counts_no_brackets_that_are_closed_again() -> None:
    """As deep as is read, twice, with another two levels beside."""
    text, value = nested(MAX_NESTING - 1)
    schema = parameters(p={"type": "array"}, q={"type": "array"}, r={"type": "array"})
    arguments = f'{{"p": [{{}}], "q": {text}, "r": {text}}}'
    assert check_arguments(schema, arguments, {"p": [{}], "q": value, "r": value}) == CORRECT


def test_counts_no_brackets_inside_strings() -> None:
    text = "[{" * MAX_NESTING + '\\"['
    assert check_one(STRING, text, text) == CORRECT


def test_survives_schemas_of_any_depth() -> None:
    schema: Any = {"type": "array"}
    for _ in range(100_000):
        schema = {"anyOf": [INTEGER, {"type": "array", "items": schema}]}
    text, value = nested(MAX_NESTING - 1)
    message = check_arguments(parameters(q=schema), f'{{"q": {text}}}', {"q": value})
    assert message == CORRECT or message.startswith(f"{CRASH}: the schema at 'q[")


# Jieba's own search is quadratic in a run of characters that are no words, hence the modest Chinese length.
@pytest.mark.parametrize(
    ("predicted", "reference"),
    [
        ("word " * 20_000, "some other text of a few words"),
        (" ".join(map(str, range(20_000))), " ".join(map(str, range(20_000, 0, -1)))),
        (" ".join(map(str, range(20_000))), " ".join(map(str, range(0, 20_000, 25)))),
        (".".join(map(str, range(20_000))), ".".join(map(str, range(1, 20_001)))),
        ("a b c. " * 15_000, "c b a. " * 15_000),
        (
            ". ".join(f"a{i} b{i} c{i}" for i in range(9_000)),
            ". ".join(f"c{i} b{i} a{i}" for i in range(9_000)),
        ),
        ("." * 100_000, "a long reference"),
        ("x" * 100_000, "x"),
        ("今天北京天气怎么样" * 3_000, "今天上海天气怎么样" * 3_000),
    ],
    ids=[
        "repeats",
        "numbers",
        "long-and-short",
        "dots",
        "sentences",
        "pairs",
        "only-dots",
        "one-word",
        "chinese",
    ],
)
def test_judges_texts_of_a_hundred_kilobytes_in_seconds(predicted: str, reference: str) -> None:
    start = time.process_time()
    message = check_one(STRING, predicted, reference)
    assert message == CORRECT or message.startswith("error_match: ")
    assert time.process_time() - start < 10


# --- ROUGE-L against the package ------------------------------------------------


def by_package(predicted: str, reference: str) -> float | None:
    try:
        scores = Rouge().get_scores(predicted, reference)
    except ValueError:
        return None
    return float(scores[0]["rouge-l"]["f"])


texts = st.one_of(
    st.lists(st.sampled_from(["a", "b", "c", "d", "e", ".", " ", "\n", "..", "\u3000"]), max_size=30).map(
        " ".join
    ),
    st.text(alphabet="ab. \t\u2028", max_size=40),
    st.text(max_size=20),
)


@examples(400)
@given(texts, texts)
def test_rouge_l_equals_the_package_to_the_bit(predicted: str, reference: str) -> None:
    assert rouge_l(predicted, reference) == by_package(predicted, reference)


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([3, 20, 150]))
def test_rouge_l_of_long_sentences_equals_the_package_to_the_bit(random: Any, vocabulary: int) -> None:
    predicted, reference = (
        " ".join(str(random.randrange(vocabulary)) for _ in range(random.randrange(1, 250))) for _ in "ab"
    )
    assert rouge_l(predicted, reference) == by_package(predicted, reference)


def test_rouge_l_gives_up_where_the_released_checker_runs_out_of_stack() -> None:
    words = [f"w{i}" for i in range(ROUGE_STEPS)]
    apart = " ".join(words)
    assert rouge_l(apart, "x") == 0.0
    assert rouge_l(apart + " more", "x") is None
    assert rouge_l(apart, apart) == pytest.approx(1.0)
    assert rouge_l(apart + " more", apart + " more") is None
    # The way back ends with the reference, however long the prediction goes on before it.
    assert rouge_l(f"{apart} {apart} x y z", "x y z") == pytest.approx(2 * 3 / (ROUGE_STEPS + 3 + 3))
    assert check_one(STRING, apart + " More", apart + "  other") == (
        "error_match: rouge calculation failed at 'q'"
    )


def test_rouge_l_gives_up_at_one_long_sentence_among_shorter_ones() -> None:
    long = " ".join(f"w{i}" for i in range(ROUGE_STEPS + 1))
    assert rouge_l(f"z. {long}. z z", "x") is None


def test_rouge_l_counts_the_words_of_every_long_sentence() -> None:
    """Two sentences of 400 words which hold all 600 of one: all words of both texts are in common."""
    words = [f"w{i:03}" for i in range(600)]
    whole, beginning, end = (" ".join(part) for part in (words, words[:400], words[200:]))
    assert rouge_l(whole, f"{beginning}.{end}") == 2.0 * (1.0 / (2.0 + 1e-8))


def test_rouge_l_finds_a_word_behind_one_that_the_reference_lacks() -> None:
    assert rouge_l("c a", "a b") == 2.0 * (0.25 / (1.0 + 1e-8))


chinese = st.text(alphabet="今天北京上海的天气怎么样我想去旅游龘 .，a1-\ud800", max_size=30)


@settings(deadline=None)
@given(chinese)
def test_segments_as_jieba_does(text: str) -> None:
    assert segment(text) == " ".join(jieba.cut(text))


@cache
def own_search() -> Any:
    """jieba's own search for words that it does not know, from a copy of its module."""
    spec = importlib.util.find_spec("jieba.finalseg")
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy.viterbi


@settings(deadline=None)
@given(st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5), min_size=1, max_size=60))
def test_characters_that_make_no_known_word_are_parted_as_jieba_does(text: str) -> None:
    segment(text)
    model = jieba.finalseg
    tables = "BMES", model.start_P, model.trans_P, model.emit_P
    assert model.viterbi(text, *tables) == own_search()(text, *tables)


def test_eight_times_as_much_chinese_takes_not_much_more_than_eight_times_as_long() -> None:
    few, many = (min(time_of(segment, "的" * count) for _ in range(2)) for count in (4_000, 32_000))
    assert many < 24 * few


def time_of(function: Callable[[str], Any], text: str) -> float:
    """Seconds of CPU."""
    began = time.thread_time()
    function(text)
    return time.thread_time() - began


# --- Properties -----------------------------------------------------------------

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
keys = st.sampled_from(["a", "b", "", "type", "properties", "items", "anyOf", "enum", "required"])
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)
type_names = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null", "other"])
schemas = st.recursive(
    st.one_of(st.fixed_dictionaries({"type": type_names}), values),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(keys, inner, max_size=3)}
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=2)}),
        st.fixed_dictionaries({"type": type_names, "enum": st.lists(values, max_size=2)}),
    ),
    max_leaves=8,
)
arguments = st.dictionaries(keys, values, max_size=3)
KINDS = (CORRECT, INVALID_JSON, CRASH, "error_schema: ", "error_match: ", "error: comparison failed - ")


@examples(200)
@given(schemas, st.one_of(arguments, values).map(json.dumps) | st.text() | values, arguments | values)
def test_never_raises_and_always_says_something_known(tool: Any, predicted: Any, reference: Any) -> None:
    message = check_arguments(tool, predicted, reference)
    assert message.startswith(KINDS)


@examples(100)
@given(st.dictionaries(keys, schemas, max_size=3), arguments, arguments)
def test_never_raises_for_any_schemas_of_members(properties: Any, predicted: Any, reference: Any) -> None:
    message = check_arguments({"properties": properties}, json.dumps(predicted), reference)
    assert message.startswith(KINDS)


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.text()))
def test_a_reference_of_strings_is_correct_against_itself(reference: dict[str, str]) -> None:
    tool = parameters(tuple(reference), **dict.fromkeys(reference, STRING)) if reference else parameters()
    assert check_arguments(tool, json.dumps(reference), reference) == CORRECT
    assert check_arguments(tool, json.dumps(reference, ensure_ascii=False), reference) == CORRECT


@settings(deadline=None)
@given(arguments, st.text(min_size=1))
def test_a_key_that_the_tool_lacks_is_never_correct(reference: Any, key: str) -> None:
    properties = {name: {"type": "other"} for name in reference if name != key}
    text = json.dumps({**reference, key: 1})
    assert check_arguments({"properties": properties}, text, reference) != CORRECT


# --- Loading --------------------------------------------------------------------


def run_python(code: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={"TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_segmentation_prints_nothing_and_lets_no_warning_out(tmp_path: Path) -> None:
    code = (
        "from scenarios.arguments import check_arguments\n"
        "tool = {'properties': {'q': {'type': 'string'}}}\n"
        'text = \'{"q": "北京明天的天气预报怎么样啊"}\'\n'
        "verdict = check_arguments(tool, text, {'q': '上海明天的天气预报怎么样啊'})\n"
        "raise SystemExit(verdict == 'correct' or verdict[:11] != 'error_match' and verdict)"
    )
    done = run_python(code, tmp_path)
    assert (done.stdout, done.stderr) == ("", "")


def test_importing_the_checker_loads_neither_jieba_nor_rouge(tmp_path: Path) -> None:
    code = "import sys, scenarios.arguments; print(sorted({'jieba', 'rouge'} & sys.modules.keys()))"
    done = run_python(code, tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")
