"""The driver and the builtin agent against the real proxy, and the demo as a whole."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from proxy.drive.builtin import builtin
from proxy.drive.client import ControlClient
from proxy.drive.demo import DemoFiles, closing_words, demo, fresh_files
from proxy.drive.driver import DriveReport, drive
from proxy.drive.plan import plan
from proxy.server import running
from proxy.settings import Settings


async def played(log: Path, policy: str, concurrency: int, watcher: Any, *, stream: bool) -> DriveReport:
    settings = Settings(log=log, provider=f"sim:{policy}", scenarios=("bundled",))
    async with (
        running(settings) as proxy,
        ControlClient(proxy.base_url, proxy.token) as control,
        builtin("some-model", stream=stream) as factory,
    ):
        planned = plan((await control.run()).scenarios)
        return await drive(
            control, planned, factory, concurrency=concurrency, turn_timeout=60, progress=watcher
        )


def verdicts(report: DriveReport) -> list[tuple[str, list[bool | None]]]:
    return [
        (it.session, [task.names_right for task in it.state.tasks])
        for it in report.played
        if it.state is not None
    ]


@pytest.mark.parametrize("concurrency", [1, 16])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_oracle_gets_every_task_of_the_bundled_sessions_right(
    tmp_path: Path, diary: Any, concurrency: int, stream: bool
) -> None:
    report = await played(tmp_path / "log.db", "oracle", concurrency, diary, stream=stream)
    assert report.complete
    assert len(report.played) >= 4
    assert all(all(rights) for _, rights in verdicts(report))


async def test_concurrency_changes_no_verdict_of_a_provider_that_errs(tmp_path: Path, diary: Any) -> None:
    alone = await played(tmp_path / "1.db", "noisy:0.3:7", 1, diary, stream=False)
    crowd = await played(tmp_path / "16.db", "noisy:0.3:7", 16, diary, stream=True)
    assert verdicts(alone) == verdicts(crowd)
    assert {right for _, rights in verdicts(alone) for right in rights} == {True, False}


async def test_the_demo_leaves_a_log_its_scores_and_a_report_and_says_what_to_do_next(tmp_path: Path) -> None:
    said: list[str] = []
    scored: list[Path] = []

    def score(log: Path) -> tuple[str, str]:
        scored.append(log)
        with sqlite3.connect(f"file:{log}?mode=ro", uri=True) as reader:
            sessions = reader.execute("select count(*) from sessions").fetchone()[0]
        reader.close()
        return f"TABLE of {sessions} sessions", '{"n": 1}\n'

    def page(log: Path) -> bytes:
        assert scored == [log]
        return b"<p>PAGE"

    result = await demo(
        tmp_path / "new" / "demo", said.append, score=score, page=page, out=io.StringIO(), program="prog"
    )
    assert result.report.complete
    assert scored == [result.log] == [tmp_path / "new" / "demo" / "demo.db"]
    assert result.score == tmp_path / "new" / "demo" / "score.json"
    assert result.score.read_text(encoding="utf-8") == '{"n": 1}\n'
    assert result.page == tmp_path / "new" / "demo" / "report.html"
    assert result.page.read_bytes() == b"<p>PAGE"
    text = "\n".join(said)
    assert f"TABLE of {len(result.report.played)} sessions" in text
    assert str(result.log) in text
    assert str(result.score) in text
    assert f"Report: {result.page}" in text
    assert sum(line.startswith("  prog ") for line in text.splitlines()) == 3


async def test_a_second_demo_overwrites_nothing(tmp_path: Path) -> None:
    mine = [tmp_path / name for name in ("score.json", "demo-2.db", "report-3.html")]
    for path in mine:
        path.write_text("mine")
    out = io.StringIO()
    result = await demo(
        tmp_path, lambda line: None, score=lambda log: ("", "{}"), page=lambda log: b"", out=out
    )
    names = [path.name for path in (result.log, result.score, result.page) if path]
    assert names == ["demo-4.db", "score-4.json", "report-4.html"]
    assert [path.read_text() for path in mine] == ["mine"] * 3


def test_the_first_demo_of_a_folder_has_plain_names(tmp_path: Path) -> None:
    names = ("demo.db", "score.json", "report.html")
    assert fresh_files(tmp_path) == DemoFiles(*(tmp_path / name for name in names))


def test_commands_to_try_next_can_be_pasted_whatever_the_folder_is_called(tmp_path: Path) -> None:
    files = DemoFiles(tmp_path / "a b" / "demo.db", tmp_path / "s.json", tmp_path / "r.html")
    lines = closing_words(files, DriveReport((), ()), "prog")
    assert f"  prog score '{tmp_path}/a b/demo.db' -v" in lines
