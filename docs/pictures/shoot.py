"""Makes the pictures of pages that the README and the documentation show.

    python docs/pictures/shoot.py

Plays sessions before a simulated provider, writes their report, and takes what a browser shows of
it, light and dark. Needs chromium (its path in WILDPROXY_CHROMIUM, else /usr/bin/chromium) and the
package `playwright`, of the extra `test`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent.parent
PICTURES = ROOT / "docs" / "pictures"
CHROMIUM = os.environ.get("WILDPROXY_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
WIDTH, HEIGHT = 1280, 800
SESSION = "everyday_1"
RUNS = {"released": "sim:noisy:0.35", "candidate": "sim:noisy:0.1"}


def play(folder: Path) -> None:
    """Two runs over the everyday sessions, and one report about both."""
    for name, provider in RUNS.items():
        _wildproxy(
            folder,
            ["drive", "--agent", "builtin", "--scenarios", "everyday", "--epochs", "2"],
            ["--provider", provider, "--log", f"{name}.db"],
        )
    _wildproxy(folder, ["report", *(f"{name}.db" for name in RUNS), "-o", "report.html"])


def _wildproxy(folder: Path, *words: list[str]) -> None:
    command = [sys.executable, str(ROOT / "run_proxy.py"), *(word for part in words for word in part)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def shoot(browser: Browser, page_file: Path, scheme: str) -> None:
    """The first screen, and a session with its graph."""
    page = browser.new_page(
        viewport={"width": WIDTH, "height": HEIGHT},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.goto(page_file.as_uri())
    page.locator("main h1").wait_for()
    page.screenshot(path=PICTURES / f"report-{scheme}.png")
    page.locator("a[href*='session=']", has_text=SESSION).first.click()
    page.get_by_text("Reference: what should have happened").first.wait_for()
    page.get_by_role("link", name="Task 2").first.click()
    page.screenshot(path=PICTURES / f"session-{scheme}.png")
    page.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        play(folder)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for scheme in ("light", "dark"):
            shoot(browser, folder / "report.html", scheme)
        browser.close()


if __name__ == "__main__":
    main()
