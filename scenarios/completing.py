"""What a shell may complete of scenarios: the ids in files, as far as these can be read."""

from __future__ import annotations

from collections.abc import Iterable

from scenarios.load import read_file


def begun_ids(files: Iterable[str], begun: str) -> list[str]:
    """The ids that begin so, in the order of the files; what cannot be read has none."""
    ids = (scenario.id for file in files for scenario in read_file(file).scenarios)
    return [it for it in ids if it.startswith(begun)]
