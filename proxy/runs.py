"""Which Run a proxy plays in: a new one, or one that the log already holds."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proxy.log.restore import StoredRun, read_run, read_runs
from proxy.log.rows import RunRow, ScenarioRow
from proxy.settings import Settings, config_hash
from proxy.wire.endpoint import display_url
from scenarios.load import ScenarioFile

SIMULATED = "sim:"


class RunError(Exception):
    """The Run that was asked for cannot be gone on with; one line."""


@dataclass(frozen=True, slots=True)
class ChosenRun:
    """The Run to play in. `stored` has what was played of it, if it is not new."""

    row: RunRow
    stored: StoredRun | None = None


def choose_run(settings: Settings, files: Sequence[ScenarioFile], now: float, suffix: str) -> ChosenRun:
    """Raises RunError where `resume` finds no Run of this configuration. `suffix` makes ids unique."""
    row = new_run(settings, files, now, suffix)
    last = _last_run(settings.log) if settings.runs != "new" else None
    if last is not None and last.config_hash == row.config_hash:
        return ChosenRun(last, read_run(settings.log, last.id))
    if settings.runs == "resume":
        raise RunError(_why_not(settings.log, last, row))
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


def _last_run(log: Path) -> RunRow | None:
    runs = read_runs(log) if log.exists() else ()
    return runs[-1] if runs else None


def _why_not(log: Path, last: RunRow | None, wanted: RunRow) -> str:
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
