"""Traffic for logs: the rows that a proxy hands over for agents that send their whole history each time.

A session has `turns` tasks of `steps` calls to a provider. Its system prompt and tools are its own, 12 KB
of JSON, and every step adds about 1.3 KB to the next request. Texts are drawn from a vocabulary by a
seed, so that they compress as real ones do.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proxy.log.rows import (
    ExchangeDelivered,
    ExchangeFinish,
    ExchangeStart,
    Row,
    RunRow,
    ScenarioRow,
    SessionRow,
    StepRow,
    TaskEndRow,
    ToolCallRow,
    TurnBegunRow,
    TurnRow,
)

Message = dict[str, Any]

TOOLS = 8
_DATE = "\n\nThe date is 2025-01-02."
HEADERS = {"content-type": "application/json", "user-agent": "agent/1.0"}
_RANDOM = random.Random(7)
_WORDS = [
    "".join(_RANDOM.choices("aaabcdeeefghiiklmnooprsttuvw", k=_RANDOM.randint(2, 9))) for _ in range(900)
]
_TEXT = " ".join(_RANDOM.choices(_WORDS, k=200_000))


@dataclass(frozen=True, slots=True)
class Shape:
    """How sessions are played. `relayed`: each step is a request of the agent and one to the provider,
    as in the evaluation mode `relay`; else the proxy only records. `shared`: all sessions have the same
    system prompt, as those of one agent do.
    """

    turns: int
    steps: int
    relayed: bool
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an agent: the groups of rows in the order in which they are handed over, how many
    exchanges they make, and how many bytes the bodies had that went over the wire.
    """

    groups: tuple[tuple[Row, ...], ...]
    exchanges: int
    wire_bytes: int


def run_row(number: int, created_at: float) -> RunRow:
    config = {"mode": "play", "history": "live", "provider": "http://127.0.0.1:9/v1", "model": "m"}
    return RunRow(f"run-{number:04}", created_at, config, f"config-{number}", {"wildtoolbench-proxy": "0"})


def scenario_row(number: int, shape: Shape) -> ScenarioRow:
    """A scenario that is played rightly by `Session`."""
    draw = random.Random(f"scenario {number}")
    name = f"growth_{number}"
    record = {
        "id": name,
        "env_info": "2025-01-02 10:00:00 Thursday",
        "tools": _tools(draw),
        "tasks": [_text(draw, 120) for _ in range(shape.turns)],
        "answer_list": [_answers(task, shape.steps) for task in range(shape.turns)],
    }
    digest = hashlib.sha256(json.dumps(record).encode()).hexdigest()
    return ScenarioRow(digest, name, record, "growth.jsonl", "ab" * 32)


