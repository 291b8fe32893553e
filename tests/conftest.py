"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import pytest
from hypothesis import settings
from support.examples import THOROUGH, TIMES
from support.ports import free_port

# What is printed is as wide as this says, and workers of pytest have it from somewhere.
os.environ.pop("COLUMNS", None)

UNTIL = "WILDPROXY_TESTS_UNTIL"
"""Unix seconds after which no test begins that takes long: by this, CI ends in time on any machine."""

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

# Chance makes other examples in each run: few are enough for what is run often.
settings.register_profile("brief", max_examples=40, deadline=None)
settings.register_profile(THOROUGH, max_examples=40 * TIMES, deadline=None)
settings.load_profile("brief")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes last."""
    items.sort(key=_is_long)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _is_long(item) and time.time() > float(os.environ.get(UNTIL, "inf")):
        pytest.skip("no time is left for what takes long")


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None


def pytest_collection_finish() -> None:
    """What was collected lives to the end: to look for garbage in it takes a tenth of all the time."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture
def unused_tcp_port() -> int:
    return free_port()


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
