"""A comparison as plain text for a terminal. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scenarios.text import clip, counted, visible, width
from scoring.compare.comparison import Comparison, Level, Metric
from scoring.compare.pairs import Pair
from scoring.compare.words import (
    TITLES,
    banner,
    bounds,
    confidence,
    differences,
    grounds,
    headline,
    pairing,
    points,
    probability,
    rate_bounds,
    reason_of,
    same_run,
    verdict_of,
)
from scoring.output.tables import percent
from scoring.output.wrapping import COLUMNS, LEAST, wrapped

GAP = "  "
FLIPS_SHOWN = 20
SIDE_COLUMNS = 40
NAME_COLUMNS = 32


def table(comparison: Comparison, scorer: str, version: str, width_of_text: int = COLUMNS) -> str:
    """What is compared, the verdict with its grounds, the rates, and what changed.

    Nothing but the table of rates is wider than `width_of_text`.
    """
    lines: list[str] = []
    for said in (banner(comparison), same_run(comparison.a, comparison.b)):
        lines += [*wrapped(said, width_of_text), ""] if said else []
    lines += [*columns(_header(comparison, scorer, version, width_of_text)), ""]
    reasons = (headline(comparison), *grounds(comparison))
    lines += [line for said in reasons for line in wrapped(said, width_of_text)]
    lines += ["", *columns(rate_rows(comparison), right=True), ""]
    lines += [line for said in pairing(comparison) for line in wrapped(said, width_of_text)]
    lines += _settings(comparison)
    for what, pairs in changed_tasks(comparison):
        lines += ["", *_flips(what, pairs, width_of_text)]
    return "\n".join([*lines, ""])


def rate_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row of titles, then one for each metric."""
    level = confidence(comparison.settings.alpha)
    titles = ("", "A %", "95 %", "B %", "95 %", "B - A", level, "p", "gained", "lost")
    return [titles, *(_rates(metric, it) for metric, it in comparison.levels.items())]


def changed_tasks(comparison: Comparison) -> Iterator[tuple[str, list[Pair]]]:
    """The Tasks that B lost, then those it gained; what there is none of is not told."""
    flips = comparison.flips
    for what, sign in (("lost", -1), ("gained", 1)):
        if pairs := [it for it in flips if it.change * sign > 0]:
            yield what, pairs


def columns(rows: Sequence[tuple[str, ...]], *, right: bool = False) -> list[str]:
    """The rows as lines, cells below each other; all but the first column to the right if wanted."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]

    def padded(cell: str, room: int, *, to_the_right: bool) -> str:
        space = " " * (room - width(cell))
        return space + cell if to_the_right else cell + space

    return [
        GAP.join(
            padded(cell, room, to_the_right=right and position > 0)
            for position, (cell, room) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def fitting(text: str, room: int) -> str:
    """`text`, made fit to be shown, in at most `room` columns."""
    shown = visible(text)
    limit = room
    while width(clip(shown, limit)) > room:
        limit -= 1
    return clip(shown, limit)


def _header(comparison: Comparison, scorer: str, version: str, room: int) -> list[tuple[str, ...]]:
    a, b = comparison.a, comparison.b
    rows = [
        ("", "A (baseline)", "B (candidate)"),
        ("Log", a.log, b.log),
        ("Run", a.run, b.run),
        ("Model", a.model or "-", b.model or "-"),
        ("History", a.modes.history, b.modes.history),
        ("Scorer", f"{scorer} {version}", ""),
    ]
    of_a_side = min(SIDE_COLUMNS, (room - len("History") - 2 * len(GAP)) // 2)
    return [(name, *(fitting(cell, of_a_side) for cell in cells)) for name, *cells in rows]


def _rates(metric: Metric, level: Level) -> tuple[str, ...]:
    difference = level.difference
    return (
        TITLES[metric].capitalize(),
        percent(level.a.value),
        rate_bounds(level.a),
        percent(level.b.value),
        rate_bounds(level.b),
        "-" if difference is None else points(difference.value),
        "-" if difference is None else bounds(difference.low, difference.high),
        "-" if level.p is None else probability(level.p),
        str(level.gained),
        str(level.lost),
    )


def _settings(comparison: Comparison) -> list[str]:
    if not (differing := differences(comparison)):
        return []
    return ["", *columns([("Configuration", "A", "B"), *((f"  {key}", a, b) for key, a, b in differing)])]


def _flips(what: str, pairs: Sequence[Pair], room: int) -> list[str]:
    told = [
        (f"  {fitting(it.scenario, NAME_COLUMNS)}/{it.task}", verdict_of(it.a), verdict_of(it.b), it)
        for it in pairs[:FLIPS_SHOWN]
    ]
    names = [(f"Tasks {what} ({len(pairs)})", "A", "B"), *(cells for *cells, _ in told)]
    lines = columns([tuple(cells) for cells in names])
    start = max(map(width, lines)) + len(GAP)
    reasons = ["why", *(fitting(reason_of(it), max(LEAST, room - start)) for *_, it in told)]
    full = [line + " " * (start - width(line)) + why for line, why in zip(lines, reasons, strict=True)]
    if more := len(pairs) - len(told):
        full.append(f"  and {counted(more, 'other')}: --format json has them all")
    return full