class Session:
    """One session of a scenario, call by call. `at` is when it begins, in Unix seconds."""

    def __init__(self, shape: Shape, run: str, number: int, scenario: ScenarioRow, at: float) -> None:
        self._shape = shape
        self._run = run
        self._name = f"{run}.{number}"
        self._scenario = scenario
        self._at = at
        self._draw = random.Random(self._name)
        self._tools = scenario.record["tools"]
        size = 4000 if shape.shared else self._draw.randint(3000, 5000)  # else all would fill pages alike
        prompt = {"role": "system", "content": _text(random.Random(1) if shape.shared else self._draw, size)}
        self._own: list[Message] = [prompt]
        self._sent: list[Message] = [{**prompt, "content": prompt["content"] + _DATE}]
        self._body = {"model": "m", "temperature": 0.2, "tools": self._tools}
        self._sizes = {"a": _size([self._body, *self._own]), "p": _size([self._body, *self._sent])}
        self._calls = 0

    def rows(self) -> tuple[Row, ...]:
        """What opens it."""
        if not self._shape.relayed:
            return ()
        digest, scenario = self._scenario.hash, self._scenario.id
        name = f"{scenario}.e1"
        return (SessionRow(self._name, self._run, name, scenario, digest, 1, 1, self._at),)

    def calls(self) -> Iterator[Call]:
        for task in range(self._shape.turns):
            words = self._scenario.record["tasks"][task]
            asked = {
                "role": "user",
                "content": f"[[next-user-turn {task + 1}]]" if self._shape.relayed else words,
            }
            self._add("a", asked)
            self._add("p", {"role": "user", "content": words})
            for step in range(self._shape.steps):
                yield self._call(task, step)

    def _call(self, task: int, step: int) -> Call:
        shape, self._calls = self._shape, self._calls + 1
        last = step == shape.steps - 1
        answer = _closing(self._draw) if last else _asking(self._draw, f"{self._calls}", task, step)
        told = _told(task, step)
        call = self._relayed(task, step, answer, told) if shape.relayed else self._recorded(answer)
        for side in ("a", "p"):
            self._add(side, answer)
            if not last:
                self._add(
                    side, {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": told}
                )
        return call

    def _add(self, side: str, message: Message) -> None:
        (self._own if side == "a" else self._sent).append(message)
        self._sizes[side] += _size(message) + 1

    def _recorded(self, answer: Message) -> Call:
        start = self._start("a", self._own, None, None, "recorded")
        raw = self._raw(answer)
        finish = self._finish(start.id, answer, raw)
        groups = ((start,), (finish,), (ExchangeDelivered(start.id, self._at + 1),))
        return Call(groups, 1, self._sizes["a"] + len(raw))

    def _relayed(self, task: int, step: int, answer: Message, told: str) -> Call:
        agent = self._start("a", self._own, task + 1, None, None)
        provider = self._start("p", self._sent, task + 1, agent.id, None)
        raw = self._raw(answer)
        groups: list[tuple[Row, ...]] = [(agent,)]
        if step == 0:
            words = self._scenario.record["tasks"][task]
            groups.append((TurnRow(self._name, task + 1, task, "task", words, self._at),))
            groups.append((TurnBegunRow(self._name, task + 1, self._sent[-1], {}, self._own[-1]),))
        last = step == self._shape.steps - 1
        ends = (TaskEndRow(self._name, task, "closed", self._at + 1),) if last else ()
        groups += [
            (provider,),
            (
                self._finish(provider.id, answer, raw),
                self._step(task, step, provider.id, answer, told),
                *ends,
            ),
            (self._finish(agent.id, answer, None),),
            (ExchangeDelivered(agent.id, self._at + 1),),
        ]
        return Call(tuple(groups), 2, sum(self._sizes.values()) + 2 * len(raw))

    def _start(
        self, side: str, messages: list[Message], turn: int | None, parent: str | None, reason: str | None
    ) -> ExchangeStart:
        return ExchangeStart(
            id=hashlib.sha256(f"{side}{self._name}.{self._calls}".encode()).hexdigest()[:16],
            side="agent" if side == "a" else "provider",
            parent_id=parent,
            session_id=self._name if self._shape.relayed else None,
            turn=turn,
            correlation="path" if parent is None else None,
            reason=reason,
            method="POST",
            path="/v1/chat/completions",
            started_at=self._at,
            stream=False,
            request_model="m",
            raw=f"{self._name}{self._calls}".encode(),
            key_hash="0123456789ab",
            headers=HEADERS if side == "a" else {},
            messages=list(messages),
            body=self._body,
            changes=() if parent is None else ("messages", "tools"),
            run_id=self._run,
        )

    def _finish(self, exchange: str, answer: Message, raw: bytes | None) -> ExchangeFinish:
        return ExchangeFinish(
            id=exchange,
            finished_at=self._at + 0.9,
            finish_state="complete",
            status=200,
            time_to_first_chunk=0.8 if raw else None,
            response_id=f"chatcmpl-{exchange}{exchange}",
            response_model="m-2025-01-02",
            finish_reasons=("tool_calls" if "tool_calls" in answer else "stop",),
            input_tokens=3000,
            output_tokens=60,
            message=answer,
            headers={"content-type": "application/json"} if raw else {},
            raw=raw,
        )

    def _raw(self, answer: Message) -> bytes:
        reason = "tool_calls" if "tool_calls" in answer else "stop"
        return json.dumps(
            {
                "id": f"chatcmpl-{self._name}{self._calls}",
                "object": "chat.completion",
                "created": int(self._at),
                "model": "m-2025-01-02",
                "choices": [{"index": 0, "message": answer, "logprobs": None, "finish_reason": reason}],
                "usage": {"prompt_tokens": 3000, "completion_tokens": 60, "total_tokens": 3060},
            }
        ).encode()

    def _step(self, task: int, step: int, exchange: str, answer: Message, told: str) -> StepRow:
        calls = tuple(
            ToolCallRow(
                0, it["id"], it["function"]["name"], it["function"]["arguments"], told, step, "served"
            )
            for it in answer.get("tool_calls", ())
        )
        return StepRow(
            session_id=self._name,
            task=task,
            step=step,
            turn=task + 1,
            exchange_id=exchange,
            decided_at=self._at + 0.9,
            decision="observe" if calls else "close",
            message=answer,
            nodes=(step,),
            calls=calls,
        )


def _size(value: Any) -> int:
    """Bytes of a part of a body as it goes over the wire."""
    return len(json.dumps(value, ensure_ascii=False).encode())


def _text(draw: random.Random, size: int) -> str:
    at = draw.randrange(len(_TEXT) - size)
    return _TEXT[at : at + size]


def _tools(draw: random.Random) -> list[Message]:
    return [
        {
            "type": "function",
            "function": {
                "name": f"tool{number}",
                "description": _text(draw, 300),
                "parameters": {
                    "type": "object",
                    "properties": {
                        name: {"type": "string", "description": _text(draw, 130)}
                        for name in ("thing", "place", "note", "day")
                    },
                    "required": ["thing"],
                },
            },
        }
        for number in range(TOOLS)
    ]


def _arguments(task: int, step: int) -> Message:
    return {"thing": f"thing {step} of {task}"}


def _told(task: int, step: int) -> str:
    draw = random.Random(f"{task} {step}")
    return json.dumps({"items": [{"id": draw.randrange(10**6), "text": _text(draw, 60)} for _ in range(9)]})


def _asking(draw: random.Random, ordinal: str, task: int, step: int) -> Message:
    function = {"name": f"tool{step % TOOLS}", "arguments": json.dumps(_arguments(task, step))}
    entry = {"id": f"call_{draw.randrange(16**24):024x}{ordinal}", "type": "function", "function": function}
    return {"role": "assistant", "content": _text(draw, 180), "tool_calls": [entry]}


def _closing(draw: random.Random) -> Message:
    return {"role": "assistant", "content": _text(draw, 400)}


def _answers(task: int, steps: int) -> list[Message]:
    """One call after another, then the answer."""
    nodes: list[Message] = [
        {
            "action": {"name": f"tool{step % TOOLS}", "arguments": _arguments(task, step)},
            "observation": json.loads(_told(task, step)),
            "dependency_list": [step - 1] if step else [],
            "idx": step,
        }
        for step in range(steps - 1)
    ]
    action = {"name": "prepare_to_answer", "arguments": {"answer_type": "tool"}}
    closing = {"action": action, "observation": "Done.", "dependency_list": [steps - 2], "idx": steps - 1}
    return [*nodes, closing]
