"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of synthetic vectors."""
    return ROOT / "tests" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real sessions: absent on most machines, required in CI."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"CI is set, but the real sessions are missing: {SHARED}")
        pytest.skip(f"no real sessions at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def real_session_files(shared: Path) -> list[Path]:
    folder = shared / "wildtoolbench"
    return [folder / "sessions_plain_keys.jsonl", folder / "sessions_english_keys.jsonl"]
