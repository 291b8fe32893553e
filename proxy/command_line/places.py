"""Where a settings file is looked for."""

from __future__ import annotations

from pathlib import Path

NAME = "wildproxy.toml"


def find(folder: Path) -> Path | None:
    """The nearest settings file: in `folder`, or above it as far as the root of its repository.

    Outside a repository only `folder` is looked in: what lies above may be anybody's.
    """
    return next((it / NAME for it in searched(folder) if (it / NAME).is_file()), None)


def searched(folder: Path) -> list[Path]:
    """The folders in which a settings file counts, the nearest first."""
    above = [folder, *folder.parents]
    root = next((index for index, it in enumerate(above) if (it / ".git").exists()), 0)
    return above[: root + 1]
