"""Logs to export: sessions that were played, and one that is made as said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from support import logs
from support.exporting import MODEL, Play, Quiet, step_rows

from proxy.drive.builtin import builtin
from proxy.drive.client import ControlClient
from proxy.drive.driver import drive
from proxy.drive.plan import plan
from proxy.log.writer import LogWriter
from proxy.server import running
from proxy.settings import Settings
from scenarios.load import BUNDLED


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """`await play("sim:oracle", files)` plays all Sessions with the builtin agent; gives the log."""

    async def played(provider: str, files: Iterable[Path] = (BUNDLED,), epochs: int = 1) -> Path:
        log = tmp_path / "played.db"
        async with (
            running(Settings(log=log, provider=provider, scenarios=tuple(files))) as proxy,
            ControlClient(proxy.base_url, proxy.token) as control,
            builtin(MODEL) as factory,
        ):
            planned = plan((await control.run()).scenarios, epochs=epochs)
            report = await drive(control, planned, factory, concurrency=8, turn_timeout=60, progress=Quiet())
        assert report.complete
        return log

    return played


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """`log([[message, ...], ...])` is the log of one Session of `shop_1`, played as said."""

    def write(
        tasks: list[list[Any]], record: dict[str, Any] | None = None, *, name: str = "log.db", **start: Any
    ) -> Path:
        record = record or logs.RECORD
        rows: list[Any] = [logs.run(), logs.scenario(record["id"], record), logs.session("s1", record["id"])]
        for task, messages in enumerate(tasks):
            rows.append(logs.turn(task + 1, task))
            rows += [row for step, said in enumerate(messages) for row in step_rows(task, step, said, start)]
            rows.append(logs.end(task, "agent_stopped"))
        with LogWriter.open(tmp_path / name) as writer:
            writer.commit_blocking(*rows)
        return tmp_path / name

    return write
