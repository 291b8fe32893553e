"""Where in which Scenario a conversation stands, read from its messages alone.

The provider keeps nothing between requests: concurrency, restarts and re-sent
requests cannot change what it says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.offered import plain
from proxy.simulate.conversation import Message, fold, is_text, text_of, tool_names
from proxy.simulate.replay import replay
from scenarios.types import Node, Scenario, Task

_GRAM = 3
_SHORT = 16
"""A text of fewer characters must stand as words of its own: `OK` is not in `Look OKAY`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a conversation stands.

    `task` counts from 0; `done` are the positions of the Task's nodes that the
    conversation has behind it, the closing node included once a closing text was given;
    `step` is the number of assistant messages since the Task's words; `offered` says
    under which name the request offers a scenario's tool, where it was renamed.
    """

    scenario: Scenario
    task: int
    done: frozenset[int]
    step: int
    offered: Mapping[str, str]

    @property
    def current(self) -> Task:
        return self.scenario.tasks[self.task]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.current.nodes


@dataclass(frozen=True, slots=True)
class _Entry:
    """A Scenario prepared for comparison; `replies[task]` are its asks: (node, scripted reply)."""

    scenario: Scenario
    date: str
    tools: frozenset[str]
    replies: tuple[tuple[tuple[int, str], ...], ...]


@dataclass(frozen=True, slots=True)
class Index:
    """Scenarios, and the words by which they are recognised.

    `texts` gives for each Task's folded text the (entry, task) pairs that have it;
    `grams` lists each text under its rarest sequence of three characters (a shorter text
    under itself); `sizes` are the lengths of these sequences.
    """

    entries: tuple[_Entry, ...]
    texts: Mapping[str, tuple[tuple[int, int], ...]]
    grams: Mapping[str, tuple[str, ...]]
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Heard:
    """One user message: where it is, what it says, the Tasks' texts in it as (start, text).

    `answers` says that the assistant has spoken in text since the user message before.
    """

    at: int
    text: str
    found: tuple[tuple[int, str], ...]
    answers: bool


@dataclass(frozen=True, slots=True)
class _Trail:
    """The Tasks of one entry that a conversation has gone through; `start` is a message."""

    entry: int
    task: int
    start: int
    tasks_found: int
    characters: int


def build_index(scenarios: Sequence[Scenario]) -> Index:
    """Prepares Scenarios for `find_place`; of two that cannot be told apart the earlier wins."""
    texts: dict[str, list[tuple[int, int]]] = {}
    for number, scenario in enumerate(scenarios):
        for position, task in enumerate(scenario.tasks):
            if folded := fold(task.text):
                texts.setdefault(folded, []).append((number, position))
    frequency = Counter(gram for text in texts for gram in _grams(text))
    grams: dict[str, list[str]] = {}
    for text in texts:
        rarest = min(sorted(_grams(text)), key=frequency.__getitem__)
        grams.setdefault(rarest, []).append(text)
    return Index(
        tuple(_entry(scenario) for scenario in scenarios),
        {text: tuple(places) for text, places in texts.items()},
        {gram: tuple(found) for gram, found in grams.items()},
        tuple({len(gram) for gram in grams}),
    )


def find_place(index: Index, messages: Sequence[Message], tools: Sequence[Any] | None) -> Place | None:
    """The place of the request's next assistant message, or None if no Task's words are there.

    A Scenario is recognised by its Tasks' texts in the user messages: the one with most
    Tasks in order wins, then the one whose date the system text names, then the one
    whose tools the request offers, then the one with the longest words.
    """
    heard = tuple(_listen(index, messages))
    candidates = sorted({entry for one in heard for _, text in one.found for entry, _ in index.texts[text]})
    trails = [trail for number in candidates if (trail := _follow(index, number, heard))]
    if not trails:
        return None
    system = fold("\n".join(_system_texts(messages)))
    names = tool_names(tools)

    def rank(trail: _Trail) -> tuple[int, bool, float, int]:
        entry = index.entries[trail.entry]
        dated = bool(entry.date) and entry.date in system
        return trail.tasks_found, dated, _overlap(entry.tools, names), trail.characters

    best = trails[0] if len(trails) == 1 else max(trails, key=rank)
    entry = index.entries[best.entry]
    offered = _offered(entry.tools, names)
    progress = replay(
        entry.scenario.tasks[best.task].nodes,
        dict(entry.replies[best.task]),
        {other: name for name, other in offered.items()},
        messages[best.start + 1 :],
    )
    return Place(entry.scenario, best.task, progress.done, progress.steps, offered)


def _entry(scenario: Scenario) -> _Entry:
    replies = tuple(
        tuple((i, fold(node.user_input or "")) for i, node in enumerate(task.nodes) if node.is_ask)
        for task in scenario.tasks
    )
    tools = frozenset(tool.name for tool in scenario.tools)
    return _Entry(scenario, fold(scenario.date), tools, replies)


def _grams(text: str) -> set[str]:
    return {text[i : i + _GRAM] for i in range(max(1, len(text) - _GRAM + 1))}


def _system_texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if message.get("role") in ("system", "developer"):
            yield text_of(message.get("content"))


def _listen(index: Index, messages: Sequence[Message]) -> Iterator[_Heard]:
    spoke = False
    for at, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant":
            spoke = spoke or is_text(message)
        elif role == "user":
            text = fold(text_of(message.get("content")))
            yield _Heard(at, text, _recognise(index, text), spoke)
            spoke = False


def _recognise(index: Index, text: str) -> tuple[tuple[int, str], ...]:
    """Where the texts of Tasks stand in `text`, by position, the longer first."""
    grams = {text[i : i + size] for size in index.sizes for i in range(len(text) - size + 1)}
    likely = (known for gram in grams & index.grams.keys() for known in index.grams[gram])
    found = [(start, known) for known in likely for start in _occurrences(text, known)]
    return tuple(sorted(found, key=lambda one: (one[0], -len(one[1]), one[1])))


def _occurrences(text: str, known: str) -> Iterator[int]:
    start = text.find(known)
    while start >= 0:
        if len(known) >= _SHORT or _stands_alone(text, start, start + len(known)):
            yield start
        start = text.find(known, start + len(known))


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Is text[start:end] cut out at the edges of words? Scripts without blanks have no such edges."""

    def glued(left: str, right: str) -> bool:
        pair = left + right
        return len(pair) == 2 and pair.isascii() and pair.isalnum()

    return not glued(text[start - 1 : start], text[start]) and not glued(text[end - 1], text[end : end + 1])


