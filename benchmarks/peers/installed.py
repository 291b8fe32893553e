"""The programs of others: virtual environments in a cache folder, with pinned versions."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wildproxy-benchmarks"
INSTALLED = {
    "reference": ("aiohttp==3.14.5", "orjson==3.13.0", "uvloop==0.23.0"),
    "litellm": ("litellm[proxy]==1.106.12",),
    "llm-observe": ("llm-observe-proxy==0.7.0",),
}
"""What `--install` puts into virtual environments below CACHE."""


def python(name: str) -> str:
    """The interpreter of its environment."""
    return str(CACHE / name / "bin" / "python")


def uninstalled(name: str) -> str | None:
    """What is to be done about it, if it is not there."""
    stamp = CACHE / name / "installed.json"
    there = stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == list(INSTALLED[name])
    return None if there else f"{CACHE / name} is not there, or of other versions: run with --install"


def install() -> None:
    """Installs what is missing, byte-compiled: without, LiteLLM is slower still."""
    for name, packages in INSTALLED.items():
        if uninstalled(name):
            venv.create(CACHE / name, with_pip=True, clear=True)
            pip = [python(name), "-m", "pip", "install", "--quiet", "--compile"]
            subprocess.run([*pip, *packages], check=True)
            (CACHE / name / "installed.json").write_text(json.dumps(packages), encoding="utf-8")
