"""Why the released scorer says that a Task is wrong: its own verdict, with what it compared. Pure.

The rules and their messages are those of the released checker (see `scenarios.arguments`); nothing here
decides anything. Paths, values and normal forms are looked up again for the call that it blamed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scenarios.arguments import CRASH, INVALID_JSON
from scenarios.assign import agreement, parse_arguments
from scenarios.history import encode
from scenarios.matcher import Match, State, allowed, start
from scenarios.steps import ALLOWED_HERE, take_step
from scenarios.strict.faults import Fault
from scenarios.strict.rules import Steps, json_path
from scenarios.text import clip, visible
from scenarios.types import Node, Reply, ToolCall
from scoring.types import CORRECT, ERROR, Evidence, Nearest, StepScore, TaskScore

RULES: Mapping[str, str] = {
    "released.not_reached": "The session ended before this task.",
    "released.no_reply": "The replies ended before the task was over; an empty one is counted.",
    "released.action_names": "The names of the calls, or the text, are no step of any path that is left.",
    "released.args.invalid_json": "The arguments are not JSON.",
    "released.args.crash": "The released checker raises an exception on this call.",
    "released.args.schema": "The arguments break the tool's schema as the released checker reads it.",
    "released.args.keys": "Arguments are missing or extra; defaults do not count.",
    "released.args.type": "A value has another type than the annotated one; 1 and 1.0 differ.",
    "released.args.value": "A number or boolean is another than the annotated one.",
    "released.args.array_length": "An array is longer or shorter than the annotated one.",
    "released.args.text_similarity": "A text is too unlike the annotated one by edit distance or ROUGE-L.",
    "released.args.rouge_failed": "The released checker cannot compute ROUGE-L for this text.",
    "released.args.comparison": "The released checker cannot compare a value because of the tool's schema.",
}
"""Rule id -> what it says."""

_KINDS = (
    (INVALID_JSON, "invalid_json"),
    (CRASH, "crash"),
    ("error_schema: ", "schema"),
    ("error_match: args keys mismatch", "keys"),
    ("error_match: value type inconsistent", "type"),
    ("error_match: value mismatch", "value"),
    ("error_match: array length mismatch", "array_length"),
    ("error_match: string similarity too low", "text_similarity"),
    ("error_match: rouge calculation failed", "rouge_failed"),
    ("error: comparison failed", "comparison"),
)
"""How a message of the released checker begins, and the kind of fault that it is."""

_Place = tuple[str, Steps, Any, Any]
"""(path as the released checker writes it, steps from the root, expected, actual)"""


def rule_of(check: str) -> str:
    """The rule id for a message of the released checker; an unknown one counts as a crash."""
    kind = next((kind for begins, kind in _KINDS if check.startswith(begins)), "crash")
    return f"released.args.{kind}"


def explain(nodes: Sequence[Node], replies: Sequence[Reply], score: TaskScore) -> Evidence | None:
    """The evidence for a wrong Task that `scoring.verdicts.wildtoolbench` scored; None for any other Task.

    Of one that another scorer found wrong it may be asked where names decide as they do there.
    """
    if score.label != ERROR:
        return None
    wrong = next((step for step in score.steps if step.verdict != CORRECT), None)
    if wrong is None:
        return Evidence(0, "released.not_reached", score.reason or "not reached")
    state, done = _before(nodes, replies, wrong.step)
    batches = tuple(allowed(state))
    if wrong.checks is not None:
        return _of_arguments(nodes, replies[wrong.step], wrong, batches)
    rule = "released.no_reply" if wrong.step >= len(replies) else "released.action_names"
    calls = () if wrong.step >= len(replies) else replies[wrong.step].calls
    reason = wrong.reason or "no step that is allowed"
    number = _odd_call(calls, batches)
    return Evidence(
        step=wrong.step,
        rule=rule,
        message=reason.partition(ALLOWED_HERE)[0],
        allowed=batches,
        nearest=_nearest(nodes, done, batches, calls, number),
        call=number,
        tool=None if number is None else calls[number].name,
    )


def _before(nodes: Sequence[Node], replies: Sequence[Reply], step: int) -> tuple[State, frozenset[int]]:
    """Where the released matcher stands before a Step, and what it has taken as done."""
    state, done = start(nodes), set[int]()
    for reply in replies[:step]:
        taken = take_step(state, reply)
        if not isinstance(taken, Match):
            break
        state = taken.state
        done.update(taken.nodes)
    return state, frozenset(done)


# --- Names -------------------------------------------------------------------


def _odd_call(calls: Sequence[ToolCall], batches: Sequence[tuple[str, ...]]) -> int | None:
    """The first call that the nearest allowed batch has no place for; None where only more were due."""
    left = Counter(_nearest_batch(calls, batches))
    for number, call in enumerate(calls):
        if not left[call.name]:
            return number
        left[call.name] -= 1
    return None


def _nearest_batch(calls: Sequence[ToolCall], batches: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The batch that takes the least calls made or left out; of equal ones the first."""
    made = Counter(call.name for call in calls)

    def distance(batch: tuple[str, ...]) -> int:
        wanted = Counter(batch)
        return (made - wanted).total() + (wanted - made).total()

    return min(batches, key=distance, default=())


