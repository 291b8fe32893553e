"""Why a Task failed: one class of the published error table for each failed Task.

The benchmark names nine classes and releases no code for them. The rules are those of the analysis code
that was released with its predecessor (facts: section 1, "Error classes"), in its order: of the rules that
match, the first decides. What that table has no column for is `unclassified`, and says in `detail` what
it is. Readings of what the rules leave open:

- The scorer's first wrong Step decides whether names or parameters are to blame, and nothing after it counts.
- A reply that did not come counts as an empty one, as the released scorer counts it.
- Actions taken are the tool calls, those of the wrong Step included, and the texts before it (asks).
- A surplus call is a Redundant Call where the Reference has each surplus name, else a Call Error.
- A text that comes too soon is an Early Termination, as it ends the Task (the older code counts it as an
  ask, mostly a Call Error); so is a reply that is empty, and a call that comes out of order.
- An undeclared key is a Param Hallucination, as in the full published table; the short one counts it as a
  Param Type Error. Its `detail` is `undeclared_key`.
- A wrong type is one other than the Reference's, integers and floats being one, and for the scorer
  `wildtoolbench` also what the released checker calls one: 1 for 1.0. A value that the Reference has and
  the call lacks is a Param Value Error.
- Of several wrong calls of the wrong Step all are looked at for `wildtoolbench`, whose checks name them
  all, and for other scorers the one that the evidence is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from scenarios import arguments as released
from scenarios.types import ASK, Node, Reply, Task, Tool, ToolCall
from scoring.metrics.figures import Definition, Definitions, Figure
from scoring.metrics.rates import rate_of_tasks
from scoring.types import CORRECT, NOT_REACHED, Evidence, StepScore, TaskScore, TaskTrajectory
from scoring.verdicts.error_parameters import CallFaults, faults_of
from scoring.verdicts.released_evidence import pairs

UNCLASSIFIED = "unclassified"

CLASSES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "refusal": ("Refusal", "The first reply was no tool call where one was due, or it was empty."),
        "wrong_refusal": ("Wrong Refusal", "A tool was called where only a text was due."),
        "wrong_name": (
            "Wrong Name / Missing Info",
            "The Reference asks the user, and tools were called without a text before.",
        ),
        "redundant_call": (
            "Redundant Call",
            "More was done than the Reference has, or a tool of it was called too often.",
        ),
        "call_error": ("Call Error", "A tool was called that the Reference does not have."),
        "early_termination": (
            "Early Termination",
            "What was done is part of the Reference, but the next reply ended it or came out of order.",
        ),
        "param_type": ("Param Type Error", "A value is of another type than the Reference's."),
        "param_hallucination": (
            "Param Hallucination",
            "A parameter is not declared, or not in the Reference nor its value in its description.",
        ),
        "param_value": ("Param Value Error", "A value is wrong, or missing, in any other way."),
        UNCLASSIFIED: (
            "Unclassified",
            "What the published table has no column for: a tool that does not exist, a required parameter "
            "that is missing, arguments that cannot be read, a Task that was not reached.",
        ),
    }
)
"""By id, in the published order: the published column title and the rule in a sentence."""

DEFINITIONS: Definitions = {
    "error_share": Definition(
        title="Errors by class",
        unit="rate",
        text="Failed Tasks of a class, of all failed Tasks. Each failed Task has exactly one class: of the "
        "rules that match, the first in order decides.",
        source="column names: WildToolBench, error table; rules: the analysis code of C3-Benchmark",
        better=None,
    )
}

_PARAMETER_CLASSES: Mapping[str, tuple[str, str | None]] = {
    "crash": (UNCLASSIFIED, "crash"),
    "invalid_json": (UNCLASSIFIED, "invalid_json"),
    "required_missing": (UNCLASSIFIED, "required_missing"),
    "undeclared_key": ("param_hallucination", "undeclared_key"),
    "type": ("param_type", None),
    "invented": ("param_hallucination", None),
    "value": ("param_value", None),
}
"""By what is wrong with the arguments of a call, in the order in which one decides."""

_SAID_BY_CHECKER = (
    (released.INVALID_JSON, "invalid_json"),
    (released.CRASH, "crash"),
    ("args missing", "required_missing"),
    ("args not defined", "undeclared_key"),
    ("type inconsistent", "type"),
)
"""Parts of the released checker's messages, and what they say is wrong."""

_OF_RELEASED = "released."
"""How the rules begin by which the released scorer's Steps are wrong."""

