"""The benchmark against other proxies runs, and our proxy plays its sessions right."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

RUN = Path(__file__).resolve().parent.parent / "benchmarks" / "peers" / "run.py"


@pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc") or not shutil.which("taskset"),
    reason="it needs Linux, a C compiler and taskset",
)
@pytest.mark.skipif(os.cpu_count() == 1, reason="it needs two cores")
def test_a_short_run_measures_the_provider_and_sessions_that_are_played(tmp_path: Path) -> None:
    """A wrong answer would end it: then the contender's windows are missing."""
    windows = tmp_path / "windows.json"
    short = ["--rounds", "1", "--seconds", "0.1", "--only", "direct,evaluation", "--json", str(windows)]
    done = subprocess.run([sys.executable, str(RUN), *short], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = {(it["contender"], it["kind"]) for it in json.loads(windows.read_text(encoding="utf-8"))}
    sessions = {("evaluation", kind) for kind in ("alone", "crowd")}
    streams = {("direct", kind) for kind in ("alone", "crowd", "stream", "streams")}
    assert seen == sessions | streams, done.stderr
