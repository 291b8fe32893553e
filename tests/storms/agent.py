"""An agent of the storm: notes each whole answer before it goes on, and remembers by its notes.

    python agent.py FOLDER MODE [SESSION]

With SESSION it prompts itself, and a process that is started again goes on where its notes end.
Without, it is one of `drive`'s agents: its prompts are on standard input, and it remembers nothing
of an earlier process. A request that is not answered whole is sent again, as SDKs do. MODE is `plain`,
`stream` or `mixed`. Uses the standard library alone, so that it starts at once.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

OVER = "[session over]"
SYSTEM = {"role": "system", "content": "You are an agent in a storm."}
TOOL = {"type": "function", "function": {"name": "my_own_tool", "parameters": {"type": "object"}}}
PAUSE_S = 0.03
"""Before a request is sent again."""
ORPHANED_S = 1.5
"""For how long an agent whose driver was killed still sends its last request again."""
AGAIN = frozenset({409, 500, 502, 503})
"""What a proxy or a provider that is being started anew may answer."""

Message = dict[str, Any]


class Refused(Exception):
    """The proxy does not want the request, and never will."""


class Agent:
    """One process of an agent; `notes` is the file that outlives it."""

    def __init__(self, base_url: str, notes: Path, mode: str) -> None:
        self.messages: list[Message] = [SYSTEM]
        self.turn = 0
        self._url = urlsplit(base_url)
        self._session = self._url.path.split("/")[2]
        self._mode = mode
        self._born_of = os.getppid()
        self._alone_since: float | None = None
        for note in _whole_lines(notes):
            if note["turn"] > self.turn:
                self._prompted(note["turn"])
            self._heard(note["message"])
        self._notes = notes.open("a", encoding="utf-8")

    def play(self, prompt: str | None = None) -> str:
        """The next turn, or the rest of the one in which an earlier process was killed; its last text."""
        if self.messages[-1]["role"] in ("system", "assistant"):
            self._prompted(self.turn + 1, prompt)
        while self.messages[-1]["role"] != "assistant":
            raw, stream = self._request()
            answer = self._whole_answer(raw, stream)
            note = {
                "session": self._session,
                "turn": self.turn,
                "sha256": hashlib.sha256(raw).hexdigest(),
                "id": answer["id"],
                "message": answer["message"],
            }
            self._notes.write(json.dumps(note) + "\n")
            self._notes.flush()
            self._heard(answer["message"])
        return str(self.messages[-1]["content"])

    def _prompted(self, turn: int, prompt: str | None = None) -> None:
        self.turn = turn
        self.messages.append({"role": "user", "content": prompt or f"[[next-user-turn {turn}]]"})

    def _heard(self, message: Message) -> None:
        self.messages.append(message)
        for call in message.get("tool_calls", ()):
            told = {"role": "tool", "tool_call_id": call["id"], "content": "what my own tool says"}
            self.messages.append(told)

    def _request(self) -> tuple[bytes, bool]:
        stream = self._mode == "stream" or (self._mode == "mixed" and len(self.messages) % 3 == 0)
        body = {"model": "m", "messages": self.messages, "stream": stream, "tools": [TOOL]}
        return json.dumps(body).encode(), stream

    def _whole_answer(self, raw: bytes, stream: bool) -> dict[str, Any]:
        while True:
            try:
                status, answer = self._ask(raw)
            except (OSError, http.client.HTTPException):
                status, answer = 0, b""
            if status == 200 and (whole := _from_stream(answer) if stream else _from_body(answer)):
                return whole
            if status not in (0, 200, *AGAIN):
                raise Refused(f"{status} {answer.decode()}")
            self._give_up_alone()
            time.sleep(PAUSE_S)

    def _ask(self, raw: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._url.hostname or "", self._url.port, timeout=30)
        try:
            headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-storm-key-1"}
            connection.request("POST", f"{self._url.path}/chat/completions", raw, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _give_up_alone(self) -> None:
        if not Path(self._notes.name).exists():
            sys.exit("the storm is over")
        if os.getppid() != self._born_of:
            self._alone_since = self._alone_since or time.monotonic()
            if time.monotonic() - self._alone_since > ORPHANED_S:
                sys.exit("the driver is gone")


def _whole_lines(notes: Path) -> Iterator[dict[str, Any]]:
    """What earlier processes noted; a line that was cut by their end is none, and goes."""
    if notes.exists():
        text = notes.read_text("utf-8")
        whole = text[: text.rfind("\n") + 1]
        os.truncate(notes, len(whole.encode()))
        yield from map(json.loads, whole.splitlines())


def _from_body(raw: bytes) -> dict[str, Any] | None:
    try:
        completion = json.loads(raw)
    except ValueError:
        return None
    return {"id": completion["id"], "message": completion["choices"][0]["message"]}


def _from_stream(raw: bytes) -> dict[str, Any] | None:
    """The message that the events make, if their end has come."""
    events = [line.removeprefix(b"data: ") for line in raw.split(b"\n") if line.startswith(b"data: ")]
    if not events or events[-1] != b"[DONE]":
        return None
    id, content, calls = "", None, {}
    for event in map(json.loads, events[:-1]):
        id = event["id"]
        for choice in event["choices"]:
            delta = choice["delta"]
            if delta.get("content") is not None:
                content = (content or "") + delta["content"]
            for part in delta.get("tool_calls", ()):
                index, function = part.pop("index"), part["function"]
                if index in calls:
                    calls[index]["function"]["arguments"] += function["arguments"]
                else:
                    calls[index] = part
    message: Message = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {"id": id, "message": message}


def main(told: list[str]) -> None:
    folder, mode, *session = told
    try:
        if session:
            _play_by_itself(Path(folder, "notes", f"{session[0]}.jsonl"), mode)
        else:
            _play_as_prompted(Path(folder), mode)
    except Refused as refused:
        with Path(folder, "refused").open("a") as file:
            file.write(f"{os.environ['OPENAI_BASE_URL']} {os.getpid()}: {refused}\n")
        sys.exit(1)


def _play_by_itself(notes: Path, mode: str) -> None:
    agent = Agent(os.environ["OPENAI_BASE_URL"], notes, mode)
    while agent.play() != OVER:
        pass


def _play_as_prompted(folder: Path, mode: str) -> None:
    pid = os.getpid()
    mark = folder / "agents" / str(pid)
    mark.touch()
    notes = folder / "notes" / f"{os.environ['EVAL_SESSION']}.{pid}.{time.time_ns()}.jsonl"
    agent = Agent(os.environ["OPENAI_BASE_URL"], notes, mode)
    for line in sys.stdin:
        agent.play(line.strip())
    mark.unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:])
