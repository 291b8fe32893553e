"""A log in which much happens in little: two sessions at once, and everything that `tail` has a line for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support import logs

from proxy.log.rows import StartRow
from proxy.log.writer import LogWriter

BEGAN = datetime(2026, 1, 2, 10, 20, 30, tzinfo=UTC).timestamp()
"""All times are counted from here."""

HOSTILE = "\x1b[2J\x07It costs \u202e3\u202c, I think.\nOr 4."
LIBRARY = "library_2"
CONFIG = {
    "mode": "play",
    "provider": "https://llm.example/v1",
    "model": "gpt-x",
    "history": "gold",
    "tools": "intercept",
    "on_mismatch": "stop",
}


def write(path: Path) -> None:
    """Writes it, row by row in the order in which a proxy would."""
    with LogWriter.open(path, now=lambda: BEGAN) as writer:
        writer.commit_blocking(
            replace(logs.run(**CONFIG), created_at=BEGAN),
            StartRow(BEGAN),
            logs.scenario(),
            logs.scenario(LIBRARY),
            replace(logs.session("s1"), opened_at=BEGAN),
            replace(logs.session("s2", LIBRARY), opened_at=BEGAN + 1),
            *_first_tasks(),
            *_second_tasks(),
        )


def _first_tasks() -> list[Any]:
    lamp, chair = (("findPrice", f'{{"thing": "{thing}"}}') for thing in ("lamp", "chair"))
    return [
        _turn("s1", 1, 0, "What is a lamp?", 1),
        _turn("s2", 1, 0, "请问一盏台灯多少钱？", 2),
        logs.start("x1", started_at=BEGAN + 1.5),
        *_asked(
            "p1",
            "s1",
            1,
            1.6,
            0.2,
            finish_state="provider_error",
            status=429,
            error_type="rate_limited",
            error="Slow\tdown: \x1b[31mtoo many requests",
            time_to_first_chunk=None,
        ),
        *_asked("p2", "s1", 1, 2.3, 1.25, input_tokens=1234, output_tokens=20),
        _step(
            "s1",
            0,
            0,
            1,
            "p2",
            "observe",
            3.6,
            logs.call_message(lamp),
            logs.call(0, *lamp, '{"price": 3}'),
        ),
        *_asked("p4", "s2", 1, 3.0, 1.5, input_tokens=99_500, output_tokens=900),
        _step(
            "s2",
            0,
            0,
            1,
            "p4",
            "observe",
            4.5,
            logs.call_message(chair, ("findPrice", "{}")),
            logs.call(0, *chair, '{"price": 3}'),
            logs.call(1, "findPrice", "{}", '{"price": 3, "of": "图书馆"}'),
        ),
        *_asked("p3", "s1", 1, 4.0, 0.8, input_tokens=1300, output_tokens=9),
        _step("s1", 0, 1, 1, "p3", "close", 4.8, logs.text_message("It is 3.")),
        _end("s1", 0, "closed", 4.8),
        *_asked("p5", "s2", 1, 4.6, 12.0, input_tokens=100_400, output_tokens=30),
        _step("s2", 0, 1, 1, "p5", "close", 16.6, logs.text_message(HOSTILE)),
        _end("s2", 0, "closed", 16.6),
    ]


def _second_tasks() -> list[Any]:
    title = logs.text_message("Of lamps and chairs")
    finding = {"turn": 1, "what": "lost_answer", "detail": "the answer is not in the request: It is 3."}
    left = {"finish_state": "client_abort", "status": None, "error_type": "client_disconnected"}
    return [
        _turn(
            "s1", 2, 1, "And a chair? Please look it up for me, and tell me what it costs with the lamp.", 17
        ),
        logs.start("x2", turn=2, reason="without tools", started_at=BEGAN + 17.1),
        logs.finish(
            "x2",
            finished_at=BEGAN + 17.5,
            message=title,
            input_tokens=40,
            output_tokens=5,
            response_model="gpt-small",
        ),
        _turn("s2", 2, 1, "那么一把椅子呢？", 18),
        *_asked("p6", "s1", 2, 18.0, 0.5, input_tokens=1500, output_tokens=0, findings=(finding,)),
        _step(
            "s1",
            1,
            0,
            2,
            "p6",
            "stop",
            18.5,
            {"role": "assistant", "content": ""},
            reason="replied with neither text nor tool calls; allowed here: findPrice",
        ),
        _end("s1", 1, "stopped", 18.5),
        logs.start("x3", "s2", turn=2, started_at=BEGAN + 18.1),
        logs.finish("x3", finished_at=BEGAN + 80.0, time_to_first_chunk=None, **left),
        _end("s2", 1, "agent_stopped", 95.0),
    ]


def _turn(session: str, number: int, task: int, words: str, after: float) -> Any:
    return replace(logs.turn(number, task, session), text=words, opened_at=BEGAN + after)


def _asked(exchange: str, session: str, turn: int, after: float, seconds: float, **finish: Any) -> list[Any]:
    """A request to the provider and its answer."""
    findings = finish.pop("findings", ())
    values = {"side": "provider", "turn": turn, "started_at": BEGAN + after, "findings": findings}
    started = logs.start(exchange, session, request_model="gpt-x", **values)
    return [started, logs.finish(exchange, finished_at=BEGAN + after + seconds, **finish)]


def _step(
    session: str,
    task: int,
    number: int,
    turn: int,
    exchange: str,
    decision: str,
    after: float,
    message: dict[str, Any],
    *calls: Any,
    reason: str | None = None,
) -> Any:
    return logs.step(
        number,
        task,
        session,
        turn=turn,
        exchange_id=exchange,
        decision=decision,
        message=message,
        decided_at=BEGAN + after,
        calls=calls,
        reason=reason,
    )


def _end(session: str, task: int, how: str, after: float) -> Any:
    return replace(logs.end(task, how, session), ended_at=BEGAN + after)
