"""Runs with live history, or whose Tasks go on after a wrong Step: verdicts, figures, banners."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import logs, scenes
from support.commands import error_line, run
from support.references import orderly_reference

from proxy.log.rows import Row
from proxy.log.writer import LogWriter
from scenarios.live import Rule
from scenarios.reference import minimal_path
from scenarios.types import Node, Reply, Scenario, Task, Tool, ToolCall, ToolNotes
from scoring.cli import score
from scoring.metrics.definitions import DEFINITIONS
from scoring.types import LiveCounts, SessionScore, TaskScore, TaskTrajectory, Trajectory
from scoring.verdicts.live import with_verdicts
from scoring.verdicts.scorers import SCORERS
from scoring.verdicts.wildtoolbench import score_session

LIVE: dict[str, Any] = {
    "history": "live",
    "history_from": "agent",
    "tools": "relay",
    "on_mismatch": "continue",
}
GOLD: dict[str, Any] = {"history": "gold", "tools": "intercept", "on_mismatch": "stop"}
BANNER = "live history, wrong steps do not end a task: not comparable with published figures"

TEXT = logs.text_message("Here you are.")
LAMP, CHAIR = '{"thing": "lamp"}', '{"thing": "chair"}'
LAMP_PRICE, CHAIR_PRICE = logs.call_message(("getPrice", LAMP)), logs.call_message(("getPrice", CHAIR))
STOCK = logs.call_message(("countStock", LAMP))
BOTH = logs.call_message(("getPrice", CHAIR), ("countStock", LAMP))
NONSENSE = logs.call_message(("getPrice", '{"thing": "sofa"}'))

Played = Sequence[tuple[Sequence[Any], str | None]]
"""For each Task the assistant's messages and how it ended; None if it did not."""

MIXED: Played = (
    ([LAMP_PRICE, TEXT], "closed"),
    ([NONSENSE, LAMP_PRICE, CHAIR_PRICE, STOCK, TEXT], "closed"),
    ([TEXT, TEXT], "closed"),
    ([TEXT], "closed"),
)
"""Correct; correct after a wrong and a redundant call; closed too early; correct."""

LEFT: Played = (
    ([LAMP_PRICE, TEXT], "closed"),
    ([NONSENSE], "agent_stopped"),
    ([], "not_reached"),
    ([], "not_reached"),
)
BROKEN: Played = (
    ([LAMP_PRICE, TEXT], "closed"),
    ([BOTH], "infrastructure"),
    ([], "not_reached"),
    ([], "not_reached"),
)


def session_rows(run_id: str, epoch: int, played: Played, of: scenes.Record = scenes.SHOP) -> Iterable[Row]:
    session = f"{run_id}-{epoch}"
    yield logs.session(session, of["id"], epoch, run_id=run_id)
    for task, (messages, ending) in enumerate(played):
        for step, message in enumerate(messages):
            exchange = f"{session}-{task}-{step}"
            yield logs.start(exchange, session, turn=task + 1)
            yield logs.finish(exchange)
            yield logs.step(step, task, session, exchange_id=exchange, message=message)
        if ending is not None:
            yield logs.end(task, ending, session)


def write(path: Path, *sessions: Played, of: scenes.Record = scenes.SHOP, **config: Any) -> Path:
    """A log of one run with this configuration, and an epoch for each session."""
    return write_runs(path, {"r1": config}, *sessions, of=of)


