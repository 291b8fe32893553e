"""The figures as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contenders import DIRECT, REFERENCE
from results import (
    ENOUGH,
    PLAIN_FIGURES,
    STREAM_FIGURES,
    TARGETS,
    Figure,
    Target,
    Value,
    Values,
    achieved,
    is_met,
    ratio,
)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are as wide as their cells, so that a terminal shows it well too."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "".join(f"| {line} |\n" for line in lines)


def figures_table(values: Values, names: Sequence[str], figures: Sequence[Figure]) -> str:
    """A row for each contender that has these figures: median [min-max], and the ratio to the reference."""
    rows = [
        [name, *(_cell(values, name, figure) for figure in figures)]
        for name in names
        if (name, figures[0]) in values
    ]
    return table(["", *(f"{figure.name}, {figure.unit}" for figure in figures)], rows)


def _cell(values: Values, name: str, figure: Figure) -> str:
    value = values.get((name, figure))
    if value is None:
        return "-"
    times = ratio(values, name, figure, REFERENCE)
    ours = "" if times is None or name in (REFERENCE, DIRECT) else f" ({times:.2f}x)"
    spread = f"{_number(value.low, figure)}-{_number(value.high, figure)}"
    return f"{_number(value.median, figure)} [{spread}]{ours}{_noise(value)}"


def _number(number: float, figure: Figure) -> str:
    return f"{round(number, figure.digits) + 0.0:,.{figure.digits}f}"  # + 0.0: never "-0".


def _noise(value: Value) -> str:
    """Marks what was measured while others used the machine."""
    return "" if value.quiet >= min(ENOUGH, value.windows) else " *"


def targets_table(values: Values) -> str:
    return table(["target", "", "measured", ""], (_target_row(values, target) for target in TARGETS))


def _target_row(values: Values, target: Target) -> list[str]:
    bound = "at least" if target.at_least else "at most"
    what = f"{target.subject}: {target.figure.name}"
    if target.against is None:
        limit = f"{bound} {_number(target.factor, target.figure)} {target.figure.unit}"
    elif target.factor < 0.1:
        limit = f"{bound} 1/{1 / target.factor:.0f} of {target.against}"
    else:
        limit = f"{bound} {target.factor:g}x {target.against}"
    reached = achieved(values, target)
    if reached is None:
        return [what, limit, "-", "not measured"]
    shown = _shown(target, reached)
    return [what, limit, shown, "met" if is_met(target, reached) else "**missed**"]


def _shown(target: Target, reached: float) -> str:
    if target.against is None:
        return f"{_number(reached, target.figure)} {target.figure.unit}"
    return f"1/{1 / reached:.1f}" if 0 < reached < 0.1 else f"{reached:.2f}x"


def report(values: Values, names: Sequence[str]) -> str:
    """All tables, as Markdown."""
    return "\n".join(
        [
            figures_table(values, names, PLAIN_FIGURES),
            figures_table(values, names, STREAM_FIGURES),
            targets_table(values),
        ]
    )
