"""Which verdicts of a Run are others than were saved before, and why. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from scenarios.text import clip, counted, visible
from scoring.output.tables import from_one
from scoring.types import CORRECT

_LINE = 300

VerdictKey = tuple[str, str, int, str]
"""(run, session, Task from 1, scorer)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A row of `verdicts`: the same names in the same order."""

    run: str
    session: str
    scenario: str
    scenario_hash: str
    epoch: int
    task: int
    scorer: str
    scorer_version: str
    config_hash: str
    label: str | None
    verdict: str | None
    rule: str | None
    reason: str | None
    error_class: str | None
    is_optimal: int

    @property
    def key(self) -> VerdictKey:
        return self.run, self.session, self.task, self.scorer

    @property
    def told(self) -> str:
        """`correct`, `error (args.number, param_value)`, and a live verdict: `error, wrong`."""
        details = [it for it in (self.rule, self.error_class) if it is not None]
        if self.label == CORRECT and not self.is_optimal:
            details.append("not optimal")
        said = ", ".join(dict.fromkeys(it for it in (self.label or "not scored", self.verdict) if it))
        return said + (f" ({', '.join(details)})" if details else "")

    @property
    def place(self) -> str:
        return f"{self.session}, task {self.task}, {self.scorer}"


@dataclass(frozen=True, slots=True)
class Moved:
    """A verdict that is another one than was saved for the same Task."""

    before: Verdict
    after: Verdict

    @property
    def scenario_changed(self) -> bool:
        return self.before.scenario_hash != self.after.scenario_hash

    @property
    def cause(self) -> str:
        """What else changed; if nothing did, the Task was played again or further."""
        causes = []
        if self.before.scorer_version != self.after.scorer_version:
            causes.append(f"{self.after.scorer} {self.before.scorer_version} -> {self.after.scorer_version}")
        if self.scenario_changed:
            causes.append("scenario changed")
        return " and ".join(causes) or "log changed"


@dataclass(frozen=True, slots=True)
class Saved:
    """What was saved of a Run in `path`. `compared` verdicts had one from before; `new` ones had none, and
    `gone` ones have none any more.
    """

    path: Path
    run: str
    compared: int
    moved: tuple[Moved, ...]
    new: tuple[Verdict, ...]
    gone: tuple[Verdict, ...]


def moved_lines(saved: Saved) -> list[str]:
    """A line for each verdict that moved, is new or gone, and one that sums up. The first time that alone."""
    if not saved.compared and not saved.gone:
        return [f"{counted(len(saved.new), 'verdict')} saved, none was there before"]
    lines = [
        f"{it.after.place}: {it.before.told} -> {it.after.told}; {it.cause}{_reason(it.after)}"
        for it in saved.moved
    ]
    lines += [f"{it.place}: new, {it.told}{_reason(it)}" for it in saved.new]
    lines += [f"{it.place}: gone, was {it.told}" for it in saved.gone]
    causes = Counter(it.cause for it in saved.moved)
    why = ", ".join(f"{cause} ({n})" for cause, n in sorted(causes.items(), key=lambda it: (-it[1], it[0])))
    summary = f"{len(saved.moved):,} of {counted(saved.compared, 'verdict')} moved"
    parts = [summary + (f": {why}" if why else "")]
    parts += [f"{len(found)} {what}" for what, found in (("new", saved.new), ("gone", saved.gone)) if found]
    return [*(clip(visible(line), _LINE) for line in lines), visible("; ".join(parts))]


def _reason(verdict: Verdict) -> str:
    return f": {from_one(verdict.reason)}" if verdict.reason and verdict.label != CORRECT else ""