def write_runs(
    path: Path, runs: dict[str, dict[str, Any]], *sessions: Played, of: scenes.Record = scenes.SHOP
) -> Path:
    with LogWriter.open(path) as writer:
        for created, (run_id, config) in zip(count(1.0), runs.items(), strict=False):
            writer.commit_blocking(logs.run(run_id, created, **config), logs.scenario(of["id"], of))
            for epoch, played in enumerate(sessions, start=1):
                writer.commit_blocking(*session_rows(run_id, epoch, played, of))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def document(*arguments: object) -> dict[str, Any]:
    result = run("score", *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def table(*arguments: object) -> str:
    result = run("score", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def row(text: str, label: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.strip().startswith(f"{label}  ")]
    return line.strip().removeprefix(label).split()


def verdicts(found: dict[str, Any], *keys: str, scorer: str = "wildtoolbench") -> list[Any]:
    """What the scorer says of each task under these keys; bare values if it is one key."""
    told = [tuple(entry["scores"][scorer][key] for key in keys) for entry in found["tasks"]]
    return told if len(keys) > 1 else [value for (value,) in told]


def figures(found: dict[str, Any], scorer: str = "wildtoolbench") -> dict[str, tuple[Any, Any, Any]]:
    """(value, successes, n) of each figure of a scorer."""
    told = found["scorers"][scorer]["figures"]
    return {key: (it["value"], it["successes"], it["n"]) for key, it in told.items()}


def metrics(found: dict[str, Any]) -> dict[str, Any]:
    """The released metric file."""
    told: dict[str, Any] = found["scorers"]["wildtoolbench"]["metrics"]
    return told


# --- Verdicts ----------------------------------------------------------------


def test_a_task_completed_after_errors_is_told_from_a_correct_and_from_a_wrong_one(path: Path) -> None:
    found = document(write(path, MIXED, **LIVE))
    assert verdicts(found, "label", "verdict") == [
        ("correct", "correct"),
        ("error", "correct_after_errors"),
        ("error", "wrong"),
        ("correct", "correct"),
    ]


def test_each_task_says_what_it_cost(path: Path) -> None:
    found = document(write(path, MIXED, **LIVE))
    assert verdicts(found, "redundant_calls", "unmatched_calls", "steps_taken", "min_steps") == [
        (0, 0, 2, 2),
        (1, 1, 5, 2),
        (0, 0, 2, 3),
        (0, 0, 1, 1),
    ]


@pytest.mark.parametrize(
    ("messages", "verdict"),
    [
        ([BOTH, TEXT], "correct"),
        ([CHAIR_PRICE, STOCK, TEXT], "correct"),
        ([STOCK, CHAIR_PRICE, TEXT], "correct"),
        ([BOTH, BOTH, TEXT], "correct_after_errors"),
        ([NONSENSE, BOTH, TEXT], "correct_after_errors"),
        ([logs.call_message(("getPrice", CHAIR), ("getPrice", LAMP)), STOCK, TEXT], "correct_after_errors"),
        ([CHAIR_PRICE, TEXT], "wrong"),
        ([NONSENSE, TEXT], "wrong"),
        ([BOTH], "wrong"),
        ([BOTH, {"role": "assistant", "content": ""}], "wrong"),
        ([], "wrong"),
    ],
)
def test_parallel_calls_are_judged_by_what_was_done(path: Path, messages: list[Any], verdict: str) -> None:
    chat = ([TEXT], "closed")
    ending = "closed" if messages[-1:] == [TEXT] else "agent_stopped"
    played = (([LAMP_PRICE, TEXT], "closed"), (messages, ending), chat, chat)
    assert verdicts(document(write(path, played, **LIVE)), "verdict")[1] == verdict


def test_right_calls_in_a_wrong_order_are_errors_with_no_call_in_vain(path: Path) -> None:
    weigh = logs.call_message(("weigh", '{"thing": "lamp", "kilos": 1.5}'))
    played = (([weigh, LAMP_PRICE, CHAIR_PRICE, TEXT], "closed"), ([TEXT], "closed"))
    found = document(write(path, played, of=scenes.TWINS, **LIVE))
    assert verdicts(found, "verdict", "redundant_calls", "unmatched_calls", "steps_taken")[0] == (
        "correct_after_errors",
        0,
        0,
        4,
    )


def test_a_question_that_was_not_needed_any_more_is_no_fault_of_the_completed_task(path: Path) -> None:
    book = logs.call_message(("book", '{"thing": "lamp", "day": "Monday"}'))
    guessed = (*MIXED[:2], ([book, TEXT], "closed"), MIXED[3])
    asked = (*MIXED[:2], ([TEXT, book, TEXT], "closed"), MIXED[3])
    found = document(write(path, guessed, asked, **LIVE))
    assert verdicts(found, "verdict")[2::4] == ["correct_after_errors", "correct"]


def test_the_step_that_used_up_a_task_was_told_nothing_and_so_cannot_be_repeated(path: Path) -> None:
    """With `--max-steps` the last calls end the Task unanswered; a later Task may well make them again."""
    chat = ([TEXT], "closed")
    played = (([NONSENSE, LAMP_PRICE], "stopped"), ([LAMP_PRICE, BOTH, TEXT], "closed"), chat, chat)
    found = document(write(path, played, **LIVE))
    assert verdicts(found, "verdict", "redundant_calls", "unmatched_calls", "steps_taken")[:2] == [
        ("wrong", 0, 1, 2),
        ("correct_after_errors", 0, 1, 3),
    ]


def test_what_follows_the_first_wrong_step_changes_nothing_that_the_released_scorer_says(
    tmp_path: Path,
) -> None:
    cut = (MIXED[0], ([NONSENSE], "stopped"), ([TEXT, TEXT], "stopped"), MIXED[3])
    going_on = document(write(tmp_path / "live.db", MIXED, **LIVE))
    stopped = document(write(tmp_path / "gold.db", cut, **GOLD))
    assert metrics(going_on) == metrics(stopped)
    for scorer in ("wildtoolbench", "strict"):
        for entry in going_on["tasks"]:
            for key in ("verdict", "redundant_calls", "unmatched_calls", "steps_taken"):
                del entry["scores"][scorer][key]
        unscored = [found["scorers"][scorer]["unscored"] for found in (going_on, stopped)]
        assert unscored[0] == unscored[1]
    assert going_on["tasks"] == stopped["tasks"]


# --- Sessions that ended early -----------------------------------------------


def test_tasks_that_the_agent_did_not_come_to_are_not_correct(path: Path) -> None:
    found = document(write(path, LEFT, **LIVE))
    reason = "not reached: the agent stopped in task 2"
    assert verdicts(found, "label", "verdict") == [
        ("correct", "correct"),
        ("error", "wrong"),
        ("error", "not_reached"),
        ("error", "not_reached"),
    ]
    assert (
        verdicts(found, "reason", "requests", "steps", "action_name_label")[2:] == [(reason, 0, [], None)] * 2
    )
    assert found["scorers"]["wildtoolbench"]["unscored"]["tasks"] == 0
    assert metrics(found)["total_info"]["task"] == {
        "accuracy": 0.25,
        "correct_count": 1,
        "total_count": 4,
    }
    assert metrics(found)["total_info"]["session"]["total_count"] == 1


def test_tasks_that_infrastructure_kept_from_being_reached_are_not_scored(path: Path) -> None:
    found = document(write(path, BROKEN, **LIVE))
    assert verdicts(found, "label", "verdict", "reason") == [
        ("correct", "correct", None),
        (None, None, "infrastructure"),
        (None, None, "not reached: infrastructure in task 2"),
        (None, None, "not reached: infrastructure in task 2"),
    ]
    assert found["scorers"]["wildtoolbench"]["unscored"] == {
        "tasks": 3,
        "all_tasks": 4,
        "sessions": 1,
        "all_sessions": 1,
        "reasons": {"not reached: infrastructure in task 2": 2, "infrastructure": 1},
    }
    assert figures(found)["verdict_share[correct]"] == (1.0, 1, 1)
    assert figures(found)["completed_sessions"] == (None, 0, 0)


def test_a_session_that_ended_for_no_known_reason_is_not_scored(path: Path) -> None:
    played: Played = (MIXED[0], MIXED[1], ([], "not_reached"), ([], None))
    found = document(write(path, played, **LIVE))
    assert verdicts(found, "label", "reason")[2:] == [(None, "not reached"), (None, "not played")]


# --- Figures -----------------------------------------------------------------


def test_the_table_counts_the_tasks_of_each_verdict(path: Path) -> None:
    text = table(write(path, MIXED, LEFT, BROKEN, **LIVE))
    # Three epochs of one scenario are one cluster, which has no interval.
    by_both = 2
    assert row(text, "Correct") == ["44.4", "4/9", "-"] * by_both
    assert row(text, "Correct after errors") == ["11.1", "1/9", "-"] * by_both
    assert row(text, "Wrong") == ["22.2", "2/9", "-"] * by_both
    assert row(text, "Not reached") == ["22.2", "2/9", "-"] * by_both
    assert row(text, "Sessions completed") == ["0.0", "0/2", "-"] * by_both
    assert row(text, "Task accuracy") == ["44.4", "4/9", "-"] * by_both
    positions = text.partition("By position\n")[2].partition("\n\n")[0]
    assert row(positions, "3") == ["0.0", "0/2", "-"] * by_both
    assert "Calls: 1 redundant (0.3 a session), 2 that matched nothing (0.7 a session)." in text.splitlines()
    assert "Steps in the completed tasks: 12; the optimal number is 9." in text.splitlines()


def test_calls_that_were_answered_again_are_told_from_calls_that_were_made_again() -> None:
    """Two figures of a live Run count repeats: those that got an answer again, and all."""
    titles = [it.title for it in DEFINITIONS.values()]
    assert DEFINITIONS["live_redundant_calls"].title == "Calls answered again"
    assert DEFINITIONS["redundant_calls"].title == "Redundant calls"
    assert len(set(titles)) == len(titles)


def test_where_no_task_was_completed_there_is_no_number_of_steps_to_tell(path: Path) -> None:
    left = (([NONSENSE], "agent_stopped"), *[([], "not_reached")] * 3)
    found = figures(document(write(path, left, **LIVE)))
    assert found["live_steps_over_optimal"] == (None, None, 0)
    assert found["live_unmatched_calls"] == (1, None, 1)


def test_a_session_is_completed_if_each_task_is_though_after_errors(path: Path) -> None:
    book = logs.call_message(("book", '{"thing": "lamp", "day": "Monday"}'))
    completed = (*MIXED[:2], ([book, TEXT], "closed"), MIXED[3])
    found = document(write(path, completed, MIXED, **LIVE))
    assert metrics(found)["total_info"]["session"]["correct_count"] == 0
    assert figures(found)["completed_sessions"] == (0.5, 1, 2)


@pytest.mark.parametrize("scorer", ["wildtoolbench", "strict"])
def test_the_document_has_the_live_figures(path: Path, scorer: str) -> None:
    told = figures(document(write(path, MIXED, LEFT, **LIVE)), scorer)
    live = ("verdict_share", "completed_sessions", "live_")
    assert {key: it for key, it in told.items() if key.startswith(live)} == {
        "verdict_share[correct]": (3 / 8, 3, 8),
        "verdict_share[correct_after_errors]": (1 / 8, 1, 8),
        "verdict_share[wrong]": (2 / 8, 2, 8),
        "verdict_share[not_reached]": (2 / 8, 2, 8),
        "completed_sessions": (0.0, 0, 2),
        "live_redundant_calls": (1, None, 2),
        "live_unmatched_calls": (2, None, 2),
        # 2, 5 and 1 steps in the completed tasks of the one session, 2 in the other's.
        "live_steps_over_optimal": (10 / 7, None, 7),
    }


def test_what_a_wrong_step_ended_is_not_counted_in_calls(path: Path) -> None:
    told = figures(document(write(path, MIXED, **LIVE | {"on_mismatch": "stop"})))
    assert [key for key in told if key.startswith("live_")] == []
    assert told["verdict_share[wrong]"] == (0.5, 2, 4)


def test_a_live_run_without_a_scored_task_has_no_figures_and_no_fault(path: Path) -> None:
    result = run("score", write(path, [([], None)] * 4, **LIVE))
    assert result.exit_code == 3
    assert row(result.stdout, "Correct") == ["-", "0/0", "-"] * 2
    assert "Calls:" not in result.stdout


# --- Said on everything ------------------------------------------------------

FORMATS = next(option.type.choices for option in score.params if option.name == "output_format")  # type: ignore[attr-defined]


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize(
    ("modes", "reason"),
    [
        (LIVE, "live history, wrong steps do not end a task"),
        ({**LIVE, "history_from": "proxy", "tools": "mcp"}, "live history, wrong steps do not end a task"),
        ({**LIVE, "on_mismatch": "stop"}, "live history"),
        ({**GOLD, "on_mismatch": "continue"}, "wrong steps do not end a task"),
        ({"history": "live"}, "live history, wrong steps do not end a task"),
    ],
)
def test_every_form_of_scores_that_are_not_comparable_says_so(
    path: Path, output_format: str, modes: dict[str, Any], reason: str
) -> None:
    result = run("score", write(path, MIXED, **modes), "--format", output_format)
    assert result.exit_code == 0
    if output_format == "json":
        found = json.loads(result.stdout)
        assert (found["comparable_with_published"], found["why_not_comparable"]) == (False, reason)
    elif output_format == "table":
        assert f"{reason}: not comparable with published figures" in result.stdout.splitlines()
    else:
        assert reason in result.stdout
        assert "not comparable with published figures" in result.stdout.lower()


@pytest.mark.parametrize("tools", ["intercept", "relay", "mcp"])
def test_who_runs_the_tools_makes_no_difference_to_the_figures(tmp_path: Path, tools: str) -> None:
    played = (MIXED[0], ([BOTH, TEXT], "closed"), ([TEXT, TEXT], "stopped"), MIXED[3])
    usual, this = (
        write(tmp_path / name, played, **GOLD | {"tools": mode})
        for name, mode in (("log.db", "intercept"), ("other.db", tools))
    )
    expected, found = document(usual), document(this)
    assert found | {"config": None, "log": None} == expected | {"config": None, "log": None}
    assert not {"comparable_with_published", "why_not_comparable"} & found.keys()
    for scorer, said in found["tasks"][0]["scores"].items():
        assert "verdict" not in said
        live = ("verdict_share", "completed_sessions", "live_")
        assert not [key for key in figures(found, scorer) if key.startswith(live)]
    text = table(this)
    assert "published" not in text
    assert "Tasks by verdict" not in text


def test_modes_that_are_not_the_usual_ones_stand_in_the_header(tmp_path: Path) -> None:
    def header(**modes: Any) -> list[str]:
        path = write(tmp_path / f"{len(list(tmp_path.iterdir()))}.db", MIXED, **modes)
        names = ("History ", "Tools ", "On mismatch ")
        return [" ".join(line.split()) for line in table(path).splitlines() if line.startswith(names)]

    assert header(**GOLD) == ["History gold"]
    assert header(**GOLD | {"tools": "relay"}) == ["History gold", "Tools relay", "On mismatch stop"]
    assert header(**LIVE) == ["History live (from the agent)", "Tools relay", "On mismatch continue"]
    assert header(**LIVE | {"history_from": "proxy", "tools": "intercept"}) == [
        "History live (from the proxy)",
        "Tools intercept",
        "On mismatch continue",
    ]


def test_runs_that_were_played_in_different_ways_are_told_apart(path: Path) -> None:
    played = (MIXED[0], ([NONSENSE], "stopped"), ([TEXT, TEXT], "stopped"), MIXED[3])
    write_runs(path, {"r1": GOLD, "r2": LIVE, "r3": GOLD | {"tools": "relay"}}, played)
    chosen = (path, "--run", "r1", "--run", "r2", "--run", "r3")
    lines = [" ".join(line.split()) for line in table(*chosen).splitlines()]
    told = [line for line in lines if line == BANNER or line.startswith(("Run ", "History ", "Tools "))]
    assert told == [
        *("Run r1", "History gold"),
        *(BANNER, "Run r2", "History live (from the agent)", "Tools relay"),
        *("Run r3", "History gold", "Tools relay"),
    ]
    assert [entry.get("comparable_with_published") for entry in document(*chosen)["runs"]] == [
        None,
        False,
        None,
    ]


def test_modes_from_a_foreign_log_cannot_move_the_cursor(path: Path) -> None:
    text = table(write(path, MIXED, history="\x1b[2J", tools="\x1b]0;x\x07", on_mismatch="continue\x9b"))
    assert not any(character in text for character in "\x1b\x07\x9b")
    assert "\\x1b[2J history: not comparable with published figures" in text.splitlines()


# --- Exports -----------------------------------------------------------------


@pytest.mark.parametrize("modes", [LIVE, LIVE | {"on_mismatch": "stop"}, GOLD | {"on_mismatch": "continue"}])
def test_a_run_that_is_not_comparable_is_not_written_in_the_released_form(
    path: Path, modes: dict[str, Any]
) -> None:
    folder = path.parent / "results"
    line = error_line(run("export", write(path, MIXED, **modes), "-o", folder), 2)
    assert "run r1" in line
    assert "would pass for a published figure" in line
    assert line.endswith("use --format openai")
    assert not folder.exists()


def test_a_live_run_is_exported_as_chats_with_those_sessions_that_the_agent_left(path: Path) -> None:
    result = run("export", write(path, MIXED, LEFT, BROKEN, **LIVE), "--format", "openai")
    assert result.exit_code == 0, result.output
    chats = [json.loads(line) for line in result.stdout.splitlines()]
    assert [chat["session"] for chat in chats] == ["shop.e1", "shop.e2"]
    assert "left out shop.e3: task 2 was not scored (infrastructure)" in result.stderr


# --- Properties --------------------------------------------------------------

PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = tuple(Tool(name, "", PARAMETERS, {}) for name in "abc")


def calling(*calls: tuple[str, int]) -> Reply:
    return Reply(None, tuple(ToolCall(None, name, json.dumps({"n": n})) for name, n in calls))


def judged(nodes: tuple[Node, ...], replies: Sequence[Reply], *, goes_on: bool = True) -> TaskScore:
    scenario = Scenario("s", "d", TOOLS, (Task("t", "Chat", None, nodes),), "h", {})
    played = Trajectory("s.e1", 1, scenario, (TaskTrajectory(tuple(replies), "closed"),))
    return with_verdicts(played, score_session(played), goes_on=goes_on).tasks[0]


def gold_replies(nodes: tuple[Node, ...]) -> list[Reply]:
    return [
        calling(*((nodes[i].name, nodes[i].arguments["n"]) for i in batch))
        if nodes[batch[0]].is_call
        else Reply("Text.")
        for batch in minimal_path(nodes)
    ]


@settings(deadline=None)
@given(orderly_reference(), st.data())
def test_wrong_calls_on_the_way_leave_a_completed_task_correct_after_errors(
    nodes: tuple[Node, ...], data: st.DataObject
) -> None:
    replies = gold_replies(nodes)
    wrong = data.draw(st.lists(st.integers(0, len(replies) - 1), max_size=4))
    for place in wrong:
        replies.insert(place, calling(("a", 99)))
    task = judged(nodes, replies)
    assert task.live == LiveCounts(redundant=0, unmatched=len(wrong), steps=len(replies))
    assert task.verdict == ("correct_after_errors" if wrong else "correct")
    assert task.min_steps == len(replies) - len(wrong)


REPLIES = st.lists(
    st.sampled_from([Reply(None), Reply("Text.")])
    | st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), min_size=1, max_size=3).map(
        lambda calls: calling(*calls)
    ),
    max_size=6,
)


