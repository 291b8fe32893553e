"""How large the report of a run of the size of the benchmark is, and how long it takes to be written.

256 sessions of four tasks each are made from the scenarios of a file, in turn, and played against the
simulated provider that errs now and then, so that the log has what a real one has: whole histories, tool
lists, and answers as they came.

    python benchmarks/report_size.py [--scenarios FILE]

Prints megabytes and wall seconds of the page with the raw exchanges and without them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from scenarios.load import BUNDLED, read_file

SESSIONS = 256
LIMIT = 5_000_000
PROVIDER = "sim:noisy:0.2"
PROGRAM = Path(__file__).resolve().parent.parent / "run_proxy.py"


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--scenarios", type=Path, default=BUNDLED)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = played(folder, many(asked.scenarios, folder))
        print(f"{SESSIONS} sessions, {log.stat().st_size / 1e6:.1f} MB of log")
        print(f"{'':22}{'MB':>7}{'seconds':>9}")
        for words, what in (([], "with raw exchanges"), (["--no-raw"], "without")):
            size, seconds = measured(folder, log, words)
            print(f"{what:22}{size / 1e6:7.2f}{seconds:9.2f}{'' if size < LIMIT else '  more than 5 MB'}")


def many(path: Path, folder: Path) -> Path:
    """A file with as many scenarios as the benchmark has."""
    file = folder / "many.jsonl"
    records = [scenario.record for scenario in read_file(path).scenarios]
    lines = (
        json.dumps({**record, "id": f"{record['id']}_{number}"}, ensure_ascii=False)
        for number, record in enumerate(islice(cycle(records), SESSIONS))
    )
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def played(folder: Path, scenarios: Path) -> Path:
    log = folder / "run.db"
    play = ["drive", "--agent", "builtin", "--scenarios", str(scenarios), "--provider", PROVIDER]
    run(*play, "--log", str(log))
    return log


def measured(folder: Path, log: Path, words: list[str]) -> tuple[int, float]:
    """Bytes and wall seconds of the page that is written with these options."""
    page = folder / "report.html"
    begun = time.perf_counter()
    run("report", str(log), "-o", str(page), *words)
    return page.stat().st_size, time.perf_counter() - begun


def run(*words: str) -> None:
    done = subprocess.run([sys.executable, str(PROGRAM), *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words[:1])} failed: {done.stderr[-2000:]}")


if __name__ == "__main__":
    main()
