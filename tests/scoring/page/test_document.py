"""What a page says of runs: the figures of `score` and `compare`, a list of sessions, and each in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import logs, pages
from support.commands import run
from support.pages import Page, taken_apart, write_log


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("page") / "shop.db")


@pytest.fixture(scope="module")
def page(log: Path) -> Page:
    return made(log)


@pytest.fixture(scope="module")
def scores(log: Path) -> Any:
    return json.loads(run("score", log, "--format", "json").stdout)


def made(*arguments: object) -> Page:
    return taken_apart(run("report", *arguments, "-o", "-").stdout_bytes)


def by_scorer(**of_task: Any) -> dict[str, Any]:
    """The same line of both scorers, but for the rule and the reason."""
    both = {"wildtoolbench": 0, "strict": 1}
    return {
        name: {key: value[at] if isinstance(value, tuple) else value for key, value in of_task.items()}
        for name, at in both.items()
    }


def call(text: str, verdict: str, **of_call: Any) -> dict[str, Any]:
    given = {"observation": None, "outcome": None, "node": None, "expected": None, "faults": []}
    told = {
        "name": "findPrice",
        "arguments": text,
        "verdict": verdict,
        "message": None,
        "also": {},
        "at_fault": [],
    }
    return {**given, **told, **of_call}


def step(number: int, kind: str, verdict: str, tokens: tuple[int, int], **of_step: Any) -> dict[str, Any]:
    """A step that took from second 4 to second 5."""
    return {
        "number": number,
        "kind": kind,
        "verdict": verdict,
        "text": None,
        "reasoning": None,
        "node": None,
        "calls": [],
        "model": "m",
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "seconds": 1.0,
        "time_to_first_chunk": 0.5,
        "tries": len(of_step["exchanges"]),
        **of_step,
    }


def reference(thing: str, call_done: Any, close_done: Any) -> dict[str, Any]:
    found = {"name": "findPrice", "arguments": {"thing": thing}, "observation": {"price": 3}, "text": None}
    said = {"name": "prepare_to_answer", "arguments": {}, "observation": None, "text": "It is 3."}
    nodes = [
        {"kind": "call", **found, "dependencies": [], "done": call_done},
        {"kind": "close", **said, "dependencies": [0], "done": close_done},
    ]
    more = {"reply": None, "alternatives": []}
    return {"least": 2, "nodes": [{"index": i, **more, **node} for i, node in enumerate(nodes)]}


def turn(number: int) -> dict[str, Any]:
    return {"turn": number, "user": f"words of turn {number}", "origin": "task", "opened_at": 3.0}


def test_a_session_opens_into_its_conversation_beside_the_references(page: Page, scores: Any) -> None:
    verdicts = [it["scores"] for it in scores["tasks"]]
    function = logs.RECORD["tools"][0]["function"]
    first = {
        "number": 1,
        "user": "What is a lamp?",
        "ending": "closed",
        "verdicts": verdicts[0],
        "error_class": None,
        "reference": reference("lamp", {"step": 1, "call": 1}, {"step": 2, "call": None}),
        "turns": [turn(1)],
        "steps": [
            step(
                1,
                "calls",
                "right",
                (100, 7),
                turn=1,
                decision="observe",
                calls=[call('{"thing": "lamp"}', "right", node=0, observation='{"price": 3}')],
                exchanges=["x1"],
            ),
            step(
                2,
                "close",
                "right",
                (120, 5),
                turn=1,
                decision="close",
                node=1,
                text="It is 3.",
                exchanges=["x2"],
            ),
        ],
        "closing": "It is 3.",
    }
    second = {
        "number": 2,
        "user": "And a chair?",
        "ending": "stopped",
        "verdicts": verdicts[1],
        "error_class": "redundant_call",
        "reference": reference("chair", {"step": 1, "call": 2}, None),
        "turns": [turn(2)],
        "steps": [
            step(
                1,
                "calls",
                "wrong",
                (130, 9),
                turn=2,
                decision="stop",
                calls=[
                    call('{"thing": "table"}', "wrong", message="is due once and was called more often"),
                    # The released rules blame the second call, as names are all that they go by.
                    call('{"thing": "chair"}', "right", node=0, also={"wildtoolbench": "wrong"}),
                ],
                exchanges=["x3", "x4"],
            )
        ],
        "closing": None,
    }
    of_tasks = {"label": "Single-Tool", "subtype": None, "failure": None, "seconds": 4.0, "opened_at": 3.0}
    of_tasks["standing"] = []
    assert page.packed("detail")["r0s0"] == {
        "key": "r0s0",
        "session": "shop_1.e1",
        "scenario": "shop_1",
        "epoch": 1,
        "attempt": 1,
        "state": "over",
        "date": "2025-01-02 10:00:00 Thursday",
        "opened_at": 2.0,
        "tools": [{**function, "side_effects": False}],
        "tasks": [{**of_tasks, "judged_by": "strict", **task} for task in (first, second)],
    }


def test_a_session_that_was_lost_says_why(page: Page) -> None:
    detail = page.packed("detail")["r0s1"]
    told = ("ending", "failure", "steps", "closing", "error_class")
    lost = "provider_error: status 503, http, overloaded"
    assert detail["state"] == "failed"
    assert [tuple(task[key] for key in told) for task in detail["tasks"]] == [
        ("infrastructure", lost, [], None, None),
        (None, "not played", [], None, None),
    ]


def test_raw_exchanges_are_as_they_were_on_the_wire_each_message_once(page: Page) -> None:
    raw = page.packed("raw")["r0s0"]
    rows = {it["id"]: it for it in raw["exchanges"]}
    assert [json.loads(it) for it in raw["messages"]] == [
        {"role": "user", "content": "hello"},
        pages.CLOSING,
        pages.RIGHT,
        pages.WRONG,
    ]
    assert [json.loads(it) for it in raw["tools"]] == [pages.TOOLS]
    assert list(rows) == ["a1", "x1", "x2", "x3", "x4"]
    assert rows["x1"] == {
        "id": "x1",
        "side": "provider",
        "parent": "a1",
        "reason": None,
        "correlation": "path",
        "method": "POST",
        "path": "/v1/chat/completions",
        "finish_state": "complete",
        "request_model": "m",
        "response_model": None,
        "error_type": None,
        "error": None,
        "turn": 1,
        "started_at": 4.0,
        "finished_at": 5.0,
        "time_to_first_chunk": 0.5,
        "status": 200,
        "stream": False,
        "input_tokens": 100,
        "output_tokens": 7,
        "changes": [],
        "findings": [],
        "request_headers": {},
        "response_headers": {},
        "messages": [0],
        "tools": 0,
        "body": '{"model":"m"}',
        "message": 2,
        "answer": '{"id": 1}',
        "answer_base64": None,
    }
    assert (rows["x2"]["answer"], rows["x2"]["answer_base64"]) == (None, "/wA=")
    assert (rows["x3"]["status"], rows["x3"]["answer"]) == (503, pages.OVERLOADED.decode())


def test_the_list_has_a_line_for_each_task(page: Page) -> None:
    right = by_scorer(label="correct", verdict=None, error_class=None, rule=None, reason=None)
    wrong = by_scorer(
        label="error",
        verdict=None,
        error_class="redundant_call",
        rule=("released.action_names", "step.extra_call"),
        reason=(
            "step 1: called findPrice, findPrice; allowed here: findPrice",
            "step 1: call 1 of 2, findPrice: is due once and was called more often",
        ),
    )
    played = {"label": "Single-Tool", "subtype": None, "disagrees": False, "least": 2, "expected_calls": 1}
    lamp, chair = {"number": 1, "user": "What is a lamp?"}, {"number": 2, "user": "And a chair?"}

    def lost(reason: str) -> dict[str, Any]:
        return by_scorer(label=None, verdict=None, error_class=None, rule=None, reason=reason)

    def took(steps: int, calls: int, given: int | None, made: int | None, seconds: float | None) -> Any:
        tokens = {"input_tokens": given, "output_tokens": made}
        return {"steps": steps, "calls": calls, **tokens, "seconds": seconds}

    failure = "provider_error: status 503, http, overloaded"
    common = {"run": "r0", "scenario": "shop_1", "raw": True}
    assert page.document["sessions"] == [
        {
            **common,
            "key": "r0s0",
            "session": "shop_1.e1",
            "epoch": 1,
            "correct": {"wildtoolbench": False, "strict": False},
            "tasks": [
                {**played, **lamp, "scores": right, **took(2, 1, 220, 12, 4.0)},
                {**played, **chair, "scores": wrong, **took(1, 2, 130, 9, 4.0)},
            ],
        },
        {
            **common,
            "key": "r0s1",
            "session": "shop_1.e2",
            "epoch": 2,
            "correct": {"wildtoolbench": None, "strict": None},
            "tasks": [
                {**played, **lamp, "scores": lost(failure), **took(0, 0, None, None, 4.0)},
                {**played, **chair, "scores": lost("not played"), **took(0, 0, None, None, None)},
            ],
        },
    ]


def test_a_run_is_told_as_score_tells_it(page: Page, scores: Any) -> None:
    document = page.document
    [told] = document["runs"]
    assert {key: told[key] for key in scores if key not in ("tasks", "scorers", "null_agents")} == {
        key: value for key, value in scores.items() if key not in ("tasks", "scorers", "null_agents")
    }
    assert told["scorers"] == {name: {"note": None, **of} for name, of in scores["scorers"].items()}
    assert [{**it, "bound": ""} for it in scores["null_agents"]] == [
        {**it, "bound": ""} for it in told["null_agents"]
    ]
    assert [it["bound"] for it in told["null_agents"]] == ["floor", "floor", "floor", "ceiling"]
    about = ("key", "title", "name", "created_at", "versions", "counts", "banner", "warnings")
    assert {key: told[key] for key in about} == {
        "key": "r0",
        "title": "shop.db",
        "name": None,
        "created_at": 1.0,
        "versions": {"wildproxy": "0"},
        "counts": {"scenarios": 1, "sessions": 2, "epochs": 2, "tasks": 4},
        "banner": None,
        "warnings": [],
    }
    assert (document["title"], document["scorers"], document["compare"]) == (
        "shop.db",
        ["wildtoolbench", "strict"],
        [],
    )


def test_every_chart_shows_figures_that_are_there_and_defined(page: Page) -> None:
    document = page.document
    [told] = document["runs"]
    there = {
        "run": told["figures"],
        "scorer": {key: it for of in told["scorers"].values() for key, it in of["figures"].items()},
    }
    entries = list(entries_in(document["layout"]))
    assert {entry["key"] for entry in entries} > {"task_accuracy", "accuracy_by_position[2]", "tokens_input"}
    for entry in entries:
        assert there[entry["of"]][entry["key"]]["n"] > 0, entry
        assert entry["name"] in document["definitions"]
    for name in ("heat", "errors_by_label"):
        crossed = document["layout"][name]
        assert crossed["cells"]
        for cell in crossed["cells"]:
            assert (cell["row"] in crossed["rows"], cell["column"] in crossed["columns"]) == (True, True)
            assert cell["key"].endswith(f"[{cell['row']} / {cell['column']}]")
            assert there["scorer"][cell["key"]]["n"] > 0


def entries_in(layout: Any) -> Any:
    for value in layout.values() if isinstance(layout, dict) else layout:
        if isinstance(value, dict) and "of" in value:
            yield value
        elif isinstance(value, dict | list):
            yield from entries_in(value)


def test_what_is_told_in_ids_is_explained(page: Page) -> None:
    document = page.document
    scores = [it for row in document["sessions"] for task in row["tasks"] for it in task["scores"].values()]
    assert {it["rule"] for it in scores if it["rule"]} <= set(document["rules"])
    assert {it["error_class"] for it in scores if it["error_class"]} <= set(document["error_classes"])


def test_prices_give_the_page_a_cost(log: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"currency": "EUR", "models": {"m": {"input": 10000, "output": 0}}}')
    [told] = made(log, "--prices", prices).document["runs"]
    # 350 tokens at 10,000 a million
    assert (told["currency"], told["figures"]["cost_total"]["value"]) == ("EUR", pytest.approx(3.5))
    assert told["scorers"]["strict"]["figures"]["cost_over_optimal"]["n"] == 1


def test_one_scorer_alone_reads_the_calls_itself(log: Path) -> None:
    page = made(log, "--scorer", "wildtoolbench")
    detail = page.packed("detail")["r0s0"]
    [first, second] = detail["tasks"][1]["steps"][0]["calls"]
    assert page.document["scorers"] == ["wildtoolbench"]
    assert {task["judged_by"] for task in detail["tasks"]} == {"wildtoolbench"}
    assert detail["tasks"][0]["reference"]["nodes"][0]["done"] == {"step": 1, "call": 1}
    assert (first["verdict"], second["verdict"], second["node"], second["expected"]) == (
        "unjudged",
        "wrong",
        0,
        {"thing": "chair"},
    )


def test_a_run_without_tools_that_write_says_nothing_of_writes(page: Page) -> None:
    assert page.document["runs"][0]["faulty_writes"] is None
