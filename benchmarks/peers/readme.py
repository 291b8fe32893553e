"""Where and on what was measured, and the page that says so."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from contenders import ROOT
from installed import CACHE, INSTALLED
from machine import BenchmarkError


def environment(about: str) -> str:
    """One paragraph: when, how, on which revision, machine and versions."""
    today = datetime.now(UTC).date().isoformat()
    ours = f"revision {_revision()}, Python {platform.python_version()}, aiohttp {version('aiohttp')}"
    others = ", ".join(_versions())
    return f"{today}: {about}; {ours}; {others}; {_processor()}, Linux {platform.release()}."


def _revision() -> str:
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(asked, capture_output=True, text=True).stdout.strip() or "unknown"


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return f"{os.cpu_count()} cores of {found[1] if found else platform.machine()}"


def _versions() -> Iterator[str]:
    if nginx := shutil.which("nginx"):
        told = subprocess.run([nginx, "-v"], capture_output=True, text=True).stderr
        yield told.strip().removeprefix("nginx version: ").replace("/", " ")
    for name in INSTALLED:
        with suppress(OSError):
            stamp = (CACHE / name / "installed.json").read_text(encoding="utf-8")
            yield from (package.replace("==", " ") for package in json.loads(stamp))


def write_section(page: Path, name: str, text: str) -> None:
    """Puts a text between the marks of this name. Raises BenchmarkError if the page has none."""
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise BenchmarkError(f"{page} lacks the lines {begin.strip()} and {end.strip()}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
