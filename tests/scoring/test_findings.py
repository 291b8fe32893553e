"""What agents lost of their own history, in the scores of a run: each loss once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import logs
from support.commands import error_line, run

from proxy.log.rows import Row
from proxy.log.writer import LogWriter

LIVE = {"history": "live", "history_from": "agent", "on_mismatch": "continue"}
TITLE = "Findings (the agent's own history)"

Lost = tuple[int, str, str]
"""(turn, what, detail) of one finding."""

TURN_1, ANSWER_1 = (1, "lost_turn", "not there"), (1, "lost_answer", "no answer")
CALLS_1, TURN_2 = (1, "lost_calls", "1 of 1"), (2, "lost_turn", "not there")


def requests(session: str, *lacking: Iterable[Lost]) -> list[Row]:
    """A provider's exchanges in a Session, with what each request lacked."""
    return [
        logs.start(
            f"{session}-{n}",
            session,
            side="provider",
            findings=tuple(dict(zip(("turn", "what", "detail"), it, strict=True)) for it in lost),
        )
        for n, lost in enumerate(lacking)
    ]


def played(session: str, scenario: str = "shop_1", epoch: int = 1, attempt: int = 1) -> list[Row]:
    """A Session whose first Task was played to its end, so that there is something to score."""
    exchange = f"{session}-x"
    return [
        logs.scenario(scenario),
        logs.session(session, scenario, epoch, attempt),
        logs.turn(session_id=session),
        logs.start(exchange, session),
        logs.finish(exchange),
        logs.step(session_id=session, exchange_id=exchange),
        logs.end(session_id=session),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def write(path: Path, *rows: Row, **config: Any) -> Path:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(logs.run(**(config or LIVE)), *rows)
    return path


def found(path: Path) -> list[tuple[str, int, str, str]]:
    result = run("score", path, "--format", "json")
    assert result.exit_code == 0, result.output
    entries = json.loads(result.stdout)["findings"]
    assert all(list(it) == ["session", "turn", "what", "detail"] for it in entries)
    return [tuple(it.values()) for it in entries]


def shown(path: Path) -> list[str]:
    """The lines of the table from the title of the findings up to the next blank one."""
    result = run("score", path)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith(TITLE)), len(lines))
    section = lines[start:]
    return section[: section.index("")] if section else []


def test_a_finding_that_every_later_request_has_counts_once(path: Path) -> None:
    lacking = [TURN_1], [TURN_1], [TURN_1, CALLS_1], [(1, "lost_turn", "told otherwise"), TURN_2]
    write(path, *played("s1"), *requests("s1", *lacking))
    assert found(path) == [("shop_1.e1", *it) for it in (TURN_1, CALLS_1, TURN_2)]


def test_findings_come_by_session_in_natural_order_and_then_as_they_were_found(path: Path) -> None:
    write(
        path,
        *(row for name, of in (("a", "shop_10"), ("b", "shop_2")) for row in played(name, of)),
        *played("c", "shop_2", epoch=2),
        *requests("c", [TURN_1]),
        *requests("a", [TURN_2], [TURN_1]),
        *requests("b", [ANSWER_1]),
    )
    assert found(path) == [
        ("shop_2.e1", *ANSWER_1),
        ("shop_2.e2", *TURN_1),
        ("shop_10.e1", *TURN_2),
        ("shop_10.e1", *TURN_1),
    ]


def test_only_the_last_attempt_at_a_session_counts(path: Path) -> None:
    write(
        path,
        *played("s1"),
        *requests("s1", [TURN_1, CALLS_1]),
        *played("s2", attempt=2),
        *requests("s2", [TURN_2]),
    )
    assert found(path) == [("shop_1.e1", *TURN_2)]


def test_the_findings_of_another_run_do_not_count(path: Path) -> None:
    other = logs.session("s9", run_id="r2")
    write(path, *played("s1"), logs.run("r2", 2.0, **LIVE), other, *requests("s9", [TURN_1]))
    result = run("score", path, "--run", "r1", "--format", "json")
    assert json.loads(result.stdout)["findings"] == []


def test_the_table_counts_findings_and_sessions_by_kind_the_most_frequent_first(path: Path) -> None:
    write(
        path,
        *played("s1"),
        *played("s2", "shop_2"),
        *requests("s1", [TURN_1, CALLS_1, ANSWER_1], [TURN_1, TURN_2]),
        *requests("s2", [TURN_1, CALLS_1]),
    )
    assert [line.split() for line in shown(path)] == [
        [*TITLE.split(), "count", "sessions"],
        ["Lost", "turn", "3", "2"],
        ["Lost", "calls", "2", "2"],
        ["Lost", "answer", "1", "1"],
    ]


def test_an_agent_that_lost_nothing_is_told_so(path: Path) -> None:
    write(path, *played("s1"), *requests("s1", [], []))
    assert (found(path), shown(path)) == ([], [f"{TITLE}: none."])


@pytest.mark.parametrize(
    "config",
    [
        {"history": "gold"},
        {"history": "gold", "on_mismatch": "continue"},
        {**LIVE, "history_from": "proxy"},
    ],
)
def test_a_run_that_is_not_on_the_agents_own_history_says_nothing_of_findings(
    path: Path, config: dict[str, Any]
) -> None:
    write(path, *played("s1"), *requests("s1", [TURN_1]), **config)
    assert shown(path) == []
    assert found(path) == []


def test_findings_of_a_foreign_log_cannot_move_the_cursor(path: Path) -> None:
    write(path, *played("s1"), *requests("s1", [(1, "\x1b[2J" + "x" * 999, "\x9b")]))
    for output_format in ("table", "json"):
        text = run("score", path, "--format", output_format).stdout
        assert not any(character in text for character in "\x1b\x9b")
    assert len(shown(path)[1]) < 200


def test_damaged_findings_are_one_line(path: Path) -> None:
    write(path, *played("s1"), *requests("s1", [TURN_1]))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE exchanges SET findings = '[{' WHERE findings IS NOT NULL")
    assert "is damaged" in error_line(run("score", path), 2)