CALL_THEN_CLOSE = (Node("a", {"n": 0}, "told", ()), Node("prepare_to_answer", {}, "Done.", (0,)))


@settings(deadline=None)
@given(orderly_reference(), REPLIES)
@example(CALL_THEN_CLOSE, [Reply(None), calling(("a", 0)), Reply("Text.")])
def test_the_released_label_and_the_verdict_never_contradict_each_other(
    nodes: tuple[Node, ...], replies: list[Reply]
) -> None:
    task = judged(nodes, replies)
    assert (task.label == "correct") == (task.verdict == "correct")
    stopping = judged(nodes, replies, goes_on=False)
    assert (stopping.verdict, stopping.live) == ("correct" if task.label == "correct" else "wrong", None)
    assert task.live is not None
    if task.verdict == "correct":
        assert (task.live.redundant, task.live.unmatched) == (0, 0)
        assert task.live.steps >= task.min_steps


def test_independent_calls_of_one_tool_are_correct_in_either_order_though_not_as_released(path: Path) -> None:
    weigh = logs.call_message(("weigh", '{"thing": "lamp", "kilos": 1.5}'))
    played = (([CHAIR_PRICE, LAMP_PRICE, weigh, TEXT], "closed"), ([TEXT], "closed"))
    found = document(write(path, played, of=scenes.TWINS, **LIVE))
    assert verdicts(found, "label", "verdict")[0] == ("error", "correct")