def _follow(index: Index, number: int, heard: Sequence[_Heard]) -> _Trail | None:
    """Goes through the Tasks of one entry in order; None if none of its texts is there."""
    entry = index.entries[number]
    task, start, tasks_found, characters = -1, 0, 0, 0
    unasked: list[str] = []
    for one in heard:
        spans = _own_spans(index, number, one.found)
        later = [len(text) for _, text, tasks in spans if max(tasks) > task]
        reply = next((reply for reply in unasked if reply and reply in one.text), "") if one.answers else ""
        if reply and len(reply) >= max(later, default=0):
            unasked.remove(reply)
            continue
        for _, text, tasks in spans:
            following = next((i for i in tasks if i > task), None)
            if following is not None:
                task, start = following, one.at
                tasks_found += 1
                characters += len(text)
                unasked = [reply for _, reply in entry.replies[task]]
    return _Trail(number, task, start, tasks_found, characters) if tasks_found else None


def _own_spans(
    index: Index, number: int, found: Sequence[tuple[int, str]]
) -> list[tuple[int, str, tuple[int, ...]]]:
    """The spans of one entry with their Tasks, without those inside a longer one."""
    spans: list[tuple[int, str, tuple[int, ...]]] = []
    covered = 0
    for start, text in found:
        tasks = tuple(task for entry, task in index.texts[text] if entry == number)
        if tasks and start + len(text) > covered:
            spans.append((start, text, tasks))
            covered = start + len(text)
    return spans


def _overlap(own: frozenset[str], names: Sequence[str]) -> float:
    """How far the request's tools are the Scenario's: shared names over all names."""
    offered = set(_offered(own, names))
    everything = len(own) + len(set(names)) - len(offered)
    return len(offered) / everything if everything else 0.0


def _offered(own: frozenset[str], names: Sequence[str]) -> dict[str, str]:
    """The name under which each tool is offered: its own, else the only other one that ends with it."""
    foreign = set(names) - own
    offered: dict[str, str] = {}
    for name in sorted(own):
        ending = [other for other in foreign if plain(other).endswith(plain(name))]
        if name in names:
            offered[name] = name
        elif len(ending) == 1:
            offered[name] = ending[0]
    return offered
