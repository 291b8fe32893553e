"""What a comparison comes to, in sentences; texts of others are fit to be shown. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scenarios.text import clip, counted, visible
from scoring.compare.comparison import Comparison, Difference, Level, Metric, Rate
from scoring.compare.pairs import LeftOut, Outcome, Pair, Side
from scoring.metrics.figures import Figure
from scoring.output.tables import from_one

TITLES: Mapping[Metric, str] = {"task": "task accuracy", "session": "session accuracy"}

NAMES_SHOWN = 5
NAME_LENGTH = 40
VALUE_LENGTH = 30


def headline(comparison: Comparison) -> str:
    """The verdict in one line, with the margin where that says more."""
    difference, metric = comparison.level.difference, TITLES[comparison.settings.metric]
    if difference is None:
        return f"INCONCLUSIVE on {metric}: nothing is paired."
    change = f"{points(difference.value)} points"
    unsure = f"{change}, which may be chance" if difference.value else "no difference seen, which proves none"
    said = {
        "better": f"B is better on {metric}: {change}.",
        "worse": f"B is worse on {metric}: {change}.",
        "INCONCLUSIVE": f"INCONCLUSIVE on {metric}: {unsure}.",
    }[comparison.verdict]
    margin = f"{100 * comparison.settings.margin:g}"
    return f"{said} Not worse by more than {margin} points." if comparison.within_margin else said


def grounds(comparison: Comparison) -> list[str]:
    """What the verdict rests on, and how much these data could have shown."""
    level, alpha = comparison.level, comparison.settings.alpha
    if level.difference is None or level.p is None:
        return []
    found = level.difference
    losses = [] if comparison.verdict == "better" else [largest_loss(found, level.scenarios)]
    return [
        f"It rests on p {_equals(level.p)} ({level.test} test over {counted(level.scenarios, 'scenario')}, "
        f"alpha {alpha:g}) and on the {confidence(alpha)} interval of the paired difference, "
        f"{bounds(found.low, found.high)} points ({found.interval}); whether the intervals of the two rates "
        "overlap says nothing.",
        detectable(level, alpha),
        *losses,
    ]


def largest_loss(found: Difference, scenarios: int) -> str:
    """By how much B may be worse, and why that can be more than the interval says."""
    beyond = found.largest_loss > max(0.0, -found.low) + 1e-12
    why = f", counting what {counted(scenarios, 'scenario')} need not show" if beyond else ""
    return f"Largest loss that is not ruled out: {100 * found.largest_loss:.1f} points{why}."


def detectable(level: Level, alpha: float) -> str:
    """The least difference that these pairs could show, or why there is none."""
    if level.scenarios < level.least_changes:
        return (
            f"Too few for any verdict: {counted(level.scenarios, 'scenario')}, and at least "
            f"{level.least_changes} must change, all the same way, for p < {alpha:g}."
        )
    if level.detectable is None:
        return "Detectable with 80 % power: no difference, with so few scenarios that differ so much."
    return f"Detectable with 80 % power: {100 * level.detectable:.1f} points."


def pairing(comparison: Comparison) -> Iterator[str]:
    """What is paired and what is not, what changed, and how much changes by itself."""
    paired, levels = comparison.paired, comparison.levels
    yield (
        f"Paired: {counted(paired.scenarios, 'scenario')}, {counted(levels['task'].n, 'task')}, "
        f"{counted(levels['session'].n, 'session')}."
    )
    for metric in TITLES:
        if levels[metric].left_out.either:
            yield _left_out(levels[metric].left_out, metric)
    for metric in TITLES:
        left_out = levels[metric].left_out
        if left_out.epochs_a or left_out.epochs_b:
            yield (
                f"{metric.capitalize()} epochs left out so that both sides have as many: "
                f"{left_out.epochs_a} in A, {left_out.epochs_b} in B."
            )
    for what, names in (
        ("Only in A", paired.only_a),
        ("Only in B", paired.only_b),
        ("Left out, as the content under this id differs", paired.changed),
    ):
        if names:
            yield f"{what}: {counted(len(names), 'scenario')} ({listed(names)})."
    if noise := [
        f"{name} {_share(it)}" for name, it in (("A", comparison.noise_a), ("B", comparison.noise_b)) if it
    ]:
        yield f"Noise floor, the tasks that flip between epochs of one run: {', '.join(noise)}."
    for what, pairs in (("lost", _sessions(comparison, -1)), ("gained", _sessions(comparison, 1))):
        if pairs:
            yield f"Sessions {what}: {len(pairs)} ({listed(pairs)})."


def differences(comparison: Comparison) -> list[tuple[str, str, str]]:
    """(key, A's value, B's value) where the configurations differ, as short texts."""
    return [(shown(key), setting(a), setting(b)) for key, a, b in comparison.differing]


def banner(comparison: Comparison) -> str | None:
    reason = comparison.why_not_comparable
    return (
        None
        if reason is None
        else f"Not comparable: {visible(reason)}. The figures measure different things."
    )


def same_run(a: Side, b: Side) -> str | None:
    if (a.log, a.run) == (b.log, b.run):
        return "A and B are the same run, or copies of it."
    return None


def verdict_of(outcome: Outcome) -> str:
    if outcome.scored == 1:
        return "right" if outcome.right else "wrong"
    return f"{outcome.right}/{outcome.scored} right"


def reason_of(pair: Pair) -> str:
    """Why the worse side is wrong."""
    return visible(from_one((pair.b if pair.change < 0 else pair.a).reason or "-"))


def points(fraction: float) -> str:
    """A difference of rates in points, with one decimal and its sign."""
    text = f"{100 * fraction:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def bounds(low: float, high: float) -> str:
    return f"{points(low)} to {points(high)}"


def rate_bounds(rate: Rate) -> str:
    if rate.low is None or rate.high is None:
        return "-"
    return f"{100 * rate.low:.1f}-{100 * rate.high:.1f}"


def probability(p: float) -> str:
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def confidence(alpha: float) -> str:
    return f"{100 * (1 - alpha):g} %"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = [f"and {len(names) - NAMES_SHOWN} more"] if len(names) > NAMES_SHOWN else []
    return ", ".join([*map(shown, names[:NAMES_SHOWN]), *more])


def shown(text: str) -> str:
    return clip(visible(text), NAME_LENGTH)


def setting(value: Any) -> str:
    """A value of a configuration; `-` where the key is missing or null."""
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return clip(visible(text), VALUE_LENGTH)


def _equals(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"= {p:.4f}"


def _left_out(it: LeftOut, metric: Metric) -> str:
    return f"Not scored on both sides, so left out: {counted(it.either, metric)} (in A {it.a}, in B {it.b})."


def _share(figure: Figure) -> str:
    return f"{100 * (figure.value or 0.0):.1f} % ({figure.successes}/{figure.n})"


def _sessions(comparison: Comparison, sign: int) -> list[str]:
    return [it.scenario for it in comparison.paired.sessions if it.change * sign > 0]
