"""The folder `runs`, in which logs are kept that nobody named: a new one's name, and the newest."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

FOLDER = Path("runs")
_LONGEST = 40
_SAVED_SCORES = ".scores.db"


@contextmanager
def new_log(scenarios: Sequence[str], now: datetime, folder: Path = FOLDER) -> Iterator[Path]:
    """A log of its own, named by the minute and the scenarios: `runs/2026-11-30-1432-bundled.db`.

    The file is made at once, so that two programs never share one; it is taken away again if
    nothing was written to it. Raises OSError for a folder that cannot be used.
    """
    folder.mkdir(exist_ok=True)
    path = _reserved(folder, f"{now:%Y-%m-%d-%H%M}-{_named(scenarios)}")
    try:
        yield path
    finally:
        if path.exists() and path.stat().st_size == 0:
            path.unlink()
            with suppress(OSError):
                folder.rmdir()


def newest_log(folder: Path = FOLDER) -> Path | None:
    """The log in the folder that was written to last; None if there is none."""
    files = (it for it in folder.glob("*.db") if it.is_file() and not it.name.endswith(_SAVED_SCORES))
    logs = [it for it in files if it.stat().st_size]
    return max(logs, key=lambda it: (_written(it), *_place(it)), default=None)


def _reserved(folder: Path, stem: str) -> Path:
    for number in itertools.count(1):
        path = folder / (f"{stem}.db" if number == 1 else f"{stem}-{number}.db")
        with suppress(FileExistsError):
            path.touch(exist_ok=False)
            return path
    raise AssertionError("unreachable: the count does not end")


def _named(scenarios: Sequence[str]) -> str:
    """A word for the scenarios: the pack's name or the file's, and how many more there are."""
    if not scenarios:
        return "recorded"
    word = re.sub(r"[^\w-]+", "-", Path(scenarios[0]).stem).strip("-")[:_LONGEST] or "scenarios"
    return word if len(scenarios) == 1 else f"{word}-and-{len(scenarios) - 1}-more"


def _place(log: Path) -> tuple[str, int]:
    """Where a log stands among those of one minute: the first of them has no number."""
    stem, _, number = log.stem.rpartition("-")
    return (stem, int(number)) if stem.count("-") > 3 and number.isdecimal() else (log.stem, 1)


def _written(log: Path) -> float:
    """When something was last written: while a proxy plays, that stands in the file beside the log."""
    beside = log.with_name(log.name + "-wal")
    return max(it.stat().st_mtime for it in (log, beside) if it.exists())
