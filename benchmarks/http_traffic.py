"""Agents and a provider for benchmarks of a whole proxy: sessions over HTTP, every answer marked.

An agent's system prompt names its session; the provider says that name, the turn, and how long it took
over it in whatever it answers. So an answer that went to another session is found, by the agent and in the
log, and what a turn took beside the provider is known. Four tasks a session: three of a call and a text,
one of a text.

    python http_traffic.py PORT LEAST MOST FAILURES    # the provider, as a process of its own
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import resource
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

Message = dict[str, Any]

OVER = "[session over]"
MARK = re.compile(r"<(?P<session>[^ >]+)>")
SAID = re.compile(r"<(?P<session>[^ >]+)> turn (?P<turn>\d+) took (?P<seconds>[\d.]+) s")
TOKEN = "token-of-a-benchmark"
PROGRAM = Path(__file__).resolve().parents[1] / "run_proxy.py"
TURNS = 4
_FILLER = "You are an agent of a benchmark, and say what you are told to. " * 40


def write_scenarios(path: Path, count: int) -> None:
    """So many Scenarios, called s0, s1 and on."""
    parameters = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
    tool = {"name": "look", "description": "Looks at a place.", "parameters": parameters}
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            answers = [_answers(turn) for turn in range(1, TURNS + 1)]
            record = {
                "id": f"s{number}",
                "env_info": "2025-03-04 09:30:00 Tuesday",
                "tools": [{"type": "function", "function": tool}],
                "tasks": [f"What is there to see in place {turn}?" for turn in range(1, TURNS + 1)],
                "answer_list": answers,
            }
            file.write(json.dumps(record) + "\n")


def _answers(turn: int) -> list[dict[str, Any]]:
    close = {"name": "prepare_to_answer", "arguments": {"answer_type": "tool"}}
    if turn == TURNS:
        return [{"action": close, "observation": "Nothing more.", "dependency_list": []}]
    look = {"name": "look", "arguments": {"place": f"place {turn}"}}
    return [
        {"action": look, "observation": {"seen": ["a lamp", "a chair"] * 20}, "dependency_list": []},
        {"action": close, "observation": "A lamp.", "dependency_list": [0]},
    ]


class Provider:
    """Answers between `least` and `most` seconds after it was asked; fails that share of requests."""

    def __init__(self, least: float, most: float, failures: float) -> None:
        self._least, self._most, self._failures = least, most, failures
        self._took: dict[tuple[str, int], float] = {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        begin = time.perf_counter()
        body = json.loads(await request.read())
        await asyncio.sleep(random.uniform(self._least, self._most))
        if random.random() < self._failures:
            return web.json_response({"error": {"message": "too busy", "type": "server_error"}}, status=500)
        messages = body["messages"]
        found = MARK.search(messages[0]["content"])
        assert found is not None
        turn = sum(message["role"] == "user" for message in messages)
        key = (found["session"], turn)
        if turn < TURNS and messages[-1]["role"] == "user":
            message, reason = _look(turn), "tool_calls"
            took = self._took[key] = self._took.get(key, 0.0) + time.perf_counter() - begin
        else:
            took = self._took.pop(key, 0.0) + time.perf_counter() - begin
            text = f"<{key[0]}> turn {turn} took {took:.6f} s"
            message, reason = {"role": "assistant", "content": text}, "stop"
        whole = {
            "id": f"chatcmpl-{random.getrandbits(64):016x}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920},
        }
        return await _streamed(request, whole) if body.get("stream") else web.json_response(whole)


def _look(turn: int) -> Message:
    function = {"name": "look", "arguments": json.dumps({"place": f"place {turn}"})}
    call = {"id": f"call_{random.getrandbits(64):016x}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


async def _streamed(request: web.Request, whole: dict[str, Any]) -> web.StreamResponse:
    choice = whole["choices"][0]
    message = {**choice["message"]}
    for index, call in enumerate(message.get("tool_calls", ())):
        call["index"] = index
    base = {**whole, "object": "chat.completion.chunk", "usage": None}
    deltas = [{"index": 0, "delta": message, "finish_reason": None}]
    deltas.append({"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]})
    events = [{**base, "choices": [delta]} for delta in deltas]
    lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(b"".join([*lines, b"data: [DONE]\n\n"]))
    await response.write_eof()
    return response


async def provide(port: int, least: float, most: float, failures: float) -> None:
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", Provider(least, most, failures).answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


@dataclass(slots=True)
class Counts:
    """What agents met with. `added` are seconds beside the provider's own, one of each turn."""

    turns: int = 0
    sessions: int = 0
    left: int = 0
    failed: int = 0
    mixed_up: int = 0
    added: list[float] | None = None


class Wrong(Exception):
    """The proxy answered what it must not."""


