"""How wide the text is that a command of `scoring` prints."""

from __future__ import annotations

import shutil

from scoring.output.wrapping import COLUMNS

LEAST_COLUMNS = 40


def text_columns() -> int:
    """As wide as the terminal or the variable COLUMNS says, within reason; `COLUMNS` if neither does."""
    return max(LEAST_COLUMNS, min(shutil.get_terminal_size((COLUMNS, 24)).columns, COLUMNS))
