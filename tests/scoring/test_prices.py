from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.metrics.prices import Price, PriceError, Prices, parse_prices

TABLE = {"currency": "USD", "models": {"gpt-4o": {"input": 2.5, "output": 10}}}


def parsed(value: Any) -> Prices:
    return parse_prices(json.dumps(value).encode(), "prices.json")


def test_a_table_is_read_as_it_is_written() -> None:
    assert parsed(TABLE) == Prices("prices.json", "USD", {"gpt-4o": Price(2.5, 10.0)})
    with_mark = b"\xef\xbb\xbf" + json.dumps(TABLE).encode()
    assert parse_prices(with_mark, "prices.json") == parsed(TABLE)


def test_the_very_name_goes_before_patterns_and_the_longest_pattern_before_others() -> None:
    order = ["*", "gpt-4o*", "gpt-4o-mini", "gpt-4o-mini*", "gpt-?o*", "exact[1]", "exact1"]
    table = Prices("p", "USD", {name: Price(float(place), 0.0) for place, name in enumerate(order)})

    def chosen(model: str | None) -> str:
        price = table.price(model)
        assert price is not None
        return order[int(price.input)]

    assert {
        model: chosen(model) for model in ("gpt-4o-mini", "gpt-4o-mini-2024", "gpt-4o", "gpt-5o", "o3")
    } == {
        "gpt-4o-mini": "gpt-4o-mini",
        "gpt-4o-mini-2024": "gpt-4o-mini*",
        "gpt-4o": "gpt-4o*",
        "gpt-5o": "gpt-?o*",
        "o3": "*",
    }
    assert (chosen("exact[1]"), chosen("exact1"), chosen("GPT-4o"), chosen(None)) == (
        "exact[1]",
        "exact1",
        "*",
        "*",
    )


def test_of_patterns_of_one_length_the_first_in_the_alphabet_is_taken_wherever_it_stands() -> None:
    models = {"b*c": Price(1.0, 1.0), "*bc": Price(2.0, 2.0)}
    backwards = dict(reversed(models.items()))
    assert [Prices("p", "USD", it).price("bc") for it in (models, backwards)] == [Price(2.0, 2.0)] * 2


def test_a_model_without_a_price_has_none() -> None:
    assert (parsed(TABLE).price("gpt-4o-mini"), parsed(TABLE).price(None)) == (None, None)


def entry(**prices: Any) -> Any:
    return {"currency": "USD", "models": {"m": prices}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "prices.json: must be an object, as in "),
        ({"models": {}}, "prices.json: currency is missing: give currency and models"),
        ({**TABLE, "": 1}, 'prices.json: "" is not known: give currency and models and nothing else'),
        ({**TABLE, "currency": 1}, 'prices.json: currency: must be a name such as "USD"; it is 1'),
        ({**TABLE, "currency": " "}, 'prices.json: currency: must be a name such as "USD"; it is " "'),
        ({**TABLE, "models": []}, "prices.json: models: must be an object, as in "),
        ({**TABLE, "models": {}}, "prices.json: models: has no model: write one as in "),
        ({**TABLE, "models": {"a\nb": 3}}, r'prices.json: models."a\nb": must be an object, as in '),
        (entry(input=1), 'prices.json: models."m": output is missing: give input and output'),
        (
            entry(input=1, output=2, cached=0),
            'prices.json: models."m": "cached" is not known: give input and output and nothing else',
        ),
        *(
            (
                entry(input=wrong, output=2),
                'prices.json: models."m".input: must be a price per million tokens: a number of 0 or more; '
                f"it is {json.dumps(wrong)}",
            )
            for wrong in ("0.15", True, None, -1, 10**12)
        ),
    ],
)
def test_a_table_that_is_wrong_is_refused_in_one_line_that_says_where(value: Any, words: str) -> None:
    with pytest.raises(PriceError) as caught:
        parsed(value)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff", "prices.json: is not UTF-8 text (invalid start byte at byte 1): save it as UTF-8"),
        (b"{\n]", "prices.json: line 2, column 1: not JSON ("),
        (b"", "prices.json: line 1, column 1: not JSON ("),
        (b'{"a": NaN}', "prices.json: NaN is no price: give a number"),
        (b'{"a": {"m": 1, "m": 2}}', 'prices.json: "m" is there more than once: keep one of them'),
        (b"[" * 100_000, "prices.json: is nested too deeply: "),
        (
            b'{"currency": "USD", "models": {"m": {"input": 1e999, "output": 1}}}',
            'prices.json: models."m".input: must be a price per million tokens',
        ),
    ],
)
def test_what_is_no_json_is_refused_in_one_line_that_says_where(data: bytes, words: str) -> None:
    with pytest.raises(PriceError) as caught:
        parse_prices(data, "prices.json")
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["currency", "models", "input", "output", "m"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(st.binary(max_size=40) | json_values.map(lambda value: json.dumps(value).encode()))
def test_whatever_is_handed_over_is_a_table_or_one_clear_line(data: bytes) -> None:
    try:
        parse_prices(data, "prices.json")
    except PriceError as error:
        assert str(error).startswith("prices.json: ")
        assert len(str(error).splitlines()) == 1
