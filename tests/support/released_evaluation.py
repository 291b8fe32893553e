"""The released evaluation of result files, in few words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scenarios.arguments import check_arguments
from scenarios.load import load
from scenarios.types import PSEUDO_ACTIONS
from scoring.export import UNCHECKABLE
from scoring.metrics.accuracy import Counts


def judged(task: dict[str, Any]) -> tuple[str, bool, int]:
    """(label, is_optimal, steps left) as the released code comes to them; it reads no more than this."""
    record, wrong_arguments = task["inference_log"], False
    left = [key for key in record if key.startswith("step_")]
    for key in list(left):
        if wrong_arguments:
            left.remove(key)
            break
        answer, output = record[key]["inference_answer"], record[key]["inference_output"]
        if output["current_action_name_label"] == "error":
            break
        assert list(answer) == ["candidate_0_answer_function_list"]
        expected = answer["candidate_0_answer_function_list"]["action"]
        if expected[0]["name"] not in PSEUDO_ACTIONS:
            given = [call["function"] for call in output["tool_calls"]]
            wrong_arguments = not agree(record[key]["inference_input"]["tools"], given, expected)
    names_right = task["action_name_label"] == "correct"
    label = "correct" if names_right and not wrong_arguments else "error"
    return label, task["is_optimal"] and not wrong_arguments, len(left)


def agree(tools: Any, given: list[dict[str, str]], expected: list[dict[str, str]]) -> bool:
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    sides = [sorted((it["name"], it["arguments"]) for it in side) for side in (given, expected)]
    verdicts = set()
    for (name, text), (expected_name, reference) in zip(*sides, strict=True):
        assert name == expected_name
        if text.startswith(UNCHECKABLE):  # no JSON, which is what the released code finds out first
            return False
        verdicts.add(check_arguments(schemas[name], text, json.loads(reference)))
    assert not any(verdict.startswith("error_crash") for verdict in verdicts)
    return verdicts == {"correct"}


def evaluated(lines: list[dict[str, Any]], files: Iterable[Path]) -> dict[tuple[str, str], tuple[int, int]]:
    """(section, row) -> (successes, n), over the file's lines; rows without any are not there."""
    scenarios = {scenario.id: scenario for file in load(tuple(files)) for scenario in file.scenarios}
    hits: Counter[tuple[str, str]] = Counter()
    totals: Counter[tuple[str, str]] = Counter()

    def add(section: str, row: str, success: int, n: int = 1) -> None:
        hits[section, row] += success
        totals[section, row] += n

    for line in lines:
        verdicts = [judged(task) for task in line["result"]]
        add("total_info", "session", all(label == "correct" for label, _, _ in verdicts))
        for place, ((label, optimal, steps), task) in enumerate(
            zip(verdicts, scenarios[line["id"]].tasks, strict=True)
        ):
            right = label == "correct"
            add("total_info", "task", right)
            add("layer_info", str(place), right)
            add("task_type_info", task.label, right)
            if "Multi-Tool" in task.label:
                add("task_type_info", "Multi-Tool", right)
            for row in ("Subsequent Turn", str(task.subtype)) if place else ("First Turn",):
                add("turn_subtype_info", row, right)
            for row in ("Total", task.label):
                if task.label in ("Parallel Multi-Tool", "Mixed Multi-Tool"):
                    add("optimal_info", row, optimal)
                if task.label in ("Sequential Multi-Tool", "Mixed Multi-Tool"):
                    add("progress_info", row, steps, len(task.nodes))
    return {key: (hits[key], totals[key]) for key in totals}


def flat(counts: Counts) -> dict[tuple[str, str], tuple[int, int]]:
    return {
        (section, row): value for section, rows in counts.items() for row, value in rows.items() if value[1]
    }
