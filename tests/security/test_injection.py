"""What scenario files, models and agents say is text: to a terminal, a spreadsheet, a table, XML and SQL."""

from __future__ import annotations

import csv
import io
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import logs
from support.commands import run

from proxy import sentinel
from proxy.log.redaction import scrub
from proxy.log.writer import LogWriter

FORMULAS = ["=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "＝1+1"]
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e|<img src=x onerror=alert(1)>\n=1]]>&\"'`\x9b31m"


def played(path: Path, text: str) -> None:
    """A log in which everything that others choose is `text`."""
    said = {**logs.text_message(text), "reasoning_content": text}
    called = logs.call_message((text, text))
    asked = [{"role": "user", "content": text}, {"role": "tool", "tool_call_id": text, "content": text}]
    of = {"side": "provider", "turn": 1, "request_model": text}
    with LogWriter.open(path) as writer:
        writer.commit_blocking(
            logs.run(model=text, agent=text, provider=text),
            logs.scenario(),
            logs.session(),
            logs.turn(),
            logs.turn(2, task=1),
            logs.start("x1", messages=asked, **of, body={"model": text, "tools": [{"name": text}]}),
            logs.finish("x1", message=called, raw=text.encode(), response_model=text, response_id=text),
            logs.step(message=called, decision="wrong", reason=text, calls=(logs.call(0, text, text, text),)),
            logs.end(0, "wrong"),
            logs.start("x2", messages=asked, **of),
            logs.finish("x2", message=said, finish_state="provider_error", error=text, error_type=text),
            logs.step(task=1, exchange_id="x2", message=said),
            logs.end(1),
        )


def commands(log: Path) -> Iterator[tuple[Any, ...]]:
    yield ("score", log, "-v")
    yield ("score", log, "--format", "markdown")
    yield ("compare", log, log)
    yield ("tail", log, "--wide")
    yield ("tail", log, "--format", "plain")
    yield ("log", "info", log)
    yield ("log", "runs", "list", log)
    yield ("log", "show", log, "x1", "--full")
    yield ("log", "show", log, "x2")
    yield ("export", log, "--format", "openai")


def test_no_command_sends_a_terminal_what_others_wrote_for_it(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    played(log, HOSTILE)
    for words in commands(log):
        result = run(*words)
        assert result.exit_code in (0, 3), (words, result.output)
        obeyed = {char for char in result.output if char in "\x1b\x07\x9b\u202e\r\x00"}
        assert obeyed == set(), words


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_table_of_scores_is_a_formula(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log.db"
    played(log, text)
    result = run("score", log, "--format", "csv")
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert any(text.strip() in cell for row in rows for cell in row), "else nothing could have been one"
    header, *lines = rows
    numbers = {header.index(name) for name in ("value", "n", "successes", "low", "high")}
    for line in lines:
        texts = [cell for place, cell in enumerate(line) if place not in numbers]
        assert not [cell for cell in texts if cell[:1] in tuple("=+-@\t\r＝")], line
        assert all(float(line[place]) is not None for place in numbers if line[place])


def test_a_file_for_build_servers_is_whole_xml_whatever_is_in_it(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    played(log, HOSTILE)
    result = run("score", log, "--format", "junit")
    root = ElementTree.fromstring(result.stdout)
    assert {element.tag for element in root.iter()} <= {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "skipped",
        "properties",
        "property",
        "system-out",
        "system-err",
    }


def test_a_markdown_table_keeps_its_columns_and_holds_no_html(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    played(log, HOSTILE)
    text = run("score", log, "--format", "markdown").stdout
    assert "<img" not in text
    assert "| " in text


NAMES = ["x' OR '1'='1", '"; DROP TABLE runs; --', "%", "_", "*", "x1%", "\x00", "x" * 100_000]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_on_the_command_line_is_no_sql(tmp_path: Path, name: str) -> None:
    log = tmp_path / "log.db"
    played(log, "text")
    before = logs.query(log, "SELECT count(*) FROM runs")
    for words in (
        ("log", "show", log, name),
        ("score", log, "--run", name),
        ("tail", log, "--session", name),
        ("tail", log, "--run", name),
        ("log", "runs", "delete", log, name, "--yes"),
    ):
        result = run(*words)
        assert result.exit_code == 2, (words, result.output)
        assert "Traceback" not in result.output
    assert logs.query(log, "SELECT count(*) FROM runs") == before


PIECES = [
    "a",
    "=",
    "(",
    "sk-",
    "--api-key ",
    "Bearer ",
    '"api_key": "',
    "://",
    "?key=",
    "[[next-user-turn ",
    "1,000",
    " ",
    "\\",
    "'",
]
LONG = 20_000


def test_no_text_makes_a_search_take_for_ever(tmp_path: Path) -> None:
    """What is linear takes a second or two of a processor for all of them, what is quadratic minutes."""
    log = tmp_path / "log.db"
    before = time.process_time()
    texts = [(piece * LONG)[:LONG] for piece in PIECES]
    for text in texts:
        assert len(scrub(f"{text}@")) > 0
        assert sentinel.find([{"role": "user", "content": text}]) is None
    played(log, f"{' '.join(texts)} {'一二三' * 5_000}")
    for words in (("score", log, "-v"), ("tail", log, "--wide"), ("log", "show", log, "x1")):
        result = run(*words)
        assert result.exit_code in (0, 3), result.output[:1000]
    assert time.process_time() - before < 20
