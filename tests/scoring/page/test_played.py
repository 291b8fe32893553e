"""Pages of runs that were really played: what a session shows of its calls is what was scored of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import run
from support.pages import Page, taken_apart

CANARY = "sk-canary-0123456789abcdef0123456789abcdef"
SCORERS = ("wildtoolbench", "strict")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of an agent that errs, by history."""
    folder = tmp_path_factory.mktemp("played")
    found = {name: folder / f"{name}.db" for name in ("gold", "live")}
    for name, path in found.items():
        play = ["drive", "--agent", "builtin", "--scenarios", "bundled", "--provider", "sim:noisy:0.4:3"]
        done = run(*play, "--history", name, "--log", path, env={"OPENAI_API_KEY": CANARY})
        assert done.exit_code == 0, done.output
    return found


@pytest.fixture(scope="module")
def page(logs: dict[str, Path]) -> Page:
    return taken_apart(run("report", *logs.values(), "-o", "-").stdout_bytes)


@pytest.fixture(scope="module")
def details(page: Page) -> dict[str, Any]:
    return page.packed("detail")


def tasks_of(details: dict[str, Any], number: int) -> Iterator[Any]:
    for key, detail in details.items():
        if key.startswith(f"r{number}s"):
            yield from detail["tasks"]


def calls_of(task: Any) -> list[Any]:
    return [call for step in task["steps"] for call in step["calls"]]


def test_what_is_marked_as_done_is_what_strict_matched(details: dict[str, Any]) -> None:
    tasks = list(tasks_of(details, 0))
    assert Counter(task["verdicts"]["strict"]["label"] for task in tasks).keys() == {"correct", "error"}
    for task in tasks:
        score = task["verdicts"]["strict"]
        left = [node["kind"] for node in task["reference"]["nodes"] if not node["done"]]
        if score["label"] == "correct":
            # Of a question that nothing needs any more nobody is the doer.
            assert set(left) <= {"ask"}
        else:
            assert len(task["reference"]["nodes"]) - len(left) == score["matched_nodes"]
        verdicts = {step["verdict"] for step in task["steps"]} - {"unjudged"}
        assert verdicts == {"right"} if score["label"] == "correct" else "wrong" in verdicts


def test_the_first_wrong_step_is_that_of_the_evidence(details: dict[str, Any]) -> None:
    blamed = 0
    for task in tasks_of(details, 0):
        evidence = task["verdicts"]["strict"]["evidence"]
        if evidence is None:
            continue
        [wrong] = [step for step in task["steps"] if step["verdict"] == "wrong"]
        assert wrong["number"] == evidence["step"] + 1
        if evidence["call"] is not None:
            call = wrong["calls"][evidence["call"]]
            assert call["verdict"] in ("wrong", "redundant")
            assert call["faults"] == evidence["faults"]
            assert call["message"] and evidence["message"].endswith(call["message"])
            blamed += 1
    assert blamed > 5


def test_calls_that_scorers_judge_otherwise_are_marked(details: dict[str, Any]) -> None:
    for task in tasks_of(details, 0):
        scores, calls = task["verdicts"], calls_of(task)
        if all(scores[name]["label"] == "correct" for name in SCORERS):
            assert [call["also"] for call in calls] == [{}] * len(calls)
        elif scores["strict"]["label"] == "correct" and scores["wildtoolbench"]["evidence"]["faults"]:
            assert [call["also"] for call in calls].count({"wildtoolbench": "wrong"}) == 1


def test_live_calls_are_counted_as_the_scorer_counts_them(details: dict[str, Any]) -> None:
    seen: Counter[str] = Counter()
    for task in tasks_of(details, 1):
        score, found = task["verdicts"]["strict"], Counter(call["verdict"] for call in calls_of(task))
        if score["verdict"] in ("correct", "correct_after_errors", "wrong"):
            assert found["redundant"] == score["redundant_calls"]
            assert found["wrong"] == score["unmatched_calls"]
            assert len(task["steps"]) == score["steps_taken"]
        if score["verdict"] == "correct":
            assert {step["verdict"] for step in task["steps"]} == {"right"}
        seen[score["verdict"]] += 1
    assert seen["correct"] and seen["wrong"]


def test_what_is_wrong_with_a_call_is_said_without_its_name(details: dict[str, Any]) -> None:
    said = [(call["name"], call["message"]) for call in calls_of_all(details) if call["message"]]
    assert len(said) > 10
    assert [it for it in said if it[1].startswith((it[0], "call "))] == []


