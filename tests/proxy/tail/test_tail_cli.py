"""The command `tail`: in this process, and in one of its own beside a proxy that plays."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner, Result
from support import logs
from support.screen import Screen
from support.terminal import on_terminal

from proxy.log.migrations import MIGRATIONS
from proxy.log.writer import LogWriter
from proxy.server import running
from proxy.settings import Settings
from proxy.tail.cli import tail

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 30
"""Far more than anything takes: a test that waits longer has failed."""

ESCAPES = "\x1b]0;owned\x07\u202egpj.exe\nrm -rf\x9b2J"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def ran(*arguments: object, **options: Any) -> Result:
    """`tail`, run by itself: there is nobody who judges."""
    return CliRunner().invoke(tail, [str(argument) for argument in arguments], **options)


def refused(*arguments: object) -> str:
    result = ran(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    return result.stderr.splitlines()[-1]


def write(path: Path, *rows: Any) -> None:
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*rows)


class Process:
    """A command in a process of its own, read line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self, containing: str, *, error: bool = False) -> str:
        """The next line that has this in it."""
        stream = self.process.stderr if error else self.process.stdout
        assert stream is not None
        seen = []
        async with asyncio.timeout(PATIENCE_S):
            while line := (await stream.readline()).decode():
                seen.append(line)
                if containing in line:
                    return line.rstrip("\n")
        raise AssertionError(f"no line with {containing!r}, but {seen}")

    async def end(self) -> tuple[int, str, str]:
        """(exit code, rest of standard output, rest of standard error)."""
        async with asyncio.timeout(PATIENCE_S):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, (out or b"").decode(), (err or b"").decode()

    async def interrupted(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        return await self.end()


Start = Callable[..., Any]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """await start(*arguments): `wildproxy` with these arguments."""
    started: list[asyncio.subprocess.Process] = []

    async def begin(*arguments: object, **options: Any) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "run_proxy.py",
            *map(str, arguments),
            cwd=ROOT,
            **{"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE, **options},
        )
        started.append(process)
        return Process(process)

    yield begin
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def ask(session: aiohttp.ClientSession, url: str, turn: int) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": f"[[next-user-turn {turn}]]"}]}
    async with session.post(url, json=body) as response:
        assert response.status == 200
        return str((await response.json())["choices"][0]["message"]["content"])


async def test_a_session_is_followed_live_from_before_its_log_exists_until_ctrl_c(
    path: Path, start: Start
) -> None:
    follower = await start("tail", "--follow", path)
    assert await follower.line("waiting", error=True) == f"{path}: no such log yet: waiting for it"

    settings = Settings(log=path, provider="sim:oracle", scenarios=("bundled",))
    async with running(settings) as proxy, aiohttp.ClientSession() as session:
        url = f"{proxy.base_url}/s/ledger_1/v1/chat/completions"
        # Nothing is asked for again before the follower has shown what came of it.
        text = await ask(session, url, 1)
        assert proxy.run_id in await follower.line(" run ")
        assert " 1.1 " in await follower.line(" user ")
        assert "get_balance ×2" in await follower.line(" calls ")
        assert text[:40] in await follower.line(" says ")
        assert "right, 2/2 steps" in await follower.line(" task ")
        text = await ask(session, url, 2)
        assert " 2.2 " in await follower.line(" user ")
        assert text[:40] in await follower.line(" asks ")

    code, _, err = await follower.interrupted()
    assert (code, err) == (0, "")


async def test_a_run_that_another_proxy_begins_is_followed_as_well(path: Path, start: Start) -> None:
    write(path, *logs.opened())
    follower = await start("tail", "-f", path)
    assert "run r1" in await follower.line(" run ")
    write(path, logs.run("r2", 2.0), logs.session("s2", run_id="r2"))
    assert "run r2" in await follower.line(" run ")
    assert (await follower.interrupted())[0] == 0


async def test_ctrl_c_leaves_without_a_traceback_also_while_it_waits(path: Path, start: Start) -> None:
    follower = await start("tail", "-f", path)
    await follower.line("waiting", error=True)
    assert await follower.interrupted() == (0, "", "")


@pytest.mark.parametrize("follow", [(), ("--follow",)])
async def test_a_reader_that_has_seen_enough_ends_it_in_silence(
    path: Path, start: Start, follow: tuple[str, ...]
) -> None:
    write(path, *logs.opened(), *(logs.turn(number) for number in range(1, 5_000)))
    here, there = os.pipe()
    process = await start("tail", path, *follow, stdout=there)
    os.close(there)
    assert os.read(here, 1)
    os.close(here)

    assert await process.end() == (0, "", "")


async def test_a_follower_notices_that_its_reader_is_gone_although_nothing_is_written(
    path: Path, start: Start
) -> None:
    write(path, *logs.opened())
    here, there = os.pipe()
    process = await start("tail", path, "--follow", stdout=there)
    os.close(there)
    with open(here, encoding="utf-8") as reader:
        assert " begin " in await asyncio.to_thread(lambda: [reader.readline() for _ in range(2)][-1])
    assert await process.end() == (0, "", "")


def test_a_terminal_gets_colours_unless_it_is_told_not_to_and_obeys_nothing_of_the_model_s(
    path: Path,
) -> None:
    write(path, *logs.opened(), logs.start(), logs.step(message=logs.text_message(ESCAPES)))
    shown = []
    for value in ("", "1"):
        with on_terminal("tail", path, NO_COLOR=value) as terminal:
            shown.append(terminal.rest())
            assert terminal.process.returncode == 0
    colored, plain = shown
    assert "\x1b" not in plain
    # The screen fails for every sequence and every character that is not our own.
    screens = [Screen(80).write(text) for text in (colored, plain)]
    assert [screen.colored for screen in screens] == [True, False]
    assert screens[0].lines == screens[1].lines
    assert screens[1].lines[-1].endswith(r" says    \x1b]0;owned\x07\u202egpj.exe ⏎ rm -rf\x9b2J")


def test_ctrl_c_leaves_a_terminal_with_a_clean_line(path: Path) -> None:
    write(path, *logs.opened())
    with on_terminal("tail", "--follow", path) as terminal:
        terminal.until("begins")
        terminal.press(b"\x03")
        shown = terminal.rest()
        assert terminal.process.returncode == 0
    assert "^C" in shown
    screen = Screen(80).write(shown)
    assert screen.lines[-1].endswith("the session begins")
    assert screen.column == 0


def test_a_terminal_that_is_made_narrower_gets_narrower_lines(path: Path) -> None:
    write(path, *logs.opened(), replace(logs.turn(), text="x" * 200))
    with on_terminal("tail", "--follow", path, NO_COLOR="1") as terminal:
        terminal.until("…")
        before = len(terminal.sent)
        terminal.resize(50)
        write(path, replace(logs.turn(2), text="y" * 200))
        terminal.until("y…")
    lines = terminal.sent.splitlines()
    assert {len(line) for line in lines if "xxxxx" in line} == {80}
    assert {len(line) for line in terminal.sent[before:].splitlines() if "yyyyy" in line} == {50}


def test_a_pipe_gets_plain_lines_unless_colours_are_asked_for(path: Path) -> None:
    write(path, *logs.opened())
    assert "\x1b" not in ran(path).stdout
    assert "\x1b[2m" in ran(path, "--color", "always", env={"NO_COLOR": "1"}).stdout
    assert "\x1b" not in ran(path, "--color", "never").stdout


def test_one_session_needs_no_name_on_a_terminal_and_several_do(path: Path) -> None:
    def last(*options: str) -> str:
        shown = ran(path, "--format", "text", *options, env={"COLUMNS": "80"})
        return str(shown.stdout).splitlines()[-1].partition(" ")[2]

    write(path, *logs.opened(), logs.turn())
    assert last() == "1.1    user    words of turn 1"
    write(path, logs.scenario("b"), logs.session("s2", "b"), logs.turn(session_id="s2"))
    assert last() == "b.e1      1.1    user    words of turn 1"
    assert last("--session", "b") == "1.1    user    words of turn 1"


def test_a_task_is_summed_up_without_a_judge_by_how_it_ended(path: Path) -> None:
    broken = {**logs.record("b"), "tasks": "none"}
    write(path, *logs.opened(), logs.turn(), logs.start("x1"), logs.step(), logs.end())
    write(path, logs.scenario("b", broken), logs.session("s2", "b"), logs.end(session_id="s2"))
    lines = [line.split(None, 8) for line in ran(path).stdout.splitlines()]
    assert [(it[1], it[4], it[8]) for it in lines if it[3] == "task"] == [
        ("shop_1.e1", "-", "closed, 1/2 steps, Single"),
        ("b.e1", "-", "closed"),
    ]


async def test_a_proxy_that_is_started_again_is_seen_as_a_line(path: Path, start: Start) -> None:
    settings = Settings(log=path, provider="sim:oracle", scenarios=("bundled",), runs="continue")
    async with aiohttp.ClientSession() as session:
        async with running(settings) as proxy:
            await ask(session, f"{proxy.base_url}/s/ledger_1/v1/chat/completions", 1)
        follower = await start("tail", "-f", path)
        await follower.line(" task ")
        async with running(settings) as again:
            assert again.run_id == proxy.run_id
            assert "the proxy was started again" in await follower.line(" proxy ")
            await ask(session, f"{again.base_url}/s/ledger_1/v1/chat/completions", 2)
            assert " 2.2 " in await follower.line(" user ")
    code, rest, _ = await follower.interrupted()
    assert (code, " proxy " in rest) == (0, False)


def test_of_many_runs_the_newest_is_shown_and_named(path: Path) -> None:
    write(path, *logs.opened(), logs.run("r2", 2.0), logs.scenario("b"), logs.session("s2", "b", run_id="r2"))
    result = ran(path)
    assert result.stderr == "run r2, the newest of 2 (--run RUN for another, --run all for all)\n"
    assert "b.e1" in result.stdout
    assert "shop_1" not in result.stdout
    both = ran(path, "--run", "all")
    assert (both.stderr, both.exit_code) == ("", 0)
    runs = [line.split() for line in both.stdout.splitlines() if line.split()[3] == "run"]
    assert [fields[8:10] for fields in runs] == [["run", "r1"], ["run", "r2"]]


def test_since_leaves_out_what_is_older(path: Path) -> None:
    write(path, *logs.opened(), logs.turn())
    assert " user " in ran(path, "--since", "1970-01-01T00:00:03Z").stdout
    assert ran(path, "--since", "10m").stdout == ""


def test_what_cannot_be_shown_is_refused_in_one_line(path: Path, tmp_path: Path) -> None:
    assert refused(path) == f"Error: {path}: no such log"
    write(path, *logs.opened())
    text = tmp_path / "notes.txt"
    text.write_text("these are notes\n" * 100)
    assert "is not a SQLite database" in refused(text)
    assert refused(path, "--run", "x") == f"Error: {path}: has no run 'x'; it has: r1"
    assert refused(path, "--session", "x\x1b") == (
        f"Error: {path}: has no session 'x\\x1b' in run r1; there are: shop_1.e1"
    )
    assert "10m" in refused(path, "--since", "soon")
    assert "x" in refused(path, "--color", "x")
    assert "no such log" in refused(tmp_path)


def test_what_can_never_become_a_log_is_refused_while_following_too(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("these are notes\n" * 100)
    assert "is not a SQLite database" in refused(text, "--follow")


def test_a_log_of_an_older_version_is_refused_with_the_cure(path: Path) -> None:
    write(path, *logs.opened())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (len(MIGRATIONS) - 1,))
    assert refused(path).endswith(f"run `wildproxy log migrate {path}`")


async def test_a_session_that_is_not_there_yet_is_waited_for(path: Path, start: Start) -> None:
    write(path, *logs.opened())
    follower = await start("tail", "-f", path, "--session", "b")
    assert (
        await follower.line("waiting", error=True) == f"{path}: no session 'b' in run r1 yet: waiting for it"
    )
    write(path, logs.scenario("b"), logs.session("s2", "b"))
    assert "b.e1" in await follower.line(" begin ")
    assert (await follower.interrupted())[0] == 0


async def test_a_log_that_is_replaced_is_followed_from_its_beginning(path: Path, start: Start) -> None:
    write(path, *logs.opened())
    follower = await start("tail", "-f", path)
    await follower.line(" begin ")
    for file in list(path.parent.iterdir()):
        file.unlink()
    await follower.line("is gone", error=True)
    write(path, logs.run("r2"), logs.scenario(), logs.session(run_id="r2"))
    await follower.line("was replaced", error=True)
    assert "run r2" in await follower.line(" run ")
    assert (await follower.interrupted())[0] == 0
