"""The page on what every figure means, from the definitions that stand beside the code that makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from scenarios.strict.rules import RULES as ARGUMENT_RULES
from scoring.compare import definitions as compare_definitions
from scoring.leaderboard import board as leaderboard
from scoring.metrics import (
    accuracy,
    calls,
    cells,
    efficiency,
    null_agents,
    passes,
    progress,
    transitions,
    writes,
)
from scoring.metrics.figures import Definition
from scoring.verdicts import error_classes, evidence, live, published, released_evidence


@dataclass(frozen=True, slots=True)
class Section:
    """Figures that are explained together."""

    title: str
    text: str
    modules: Sequence[ModuleType]


SECTIONS = (
    Section(
        "Accuracy, optimal path, progress",
        "What `score` prints for every scorer, side by side, with the difference of two in points where "
        "there is any.",
        (accuracy, progress, transitions),
    ),
    Section(
        "Over two properties of a task at once",
        "What the report draws as a heat map and as stacked bars; in the formats for programs as well.",
        (cells,),
    ),
    Section(
        "Repeats",
        "With several epochs (`drive --epochs`). k goes up to the least number of scored epochs of any "
        "scenario; what was not scored is no failure.",
        (passes,),
    ),
    Section(
        "Runs that go on after a wrong step, or keep the agent's own history",
        "Told apart from all others, with a banner. A completed task counts calls and order by the argument "
        "rules of the scorer.",
        (live,),
    ),
    Section(
        "Calls",
        "What the agent did in scored sessions and tasks, right and wrong ones alike, but missed "
        "parallelism and steps lost are of correct tasks only.",
        (calls,),
    ),
    Section(
        "Writes",
        "Calls of the tools that a scenario's annotations mark as having side effects ([how]"
        "(scenarios.md)). Every call that was made counts, also one in the step that ended its task.",
        (writes,),
    ),
    Section(
        "Tokens, time, cost",
        "From the log's exchanges; what a provider did not tell is missing, not 0, and `n` says of how much "
        "it is known. `--prices FILE` is JSON: a `currency` and, for each model or pattern, the price of a "
        "million `input` and `output` tokens.",
        (efficiency,),
    ),
    Section(
        "Agents without a model",
        "Printed with every score: what a scenario set gives for nothing, and for its own References.",
        (null_agents,),
    ),
    Section("Comparison of two runs", "What `compare` prints.", (compare_definitions,)),
    Section(
        "Published figures",
        "What `score --leaderboard` prints beside a run of the same kind.",
        (leaderboard,),
    ),
)

OTHER_FIGURES: Mapping[str, str] = {
    "sessions played": "`drive`: sessions that came to their end, of those planned.",
    "names right": "`drive`: tasks closed without a step that the released harness refuses; arguments are "
    "not looked at, so it is no score.",
    "without errors": "`drive`, where a wrong step does not end its task: tasks closed without a step that "
    "the released harness refuses and without a call that was refused. The others may have come right after "
    "errors; that is not looked at.",
    "right, wrong": "`tail`, the live page: the verdict of `strict` on a task that is over; of a session, "
    "whether all its tasks are right.",
    "input and output tokens": "`drive`, `tail`, the live page: as the provider told them, over all its "
    "exchanges.",
    "seconds": "`drive`: wall time. `tail`, the live page: from a request to the end of its answer; of a "
    "task or session, from its first user turn to its end.",
    "tools, tasks, nodes": "`scenarios list`: sizes of a scenario.",
}
"""Figures that commands print beside those of `score` and `compare`."""

_INTRODUCTION = """\
Every figure that a command prints. A rate stands with its counts and a 95 % interval; where there is
nothing to tell, its value is null and `n` is 0, never 0 or 1. In JSON, CSV and thresholds a figure goes by
the name given here, with its group in brackets and a scorer in front: `strict:accuracy_by_label[Chat]`.

## Scorers

| scorer | what it is |
|---|---|
| `wildtoolbench` | The released scorer to the bit, quirks included ([the list](facts.md)). |
| `strict` | Every order and grouping that the Reference's graph allows; calls assigned one to one to nodes, \
by name and arguments; arguments by meaning: numbers by value, defaults filled in on both sides, text after \
Unicode normalisation, dates, times and URLs in canonical form, free text by likeness only where the \
scenario says so, JSON Schema by its own semantics. |
| `published` | {published} |

A task is judged up to its first wrong step, by each scorer for itself. Which scorer gates is the first one
named by `--scorer`, else `wildtoolbench`; `published` never does.

## Intervals

- **Sessions**: Wilson's score interval, as long as no scenario was played twice.
- **Tasks**, and sessions in several epochs: draws are clustered by scenario (standard error with the factor
  G/(G-1), E. Miller, arXiv 2411.00640), and the interval is Wilson's on the effective sample size, never more
  than the number of tasks, with the t quantile of G-1 degrees of freedom. At 0 or 100 %, where clustering
  cannot be seen, a scenario counts once, and near them the interval is never narrower than there.
  Over a single scenario there is no interval.
- **Pass^k and pass@k**, and the rates that `compare` prints of runs with several epochs, take each task or
  session for one draw, however many epochs it has. Their intervals are over scenarios; with many epochs
  they are wider than those of the accuracy, which is the same rate.
- Overlapping intervals say nothing about a difference: use `compare`, which looks at pairs.
"""


def metrics_page(notice: str) -> str:
    lines = ["# Metrics", "", notice, "", *_INTRODUCTION.format(published=published.NOTE).splitlines()]
    for section in SECTIONS:
        lines += ["", f"## {section.title}", "", section.text, "", *_figures(section.modules)]
    lines += ["", "## Error classes", "", *_classes()]
    lines += ["", "## Rules", "", *_rules()]
    lines += ["", "## Figures of other commands", "", "| figure | what it is |", "|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in OTHER_FIGURES.items()]
    return "\n".join(lines) + "\n"


def _figures(modules: Iterable[ModuleType]) -> Iterator[str]:
    yield from ("| figure | name | unit | better | what it is | source |", "|---|---|---|---|---|---|")
    for module in modules:
        definitions: Mapping[str, Definition] = module.DEFINITIONS
        for name, it in definitions.items():
            yield _row(it.title, f"`{name}`", it.unit, it.better or "-", it.text, it.source)


def _classes() -> Iterator[str]:
    yield from (
        "One class for each failed task, the first rule that matches, in this order; shares are of the "
        "failed tasks. The paper gives the names alone: the rules are those of the authors' older benchmark, "
        "as far as they can be read ([more](facts.md#error-classes)).",
        "",
        *_figures([error_classes]),
        "",
        "| class | title | rule |",
        "|---|---|---|",
    )
    for name, (title, rule) in error_classes.CLASSES.items():
        yield _row(f"`{name}`", title, rule)


def _rules() -> Iterator[str]:
    yield from (
        "The `rule` of a wrong task's evidence: what was broken first. `step.` and `args.` are those of "
        "`strict` (the latter say what must hold), `released.` those of `wildtoolbench`, and of `published` "
        "where no argument is to blame, `published.` those of `published` where one is.",
        "",
        "| rule | what it says |",
        "|---|---|",
    )
    for rules in (evidence.RULES, ARGUMENT_RULES, released_evidence.RULES, published.RULES):
        for name, text in rules.items():
            yield _row(f"`{name}`", text)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