@pytest.mark.parametrize(
    ("rule", "verdicts"),
    [
        ({}, ("correct", "wrong")),
        ({"rule": "released"}, ("correct", "wrong")),
        ({"rule": "strict"}, ("wrong", "correct")),
    ],
)
def test_a_task_that_went_on_is_gone_through_by_the_argument_rules_of_the_scorer(
    rule: dict[str, Rule], verdicts: tuple[str, str]
) -> None:
    """ROUGE takes another last number for the same text (facts: section 5, row 25), `strict` a default."""
    properties = {"q": {"type": "string", "description": "The address."}, "n": {"type": "integer"}}
    tool = Tool("a", "", {"type": "object", "properties": properties}, {})
    nodes = (Node("a", {"q": "192.168.15.24", "n": 1}, "told"), Node("prepare_to_answer", {}, "Done.", (0,)))
    notes = {"a": ToolNotes(defaults={"n": 1})}
    scenario = Scenario(
        "own", "2025-01-01", (tool,), (Task("Do it.", "x", None, nodes),), "hash", {}, notes=notes
    )
    told = []
    for arguments in ({"q": "192.168.15.99", "n": 1}, {"q": "192.168.15.24"}):
        call = Reply(None, (ToolCall(None, "a", json.dumps(arguments)),))
        trajectory = Trajectory("s", 1, scenario, (TaskTrajectory((call, Reply("Done.")), "closed"),))
        wrong = TaskScore("error", "correct", "error", False, 2, 0, 2)
        score = SessionScore("s", 1, scenario, (wrong,))
        told.append(with_verdicts(trajectory, score, goes_on=True, **rule).tasks[0].verdict)
    assert tuple(told) == verdicts


