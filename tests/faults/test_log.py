"""A log that cannot be written: nothing passes unrecorded, nothing is lost, and then all goes on."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support import commands
from support.playing import prompt, soon, until
from support.wires import MODES, Front, Mode, fronted, saying

from proxy.log.errors import LogError

OK = ("complete", None, 200)
UNRECORDED = ("proxy_error", "log_failed", 503)


@contextmanager
def full_disk(pid: int = 0) -> Iterator[None]:
    """No file of a process (0: of this one) can grow, and none be begun."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


def immutable(on: bool, *files: Path) -> None:
    """As on a disk made read-only, or no longer; OSError or CalledProcessError where that cannot be done."""
    subprocess.run(["chattr", "+i" if on else "-i", *map(str, files)], check=True, capture_output=True)


@contextmanager
def read_only(log: Path) -> Iterator[None]:
    """The log's files take no more bytes, though they are open already."""
    files = (log, log.with_name(log.name + "-wal"))
    immutable(True, *files)
    try:
        yield
    finally:
        immutable(False, *files)


def can_be_read_only(folder: Path) -> bool:
    """Whether an open file of a folder can be made immutable, which root cannot on a tmpfs, for example."""
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:
        try:
            immutable(True, Path(file.name))
        except (OSError, subprocess.CalledProcessError):
            return False
        try:
            file.write(b"taken")
        except OSError:
            return True
        finally:
            immutable(False, Path(file.name))
    return False


@pytest.fixture
def disk(fault: str, tmp_path: Path) -> Iterator[Path]:
    """A folder for the log whose disk can have the fault."""
    if fault == "full" or can_be_read_only(tmp_path):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as elsewhere:
        if not can_be_read_only(Path(elsewhere)):
            pytest.skip("no file can be made immutable here")
        yield Path(elsewhere)


def ends(front: Front, side: str) -> list[tuple[str, str | None, int | None]]:
    return [(it["finish_state"], it["error_type"], it["status"]) for it in front.proxy.exchanges(side)]


async def health(front: Front) -> int:
    return (await front.proxy.send("GET", "/healthz")).status


async def delivered(front: Front) -> None:
    """Returns when the log has all that there is of the last answer."""
    await until(lambda: front.proxy.rows("SELECT 1 FROM exchanges WHERE delivered_at > 0") != [])


on_linux = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no way to have a full disk")


@on_linux
@pytest.mark.parametrize("fault", ["full", "read-only"])
@pytest.mark.parametrize("mode", MODES)
async def test_on_a_full_or_read_only_disk_nothing_passes_and_then_all_goes_on(
    mode: Mode, fault: str, disk: Path
) -> None:
    """The first request shows that the log cannot be written; its provider may be asked by then."""
    async with saying() as wire, fronted(mode, disk, wire.url) as front:
        assert (await front.ask(1)).text == "Hi."
        await delivered(front)
        with full_disk() if fault == "full" else read_only(front.proxy.log):
            for _ in range(3):
                told = await front.ask(2)
                assert (told.status, told.error["code"], told.headers["x-should-retry"]) == (
                    *(503, "log_failed"),
                    "true",
                )
                assert "log.db: cannot be written" in told.error["message"]
            assert await health(front) == 503
        assert wire.served == 2
        assert (await front.ask(2)).text == "Hi."
        assert await health(front) == 200
        # In a Session the turn was answered already.
        assert wire.served == (2 if mode == "play" else 3)
        assert ends(front, "agent") == [OK, UNRECORDED, OK]
        if mode == "play":
            assert ends(front, "provider") == [OK, OK]
            steps = front.proxy.rows("SELECT turn FROM steps ORDER BY seq")
            assert [row["turn"] for row in steps] == [1, 2]
    for command in ("tail", "score") if mode == "play" else ("tail",):
        commands.printed_in(disk, command, front.proxy.log)


