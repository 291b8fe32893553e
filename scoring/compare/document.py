"""A comparison as one JSON document. Pure: the same comparison gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from scoring.compare.comparison import Comparison
from scoring.compare.pairs import Pair, Side
from scoring.metrics.figures import Figure
from scoring.types import JSON


def document(comparison: Comparison, scorer: str, version: str) -> JSON:
    """Rates, differences and bounds are fractions; null is where there is nothing to tell."""
    paired, settings = comparison.paired, comparison.settings
    return {
        **asdict(settings),
        "scorer": {"name": scorer, "version": version},
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "comparable": comparison.why_not_comparable is None,
        "why_not_comparable": comparison.why_not_comparable,
        "config_differences": [{"key": key, "a": a, "b": b} for key, a, b in comparison.differing],
        "verdict": comparison.verdict,
        "not_worse_by_more_than_the_margin": comparison.within_margin,
        "scenarios": {
            "paired": paired.scenarios,
            "only_in_a": list(paired.only_a),
            "only_in_b": list(paired.only_b),
            "changed": list(paired.changed),
        },
        "levels": {metric: asdict(level) for metric, level in comparison.levels.items()},
        "noise_floor": {"a": _figure(comparison.noise_a), "b": _figure(comparison.noise_b)},
        "flips": _flips(comparison.flips),
        "session_flips": _flips(it for it in paired.sessions if it.change),
    }


def _side(side: Side) -> JSON:
    return {"log": side.log, "run": side.run, "model": side.model, "config": side.config}


def _figure(figure: Figure | None) -> JSON | None:
    return None if figure is None else asdict(figure)


def _flips(pairs: Iterable[Pair]) -> list[JSON]:
    return [
        {
            "scenario": it.scenario,
            **({} if it.task is None else {"task": it.task}),
            "change": "gained" if it.change > 0 else "lost",
            "a": asdict(it.a),
            "b": asdict(it.b),
        }
        for it in pairs
    ]
