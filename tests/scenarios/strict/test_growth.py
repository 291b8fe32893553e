"""What the comparison of long arguments costs grows with their length, and hardly faster."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from scenarios.strict.arguments import compare, prepare
from scenarios.types import Tool, ToolNotes

NOTES = ToolNotes(free_text=frozenset({"note"}))
RULES = prepare(Tool("t", "", {"type": "object"}, {}), NOTES)


def a_key_twice(count: int) -> str:
    """The last of very many keys is there twice."""
    return "{" + "".join(f'"k{number}": 0, ' for number in range(count)) + '"k": 0, "k": 0}'


def unclosed_quotes(count: int) -> str:
    return json.dumps({"note": "“ ‘ 「 " * count})


def quoted_names(count: int) -> str:
    return json.dumps({"note": " ".join(f'"{number:x}"' for number in range(count))})


def spent(make: Callable[[int], str], count: int) -> float:
    """Seconds of CPU that the comparison with a text of as many words takes, the better of two times."""
    arguments, expected = make(count), {"note": "Water the plants " * count}
    taken = []
    for _ in range(2):
        began = time.thread_time()
        compare(RULES, arguments, expected)
        taken.append(time.thread_time() - began)
    return min(taken)


@pytest.mark.parametrize(("make", "few"), [(a_key_twice, 1_500), (unclosed_quotes, 500), (quoted_names, 100)])
def test_eight_times_as_long_arguments_take_not_much_more_than_eight_times_as_long(
    make: Callable[[int], str], few: int
) -> None:
    assert spent(make, 8 * few) < 24 * spent(make, few)
