"""A Session as a page opens it: its conversation beside the References, as one JSON document. Pure.

Tasks, Steps and calls count from 1, nodes of a Reference from 0, as do the places inside verdicts, which
are those of `scoring.output.document`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.reference import depth
from scenarios.types import NO_NOTES, Node, Reply, Scenario, Task
from scoring.metrics.usage import StepUsage, Usage
from scoring.metrics.writes import STALE, WriteFinding
from scoring.output.document import fault_document
from scoring.output.faulty_writes import call_and_why
from scoring.page.reading import CallReading, Reading, StepReading, done_by, judged_otherwise, read_session
from scoring.page.shown import ShownCall, ShownSession, ShownStep, ShownTask
from scoring.report import RunReport, Scored
from scoring.transcript import as_text
from scoring.types import JSON, TaskTrajectory, Trajectory
from scoring.verdicts.strict import NAME as STRICT

_NOTHING = ShownCall(None, None)


@dataclass(frozen=True, slots=True)
class _Read:
    """A Task as it was played and read.

    `others` are the readings of the other scorers, by name; `writes` what is wrong with its writes.
    """

    task: Task
    played: TaskTrajectory
    shown: ShownTask
    usage: Sequence[StepUsage]
    reading: Reading
    others: Mapping[str, Reading]
    writes: Sequence[WriteFinding]


def session_detail(
    report: RunReport, index: int, key: str, shown: ShownSession, usage: Usage, verdicts: Sequence[JSON]
) -> JSON:
    """The Session at `index`; `verdicts` are its Tasks in the document of `score`."""
    trajectory, judge = report.trajectories[index], judging(report)
    readings = {it.scorer.name: _reading(it, trajectory, index, report) for it in report.scored}
    mine = readings.pop(judge.scorer.name)
    writes = [it for it in report.writes if (it.session, it.epoch) == (trajectory.session, trajectory.epoch)]
    tasks = []
    for number, (task, played) in enumerate(zip(trajectory.scenario.tasks, trajectory.tasks, strict=True)):
        place = trajectory.scenario.id, trajectory.epoch, number
        read = _Read(
            task,
            played,
            shown.tasks[number],
            usage.steps.get(place, ()),
            mine[number],
            {name: found[number] for name, found in readings.items()},
            [it for it in writes if it.task == number],
        )
        error = judge.classes[index][number]
        tasks.append(
            {
                "number": number + 1,
                "label": task.label,
                "subtype": task.subtype,
                "user": task.text,
                "ending": played.ending,
                "failure": None if played.finished else played.unfinished_reason,
                "seconds": usage.seconds.get(place),
                "verdicts": verdicts[number]["scores"],
                "judged_by": judge.scorer.name,
                "error_class": None if error is None else error.name,
                **_conversation(read),
            }
        )
    return {**_session(trajectory, key, shown), "tasks": tasks}


def judging(report: RunReport) -> Scored:
    """The scorer whose reading of each call is shown: `strict`, which judges each of them, else the first."""
    return next((it for it in report.scored if it.scorer.name == STRICT), report.scored[0])


def _reading(scored: Scored, trajectory: Trajectory, index: int, report: RunReport) -> tuple[Reading, ...]:
    scores = scored.sessions[index].tasks
    return read_session(scored.scorer, trajectory, scores, goes_on=report.modes.goes_on)


def _session(trajectory: Trajectory, key: str, shown: ShownSession) -> JSON:
    finished = all(task.finished for task in trajectory.tasks)
    return {
        "key": key,
        "session": trajectory.session,
        "scenario": trajectory.scenario.id,
        "epoch": trajectory.epoch,
        "attempt": shown.attempt,
        "state": "not_begun" if shown.attempt is None else "over" if finished else "failed",
        "date": trajectory.scenario.date,
        "opened_at": shown.opened_at,
        "tools": list(_tools(trajectory.scenario)),
    }


def _tools(scenario: Scenario) -> Iterator[JSON]:
    for tool in scenario.tools:
        yield {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "side_effects": scenario.notes.get(tool.name, NO_NOTES).side_effects,
        }


def _conversation(read: _Read) -> JSON:
    turns = [
        {
            "turn": turn.number,
            "user": turn.text,
            "origin": "task" if turn.kind == "task" else "scripted reply",
            "opened_at": turn.opened_at,
        }
        for turn in read.shown.turns
    ]
    closed = read.played.ending == "closed" and read.played.replies
    return {
        "opened_at": turns[0]["opened_at"] if turns else None,
        "reference": {"least": depth(read.task.nodes), "nodes": list(_nodes(read.task.nodes, read.reading))},
        "turns": turns,
        "steps": [_step(read, number, reply) for number, reply in enumerate(read.played.replies)],
        "standing": [call_and_why((it,)) for it in read.writes if it.kind == STALE],
        "closing": read.played.replies[-1].content if closed else None,
    }


def _nodes(nodes: Sequence[Node], reading: Reading) -> Iterator[JSON]:
    done = done_by(reading)
    for index, node in enumerate(nodes):
        step, call = done.get(index, (None, None))
        by = None if step is None else {"step": step + 1, "call": None if call is None else call + 1}
        yield {
            "index": index,
            "kind": "ask" if node.is_ask else "close" if node.is_close else "call",
            "name": node.name,
            "arguments": node.arguments if node.is_call else {},
            "observation": node.observation if node.is_call else None,
            "text": None if node.is_call else _as_words(node.observation),
            "reply": node.user_input,
            "dependencies": list(node.dependencies),
            "alternatives": list(node.alternatives),
            "done": by,
        }


def _as_words(observation: Any) -> str | None:
    return None if observation is None else as_text(observation)


def _step(read: _Read, number: int, reply: Reply) -> JSON:
    reading = read.reading[number]
    shown = read.shown.steps[number] if number < len(read.shown.steps) else None
    usage = read.usage[number] if number < len(read.usage) else None
    return {
        "number": number + 1,
        "turn": shown and shown.turn,
        "decision": shown and shown.decision,
        "kind": reading.kind,
        "verdict": reading.verdict,
        "text": reply.content,
        "reasoning": shown and shown.reasoning,
        "node": reading.node,
        "calls": list(_calls(read, number, reply, reading, shown)),
        "model": usage and usage.model,
        "input_tokens": usage and usage.input_tokens,
        "output_tokens": usage and usage.output_tokens,
        "seconds": usage and usage.latency,
        "time_to_first_chunk": usage and usage.time_to_first_chunk,
        "tries": usage and usage.tries,
        "exchanges": list(shown.exchanges) if shown else [],
    }


def _calls(
    read: _Read, number: int, reply: Reply, reading: StepReading, shown: ShownStep | None
) -> Iterator[JSON]:
    told = shown.calls if shown and len(shown.calls) == len(reply.calls) else (_NOTHING,) * len(reply.calls)
    others = {name: judged_otherwise(reading, found[number]) for name, found in read.others.items()}
    for position, (call, it) in enumerate(zip(reply.calls, reading.calls, strict=True)):
        yield {
            "name": call.name,
            "arguments": None if call.arguments is None else as_text(call.arguments),
            "observation": told[position].observation,
            "outcome": told[position].outcome,
            **_judged(it),
            "also": {name: found[position] for name, found in others.items() if found[position]},
            "at_fault": [
                {"kind": it.kind.replace("_", " "), "why": it.why}
                for it in read.writes
                if (it.step, it.call) == (number, position)
            ],
        }


def _judged(reading: CallReading) -> JSON:
    return {
        "verdict": reading.verdict,
        "node": reading.node,
        "expected": None if reading.expected is None else dict(reading.expected),
        "faults": [fault_document(fault) for fault in reading.faults],
        "message": reading.message,
    }
