"""How long a browser takes to open a report of 256 sessions, and how large the file is.

Prints megabytes, and milliseconds from the request of the page until its first screen is there and until all
of it is read; then how long a session takes to open. Medians of several openings.
Needs the extra `test` and chromium ($WILDPROXY_CHROMIUM): `python benchmarks/report_opening.py [LOG.db ...]`;
without a log it plays the bundled sessions 26 times.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

PROGRAM = Path(__file__).resolve().parent.parent / "run_proxy.py"
CHROMIUM = os.environ.get("WILDPROXY_CHROMIUM", "/usr/bin/chromium")
EPOCHS = 26
ROUNDS = 5


def written(folder: Path, logs: Sequence[str]) -> Path:
    """The report of the logs, or of a run of the bundled sessions."""
    if not logs:
        played = folder / "played.db"
        command = ["drive", "--agent", "builtin", "--scenarios", "bundled", "--epochs", str(EPOCHS)]
        run(*command, "--provider", "sim:noisy:0.3", "--log", str(played))
        logs = [str(played)]
    run("report", *logs, "-o", str(folder / "report.html"))
    return folder / "report.html"


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, str(PROGRAM), *arguments], check=True, capture_output=True)


def opening(browser: Browser, address: str) -> tuple[float, float, float]:
    """Milliseconds until the first screen is there, until all is parsed, and until a session is shown."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    ready = page.evaluate("performance.getEntriesByName('ready')[0].startTime")
    parsed = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    session = page.evaluate(
        """async () => {
            const from = performance.now();
            document.querySelector(".row-link").click();
            while (!document.querySelector(".session")) await new Promise(requestAnimationFrame);
            return performance.now() - from;
        }"""
    )
    page.close()
    return ready, parsed, session


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = written(Path(folder), sys.argv[1:])
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        ready, parsed, session = (
            median(times)
            for times in zip(*(opening(browser, page.as_uri()) for _ in range(ROUNDS)), strict=True)
        )
        browser.close()
        print(f"{page.stat().st_size / 1e6:.1f} MB")
        print(f"{ready:6.0f} ms until the first screen")
        print(f"{parsed:6.0f} ms until the whole file is read")
        print(f"{session:6.0f} ms to open a session")


if __name__ == "__main__":
    main()
