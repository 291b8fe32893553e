"""The writes at fault, each once with all that is wrong with it, as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby

from scenarios.text import clip, visible
from scoring.metrics.writes import STALE, WriteFinding

ARGUMENTS = 600
"""Characters of arguments that a line has."""

AT_FAULT, STANDING = "Writes at fault", "Writes left standing"
"""What the agent wrote and should not have; and what it should have taken back and did not."""

Faulty = tuple[WriteFinding, ...]
"""All findings of one write: they share the place, the tool and the arguments."""


def faulty_writes(findings: Iterable[WriteFinding]) -> list[Faulty]:
    """One entry for each call that was made; `findings` are in the order of `write_findings`."""
    made = (it for it in findings if it.kind != STALE)
    return [tuple(of) for _, of in groupby(made, key=lambda it: (it.session, it.task, it.step, it.call))]


def standing_writes(findings: Iterable[WriteFinding]) -> list[Faulty]:
    """One entry for each call that would have taken a write back."""
    return [(it,) for it in findings if it.kind == STALE]


def write_lists(findings: Sequence[WriteFinding]) -> tuple[tuple[str, list[Faulty]], ...]:
    """Both lists with their titles."""
    return (AT_FAULT, faulty_writes(findings)), (STANDING, standing_writes(findings))


def write_lines(
    findings: Sequence[WriteFinding], limit: int | None, unscored: Container[tuple[str, int]] = ()
) -> Iterator[str]:
    """Where each is, and what is wrong with it; of each list no more than `limit`.

    `unscored` are the Sessions, by name and epoch, that the figures leave out.
    """
    for title, entries in write_lists(findings):
        if not entries:
            continue
        yield f"{title}: {len(entries)}{beyond_figures(entries, unscored)}"
        shown = entries if limit is None else entries[:limit]
        yield from (f"  {place_of_write(it)}: {told(it)}" for it in shown)
        if len(entries) > len(shown):
            yield f"  and {len(entries) - len(shown)} more: --verbose has them all"


def beyond_figures(entries: Iterable[Faulty], unscored: Container[tuple[str, int]]) -> str:
    """`, 3 of them in sessions that were not scored`: those are in no figure. Empty if there are none."""
    count = sum((it[0].session, it[0].epoch) in unscored for it in entries)
    return f", {count:,} of them in sessions that were not scored" if count else ""


def place_of_write(entry: Faulty) -> str:
    """`shop.e1, task 1, step 2, call 1`: all count from 1."""
    first = entry[0]
    call = "" if first.call is None else f", call {first.call + 1}"
    return f"{visible(first.session)}, task {first.task + 1}, step {first.step + 1}{call}"


def told(entry: Faulty) -> str:
    """`repeated, wrong write: book {...} was made before, and is no call that the task wants`."""
    return f"{kinds(entry)}: {call_and_why(entry)}"


def kinds(entry: Faulty) -> str:
    """`repeated, wrong write`."""
    return ", ".join(it.kind.removesuffix("_write") for it in entry) + " write"


def call_and_why(entry: Faulty, limit: int = ARGUMENTS) -> str:
    """The call with its arguments, `limit` characters of them, and everything that is wrong with it."""
    first = entry[0]
    call = f"{first.tool} {clip(first.arguments, limit)}"
    return visible(f"{call} {', and '.join(it.why for it in entry)}")
