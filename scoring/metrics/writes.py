"""Calls that change something: made twice, too early, with the old one not undone, or for nothing. Pure.

Which tools write is the Scenario author's word: `ToolNotes.side_effects`, and `undoes` for those that take a
write back. Every call counts that the agent made, also one in a Step that ended its Task; writes that the
Reference of an earlier Task shows in a gold history are not the agent's, and do not count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scenarios.text import clip, visible
from scenarios.types import NO_NOTES, Node, Scenario, Task
from scoring.metrics.accuracy import is_whole
from scoring.metrics.calls import (
    OWN,
    Answers,
    CallKey,
    Made,
    answers_of,
    call_key,
    calls_made,
    scored_pairs,
)
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.rates import rate_of_sessions, total
from scoring.types import SessionScore, Trajectory

REPEATED, EARLY, STALE, WRONG = "repeated_write", "early_write", "stale_write", "wrong_write"
KINDS = (REPEATED, EARLY, STALE, WRONG)
"""What can be wrong with a write. A write can be wrong in several ways, and is then counted in each."""

WRITES = "writes"
SHOWN = 120
"""Characters of arguments that a detail shows."""

_MEANS = {
    REPEATED: "writes (same tool, arguments equal as JSON values) that the agent had made in the Session "
    "before, beyond as many as the References up to and including this Task want",
    EARLY: "writes in a Task whose Reference calls and asks nothing, or made before the user had answered "
    "what the Reference asks first",
    STALE: "calls of the Reference that undo an earlier write and were not made in their Task, though the "
    "agent wrote something else in it: the old write stands",
    WRONG: "writes that answer no node of their Task's Reference by name and arguments, each node being "
    "answered once",
}
_OVER = "Over Sessions that were scored and have tools annotated as having side effects."


def count_name(kind: str) -> str:
    """The figure that counts a kind: `early_writes`."""
    return f"{kind}s"


def free_name(kind: str) -> str:
    """The figure for the share of Sessions free of a kind: `sessions_without_early_writes`."""
    return f"sessions_without_{kind}s"


def _definitions() -> Iterator[tuple[str, Definition]]:
    text = f"Calls of tools annotated as having side effects. {_OVER}"
    yield WRITES, Definition("Writes", "count", text, OWN, better=None)
    for kind in KINDS:
        name = kind.replace("_", " ") + "s"
        text = f"Number of {_MEANS[kind]}. {_OVER}"
        yield count_name(kind), Definition(name.capitalize(), "count", text, OWN, better="lower")
    for kind in KINDS:
        name = kind.replace("_", " ") + "s"
        text = f"Share of Sessions without {_MEANS[kind]}. {_OVER}"
        yield free_name(kind), Definition(f"Sessions without {name}", "rate", text, OWN)


DEFINITIONS: Definitions = dict(_definitions())


@dataclass(frozen=True, slots=True)
class WriteFinding:
    """A write that is wrong in one of `KINDS`; `task`, `step` and `call` (its place in the reply) are from 0.

    Of a `stale_write`, `tool` is the one that should have been called, `step` the last of the Task, whose
    end shows it, and `call` None. `arguments` are as text, and may hold anything; `why` goes on after them.
    """

    session: str
    epoch: int
    task: int
    step: int
    call: int | None
    tool: str
    kind: str
    arguments: str
    why: str

    @property
    def detail(self) -> str:
        """One line, fit to be shown, with the arguments cut short."""
        return visible(f"{self.tool} {clip(self.arguments, SHOWN)} {self.why}")


def write_figures(
    trajectories: Sequence[Trajectory], sessions: Sequence[SessionScore], findings: Sequence[WriteFinding]
) -> list[Figure]:
    """All figures of this module, over Sessions that were scored as a whole and have tools that write.

    `findings` are those of the Trajectories, or more.
    """
    by_session: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for it in findings:
        by_session[it.session, it.epoch][it.kind] += 1
    own = [
        trajectory
        for trajectory, score in scored_pairs(trajectories, sessions)
        if is_whole(score) and has_writes(trajectory.scenario)
    ]
    kinds = [by_session[trajectory.session, trajectory.epoch] for trajectory in own]
    ids = [trajectory.scenario.id for trajectory in own]
    writes = sum(len(writes_made(trajectory)) for trajectory in own)
    return [
        total(WRITES, writes, len(own)),
        *(total(count_name(kind), sum(it[kind] for it in kinds), len(own)) for kind in KINDS),
        *(
            rate_of_sessions(free_name(kind), None, zip(ids, [not it[kind] for it in kinds], strict=True))
            for kind in KINDS
        ),
    ]


def write_findings(trajectories: Sequence[Trajectory]) -> tuple[WriteFinding, ...]:
    """All findings, by Session as given, then Task, Step, call (what has none last) and kind.

    A call answers a node of the same tool if its arguments equal the node's, or one of its alternatives',
    as JSON values, or are right by the rules of `scenarios.strict.arguments`.

    - `repeated_write`: the agent has made equal calls in the Session before, and those that are no repeats
      themselves are at least as many as the nodes it answers in the References up to and including this Task.
    - `early_write`: the Reference has no call and no ask; or the Task has had fewer text replies than asks
      that the write's node waits for (the least, if it answers several; one, if it answers none and the
      Reference asks).
    - `stale_write`: one for each node of a tool that undoes others which no call in the Task answers, if
      the Task was played to its end and the agent made at least one write in it.
    - `wrong_write`: no node of the Task's Reference is left for it, when each has one write at most and as
      many writes as possible have one, earlier ones first.
    """
    return tuple(finding for trajectory in trajectories for finding in _session_findings(trajectory))


def writes_made(trajectory: Trajectory) -> list[Made]:
    """The calls of tools with side effects, in order."""
    notes = trajectory.scenario.notes
    return calls_made(trajectory, {name for name, note in notes.items() if note.side_effects})


def has_writes(scenario: Scenario) -> bool:
    """Does one of its tools have side effects, by its author's word?"""
    return any(scenario.notes.get(tool.name, NO_NOTES).side_effects for tool in scenario.tools)


