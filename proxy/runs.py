"""Which Run a proxy plays in: a new one, or one that the log already holds."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from proxy.log.inspect import run_summary
from proxy.log.restore import StoredRun, read_open, read_runs
from proxy.log.rows import RunRow, ScenarioRow
from proxy.settings import Settings, config_hash
from proxy.wire.endpoint import display_url
from scenarios.load import ScenarioFile

SIMULATED = "sim:"


class RunError(Exception):
    """The Run that was asked for cannot be gone on with; one line."""


@dataclass(frozen=True, slots=True)
class ChosenRun:
    """The Run to play in. `stored` has what is needed to go on with it, if it is not new."""

    row: RunRow
    stored: StoredRun | None = None


def choose_run(settings: Settings, files: Sequence[ScenarioFile], now: float, suffix: str) -> ChosenRun:
    """Raises RunError where `resume` finds no Run of this configuration, LogError where there is none
    of the id or name that was asked for. `suffix` makes ids unique.
    """
    row = new_run(settings, files, now, suffix)
    if settings.runs == "new":
        return ChosenRun(row)
    runs = read_runs(settings.log) if settings.log.exists() else ()
    if settings.resume_run is not None:
        wanted = run_summary(settings.log, settings.resume_run).id
        runs = tuple(run for run in runs if run.id == wanted)
    same = [run for run in runs if run.config_hash == row.config_hash]
    # `continue` is about the run that was played last, `resume` about the last that can be.
    if same and (settings.runs == "resume" or same[-1] == runs[-1]):
        return ChosenRun(same[-1], read_open(settings.log, same[-1].id))
    if settings.runs == "resume":
        raise RunError(_why_not(settings, runs[-1] if runs else None, row))
    return ChosenRun(row)


def new_run(settings: Settings, files: Sequence[ScenarioFile], now: float, suffix: str) -> RunRow:
    config: dict[str, Any] = {
        "mode": "play" if files else "record",
        "provider": shown_provider(settings.provider),
        "model": settings.model,
        "agent": settings.agent,
        "language": settings.language,
        "scenarios": [{"file": file.path.name, "sha256": file.sha256} for file in files],
        **settings.play.as_json(),
    }
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
    versions = {
        "wildtoolbench-proxy": version("wildtoolbench-proxy"),
        "python": platform.python_version(),
        "aiohttp": version("aiohttp"),
    }
    return RunRow(f"{moment}-{suffix}", now, config, config_hash(config), versions)


def scenario_rows(files: Sequence[ScenarioFile]) -> list[ScenarioRow]:
    return [
        ScenarioRow(scenario.hash, scenario.id, scenario.record, file.path.name, file.sha256)
        for file in files
        for scenario in file.scenarios
    ]


def shown_provider(provider: str) -> str:
    """The provider's address, without secrets, or the simulated one's policy."""
    return provider if provider.startswith(SIMULATED) else display_url(provider)


def _why_not(settings: Settings, last: RunRow | None, wanted: RunRow) -> str:
    log = settings.log
    if last is None:
        return f"{log} has no run to resume: leave --resume out to begin one"
    differing = [
        f"{key} was {_json(last.config.get(key))}, is {_json(value)}"
        for key, value in wanted.config.items()
        if last.config.get(key) != value
    ]
    return (
        f"{log}: run {last.id} was played under another configuration ({'; '.join(differing)}): "
        "give the same options, or leave --resume out to begin a new run"
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
