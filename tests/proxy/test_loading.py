"""What `serve` loads, which every start of it and all its time waits for and keeps in memory."""

from __future__ import annotations

import json
import subprocess
import sys

NEEDLESS = ["jieba", "openai", "scipy", "sqlite_utils", "proxy.drive.driver"]
"""What scorers, agents and logs of older versions need."""


def test_serve_loads_nothing_that_only_others_need() -> None:
    program = f"import json, proxy.serving, sys; print(json.dumps([it in sys.modules for it in {NEEDLESS}]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert dict(zip(NEEDLESS, json.loads(done.stdout), strict=True)) == dict.fromkeys(NEEDLESS, False)