_OF_ARGUMENTS = ("args.", "published.args.")
"""How the rules of other scorers begin by which the arguments of a call are wrong."""


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """`name` is a key of `CLASSES`; `detail` says what it is in an id, where the class alone does not."""

    name: str
    detail: str | None = None


def classify(
    tools: Sequence[Tool], task: Task, played: TaskTrajectory, score: TaskScore
) -> ErrorClass | None:
    """The class of a failed Task, whichever scorer scored it; None for a correct or unscored one.

    A score without evidence is taken for one that `scoring.verdicts.wildtoolbench` made.
    """
    if score.label is None or score.label == CORRECT:
        return None
    evidence, replies = score.evidence, (*played.replies, Reply(None))
    wrong = next((step for step in score.steps if step.verdict != CORRECT), None)
    if played.ending == NOT_REACHED or (evidence is None and wrong is None):
        return ErrorClass(UNCLASSIFIED, "not_reached")
    if wrong is not None and (evidence is None or evidence.rule.startswith(_OF_RELEASED)):
        at, faults = wrong.step, _faults_in_checks(tools, task.nodes, replies[wrong.step].calls, wrong)
    elif evidence is not None:
        at, faults = evidence.step, _faults_in_evidence(tools, replies[evidence.step].calls, evidence)
    if faults:
        return _by_parameters(faults)
    return _by_names(tools, task.nodes, replies[: at + 1])


def error_figures(failed: Sequence[tuple[str, ErrorClass]]) -> list[Figure]:
    """The share of each class in the failed Tasks, each with the id of its Scenario, in published order."""
    return [
        rate_of_tasks("error_share", name, [(scenario, it.name == name) for scenario, it in failed])
        for name in CLASSES
    ]


def _by_names(tools: Sequence[Tool], nodes: Sequence[Node], replies: Sequence[Reply]) -> ErrorClass:
    """The class of replies of which the last is the first that is no Step."""
    calls = [call.name for reply in replies for call in reply.calls]
    texts = [bool(reply.content) and not reply.calls for reply in replies]
    if len(replies) == 1 and not calls:
        return ErrorClass("refusal")
    if all(node.is_close for node in nodes):
        return ErrorClass("wrong_refusal")
    if not set(calls) <= {tool.name for tool in tools}:
        return ErrorClass(UNCLASSIFIED, "unknown_tool")
    if any(node.is_ask for node in nodes) and not any(texts):
        return ErrorClass("wrong_name")
    wanted = Counter(node.name for node in nodes)
    taken = Counter({ASK: sum(texts[:-1])}) + Counter(calls)
    surplus = taken - wanted
    if taken.total() > len(nodes) - 1 or (surplus and surplus.keys() <= wanted.keys()):
        return ErrorClass("redundant_call")
    if surplus:
        return ErrorClass("call_error")
    last = "out_of_order" if replies[-1].calls else "closed_early" if texts[-1] else "no_reply"
    return ErrorClass("early_termination", last)


def _by_parameters(faults: Iterable[CallFaults]) -> ErrorClass:
    found = frozenset[str]().union(*faults)
    return next(ErrorClass(*known) for fault, known in _PARAMETER_CLASSES.items() if fault in found)


def _faults_in_evidence(
    tools: Sequence[Tool], calls: Sequence[ToolCall], evidence: Evidence
) -> list[CallFaults]:
    """What is wrong with the arguments of the call to blame; nothing where the names are to blame."""
    nearest = evidence.nearest
    if evidence.call is None or nearest is None or not evidence.rule.startswith(_OF_ARGUMENTS):
        return []
    call = calls[evidence.call]
    return [
        faults_of(_parameters(tools, call.name), call.arguments, nearest.arguments or {}, evidence.faults)
    ]


def _faults_in_checks(
    tools: Sequence[Tool], nodes: Sequence[Node], calls: Sequence[ToolCall], step: StepScore
) -> list[CallFaults]:
    """What is wrong with each wrong call; nothing where the names are to blame."""
    if not step.checks:
        return []
    paired = pairs(nodes, calls, step)
    if paired is None:
        return [frozenset({"crash"})]
    return [
        _said(check)
        | faults_of(_parameters(tools, calls[call].name), calls[call].arguments, nodes[node].arguments)
        for check, (call, node) in zip(step.checks, paired, strict=True)
        if check != CORRECT
    ]


def _said(check: str) -> CallFaults:
    return frozenset(fault for part, fault in _SAID_BY_CHECKER if part in check)


def _parameters(tools: Sequence[Tool], name: str) -> object:
    return next((tool.parameters for tool in tools if tool.name == name), None)