def _session_findings(trajectory: Trajectory) -> list[WriteFinding]:
    writes = writes_made(trajectory)
    if not writes:
        return []
    answers = answers_of(trajectory.scenario)
    found = list(_repeated(trajectory, answers, writes))
    for number, task in enumerate(trajectory.scenario.tasks[: len(trajectory.tasks)]):
        own = [made for made in writes if made.task == number]
        if own:
            fits = {made.key: _fitting(answers, made, task.nodes) for made in own}
            found += _early(trajectory, task, own, fits)
            found += _wrong(trajectory, own, fits)
            found += _stale(trajectory, answers, number)
    return sorted(found, key=_order)


def _repeated(trajectory: Trajectory, answers: Answers, writes: Sequence[Made]) -> Iterator[WriteFinding]:
    allowed: Counter[CallKey] = Counter()
    for made in writes:
        before = allowed[made.key]
        if before and before >= answers.wanted(made, trajectory.scenario.tasks[: made.task + 1]):
            yield _finding(trajectory, made, REPEATED, "was made before")
        else:
            allowed[made.key] += 1


Fits = dict[CallKey, list[int]]
"""The nodes of one Task that each of its writes answers, by position."""


def _fitting(answers: Answers, made: Made, nodes: Sequence[Node]) -> list[int]:
    return [i for i, node in enumerate(nodes) if answers.answers(made, node)]


def _early(trajectory: Trajectory, task: Task, own: Sequence[Made], fits: Fits) -> Iterator[WriteFinding]:
    idle = not any(node.is_call or node.is_ask for node in task.nodes)
    asks = any(node.is_ask for node in task.nodes)
    for made in own:
        if idle:
            yield _finding(trajectory, made, EARLY, "was made, though the task asks for nothing to be done")
            continue
        replies = trajectory.tasks[made.task].replies[: made.step]
        texts = sum(bool(reply.content) and not reply.calls for reply in replies)
        needed = min((_asks_before(task.nodes, i) for i in fits[made.key]), default=int(asks))
        if texts < needed:
            yield _finding(trajectory, made, EARLY, "was made before the user had answered")


def _asks_before(nodes: Sequence[Node], position: int) -> int:
    """How many asks a node waits for, directly or not."""
    before: set[int] = set()
    waiting = [position]
    while waiting:
        new = set(nodes[waiting.pop()].dependencies) - before
        before |= new
        waiting.extend(new)
    return sum(nodes[i].is_ask for i in before)


def _wrong(trajectory: Trajectory, own: Sequence[Made], fits: Fits) -> Iterator[WriteFinding]:
    answered = _answered([fits[made.key] for made in own])
    for place, made in enumerate(own):
        if place not in answered:
            why = (
                "was made more often than the task wants"
                if fits[made.key]
                else "is no call that the task wants"
            )
            yield _finding(trajectory, made, WRONG, why)


def _answered(fits: Sequence[Sequence[int]]) -> set[int]:
    """The writes that get a node of their own: as many as possible, by augmenting paths in order."""
    holder: dict[int, int] = {}

    def place(write: int, tried: set[int]) -> bool:
        for node in fits[write]:
            if node not in tried:
                tried.add(node)
                if node not in holder or place(holder[node], tried):
                    holder[node] = write
                    return True
        return False

    return {write for write in range(len(fits)) if place(write, set())}


def _stale(trajectory: Trajectory, answers: Answers, number: int) -> Iterator[WriteFinding]:
    """What a Task with at least one write left standing."""
    scenario, played = trajectory.scenario, trajectory.tasks[number]
    if not played.finished:
        return
    undoing = {name for name, notes in scenario.notes.items() if notes.undoes}
    nodes = [node for node in scenario.tasks[number].nodes if node.name in undoing]
    own = [made for made in calls_made(trajectory, undoing) if made.task == number] if nodes else []
    for node in nodes:
        undoes = scenario.notes[node.name].undoes
        if not any(answers.answers(made, node) for made in own):
            yield WriteFinding(
                session=trajectory.session,
                epoch=trajectory.epoch,
                task=number,
                step=len(played.replies) - 1,
                call=None,
                tool=node.name,
                kind=STALE,
                arguments=call_key(node.name, node.arguments)[1],
                why=f"was not made: the write of {' or '.join(sorted(undoes))} stands",
            )


def _finding(trajectory: Trajectory, made: Made, kind: str, why: str) -> WriteFinding:
    return WriteFinding(
        session=trajectory.session,
        epoch=trajectory.epoch,
        task=made.task,
        step=made.step,
        call=made.place,
        tool=made.call.name,
        kind=kind,
        arguments=made.key[1],
        why=why,
    )


def _order(finding: WriteFinding) -> tuple[int, int, bool, int, int]:
    call = finding.call
    return finding.task, finding.step, call is None, call or 0, KINDS.index(finding.kind)
