"""What `tail` prints of one log, whole, in every form: compared with files that were read line by line.

What these lines must be by rule is tested beside them: `test_lines`, `test_shapes`, `test_text`. A file
that no longer fits is written anew by hand, or by `tail` and then read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import story

from run_proxy import main
from scenarios.text import width

SNAPSHOTS = Path(__file__).resolve().parents[2] / "data" / "terminal"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "story.db"
    story.write(path)
    return path


@pytest.fixture(autouse=True)
def universal_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def printed(log: Path, *options: str, columns: int = 80, encoding: str = "utf-8") -> str:
    runner = CliRunner(charset=encoding, env={"COLUMNS": str(columns)})
    result = runner.invoke(main, ["tail", str(log), *options])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.parametrize(
    ("name", "options", "columns", "encoding"),
    [
        ("tail-80", ("--format", "text"), 80, "utf-8"),
        ("tail-140", ("--format", "text"), 140, "utf-8"),
        ("tail-50", ("--format", "text"), 50, "utf-8"),
        ("tail-ascii", ("--format", "text"), 80, "ascii"),
        ("tail-one-session", ("--format", "text", "--session", "shop_1"), 80, "utf-8"),
        ("tail-wide", ("--format", "text", "--wide"), 100, "utf-8"),
        ("tail-colors", ("--format", "text", "--color", "always"), 80, "utf-8"),
        ("tail-plain", (), 80, "utf-8"),
        ("tail-plain-wide", ("--wide",), 80, "utf-8"),
        ("tail-json", ("--format", "json", "--session", "shop_1"), 80, "utf-8"),
    ],
)
def test_what_is_printed_is_the_snapshot(
    log: Path, name: str, options: tuple[str, ...], columns: int, encoding: str
) -> None:
    shown = printed(log, *options, columns=columns, encoding=encoding)
    assert shown.replace("\x1b", "<ESC>") == (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("columns", [36, 50, 80, 100, 140])
def test_no_line_of_a_terminal_is_wider_than_it(log: Path, columns: int) -> None:
    for options in ((), ("--wide",)):
        lines = printed(log, "--format", "text", *options, columns=columns).splitlines()
        assert max(map(width, lines)) <= columns


def test_a_pipe_gets_a_line_for_each_event_with_the_same_fields_and_no_control_character(log: Path) -> None:
    lines = printed(log).splitlines()
    assert all(line.isprintable() and len(line.split(None, 8)) == 9 for line in lines)
    verdicts = [(it[1], it[2], it[4]) for line in lines if (it := line.split())[3] in ("task", "session")]
    assert verdicts == [
        ("shop_1.e1", "1", "right"),
        (f"{story.LIBRARY}.e1", "1", "wrong"),
        ("shop_1.e1", "2", "wrong"),
        ("shop_1.e1", "-", "wrong"),
        (f"{story.LIBRARY}.e1", "2", "wrong"),
        (f"{story.LIBRARY}.e1", "-", "wrong"),
    ]


def test_what_a_task_took_is_what_its_exchanges_took(log: Path) -> None:
    tokens = {
        (it[1], it[2]): (it[5], it[6], it[7])
        for line in printed(log).splitlines()
        if (it := line.split())[3] == "task"
    }
    assert tokens == {
        ("shop_1.e1", "1"): (str(1234 + 1300), str(20 + 9), "3.80"),
        (f"{story.LIBRARY}.e1", "1"): (str(99_500 + 100_400), str(900 + 30), "14.60"),
        ("shop_1.e1", "2"): ("1500", "0", "1.50"),
        (f"{story.LIBRARY}.e1", "2"): ("0", "0", "77.00"),
    }


def test_only_the_last_lines_are_shown_if_that_is_wanted(log: Path) -> None:
    lines = printed(log).splitlines()
    assert printed(log, "-n", "3").splitlines() == lines[-3:]
    assert printed(log, "-n", "0") == ""
