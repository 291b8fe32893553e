"""Prices of tokens, from a JSON file that the user wrote. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NoReturn

from scenarios.text import clip, visible

PER = 1_000_000
"""Prices are for so many tokens, as providers publish them."""

EXAMPLE = '{"currency": "USD", "models": {"gpt-4o-mini": {"input": 0.15, "output": 0.6}}}'

_HIGHEST = 1e9
_SHOWN = 60
_KINDS = ("input", "output")


class PriceError(Exception):
    """A price table that cannot be read. One line: what, where, how to mend."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, of the prompt and of the answer."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Prices:
    """A price table. `models` is by name, or by pattern (`*`, `?`, `[...]`, as file names have them).

    `source` is what the table is called in messages, `currency` what its prices are in.
    """

    source: str
    currency: str
    models: Mapping[str, Price]

    def price(self, model: str | None) -> Price | None:
        """That of the very name, else of the longest pattern that fits it; None if there is none.

        Of patterns of one length, the first in the alphabet. A call that names no model has only
        what fits an empty name: `*`.
        """
        name = model or ""
        if name in self.models:
            return self.models[name]
        fitting = [pattern for pattern in self.models if fnmatchcase(name, pattern)]
        return self.models[min(fitting, key=lambda it: (-len(it), it))] if fitting else None


def parse_prices(data: bytes, source: str) -> Prices:
    """The table in `data`, which `source` names. Raises PriceError."""
    table = _object(_read(data, source), source, "")
    _check_keys(table, ("currency", "models"), source, "")
    currency = table["currency"]
    if not isinstance(currency, str) or not currency.strip():
        raise _wrong(source, "currency", 'must be a name such as "USD"', currency)
    models = {
        name: _price(entry, source, f"models.{_quoted(name)}")
        for name, entry in _object(table["models"], source, "models").items()
    }
    if not models:
        raise PriceError(f"{source}: models: has no model: write one as in {EXAMPLE}")
    return Prices(source, currency.strip(), models)


def _read(data: bytes, source: str) -> Any:
    try:
        return json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_without_doubles, parse_constant=_refuse
        )
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text ({error.reason} at byte {error.start + 1}): save it as UTF-8"
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}, column {error.colno}: not JSON ({error.msg}): write it as {EXAMPLE}"
    except ValueError as error:
        problem = str(error)
    except RecursionError:
        problem = f"is nested too deeply: write it as {EXAMPLE}"
    raise PriceError(f"{source}: {problem}")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{_quoted(double)} is there more than once: keep one of them")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no price: give a number")


def _price(entry: Any, source: str, where: str) -> Price:
    prices = _object(entry, source, where)
    _check_keys(prices, _KINDS, source, where)
    return Price(*(_number(prices[kind], source, f"{where}.{kind}") for kind in _KINDS))


def _number(value: Any, source: str, where: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _HIGHEST:
        raise _wrong(source, where, "must be a price per million tokens: a number of 0 or more", value)
    return float(value)


def _object(value: Any, source: str, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(source, where, f"must be an object, as in {EXAMPLE}", value)
    return value


def _check_keys(found: Mapping[str, Any], known: tuple[str, ...], source: str, where: str) -> None:
    """All of the known keys and no other: a misspelt one must not pass for one that is not there."""
    at = f"{source}: {where}: " if where else f"{source}: "
    both = " and ".join(known)
    for key in found:
        if key not in known:
            raise PriceError(f"{at}{_quoted(key)} is not known: give {both} and nothing else")
    for key in known:
        if key not in found:
            raise PriceError(f"{at}{key} is missing: give {both}")


def _wrong(source: str, where: str, rule: str, value: Any) -> PriceError:
    place = f"{source}: {where}" if where else source
    return PriceError(f"{place}: {rule}; it is {clip(visible(json.dumps(value)), _SHOWN)}")


def _quoted(name: str) -> str:
    return json.dumps(clip(name, _SHOWN))
