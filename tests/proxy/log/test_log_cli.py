"""The commands `log info`, `log runs`, `log migrate` and `log show`."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlite_utils import Database
from support import logs

from proxy.log.cli import log
from proxy.log.migrations import MIGRATIONS, migrate
from proxy.log.rows import ExchangeDelivered
from proxy.log.writer import LogWriter

ROOT = Path(__file__).resolve().parents[3]
NEWEST = len(MIGRATIONS)
EVIL = "\x1b]0;owned\x07\u202e\x9b2J"
SPELT = r"\x1b]0;owned\x07\u202e\x9b2J"
TOOLS = logs.RECORD["tools"]
HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is a lamp?\nAnd how much?"},
    {**logs.call_message(("findPrice", '{"thing":  "lamp"}')), "reasoning_content": "A price is asked for."},
    {"role": "tool", "tool_call_id": "call_0", "content": '{"price": 3}'},
]
RAW = '{"choices": [{"message": {"content": "It is 3 €."}}]}'.encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def writer(path: Path) -> Iterator[LogWriter]:
    with LogWriter.open(path, now=lambda: 1.0) as writer:
        yield writer


def ran(*arguments: object, **options: Any) -> Result:
    return CliRunner().invoke(log, [str(argument) for argument in arguments], **options)


def said(*arguments: object, **options: Any) -> str:
    result = ran(*arguments, **options)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def refused(*arguments: object, **options: Any) -> str:
    result = ran(*arguments, **options)
    assert result.exit_code == 2
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.stderr.splitlines()[-1]


def written(path: Path, *rows: Any) -> None:
    with LogWriter.open(path, now=lambda: 1.0) as writer:
        writer.commit_blocking(*rows)


def played(run_id: str, session_id: str, prefix: str, history: list[Any], at: float = 4.0) -> list[Any]:
    """A run with one session, an agent exchange, its provider exchange, and a side call."""
    agent, provider, side = (f"{prefix}{n}" for n in (1, 2, 3))
    return [
        logs.run(run_id, at - 3, provider="sim:oracle"),
        logs.scenario(),
        logs.session(session_id, run_id=run_id),
        logs.turn(session_id=session_id),
        logs.start(agent, session_id, started_at=at, messages=history[:2]),
        logs.start(
            provider,
            session_id,
            side="provider",
            parent_id=agent,
            started_at=at,
            messages=history,
            body={"model": "m", "temperature": 0, "tools": [*TOOLS, {"of": run_id}]},
            changes=("messages", "tools"),
        ),
        logs.finish(
            provider,
            finished_at=at + 1,
            input_tokens=100,
            output_tokens=7,
            message=logs.text_message(f"It is 3 for {run_id}."),
            raw=RAW,
            response_model="m-2",
            finish_reasons=("stop",),
            headers={"content-type": "application/json"},
        ),
        logs.step(
            session_id=session_id,
            exchange_id=provider,
            message=logs.text_message(f"It is 3 for {run_id}."),
            calls=(logs.call(0, "findPrice", "{}", "3"),),
        ),
        logs.end(session_id=session_id),
        logs.finish(agent, finished_at=at + 1, input_tokens=100, output_tokens=7),
        ExchangeDelivered(agent, at + 1.5),
        logs.start(side, None, run_id=run_id, turn=None, reason="without tools", started_at=at),
        logs.finish(side, finished_at=at + 1, input_tokens=20, output_tokens=1),
    ]


def tables(path: Path) -> dict[str, list[Any]]:
    """What a log holds, but for the numbers that only count writes."""
    found = {}
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        for table in Database(connection).table_names():
            rows = [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
            kept = [{k: v for k, v in row.items() if k not in ("seq", "arrival")} for row in rows]
            found[table] = sorted((row for row in kept if row.get("key") != "seq"), key=repr)
    return found


def set_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (version,))


def test_info_tells_a_log_in_figures(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(*played("r1", "s1", "a", HISTORY))
    writer.commit_blocking(logs.start("open", "s1", side="provider", parent_id="a1", started_at=6.0))
    found = json.loads(said("info", path, "--format", "json"))

    assert found.pop("bytes") >= path.stat().st_size
    assert found == {
        "path": str(path),
        "schema_version": NEWEST,
        "created_at": 1.0,
        "runs": 1,
        "scenarios": 1,
        "sessions": 1,
        "exchanges": 4,
        "messages": 6,
        "first_at": 4.0,
        "last_at": 6.0,
        "input_tokens": 120,
        "output_tokens": 8,
        "finish_states": {"agent": {"complete": 2}, "provider": {"complete": 1, "pending": 1}},
        "oldest_pending": [
            {"id": "open", "side": "provider", "session": "shop_1.e1", "turn": 1, "started_at": 6.0}
        ],
    }
    text = said("info", path)
    assert "tokens         120 input, 8 output\n" in text
    assert "provider side  1 complete, 1 pending\n" in text
    assert "unfinished     open (provider of shop_1.e1, turn 1), for " in text


def test_info_of_an_empty_log_has_no_times(writer: LogWriter, path: Path) -> None:
    text = said("info", path)
    assert "exchanges      0\n" in text
    assert "from           -\n" in text


def test_runs_are_listed_the_oldest_first(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(*played("r2", "s2", "b", HISTORY, at=9.0), *played("r1", "s1", "a", HISTORY))
    listed = json.loads(said("runs", "list", path, "--format", "json"))
    assert listed == [
        {
            "id": run,
            "name": None,
            "created_at": at - 3,
            "last_at": at + 1.5,
            "sessions": 1,
            "tasks": 1,
            "exchanges": 3,
            "pending": 0,
            "newest_pending_at": None,
            "input_tokens": 120,
            "output_tokens": 8,
            "config": {"provider": "sim:oracle"},
            "config_hash": "confighash",
        }
        for run, at in (("r1", 4.0), ("r2", 9.0))
    ]
    heads, first, _ = said("runs", "list", path).splitlines()
    assert " ".join(heads.split()) == "run name begun sessions tasks exchanges unfinished tokens provider"
    assert first.split()[0] == "r1"
    assert first.split()[-6:] == ["1", "1", "3", "0", "128", "sim:oracle"]


def test_a_session_that_was_begun_again_is_one_session(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(*played("r1", "s1", "a", HISTORY))
    again = (logs.session("s2", attempt=2), logs.turn(session_id="s2"), logs.end(session_id="s2"))
    writer.commit_blocking(*again, logs.session("s3", epoch=2))
    (run,) = json.loads(said("runs", "list", path, "--format", "json"))
    assert (run["sessions"], run["tasks"]) == (2, 1)
    assert json.loads(said("info", path, "--format", "json"))["sessions"] == 2


def test_a_log_without_runs_says_so(writer: LogWriter, path: Path) -> None:
    assert said("runs", "list", path) == "no runs\n"
    assert json.loads(said("runs", "list", path, "--format", "json")) == []


def test_a_run_is_given_a_name_that_then_does_for_its_id(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(logs.run("20260101-aa"), logs.run("20260102-bb", 2.0))
    assert said("runs", "rename", path, "20260101", "nightly") == "run 20260101-aa is now called nightly\n"
    assert said("runs", "rename", path, "nightly", " daily ") == "run 20260101-aa is now called daily\n"
    assert [run["name"] for run in json.loads(said("runs", "list", path, "--format", "json"))] == [
        "daily",
        None,
    ]

    writer.commit_blocking(logs.scenario(), logs.session(run_id="20260101-aa"))
    assert logs.query(path, "SELECT run_id FROM sessions") == [("20260101-aa",)]


def test_a_name_that_would_be_another_run_s_or_no_name_is_refused(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(logs.run("r1"), logs.run("r2", 2.0))
    said("runs", "rename", path, "r1", "nightly")
    for name in ("r1", "nightly"):
        assert "the run r1 is already called" in refused("runs", "rename", path, "r2", name)
    for name in ("", " ", "all", "a\nb", "\x1b[2J"):
        assert "cannot be a run's name" in refused("runs", "rename", path, "r2", name)
    assert refused("runs", "rename", path, "r", "x") == f"Error: {path}: several runs begin with 'r': r1, r2"
    assert refused("runs", "rename", path, "x", "y").endswith("has no run 'x'; it has: r1 (nightly), r2")


def test_a_deleted_run_leaves_the_log_as_if_it_had_never_been(path: Path, tmp_path: Path) -> None:
    other = [*HISTORY[:2], {"role": "user", "content": "Something else."}]
    kept = tmp_path / "kept.db"
    written(path, *played("r1", "s1", "a", other), *played("r2", "s2", "b", HISTORY))
    written(kept, *played("r2", "s2", "b", HISTORY))

    text = said("runs", "delete", path, "r1", "--yes")

    assert text == (
        "run r1 is deleted: 1 session, 3 exchanges, 2 messages; the file keeps its size until --vacuum\n"
    )
    assert tables(path) == tables(kept)
    said("runs", "delete", path, "r2", "--yes")
    left = {table for table, rows in tables(path).items() if rows}
    assert left == {"meta", "scenarios"}


def test_vacuum_makes_the_file_smaller(path: Path) -> None:
    long = [{"role": "user", "content": "x" * 1_000_000}]
    written(path, *played("r1", "s1", "a", [*HISTORY, *long]), *played("r2", "s2", "b", HISTORY))
    said("runs", "delete", path, "r1", "--yes", "--vacuum")
    assert path.stat().st_size < 500_000
    assert len(tables(path)["runs"]) == 1


def test_a_run_is_deleted_only_by_who_says_yes(path: Path) -> None:
    written(path, *played("r1", "s1", "a", HISTORY))
    before = tables(path)
    text = said("runs", "delete", path, "r1", input="n\n")
    assert text.startswith(f"Delete run r1 with 1 session and 3 exchanges from {path}? [y/N]: n\n")
    assert text.endswith("nothing was deleted\n")
    assert "give --yes" in refused("runs", "delete", path, "r1")
    assert tables(path) == before
    said("runs", "delete", path, "r1", input="y\n")
    assert tables(path)["runs"] == []


def test_a_run_that_is_being_played_is_deleted_only_by_force(writer: LogWriter, path: Path) -> None:
    now = time.time()
    writer.commit_blocking(*played("r1", "s1", "a", HISTORY), logs.start("open", "s1", started_at=now))
    assert "has exchanges that are not finished" in refused("runs", "delete", path, "r1", "--yes")
    writer.commit_blocking(logs.finish("open", finished_at=now))
    assert "the log is open elsewhere" in refused("runs", "delete", path, "r1", "--yes")
    assert len(tables(path)["runs"]) == 1
    said("runs", "delete", path, "r1", "--yes", "--force")
    assert tables(path)["exchanges"] == []


def test_a_proxy_goes_on_writing_while_a_run_of_another_is_deleted(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(*played("r1", "s1", "a", HISTORY), *played("r2", "s2", "b", HISTORY))
    said("runs", "delete", path, "r1", "--yes")
    writer.commit_blocking(*played("r3", "s3", "c", HISTORY), *played("r1", "s4", "d", HISTORY))
    assert [run for (run,) in logs.query(path, "SELECT id FROM runs ORDER BY id")] == ["r1", "r2", "r3"]
    assert len(json.loads(said("show", path, "d2", "--format", "json"))["messages"]) == len(HISTORY)
    tables(path)


def test_an_older_log_is_migrated_and_a_newer_schema_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, lambda: 1.0, MIGRATIONS[:1])
    assert refused("info", path).endswith(f"run `wildproxy log migrate {path}`")
    assert refused("runs", "rename", path, "r1", "x").endswith(f"run `wildproxy log migrate {path}`")

    assert said("migrate", path) == f"{path}: migrated from schema 1 to {NEWEST}\n"
    before = path.read_bytes()
    assert said("migrate", path) == f"{path}: is up to date (schema {NEWEST})\n"
    assert path.read_bytes() == before
    said("info", path)

    set_version(path, 99)
    assert refused("migrate", path).endswith("upgrade wildtoolbench-proxy")


def test_an_exchange_is_shown_whole(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(*played("r1", "s1", "a", HISTORY))
    found = json.loads(said("show", path, "a2", "--format", "json"))

    assert found["messages"] == HISTORY
    assert found["tools"] == [*TOOLS, {"of": "r1"}]
    assert found["parameters"] == {"model": "m", "temperature": 0}
    assert found["answer"] == logs.text_message("It is 3 for r1.")
    assert found["steps"] == [{"task": 0, "step": 0, "decision": "close", "reason": None}]
    assert (found["parent_id"], found["session"], found["task"], found["turn"]) == ("a1", "shop_1.e1", 0, 1)
    assert (found["changes"], found["raw_bytes"]) == (["messages", "tools"], len(RAW))
    assert "raw" not in found
    assert json.loads(said("show", path, "a2", "--raw", "--format", "json"))["raw"] == RAW.decode()

    agent = json.loads(said("show", path, "a1", "--format", "json"))
    assert [child["id"] for child in agent["provider_exchanges"]] == ["a2"]
    assert agent["delivered_at"] == 5.5


def test_an_exchange_is_shown_in_words(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(*played("r1", "s1", "a", HISTORY))
    assert said("show", path, "a2").splitlines() == [
        "exchange       a2 (provider side)",
        "run            r1",
        "session        shop_1.e1, task 1, turn 1 (found by path)",
        "request        POST /v1/chat/completions",
        "outcome        complete, status 200",
        f"times          {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(4))}, "
        "finished after 1.00 s, first chunk after 0.50 s",
        "model          asked for m; answered by m-2; finished by stop",
        "tokens         100 input, 7 output",
        "changes        messages, tools",
        "parent         a1",
        "step           task 1, step 1: close",
        "received       content-type: application/json",
        "",
        "parameters",
        "    {",
        '      "model": "m",',
        '      "temperature": 0',
        "    }",
        "",
        "tools",
        '    findPrice, {"of": "r1"}',
        "",
        "message 1 (system)",
        "    Be brief.",
        "",
        "message 2 (user)",
        "    What is a lamp?",
        "    And how much?",
        "",
        "message 3 (assistant)",
        '    → findPrice {"thing":  "lamp"}',
        '    reasoning_content: "A price is asked for."',
        "",
        "message 4 (tool, call_0)",
        '    {"price": 3}',
        "",
        "answer (assistant)",
        "    It is 3 for r1.",
    ]
    assert '"description": "The price of a thing."' in said("show", path, "a2", "--full")
    assert "provider       a2 complete, status 200, 100 input, 7 output\n" in said("show", path, "a1")
    assert said("show", path, " a2\n") == said("show", path, "a2")
    assert "side call      without tools\n" in said("show", path, "a3")


def test_an_exchange_says_what_it_lacked_of_the_agent_s_history(writer: LogWriter, path: Path) -> None:
    finding = {"turn": 1, "what": "lost_answer", "detail": f"not in the request: {EVIL}"}
    writer.commit_blocking(*logs.opened(), logs.start("x1", findings=(finding,)), logs.start("x2"))
    assert f"finding        turn 1: lost_answer: not in the request: {SPELT}" in said("show", path, "x1")
    found = [json.loads(said("show", path, it, "--format", "json"))["findings"] for it in ("x1", "x2")]
    assert found == [[finding], None]


def test_the_raw_answer_is_printed_byte_for_byte(writer: LogWriter, path: Path) -> None:
    raw = b"data: {}\r\n\r\n\xff\x00\x1b[2J"
    writer.commit_blocking(*logs.opened(), logs.start("x1"), logs.finish("x1", raw=raw), logs.start("x2"))
    command = [sys.executable, "run_proxy.py", "log", "show", str(path), "x1", "--raw"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout == raw
    assert refused("show", path, "x2", "--raw").endswith("exchange x2 has no answer")


def test_an_exchange_is_known_by_a_beginning_that_is_its_alone(writer: LogWriter, path: Path) -> None:
    writer.commit_blocking(*logs.opened(), *(logs.start(name) for name in ("abc1", "abc2", "abd", "ab", "%")))
    assert said("show", path, "abd").startswith("exchange       abd ")
    assert said("show", path, "ab").startswith("exchange       ab ")
    assert said("show", path, "%").startswith("exchange       % ")
    assert refused("show", path, "abc").endswith(
        "several exchanges begin with 'abc': abc1 (agent), abc2 (agent)"
    )
    for unknown in ("x", "", "_"):
        assert refused("show", path, unknown) == f"Error: {path}: has no exchange {unknown!r}"


def test_messages_of_any_shape_are_shown(writer: LogWriter, path: Path) -> None:
    odd: list[Any] = [
        None,
        7,
        "text",
        {},
        {"role": 3, "content": {"a": 1}},
        {"tool_calls": [1, {"function": 2}]},
    ]
    body = {"model": "m", "tools": [1, {"function": "x"}, {"name": "plain"}]}
    writer.commit_blocking(
        *logs.opened(), logs.start("x1", messages=odd, body=body), logs.finish("x1", message={"content": [1]})
    )
    text = said("show", path, "x1")
    assert "message 4\n    (empty)\n" in text
    assert 'tools\n    1, {"function": "x"}, plain\n' in text


def test_nothing_from_outside_is_obeyed_by_a_terminal(writer: LogWriter, path: Path) -> None:
    message = {"role": EVIL, "content": EVIL, EVIL: EVIL, "tool_calls": [{"function": {"name": EVIL}}]}
    writer.commit_blocking(
        *logs.opened(),
        logs.run("r2", 2.0, provider=EVIL),
        logs.start(
            "x1", path=EVIL, method=EVIL, request_model=EVIL, reason=EVIL, messages=[message, EVIL],
            body={EVIL: EVIL, "tools": [{"function": {"name": EVIL}}]}, changes=(EVIL,), correlation=EVIL,
        ),
        logs.finish("x1", message=message, error=EVIL, error_type=EVIL, response_model=EVIL, response_id=EVIL,
                    finish_state=EVIL, finish_reasons=(EVIL,), raw=EVIL.encode()),
    )  # fmt: skip
    for arguments in (
        ("show", path, "x1"),
        ("show", path, "x1", "--full"),
        ("info", path),
        ("runs", "list", path),
    ):
        text = said(*arguments)
        assert SPELT in text
        assert text.replace("\n", "").isprintable()
    found = json.loads(said("show", path, "x1", "--raw", "--format", "json"))
    assert (found["raw"], found["messages"][1]) == (EVIL, EVIL)
    assert said("show", path, "x1", "--format", "json").replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "arguments",
    [
        ("info",),
        ("runs", "list"),
        ("runs", "rename", "r", "n"),
        ("runs", "delete", "r"),
        ("migrate",),
        ("show", "x"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line_and_left_as_it_was(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    text, foreign = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("these are my notes\n" * 100)
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("CREATE TABLE notes (text)")
    before = {file: file.read_bytes() for file in (text, foreign)}
    words = 2 if arguments[0] == "runs" else 1
    for file, reason in (
        (tmp_path / "missing.db", "no such log"),
        (tmp_path, "no such log"),
        (text, "is not a"),
        (foreign, "is a SQLite database, but not a log"),
    ):
        result = ran(*arguments[:words], file, *arguments[words:])
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"Error: {file}: ")
        assert reason in result.stderr
        assert result.stderr.count("\n") == 1
    assert {file: file.read_bytes() for file in before} == before
    assert set(tmp_path.iterdir()) == set(before)
