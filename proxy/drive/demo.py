"""Everything at once, offline: the bundled Sessions, a simulated provider, the log, scores, the report."""

from __future__ import annotations

import itertools
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from proxy.drive.choose import BUILTIN, AgentOptions, chosen
from proxy.drive.client import ControlClient
from proxy.drive.driver import DriveReport, drive
from proxy.drive.plan import plan
from proxy.drive.progress import showing
from proxy.server import running
from proxy.settings import Settings
from scenarios.load import BUNDLED, BUNDLED_WORD

PROVIDER = "sim:noisy:0.15:1"
"""Wrong in about one decision of seven, always in the same ones: there is something to see."""
CONCURRENCY = 4
TURN_TIMEOUT_S = 60.0

Score = Callable[[Path], tuple[str, str]]
"""A log's path -> its scores as a table and as a JSON document. Given by the composition
root, because the proxy knows nothing of scoring."""

Report = Callable[[Path], bytes]
"""A log's path -> its report as an HTML page. Given likewise."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """`score` and `page` are None when the drive was interrupted or gave up, so that nothing was scored."""

    log: Path
    score: Path | None
    page: Path | None
    report: DriveReport


@dataclass(frozen=True, slots=True)
class DemoFiles:
    """What a demo leaves behind: a log, its scores and its report."""

    log: Path
    scores: Path
    page: Path


async def demo(
    folder: Path,
    echo: Callable[[str], None],
    *,
    score: Score,
    page: Report,
    out: TextIO = sys.stderr,
    clock: Callable[[], float] = time.monotonic,
    program: str = "wildproxy",
) -> DemoResult:
    """Plays the bundled Sessions into a new log in `folder`, scores it and says what to do next.

    Progress goes to `out`, all else to `echo`. Never overwrites: a second demo in the same
    folder gets numbered names. Raises what `proxy.server.running`, `score` and `page` raise, and
    OSError for a folder that cannot be used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = fresh_files(folder)
    echo(f"Playing the bundled sessions against a simulated provider ({PROVIDER}), offline.")
    report = await _play(files.log, out, clock, echo)
    if report.interrupted or report.halted:
        echo(f"Not scored. Log: {files.log}")
        return DemoResult(files.log, None, None, report)
    table, document = score(files.log)
    for path, content in ((files.scores, document.encode()), (files.page, page(files.log))):
        with path.open("xb") as file:
            file.write(content)
    echo(f"\n{table}")
    for line in closing_words(files, report, program):
        echo(line)
    return DemoResult(files.log, files.scores, files.page, report)


def fresh_files(folder: Path) -> DemoFiles:
    """`demo.db`, `score.json`, `report.html` in `folder`, or the first number of which none is there yet."""
    for number in itertools.count(1):
        suffix = "" if number == 1 else f"-{number}"
        names = (f"demo{suffix}.db", f"score{suffix}.json", f"report{suffix}.html")
        log, scores, page = (folder / name for name in names)
        if not (log.exists() or scores.exists() or page.exists()):
            return DemoFiles(log, scores, page)
    raise AssertionError("unreachable: the count does not end")


def closing_words(files: DemoFiles, report: DriveReport, program: str) -> list[str]:
    """Where everything is, and three commands to try next."""
    lines = [
        f"Log:    {files.log}",
        f"Scores: {files.scores}",
        f"Report: {files.page}  (open it in a browser: every session, call by call)",
        "",
        "Next:",
        f"  {program} score {shlex.quote(str(files.log))} -v",
        "      why each wrong task is wrong",
    ]
    if scenario := _worth_a_look(report):
        lines += [
            f"  {program} scenarios show {BUNDLED_WORD} {shlex.quote(scenario)}",
            "      what should have happened in a session that went wrong",
        ]
    return [
        *lines,
        f"  {program} drive --agent builtin --provider URL --model NAME --log mine.db",
        "      the same with a real model",
    ]


async def _play(
    log: Path, out: TextIO, clock: Callable[[], float], echo: Callable[[str], None]
) -> DriveReport:
    settings = Settings(log=log, provider=PROVIDER, scenarios=(BUNDLED,))
    async with (
        running(settings) as proxy,
        ControlClient(proxy.base_url, proxy.token) as control,
        chosen(AgentOptions(BUILTIN, model=PROVIDER)) as factory,
    ):
        planned = plan((await control.run()).scenarios)
        await control.plan((item.scenario, item.epoch) for item in planned)
        async with showing(control, planned, out, clock) as progress:
            report = await drive(
                control,
                planned,
                factory,
                concurrency=CONCURRENCY,
                turn_timeout=TURN_TIMEOUT_S,
                progress=progress,
            )
        for line in progress.summary(report):
            echo(line)
    return report


def _worth_a_look(report: DriveReport) -> str | None:
    """A Scenario in which a Task went wrong, else any that was played."""
    states = [played.state for played in report.played if played.state]
    wrong = [state for state in states if any(task.names_right is False for task in state.tasks)]
    return next((state.scenario for state in (*wrong, *states)), None)
