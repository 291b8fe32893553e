"""Everything at once, offline: the bundled Sessions, a simulated provider, the log, the scores."""

from __future__ import annotations

import itertools
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from proxy.drive.builtin import builtin
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


@dataclass(frozen=True, slots=True)
class DemoResult:
    """`score` is None when the drive was interrupted or gave up, so that nothing was scored."""

    log: Path
    score: Path | None
    report: DriveReport


async def demo(
    folder: Path,
    echo: Callable[[str], None],
    *,
    score: Score,
    out: TextIO = sys.stderr,
    clock: Callable[[], float] = time.monotonic,
    program: str = "wildproxy",
) -> DemoResult:
    """Plays the bundled Sessions into a new log in `folder`, scores it and says what to do next.

    Progress goes to `out`, all else to `echo`. Never overwrites: a second demo in the same
    folder gets numbered names. Raises what `proxy.server.running` and `score` raise, and
    OSError for a folder that cannot be used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log, scores = fresh_paths(folder)
    echo(f"Playing the bundled sessions against a simulated provider ({PROVIDER}), offline.")
    report = await _play(log, out, clock, echo)
    if report.interrupted or report.halted:
        echo(f"Not scored. Log: {log}")
        return DemoResult(log, None, report)
    table, document = score(log)
    with scores.open("x", encoding="utf-8", newline="\n") as file:
        file.write(document)
    echo(f"\n{table}")
    for line in closing_words(log, scores, report, program):
        echo(line)
    return DemoResult(log, scores, report)


def fresh_paths(folder: Path) -> tuple[Path, Path]:
    """`demo.db` and `score.json` in `folder`, or the first numbered pair that is not there yet."""
    for number in itertools.count(1):
        suffix = "" if number == 1 else f"-{number}"
        log, scores = folder / f"demo{suffix}.db", folder / f"score{suffix}.json"
        if not (log.exists() or scores.exists()):
            return log, scores
    raise AssertionError("unreachable: the count does not end")


def closing_words(log: Path, scores: Path, report: DriveReport, program: str) -> list[str]:
    """Where everything is, and three commands to try next."""
    lines = [
        f"Log:    {log}",
        f"Scores: {scores}",
        "",
        "Next:",
        f"  {program} score {shlex.quote(str(log))} -v",
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
        builtin(PROVIDER) as factory,
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
