"""How well the arguments of a call agree with the Reference's, by the rules of the benchmark's predecessor.

Source: the analysis of results that was released with C3-Benchmark, the benchmark's predecessor
(facts: section 1, "Published scores"). It differs from `scenarios.arguments` in that arguments have a
score, of 0 to 1 each, and a call the mean of them:

- A parameter that the schema requires and the call leaves out makes the call 0. What else of the
  Reference it leaves out is not looked at.
- A key that the schema does not declare is 0. One that it declares and the Reference does not have
  is 1 if its value stands in the parameter's description (or the value is null and the description
  says "null"), else 0.
- An integer is taken as a float. A value of another type than the Reference's is 0.
- Text is 1 where it is equal but for case and white space, and where both are two decimal fractions
  joined by a comma (coordinates, whatever they are). Else it is the F of ROUGE-L: the longest common
  subsequence of words as jieba cuts them, each white space and sign being a word.
- Arrays of another length are 0; else both are sorted and it is the mean over the pairs.
- Objects are judged as the arguments are, but that one undeclared key makes the whole 0.

Read differently here: where that code raises (a schema without `type`, no argument sent where some are
expected, text that is no JSON) the values alone decide, or the call is 0; and arrays are sorted by
their items' text after case and white space are folded, so that folding cannot part a pair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.similarity import segment

_COORDINATES = re.compile(r"\d+\.\d+,\d+\.\d+")
_WORD = re.compile(r"(\r\n|\s|\S+)(?: |$)")
"""One word of a segmented text: words are joined by a blank there, and a blank is a word too."""


@dataclass(frozen=True, slots=True)
class CallScore:
    """The score of a call's arguments, 0 to 1; `scores` that of each, in the order in which they were sent.

    `fault` says why none was looked at, and is None where they were.
    """

    score: float
    scores: tuple[tuple[str, float], ...] = ()
    fault: str | None = None


def score_arguments(parameters: Any, arguments: Any, expected: Mapping[str, Any]) -> CallScore:
    """Scores the arguments of one call. Never raises for JSON values, however odd.

    `parameters` is the tool's `function.parameters`, `arguments` the call's as text (or as an
    object, from providers that send one), `expected` those of the Reference.
    """
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
        if not isinstance(given, dict):
            return CallScore(0.0, fault="the arguments are no JSON object")
        return _score(parameters, given, expected)
    except RecursionError:
        return CallScore(0.0, fault="the arguments are nested too deeply")
    except ValueError:
        return CallScore(0.0, fault="the arguments are no JSON text")


def _score(parameters: Any, given: dict[str, Any], expected: Mapping[str, Any]) -> CallScore:
    missing = [name for name in required(parameters) if name not in given]
    if missing:
        return CallScore(0.0, fault=f"{missing[0]} is required and missing")
    if not given:
        return CallScore(0.0, fault="no argument was sent") if expected else CallScore(1.0)
    declared = members(parameters)
    scores = tuple(
        (key, _member(key, value, expected, declared) if key in declared else 0.0)
        for key, value in given.items()
    )
    return CallScore(sum(score for _, score in scores) / len(scores), scores)


def members(schema: Any) -> dict[str, Any]:
    """The properties that an object's schema declares; none where it is malformed."""
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def required(schema: Any) -> list[str]:
    """The names that an object's schema requires; none where it is malformed."""
    found = schema.get("required") if isinstance(schema, dict) else None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def in_description(value: Any, schema: Any) -> bool:
    """Whether a value that was not expected stands in its parameter's description, as a default does."""
    description = schema.get("description") if isinstance(schema, dict) else None
    told = description.lower() if isinstance(description, str) else ""
    return str(value).lower() in told or (str(value).lower() == "none" and "null" in told)


def comparable(value: Any) -> Any:
    """An integer as a float, unless it is too large for one; everything else as it is."""
    if type(value) is not int:
        return value
    try:
        return float(value)
    except OverflowError:
        return value


def _member(key: str, value: Any, expected: Mapping[str, Any], declared: Mapping[str, Any]) -> float:
    if key in expected:
        return _value(value, expected[key], declared[key])
    return float(in_description(value, declared[key]))


def _value(given: Any, gold: Any, schema: Any) -> float:
    given, gold = comparable(given), comparable(gold)
    if type(given) is not type(gold):
        return 0.0
    if given == gold:
        return 1.0
    if isinstance(given, str):
        return _text(given, gold)
    if isinstance(given, dict):
        return _object(given, gold, members(schema))
    if isinstance(given, list):
        return _array(given, gold, schema.get("items") if isinstance(schema, dict) else None)
    return 0.0


def _object(given: dict[str, Any], gold: dict[str, Any], declared: Mapping[str, Any]) -> float:
    if not given or not given.keys() <= declared.keys():
        return 0.0
    return sum(_member(key, value, gold, declared) for key, value in given.items()) / len(given)


def _array(given: list[Any], gold: list[Any], items: Any) -> float:
    if len(given) != len(gold):
        return 0.0
    pairs = zip(sorted(given, key=_sort_key), sorted(gold, key=_sort_key), strict=True)
    return sum(_value(mine, theirs, items) for mine, theirs in pairs) / len(given)


def _sort_key(item: Any) -> str:
    return _fold(json.dumps(item, sort_keys=True, ensure_ascii=False))


def _text(given: str, gold: str) -> float:
    if _fold(given) == _fold(gold) or (_COORDINATES.fullmatch(given) and _COORDINATES.fullmatch(gold)):
        return 1.0
    mine, theirs = (_WORD.findall(segment(text)) for text in (given, gold))
    return 2 * _common_length(mine, theirs) / (len(mine) + len(theirs))


def _fold(text: str) -> str:
    return "".join(text.split()).lower()


def _common_length(x: list[str], y: list[str]) -> int:
    """The length of the longest common subsequence (Hyyro's bit-parallel method)."""
    places: dict[str, int] = {}
    for i, word in enumerate(x):
        places[word] = places.get(word, 0) | 1 << i
    full = (1 << len(x)) - 1
    flat = full
    for word in y:
        matched = flat & places.get(word, 0)
        flat = ((flat + matched) | (flat - matched)) & full
    return len(x) - flat.bit_count()
