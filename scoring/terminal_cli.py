"""How wide the text is that a command of `scoring` prints."""

from __future__ import annotations

import shutil

from scoring.output.wrapping import COLUMNS


def text_columns() -> int:
    """As wide as the terminal, or the variable COLUMNS, but no wider than `COLUMNS`; that without either."""
    return min(shutil.get_terminal_size((COLUMNS, 24)).columns, COLUMNS)