@pytest.mark.parametrize(
    ("replies", "verdicts"),
    [
        ((calling(("a", 0)), Reply(" \n")), {"wildtoolbench": "correct", "strict": "wrong"}),
        (
            (Reply("\u200b"), calling(("a", 0)), Reply("Done.")),
            {"wildtoolbench": "correct", "strict": "correct_after_errors"},
        ),
    ],
)
def test_a_text_that_shows_nothing_is_a_text_to_the_released_rules_alone(
    replies: tuple[Reply, ...], verdicts: dict[str, str]
) -> None:
    asked = (Node("ask_user_for_required_parameters", {}, "Which?", (), "The first."),)
    first = asked if len(replies) == 3 else ()
    call = Node("a", {"n": 0}, "told", tuple(range(len(first))))
    nodes = (*first, call, Node("prepare_to_answer", {}, "Done.", (len(first),)))
    scenario = Scenario("s", "d", TOOLS, (Task("t", "Clarify", None, nodes),), "h", {})
    played = Trajectory("s.e1", 1, scenario, (TaskTrajectory(replies, "closed"),))
    told = {
        name: with_verdicts(played, SCORERS[name].score(played), goes_on=True, rule=SCORERS[name].rule)
        for name in verdicts
    }
    assert {name: it.tasks[0].verdict for name, it in told.items()} == verdicts
    assert all((it.tasks[0].label == "correct") == (it.tasks[0].verdict == "correct") for it in told.values())
