"""What the released evaluation code would read in the result files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.exporting import (
    Play,
    exported,
    scored,
)
from support.released_evaluation import evaluated, flat

from scenarios.load import BUNDLED
from scoring.metrics.accuracy import count

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    "provider", ["sim:oracle", "sim:serial", "sim:noisy:0.3:1", "sim:text-only", "sim:empty"]
)
async def test_the_files_of_the_bundled_sessions_evaluate_to_our_metrics(play: Play, provider: str) -> None:
    log = await play(provider)
    lines = exported(log, model="maker_model-1")
    assert evaluated(lines, (BUNDLED,)) == flat(count(scored(log)))


@pytest.mark.parametrize("provider", ["sim:oracle", "sim:serial", "sim:noisy:0.3:2"])
async def test_the_files_of_real_sessions_evaluate_to_our_metrics(
    play: Play, provider: str, real_session_files: list[Path]
) -> None:
    log = await play(provider, real_session_files)
    lines = exported(log, model="maker_model-1")
    assert [int(line["id"].rpartition("_")[2]) for line in lines] == [*range(8), *range(79, 89)]
    assert evaluated(lines, real_session_files) == flat(count(scored(log)))