@on_linux
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_cannot_be_recorded_is_not_given_and_a_turn_not_played_twice(
    provider: Any, mode: Mode, stream: bool, tmp_path: Path
) -> None:
    async with fronted(mode, tmp_path, provider.url) as front:
        with ExitStack() as disk:

            def fill(request: Any) -> Any:
                disk.enter_context(full_disk())
                return provider.message(request, "Hello.")

            provider.queued(fill)
            told = await front.ask(1, stream=stream)
            # Of a stream that is only recorded the beginning may have passed.
            if not (mode == "record" and stream and told.broken):
                assert (told.status, told.error["code"]) == (503, "log_failed")
            assert await health(front) == 503
        provider.reply("Hello again.")
        again = await front.ask(1)
        assert again.text == ("Hello." if mode == "play" else "Hello again.")
        assert ends(front, "agent") == [UNRECORDED, OK]
        if mode == "play":
            assert ends(front, "provider") == [OK]
            assert len(front.proxy.rows("SELECT * FROM steps")) == 1


@on_linux
async def test_a_refusal_that_cannot_be_recorded_is_an_unrecorded_request(tmp_path: Path) -> None:
    async with saying() as wire, fronted("play", tmp_path, wire.url) as front:
        with full_disk():
            told = await front.ask(1, n=2)
            assert (told.status, told.error["code"]) == (503, "log_failed")
        assert (await front.ask(1)).text == "Hi."
        assert ends(front, "agent") == [UNRECORDED, OK]


@on_linux
async def test_a_provider_failure_that_cannot_be_recorded_breaks_a_stream_that_has_begun(
    provider: Any, tmp_path: Path
) -> None:
    async with fronted("play", tmp_path, provider.url, keep_alive=0.01) as front:
        waits = asyncio.Event()
        with ExitStack() as disk:

            async def fail(request: Any) -> Any:
                await waits.wait()
                disk.enter_context(full_disk())
                return provider.as_json({"error": {"message": "no"}}, 400)

            provider.script(fail)
            async with front.proxy.http.post(front.url, json=prompt(1, stream=True)) as response:
                assert (await response.content.readline()) == b": waiting for the provider\n"
                waits.set()
                with pytest.raises(aiohttp.ClientPayloadError):
                    while line := await soon(response.content.readline()):
                        assert line == b": waiting for the provider\n"
        # What it could not be told in a stream that had begun.
        assert (await front.ask(1)).status == 400
        provider.reply("Hello.")
        assert (await front.ask(1)).text == "Hello."
        assert ends(front, "agent") == [UNRECORDED, ("provider_error", "400", 400), OK]


