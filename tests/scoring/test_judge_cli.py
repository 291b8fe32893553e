"""`judge`: recorded replies and conversations on the command line, our own exports among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support import scenes
from support.driving import driven

from proxy.settings import PlayConfig
from scenarios.load import BUNDLED_WORD
from scoring.cli import Asked, score_logs
from scoring.export_cli import export
from scoring.judge_cli import judge
from scoring.output.document import document

TOOL = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Books a room.",
        "parameters": {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
    },
}
NODES = [
    {
        "action": {"name": "book", "arguments": {"room": "blue"}},
        "observation": {"ok": True},
        "dependency_list": [],
    },
    {
        "action": {"name": "prepare_to_answer", "arguments": {"answer_type": "tool"}},
        "observation": "Booked.",
        "dependency_list": [0],
    },
]
TEXT = {"role": "assistant", "content": "Done."}


def calling(arguments: str = '{"room": "blue"}') -> dict[str, Any]:
    function = {"name": "book", "arguments": arguments}
    call = {"id": "c0", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def line(**case: Any) -> bytes:
    return json.dumps(case).encode() + b"\n"


def case_line(case: str, *replies: dict[str, Any]) -> bytes:
    return line(case=case, tools=[TOOL], answer_list=NODES, replies=replies)


def chat_line(scenario: str, *texts: str) -> bytes:
    """The user and the agent say one of these after the other."""
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    return line(case="chat", scenario=scenario, messages=messages)


def run_judge(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(judge, [str(argument) for argument in arguments], input=stdin)


def entries(result: Result) -> list[dict[str, Any]]:
    return [json.loads(text) for text in result.stdout.splitlines()]


def labels(entry: dict[str, Any]) -> dict[str, str]:
    return {name: score["label"] for name, score in entry["scores"].items()}


def test_a_verdict_is_written_for_each_line(tmp_path: Path) -> None:
    cases, verdicts = tmp_path / "cases.jsonl", tmp_path / "verdicts.jsonl"
    cases.write_bytes(case_line("a", calling(), TEXT) + b"\n" + case_line("b", TEXT))
    assert run_judge(cases, "-o", verdicts).exit_code == 0
    written = [json.loads(text) for text in verdicts.read_bytes().splitlines()]
    assert [(entry["case"], labels(entry)) for entry in written] == [
        ("a", {"wildtoolbench": "correct", "strict": "correct"}),
        ("b", {"wildtoolbench": "error", "strict": "error"}),
    ]
    assert run_judge(cases).stdout_bytes == verdicts.read_bytes()


def test_scorers_may_be_named() -> None:
    result = run_judge(
        "-", "--scorer", "published", "--scorer", "strict", stdin=case_line("a", calling(), TEXT)
    )
    assert result.exit_code == 0, result.output
    assert [list(entry["scores"]) for entry in entries(result)] == [["published", "strict"]]
    assert run_judge("-", "--scorer", "lenient", stdin=b"").exit_code == 2


def test_standard_input_is_read() -> None:
    result = run_judge("-", stdin=case_line("a", calling(), TEXT))
    assert result.exit_code == 0
    assert [labels(entry)["strict"] for entry in entries(result)] == ["correct"]


def test_what_follows_a_broken_line_is_judged_and_then_it_fails() -> None:
    result = run_judge("-", stdin=b"{\n" + case_line("b", calling(), TEXT))
    assert result.exit_code == 2
    broken, good = entries(result)
    assert list(broken) == ["case", "line", "error"]
    assert (broken["line"], labels(good)["wildtoolbench"]) == (1, "correct")
    assert "1 of 2 lines could not be judged" in result.stderr


def test_every_character_of_a_name_is_kept() -> None:
    name = "多 \ud800 \x1b \x9b \u202e"
    output = run_judge("-", stdin=case_line(name, calling(), TEXT)).stdout_bytes
    assert json.loads(output)["case"] == name
    assert "多".encode() in output
    assert not any(ord(char) in (0x1B, 0x9B, 0x202E) for char in output.decode())


def test_the_input_is_never_overwritten(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_bytes(case_line("a", calling(), TEXT))
    result = run_judge(cases, "-o", cases)
    assert result.exit_code == 2
    assert cases.read_bytes() == case_line("a", calling(), TEXT)


@pytest.mark.parametrize("stdin", [b"", b"\n \n"])
def test_without_cases_there_is_nothing_to_score(stdin: bytes) -> None:
    assert run_judge("-", stdin=stdin).exit_code == 3


def test_a_file_that_cannot_be_opened_is_named_in_one_line(tmp_path: Path) -> None:
    for arguments in (
        [tmp_path / "none.jsonl"],
        [tmp_path],
        ["-", "-o", tmp_path / "no" / "folder"],
        ["-", "--scenarios", tmp_path / "none.jsonl"],
    ):
        result = run_judge(*arguments, stdin=b"")
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert str(tmp_path) in result.stderr


# --- Conversations -------------------------------------------------------------


def test_conversations_are_of_the_bundled_scenarios_unless_files_are_named(tmp_path: Path) -> None:
    file = scenes.write(tmp_path, scenes.chat("shelf"))
    ours = chat_line("shelf", "shelf asks 1", "a", "shelf asks 2", "b")
    bundled = chat_line("home_6", "Hello", "What can I do for you?")
    both = run_judge("-", "--scenarios", file, "--scenarios", BUNDLED_WORD, stdin=ours + bundled)
    assert both.exit_code == 0, both.output
    assert [entry["scenario"] for entry in entries(both)] == ["shelf", "home_6"]
    assert entries(both)[0]["session_correct"] == {"wildtoolbench": True, "strict": True}

    alone = run_judge("-", stdin=ours + bundled)
    assert alone.exit_code == 2
    broken, judged = entries(alone)
    assert broken["error"].startswith('scenario: "shelf" is in no file of --scenarios; known are ')
    assert judged == entries(both)[1]


def test_a_scenario_file_that_is_broken_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text("{]\n")
    result = run_judge("-", "--scenarios", file, stdin=b"")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "broken.jsonl:1" in result.stderr


GOLD = PlayConfig()
GOES_ON = PlayConfig(on_mismatch="continue")
LIVE = PlayConfig(history="live", on_mismatch="continue")
OF_THE_LOG = ("error_class",)
OF_LIVE_TASKS = ("verdict", "redundant_calls", "unmatched_calls", "steps_taken")


@pytest.mark.parametrize(
    ("provider", "play"),
    [("sim:noisy:0.3:1", GOLD), ("sim:empty", GOLD), ("sim:noisy:0.3:1", GOES_ON), ("sim:noisy:0.3:1", LIVE)],
    ids=["gold", "gold and empty", "goes on", "live"],
)
async def test_an_exported_log_gets_the_verdicts_that_score_gives_it(
    tmp_path: Path, provider: str, play: PlayConfig
) -> None:
    log = tmp_path / "run.db"
    file = scenes.write(tmp_path, scenes.SHOP, scenes.TWINS, scenes.TRIPLETS, scenes.chat("shelf"))
    assert (await driven(log, provider, [file, BUNDLED_WORD], play=play)).complete
    exported = CliRunner().invoke(export, [str(log), "--format", "openai"])
    judged = run_judge("-", "--scenarios", file, "--scenarios", BUNDLED_WORD, stdin=exported.stdout_bytes)
    assert judged.exit_code == 0, judged.output
    left_out = OF_THE_LOG if play.on_mismatch == "continue" else (*OF_THE_LOG, *OF_LIVE_TASKS)
    found = {
        (entry["case"], task["task"]): without(left_out, task["scores"])
        for entry in entries(judged)
        for task in entry["tasks"]
    }
    [report] = score_logs((log,), (), Asked())
    expected = {
        (task["session"], task["task"]): without(left_out, task["scores"])
        for task in json.loads(json.dumps(document(report)))["tasks"]
    }
    assert found == expected
    assert len(found) == 4 + 2 + 2 + 2 + 40


def without(keys: tuple[str, ...], scores: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {key: value for key, value in score.items() if key not in keys}
        for name, score in scores.items()
    }