def _nearest(
    nodes: Sequence[Node],
    done: frozenset[int],
    batches: Sequence[tuple[str, ...]],
    calls: Sequence[ToolCall],
    number: int | None,
) -> Nearest | None:
    """A ready node of the nearest batch that no call has the name of, most like the odd call."""
    batch = _nearest_batch(calls, batches)
    missing = (Counter(batch) - Counter(call.name for call in calls)) or Counter(batch)
    fitting = [
        i
        for i, node in enumerate(nodes)
        if node.name in missing and i not in done and done >= set(node.dependencies)
    ]
    given = None if number is None else parse_arguments(calls[number].arguments)
    found = max(fitting, key=lambda i: (agreement(given, nodes[i].arguments), -i), default=None)
    return None if found is None else _as_nearest(nodes, found)


def _as_nearest(nodes: Sequence[Node], position: int) -> Nearest:
    node = nodes[position]
    if node.is_call:
        return Nearest("call", position, node.name, node.arguments)
    return Nearest("ask" if node.is_ask else "close", position)


# --- Arguments ---------------------------------------------------------------


def _of_arguments(
    nodes: Sequence[Node], reply: Reply, step: StepScore, batches: tuple[tuple[str, ...], ...]
) -> Evidence:
    checks = step.checks or ()
    at = next(i for i, check in enumerate(checks) if check != CORRECT)
    rule, paired = rule_of(checks[at]), pairs(nodes, reply.calls, step)
    if paired is None:
        number = next(i for i, call in enumerate(reply.calls) if not isinstance(call.arguments, str))
        call = reply.calls[number]
        fault = Fault(rule, "$", checks[at], actual=call.arguments)
        return Evidence(step.step, rule, checks[at], batches, None, number, call.name, (fault,))
    number, position = paired[at]
    call, fault = reply.calls[number], _fault(rule, checks[at], reply.calls[number], nodes[position])
    which = f"call {number + 1} of {len(reply.calls)}, " if len(reply.calls) > 1 else ""
    message = f"{which}{visible(clip(call.name, 80))}: {checks[at]}"
    nearest = _as_nearest(nodes, position)
    return Evidence(step.step, rule, message, batches, nearest, number, call.name, (fault,))


def pairs(nodes: Sequence[Node], calls: Sequence[ToolCall], step: StepScore) -> list[tuple[int, int]] | None:
    """The call and the node that each of a Step's checks compared: both sides sorted by their texts.

    None where the released checker raises on them all, as some arguments are no text.
    """
    if not all(isinstance(call.arguments, str) for call in calls):
        return None
    given = sorted(range(len(calls)), key=lambda i: (calls[i].name, calls[i].arguments))
    expected = sorted(step.nodes, key=lambda i: (nodes[i].name, encode(nodes[i].arguments)))
    return list(zip(given, expected, strict=True))


def _fault(rule: str, check: str, call: ToolCall, node: Node) -> Fault:
    if rule in ("released.args.invalid_json", "released.args.crash", "released.args.schema"):
        given = parse_arguments(call.arguments)
        return Fault(rule, "$", check, node.arguments, call.arguments if given is None else given)
    for released, steps, expected, actual in _places(node.arguments, parse_arguments(call.arguments)):
        where = f" at '{released}'" if released else ""
        if _says(check, where):
            forms = (_form(expected), _form(actual))
            return Fault(rule, json_path(steps), check, expected, actual, *forms)
    return Fault(rule, "$", check, node.arguments, parse_arguments(call.arguments))


def _says(check: str, where: str) -> bool:
    """Does a message speak of this place? Its end may be a detail in brackets."""
    head = check.partition(" (")[0] if not where else check
    return f"{where} (" in f"{head} (" if where else " at '" not in head


def _places(expected: Any, actual: Any) -> Iterator[_Place]:
    """Every place that both sides have, in the order in which the released checker comes to them."""
    open_places: list[_Place] = [("", (), expected, actual)]
    while open_places:
        released, steps, expected, actual = place = open_places.pop()
        yield place
        inner: list[_Place] = []
        if isinstance(expected, dict) and isinstance(actual, dict):
            inner = [
                (f"{released}.{key}" if released else key, (*steps, key), value, actual[key])
                for key, value in expected.items()
                if key in actual
            ]
        elif isinstance(expected, list) and isinstance(actual, list):
            inner = [
                (f"{released}[{i}]", (*steps, i), *both)
                for i, both in enumerate(zip(expected, actual, strict=False))
            ]
        open_places.extend(reversed(inner))


def _form(value: Any) -> Any:
    """A value as the released checker compares it: text in lower case without white space."""
    return "".join(value.split()).lower() if isinstance(value, str) else value
