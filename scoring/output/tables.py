"""Text for a terminal: lines that line up, and values as they are shown everywhere. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from scenarios.text import clip, counted, visible, width
from scoring.metrics.accuracy import Unscored
from scoring.metrics.figures import Figure, Unit

GAP = "  "
REASONS_SHOWN = 5
REASON_LENGTH = 100

_STEP = re.compile(r"\A((?:task [0-9]{1,9}: )?)step ([0-9]{1,9}): ")


def unscored_line(left_out: Unscored) -> str:
    """One line on what the rates leave out, and why."""
    if left_out.all_sessions == 0:
        return "Not scored: the run has no sessions."
    if left_out.tasks == 0:
        return "Not scored: none."
    shown = [
        f"{clip(visible(reason), REASON_LENGTH)} ({n})" for reason, n in left_out.reasons[:REASONS_SHOWN]
    ]
    if more := len(left_out.reasons) - len(shown):
        shown.append(f"{counted(more, 'other reason')}")
    return (
        f"Not scored: {left_out.tasks} of {left_out.all_tasks} tasks, so {left_out.sessions} of "
        f"{left_out.all_sessions} sessions: {', '.join(shown)}"
    )


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines: the first column to the left, the others to the right."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [_line(row, widths) for row in rows]


def pairs(items: Mapping[str, str]) -> list[str]:
    """`name  value` lines with the values in one column."""
    longest = max(map(width, items), default=0)
    return [f"{name}{' ' * (longest - width(name))}{GAP}{value}".rstrip() for name, value in items.items()]


def percent(value: float | None) -> str:
    """A fraction as per cent with one decimal; `-` for none."""
    return "-" if value is None else f"{100 * value:.1f}"


def interval(figure: Figure) -> str:
    """The bounds as per cent, `10.7-19.3`; `-` where there are none."""
    if figure.low is None or figure.high is None:
        return "-"
    return f"{percent(figure.low)}-{percent(figure.high)}"


def quantity(figure: Figure, unit: Unit, currency: str | None = None) -> str:
    """The value in its unit; `-` for none."""
    if figure.value is None:
        return "-"
    match unit:
        case "rate":
            return f"{percent(figure.value)} %"
        case "seconds":
            return f"{figure.value:.2f} s"
        case "ratio":
            return f"{figure.value:.2f}"
        case "money":
            return f"{figure.value:.4g} {visible(currency or '')}".rstrip()
    return f"{figure.value:,.0f}" if float(figure.value).is_integer() else f"{figure.value:,.2f}"


def moment(seconds: float) -> str:
    """Unix seconds as UTC, to the second; as they are where no calendar has them."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = row
    cells = [first + " " * (widths[0] - width(first))]
    cells += [" " * (room - width(cell)) + cell for cell, room in zip(rest, widths[1:], strict=True)]
    return GAP.join(cells).rstrip()


def worded(name: str) -> str:
    """`lost_turn` -> `Lost turn`."""
    return name.replace("_", " ").capitalize()


def from_one(reason: str) -> str:
    """A reason with its Step counted from 1: in a verdict it counts from 0."""
    return _STEP.sub(lambda found: f"{found[1]}step {int(found[2]) + 1}: ", reason, count=1)
