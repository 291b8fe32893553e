"""What a stream can show: whether it is a terminal, how wide, in which encoding, with colours or not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from proxy.terminal.look import Look

COLUMNS = 80
"""Of a terminal that does not say how wide it is."""
ROWS = 24


def look_of(out: TextIO, color: str = "auto", environ: Mapping[str, str] = os.environ) -> Look:
    """How to write to `out`. `color`: `always`, `never`, or `auto`, as `wants_color` says."""
    return Look(wants_color(out, color, environ), getattr(out, "encoding", None) or "utf-8")


def wants_color(out: TextIO, color: str = "auto", environ: Mapping[str, str] = os.environ) -> bool:
    """`auto`: on a terminal that is not dumb, unless NO_COLOR is set (no-color.org)."""
    if color != "auto":
        return color == "always"
    return out.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def size_of(out: TextIO, environ: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """(columns, rows) as they are now: a terminal may be resized. COLUMNS and LINES come first."""
    try:
        found = os.get_terminal_size(out.fileno())
        columns, rows = found.columns, found.lines
    except (OSError, ValueError, AttributeError):
        columns = rows = 0
    return _given(environ, "COLUMNS") or columns or COLUMNS, _given(environ, "LINES") or rows or ROWS


def _given(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else 0
