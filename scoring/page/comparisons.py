"""Later Runs of a page beside its first: what `compare` says of each pair, scorer by scorer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from scoring.compare import words
from scoring.compare.comparison import Comparison, Metric, Settings, compare
from scoring.compare.document import document
from scoring.compare.pairs import Side
from scoring.output.tables import from_one
from scoring.page.sessions import session_key
from scoring.report import RunReport, Scored
from scoring.types import JSON
from scoring.verdicts.scorers import EXPERIMENTAL

METRICS: tuple[Metric, ...] = get_args(Metric)


def comparisons(reports: Sequence[RunReport]) -> Iterator[JSON]:
    """Each Run after the first as candidate, the first as baseline, under each scorer that may gate."""
    for number, candidate in enumerate(reports[1:], start=1):
        for before, after in zip(reports[0].scored, candidate.scored, strict=True):
            if after.scorer.name not in EXPERIMENTAL:
                found = compare(_side(reports[0], before), _side(candidate, after), Settings())
                yield _comparison(found, after, number, _first_keys(reports, number))


def _side(report: RunReport, scored: Scored) -> Side:
    return Side(report.log, report.run, report.model, report.config, scored.sessions)


def _comparison(found: Comparison, scored: Scored, number: int, keys: Mapping[str, JSON]) -> JSON:
    told = document(found, scored.scorer.name, scored.scorer.version)
    about = {metric: _about(found, metric) for metric in METRICS}
    for flips in (told["flips"], told["session_flips"]):
        for flip in flips:
            flip["keys"] = keys[flip["scenario"]]
            for side in (flip["a"], flip["b"]):
                side["reason"] = None if side["reason"] is None else from_one(side["reason"])
    return {
        **told,
        "a": "r0",
        "b": f"r{number}",
        "verdicts": {metric: it.verdict for metric, it in about.items()},
        "headlines": {metric: words.headline(it) for metric, it in about.items()},
        "grounds": {metric: words.grounds(it) for metric, it in about.items()},
        "banner": words.banner(found),
        "same_run": words.same_run(found.a, found.b),
    }


def _about(found: Comparison, metric: Metric) -> Comparison:
    """The same comparison, with its verdict on this metric."""
    return replace(found, settings=replace(found.settings, metric=metric))


def _first_keys(reports: Sequence[RunReport], number: int) -> dict[str, JSON]:
    """By scenario, the keys of its first Session in the baseline and in the Run with this number."""
    first: dict[str, JSON] = {}
    for side, run in (("a", 0), ("b", number)):
        for place, session in enumerate(reports[run].sessions):
            first.setdefault(session.scenario.id, {}).setdefault(side, session_key(run, place))
    return first