def calls_of_all(details: dict[str, Any]) -> list[Any]:
    return [call for number in (0, 1) for task in tasks_of(details, number) for call in calls_of(task)]


def test_a_wrong_call_stands_beside_the_one_that_it_is_nearest_to(details: dict[str, Any]) -> None:
    faulty = [call for call in calls_of_all(details) if call["faults"]]
    assert len(faulty) > 5
    for call in faulty:
        assert isinstance(call["expected"], dict)
        assert call["verdict"] == "wrong"
        assert {fault["path"][0] for fault in call["faults"]} == {"$"}


def test_steps_name_the_exchanges_that_they_came_of(page: Page, details: dict[str, Any]) -> None:
    raw = page.packed("raw")
    assert raw.keys() == details.keys()
    for key, detail in details.items():
        rows = {it["id"]: it for it in raw[key]["exchanges"]}
        for task in detail["tasks"]:
            for step in task["steps"]:
                row = rows[step["exchanges"][-1]]
                said = json.loads(row["answer"])["choices"][0]["message"]
                assert said == json.loads(raw[key]["messages"][row["message"]])
                made = [it["function"]["arguments"] for it in said.get("tool_calls") or ()]
                assert [call["arguments"] for call in step["calls"]] == made
                assert row["input_tokens"] == step["input_tokens"]


def test_runs_side_by_side_are_compared_as_compare_does(page: Page, logs: dict[str, Path]) -> None:
    document = page.document
    assert [it["title"] for it in document["runs"]] == ["gold.db", "live.db"]
    assert [(it["a"], it["b"], it["scorer"]["name"]) for it in document["compare"]] == [
        ("r0", "r1", name) for name in SCORERS
    ]
    for found in document["compare"]:
        words = ["compare", *logs.values(), "--scorer", found["scorer"]["name"], "--format", "json"]
        told = json.loads(run(*words).stdout)
        same = told.keys() - {"a", "b", "flips", "session_flips"}
        assert {key: found[key] for key in same} == {key: told[key] for key in same}
        places = [(it["scenario"], it["task"], it["change"]) for it in found["flips"]]
        assert places == [(it["scenario"], it["task"], it["change"]) for it in told["flips"]]
        assert found["verdicts"]["task"] == told["verdict"]
        assert found["banner"].startswith("Not comparable: A has gold history")
        of_key = {row["key"]: row["scenario"] for row in document["sessions"]}
        for flip in found["flips"]:
            assert {side: of_key[key] for side, key in flip["keys"].items()} == dict.fromkeys(
                "ab", flip["scenario"]
            )


def test_a_live_run_says_that_it_is_not_comparable(page: Page) -> None:
    gold, live = page.document["runs"]
    banner = "live history, wrong steps do not end a task: not comparable with published figures"
    assert (gold["banner"], live["banner"]) == (None, banner)
    assert live["modes"] == {
        "history": "live",
        "history_from": "agent",
        "tools": "intercept",
        "on_mismatch": "continue",
        "usual": False,
    }


def test_no_key_is_in_a_page(page: Page) -> None:
    everything = json.dumps([page.document, page.packed("detail"), page.packed("raw")])
    assert len(page.packed("raw")) == 20
    assert CANARY not in everything
    assert CANARY[3:19] not in everything


@pytest.mark.parametrize("history", ["gold", "live"])
def test_writes_at_fault_are_marked_at_their_calls(
    page: Page, logs: dict[str, Path], details: dict[str, Any], history: str
) -> None:
    number = list(logs).index(history)
    told = json.loads(run("score", logs[history], "--format", "json").stdout)["writes"]
    assert told
    marked = [
        (detail["session"], task["number"], step["number"] - 1, place, fault["kind"].replace(" ", "_"))
        for key, detail in details.items()
        if key.startswith(f"r{number}s")
        for task in detail["tasks"]
        for step in task["steps"]
        for place, call in enumerate(step["calls"])
        for fault in call["at_fault"]
    ]
    expected = [
        tuple(it[name] for name in ("session", "task", "step", "call", "kind"))
        for it in told
        if it["call"] is not None
    ]
    assert marked == expected
    at_fault, _ = page.document["runs"][number]["faulty_writes"]["lists"]
    assert (at_fault["title"], len(at_fault["entries"])) == (
        "Writes at fault",
        len({place[:4] for place in expected}),
    )
