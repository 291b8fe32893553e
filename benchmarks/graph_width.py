"""How long both scorers take for one Task, against how wide its graph of calls is.

    python benchmarks/graph_width.py [--most 20]

Independent calls, of as many tools or all of one, made at once, and one by one; and layers of calls, each of
which needs the whole layer before. `paths` is how many legal sequences of steps there are: the released
evaluator writes all of them down, which takes minutes for 8 calls. Prints milliseconds, of the best of a few
runs, as a Markdown table. The target: 5 ms for 12 independent calls.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from scenarios.load import parse_record
from scenarios.types import Reply, Scenario, ToolCall
from scoring.verdicts import strict, wildtoolbench

RUNS = 5
WIDTHS = (1, 2, 4, 8, 12, 16, 24)
LAYERS = ((1, 8), (4, 4, 4), (8, 8))


@dataclass(frozen=True, slots=True)
class Graph:
    """A Task's calls by layers, in which each needs all of the layer before; `one_tool`: all of one tool."""

    layers: tuple[int, ...]
    one_tool: bool = False

    @property
    def calls(self) -> int:
        return sum(self.layers)

    @property
    def name(self) -> str:
        if len(self.layers) > 1:
            return f"layers of {', '.join(map(str, self.layers))}"
        return f"{self.calls} of one tool" if self.one_tool else str(self.calls)

    @property
    def paths(self) -> int:
        """Sequences of groups of calls: ordered partitions of each layer (Fubini numbers)."""
        product = 1
        for width in self.layers:
            product *= fubini(width)
        return product


def fubini(count: int) -> int:
    known = [1]
    for size in range(1, count + 1):
        known.append(sum(comb(size, first) * known[size - first] for first in range(1, size + 1)))
    return known[count]


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--most", type=int, default=WIDTHS[-1], help="The widest graph, in calls.")
    most = options.parse_args().most
    graphs = [
        *(Graph((width,)) for width in WIDTHS),
        *(Graph((width,), one_tool=True) for width in WIDTHS[2:]),
        *map(Graph, LAYERS),
    ]
    print("| calls | paths | released: at once, ms | one by one | strict: at once, ms | one by one |")
    print("|---|---|---|---|---|---|")
    for graph in graphs:
        if graph.calls <= most:
            print(line(graph))


def line(graph: Graph) -> str:
    scenario = scenario_of(graph)
    told = [
        f"{1000 * best(scorer, scenario, replies):.2f}"
        for scorer in (wildtoolbench, strict)
        for replies in (at_once(graph), one_by_one(graph))
    ]
    paths = "-" if graph.one_tool else f"{graph.paths:,}"
    return f"| {graph.name} | {paths} | {' | '.join(told)} |"


def scenario_of(graph: Graph) -> Scenario:
    nodes: list[dict[str, Any]] = []
    before: Sequence[int] = ()
    for layer in numbers(graph):
        for number in layer:
            name, arguments = call(graph, number)
            action = {"name": name, "arguments": arguments}
            nodes.append({"action": action, "observation": "done", "dependency_list": [*before]})
        before = layer
    closing = {"name": "prepare_to_answer", "arguments": {}}
    nodes.append({"action": closing, "observation": "Done.", "dependency_list": list(range(len(nodes)))})
    names = dict.fromkeys(call(graph, number)[0] for number in range(graph.calls))
    return parse_record(
        {
            "id": "wide_1",
            "env_info": "2025-01-02 09:00:00 Thursday",
            "tools": [tool(name) for name in names],
            "tasks": ["Do all of it."],
            "answer_list": [nodes],
            "task_types": ["Mixed Multi-Tool"],
            "turn_subtypes": [],
        }
    )


def tool(name: str) -> dict[str, Any]:
    thing = {"type": "string", "description": "What it is done to."}
    parameters = {"type": "object", "properties": {"thing": thing}, "required": ["thing"]}
    return {
        "type": "function",
        "function": {"name": name, "description": "Does it.", "parameters": parameters},
    }


def call(graph: Graph, number: int) -> tuple[str, dict[str, str]]:
    return ("do", {"thing": f"t{number}"}) if graph.one_tool else (f"do_{number}", {"thing": "lamp"})


def at_once(graph: Graph) -> list[Reply]:
    return [*(reply(graph, layer) for layer in numbers(graph)), Reply("Done.")]


def one_by_one(graph: Graph) -> list[Reply]:
    """The last first; calls of one tool in the annotated order, which alone the released rules take."""
    orders = [layer if graph.one_tool else layer[::-1] for layer in numbers(graph)]
    return [*(reply(graph, [number]) for layer in orders for number in layer), Reply("Done.")]


def numbers(graph: Graph) -> Iterator[Sequence[int]]:
    begin = 0
    for width in graph.layers:
        yield range(begin, begin + width)
        begin += width


def reply(graph: Graph, some: Sequence[int]) -> Reply:
    calls = ((number, *call(graph, number)) for number in some)
    return Reply(None, tuple(ToolCall(f"c{number}", name, json.dumps(it)) for number, name, it in calls))


def best(scorer: Any, scenario: Scenario, replies: Sequence[Reply]) -> float:
    """Seconds for the Task. Its score must be right, else nothing was measured."""
    seconds = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        scored = scorer.score_task(scenario.tools, scenario.tasks[0].nodes, replies)
        seconds.append(time.perf_counter() - begin)
        assert scored.label == "correct", (scorer.__name__, replies, scored)
    return min(seconds)


if __name__ == "__main__":
    main()
