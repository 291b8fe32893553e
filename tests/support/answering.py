"""For tests without an event loop: a scripted provider and a proxy as a process, both asked over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.commands import LISTENING, PROGRAM
from support.ports import free_port

Body = dict[str, Any]
TOKEN = "token-of-the-tests"


class Provider:
    """Answers requests with what was queued, each when its gate is open; then with 500."""

    def __init__(self) -> None:
        self._queue: deque[tuple[int, Body, threading.Event | None]] = deque()
        self.asked = threading.Semaphore(0)

    def reply(
        self, text: str | None, *calls: tuple[str, str], gate: threading.Event | None = None, **fields: Any
    ) -> None:
        """`calls` are names with arguments as written."""
        message: Body = {"role": "assistant", "content": text, **fields}
        if calls:
            message["tool_calls"] = [
                {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for i, (name, arguments) in enumerate(calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
        self._queue.append((200, {**whole, "choices": [choice]}, gate))

    def fail(self, status: int, message: str) -> None:
        error = {"message": message, "type": "scripted", "param": None, "code": None}
        self._queue.append((status, {"error": error}, None))

    def next(self) -> tuple[int, Body]:
        status, body, gate = self._queue.popleft() if self._queue else (500, {"error": "nothing left"}, None)
        self.asked.release()
        if gate is not None:
            assert gate.wait(60)
        return status, body


@contextmanager
def answering() -> Iterator[tuple[Provider, str]]:
    """The provider and its base URL."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = provider.next()
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider, f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Served:
    """`serve` as a process of its own, which can be killed and started again at the same address."""

    arguments: tuple[str, ...]
    port: int
    url: str = ""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> None:
        command = [sys.executable, str(PROGRAM), "serve", *self.arguments, "--port", str(self.port)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "EVAL_TOKEN": TOKEN},
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := LISTENING.search(line):
                self.url = found[0]
                return
        raise AssertionError("the proxy did not start")

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.communicate()
            self.process = None

    @property
    def page(self) -> str:
        return f"{self.url}/ui#token={TOKEN}"

    def post(self, path: str, body: Body, key: str = "sk-agent") -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def chat(self, session: str, turn: int) -> tuple[int, Any]:
        """A plain agent's request for a turn."""
        words = [{"role": "user", "content": f"[[next-user-turn {turn}]]"}]
        return self.post(f"/s/{session}/v1/chat/completions", {"model": "m", "messages": words})

    @contextmanager
    def chatting(self, session: str, turn: int) -> Iterator[None]:
        """The same while the block runs; it is answered at the end of it, or before."""
        thread = threading.Thread(target=self.chat, args=(session, turn))
        thread.start()
        try:
            yield
        finally:
            thread.join()


@contextmanager
def served(log: Path, provider: str, *arguments: str) -> Iterator[Served]:
    told = ("--log", str(log), "--provider", provider, "--provider-retries", "0", *arguments)
    process = Served(told, free_port())
    process.start()
    try:
        yield process
    finally:
        process.stop()