class Agent:
    """Plays sessions one after another. `leaves`: how often it hangs up in a request and asks again."""

    def __init__(
        self, http: aiohttp.ClientSession, base_url: str, counts: Counts, *, leaves: float = 0.0
    ) -> None:
        self._http = http
        self._base_url = base_url
        self._counts = counts
        self._leaves = leaves

    async def play(self, session: str, *, stream: bool = True) -> None:
        messages = [{"role": "system", "content": f"<{session}> {_FILLER}"}]
        for turn in range(1, TURNS + 2):
            messages.append({"role": "user", "content": f"[[next-user-turn {turn}]]"})
            text, seconds = await self._answer(session, messages, stream=stream)
            messages.append({"role": "assistant", "content": text})
            if turn > TURNS:
                if text != OVER:
                    raise Wrong(f"{session}: after the last turn came {text!r}")
                break
            self._check(session, turn, text, seconds)
        self._counts.sessions += 1

    def _check(self, session: str, turn: int, text: str, seconds: float) -> None:
        said = SAID.fullmatch(text)
        if said is None or (said["session"], int(said["turn"])) != (session, turn):
            self._counts.mixed_up += 1
            raise Wrong(f"{session}, turn {turn}: got {text!r}")
        self._counts.turns += 1
        if self._counts.added is not None:
            self._counts.added.append(seconds - float(said["seconds"]))

    async def _answer(self, session: str, messages: list[Message], *, stream: bool) -> tuple[str, float]:
        """The text of a turn, and how long it took from the last request for it that was not given up."""
        body = json.dumps({"model": "m", "messages": messages, "stream": stream}).encode()
        while True:
            begin = time.perf_counter()
            leaving = random.uniform(0.0, 0.1) if random.random() < self._leaves else None
            try:
                async with asyncio.timeout(leaving):
                    status, raw = await self._ask(session, body)
            except TimeoutError:
                self._counts.left += 1
                continue
            if status == 200:
                return _text(raw, stream), time.perf_counter() - begin
            if status != 500 or not self._leaves:
                raise Wrong(f"{session}: {status} {raw[:300].decode()}")
            self._counts.failed += 1

    async def _ask(self, session: str, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer sk-benchmark-{session}"}
        url = f"{self._base_url}/s/{session}/v1/chat/completions"
        async with self._http.post(url, data=body, headers=headers) as response:
            return response.status, await response.read()


def _text(raw: bytes, stream: bool) -> str:
    if not stream:
        return str(json.loads(raw)["choices"][0]["message"]["content"])
    lines = [line[6:] for line in raw.split(b"\n") if line.startswith(b"data: ")]
    if not lines or lines[-1] != b"[DONE]":
        raise Wrong(f"a stream without an end: {raw[-200:]!r}")
    deltas = [choice["delta"] for line in lines[:-1] for choice in json.loads(line)["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


def mixed_up_in(log: Path) -> list[str]:
    """Steps and answers in the log whose mark is another session's."""
    wrong = []
    with closing(sqlite3.connect(f"{log.resolve().as_uri()}?mode=ro", uri=True)) as reader:
        for table, column in (("exchanges", "output_message"), ("steps", "message")):
            for name, text in reader.execute(
                f"""SELECT sessions.name, json_extract(messages.body, '$.content') FROM {table}
                JOIN sessions ON sessions.id = session_id JOIN messages ON messages.hash = {column}
                WHERE json_extract(messages.body, '$.content') IS NOT NULL"""
            ):
                said = SAID.fullmatch(text)
                if text != OVER and (said is None or said["session"] != name):
                    wrong.append(f"{table} of {name}: {text}")
    return wrong


# What is measured of a process


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at a moment: seconds since the start, resident MB, open files, threads; MB of the logs."""

    at: float
    rss: float
    files: int
    threads: int
    wal: float
    log: float


def sample(pid: int, log: Path, at: float) -> Sample:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    wal = log.with_name(log.name + "-wal")
    return Sample(
        at,
        int(status["VmRSS"].split()[0]) / 1024,
        len(os.listdir(f"/proc/{pid}/fd")),
        int(status["Threads"]),
        wal.stat().st_size / 1e6 if wal.exists() else 0.0,
        log.stat().st_size / 1e6 if log.exists() else 0.0,
    )


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def allow_many_files() -> None:
    """As many open connections as the system lets this process have."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


async def started(*words: str, log: Path) -> tuple[asyncio.subprocess.Process, str]:
    """`run_proxy.py serve WORDS`, as a process of its own, and its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROGRAM), "serve", "--port", "0", "--log", str(log), *words),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "EVAL_TOKEN": TOKEN},
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    found = re.search(r"http://[\d.]+:\d+", line)
    assert found is not None, line
    return process, found[0]


async def provider_process(
    port: int, least: float, most: float, failures: float = 0.0
) -> asyncio.subprocess.Process:
    """The provider, which answers once this has returned."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, str(port), str(least), str(most), str(failures)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    await process.stdout.readline()
    return process


if __name__ == "__main__":
    allow_many_files()
    asyncio.run(provide(int(sys.argv[1]), *(float(word) for word in sys.argv[2:5])))