class FailingClock:
    """A clock that fails once, when it is asked for the `fails_at`-th time."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails_at = 0

    def __call__(self) -> float:
        self.asked += 1
        if self.asked == self.fails_at:
            raise OverflowError("what time is it?")
        return time.time()


async def test_a_fault_after_an_answer_was_written_costs_that_request_alone(tmp_path: Path) -> None:
    """The last that is asked for is the time of the delivery."""
    clock = FailingClock()
    async with saying() as wire, fronted("play", tmp_path, wire.url, now=clock) as front:
        assert (await front.ask(1)).text == "Hi."
        await delivered(front)
        before = clock.asked
        assert (await front.ask(2)).text == "Hi."
        clock.fails_at = clock.asked + (clock.asked - before)
        await front.ask(3)
        assert clock.asked >= clock.fails_at
        assert (await front.ask(3)).text == "Hi."
        assert await health(front) == 200
        assert {end[0] for end in ends(front, "agent")} <= {"complete", "proxy_error"}


@on_linux
async def test_serve_says_once_that_nothing_is_recorded_and_at_its_end_what_is_lost(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    async with (
        saying() as wire,
        commands.process("serve", "--provider", wire.url, "--log", log, "--port", 0) as process,
        aiohttp.ClientSession() as http,
    ):
        with full_disk(process.process.pid):
            for _ in range(3):
                async with http.post(f"{process.url}/v1/chat/completions", json={}) as response:
                    assert response.status == 503
            assert await process.stop() == 2
        assert wire.served == 1
        assert process.errors is not None
        said = (await process.errors).decode().splitlines()
    first, last = [line for line in said if "log.db" in line]
    assert first.startswith(f"{log}: cannot be written (")
    assert first.endswith("): requests get 503 until it can be written again")
    assert last == f"Error: {first.removesuffix(': requests get 503 until it can be written again')}"


@contextmanager
def held(log: Path) -> Iterator[None]:
    """Another program has the log for itself."""
    with closing(sqlite3.connect(log, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.parametrize("mode", MODES)
async def test_a_log_that_another_program_holds_is_waited_for_and_then_it_is_503(
    mode: Mode, tmp_path: Path
) -> None:
    async with saying() as wire, fronted(mode, tmp_path, wire.url, keep_alive=60.0) as front:
        assert (await front.ask(1)).text == "Hi."
        with held(front.proxy.log):
            told = await front.ask(2)
        assert (told.status, told.error["code"]) == (503, "log_failed")
        assert "another program has locked it" in told.error["message"]
        assert wire.served == 2
        assert (await front.ask(2)).text == "Hi."
        ends = [(row["finish_state"], row["error_type"]) for row in await front.proxy.finished(3)]
        assert ends == [("complete", None), ("proxy_error", "log_failed"), ("complete", None)]


@pytest.mark.parametrize("mode", MODES)
async def test_a_log_held_for_a_moment_delays_and_harms_nobody(mode: Mode, tmp_path: Path) -> None:
    async with saying() as wire, fronted(mode, tmp_path, wire.url) as front:
        assert (await front.ask(1)).text == "Hi."
        with held(front.proxy.log):
            asked = asyncio.create_task(front.ask(2))
            await until(lambda: wire.served == 2)
            # The provider answers others many times over: without the lock this answer were here by then.
            async with aiohttp.ClientSession() as http:
                for _ in range(50):
                    async with http.post(f"{wire.url}/chat/completions", json={}) as response:
                        await response.read()
            assert not asked.done()
        assert (await soon(asked)).text == "Hi."


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_log_that_was_moved_away_is_not_written_to_until_it_is_back(
    mode: Mode, replaced: bool, tmp_path: Path
) -> None:
    async with saying() as wire, fronted(mode, tmp_path, wire.url) as front:
        log, away = front.proxy.log, tmp_path / "away.db"
        assert (await front.ask(1)).text == "Hi."
        os.rename(log, away)
        if replaced:
            log.write_bytes(away.read_bytes())
        for _ in range(2):
            told = await front.ask(2)
            assert (told.status, told.error["code"]) == (503, "log_failed")
            assert "was deleted or replaced while it was written to" in told.error["message"]
        assert wire.served == 2
        os.rename(away, log)
        assert (await front.ask(2)).text == "Hi."
        assert [row["status"] for row in await front.proxy.finished(3)] == [200, 503, 200]


@pytest.mark.parametrize("mode", MODES)
async def test_a_log_that_was_deleted_for_good_ends_in_an_error(mode: Mode, tmp_path: Path) -> None:
    async with saying() as wire:
        with pytest.raises(LogError, match="was deleted or replaced"):
            async with fronted(mode, tmp_path, wire.url) as front:
                front.proxy.log.unlink()
                assert (await front.ask(1)).status == 503
                assert (await front.ask(1)).status == 503
        assert wire.served == 1


class Clock:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.time = 1_750_000_000.0

    def __call__(self) -> float:
        self.time += 0.25
        return self.time


BELOW_NOTHING = re.compile(r"(?<![\w.:-])-\d[\d.]*\s*(ms|s|min|h)\b|: ?-\d[\d.]*")
"""A duration in a text, or a number in JSON."""


@pytest.mark.parametrize("mode", MODES)
async def test_a_clock_that_is_set_back_harms_no_reader(provider: Any, mode: Mode, tmp_path: Path) -> None:
    clock = Clock()

    def set_back(request: Any) -> Any:
        clock.time -= 3600
        return provider.message(request, "Hello.")

    async with fronted(mode, tmp_path, provider.url, now=clock) as front:
        for turn in (1, 2, 3):
            provider.queued(set_back)
            assert (await front.ask(turn, stream=turn == 2)).status == 200
        found = await front.proxy.finished(3)
        assert [row["arrival"] for row in found] == sorted(row["arrival"] for row in found)
        starts = [row["started_at"] for row in found]
        assert starts == sorted(starts, reverse=True)
        assert all(
            (row["time_to_first_chunk"] or 0) >= 0 for row in front.proxy.rows("SELECT * FROM exchanges")
        )
    log = front.proxy.log
    said = commands.printed_in(tmp_path, "tail", log)
    if mode == "play":
        said += commands.printed_in(tmp_path, "score", log)
        said += commands.printed_in(tmp_path, "score", log, "--format", "json")
        said += commands.printed_in(tmp_path, "report", log, "-o", "report.html")
    said += commands.printed_in(tmp_path, "log", "runs", "list", log)
    assert not BELOW_NOTHING.search(said), BELOW_NOTHING.search(said)
