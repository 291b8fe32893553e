"""From the agent to the score, on real Sessions and on our own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from sqlite_utils import Database
from support import scenes
from support.commands import PROGRAM, process, run
from support.driving import Body, driven, provider_saying, scored, verdicts
from support.playing import prompt, rows

from proxy.log.answers import OWN_DICTIONARY, unpack
from proxy.settings import PlayConfig
from scenarios.history import observation_text
from scenarios.load import load
from scenarios.reference import minimal_path
from scoring.metrics.accuracy import Counts, count

pytestmark = pytest.mark.long


def counts(log: Path) -> tuple[Counts, set[str]]:
    """The figures of a log by the released rules, and the labels of the Tasks that were right."""
    sessions = scored(log).sessions
    right = {
        task.label
        for session in sessions
        for task, score in zip(session.scenario.tasks, session.tasks, strict=True)
        if score.label == "correct"
    }
    return count(sessions), right


@pytest.mark.parametrize(
    ("policy", "tasks", "sessions", "optimal", "right"),
    [
        ("oracle", 72, 18, 21, None),
        ("serial", 72, 18, 1, None),
        ("text-only", 8, 0, 0, {"Chat"}),
        ("always-call", 0, 0, 0, set()),
        ("empty", 0, 0, 0, set()),
    ],
)
async def test_a_policy_has_its_score_on_the_real_sessions_however_many_play_at_a_time(
    real_session_files: list[Path],
    tmp_path: Path,
    policy: str,
    tasks: int,
    sessions: int,
    optimal: int,
    right: set[str] | None,
) -> None:
    alone, crowd = tmp_path / "1.db", tmp_path / "16.db"
    report = await driven(crowd, f"sim:{policy}", real_session_files, concurrency=16, stream=True)
    assert report.complete
    figures, labels = counts(crowd)
    assert figures["total_info"] == {"task": (tasks, 72), "session": (sessions, 18)}
    assert figures["optimal_info"]["Total"] == (optimal, 21)
    assert right is None or labels == right
    # Those of one file are enough to see that a crowd changes nothing.
    report = await driven(alone, f"sim:{policy}", real_session_files[:1], concurrency=1)
    assert report.complete
    one_at_a_time = verdicts(alone)
    assert len(one_at_a_time) == 8 * 4
    assert one_at_a_time.items() <= verdicts(crowd).items()


async def test_a_provider_that_errs_errs_alike_in_any_crowd_and_otherwise_in_each_epoch_and_seed(
    real_session_files: list[Path], tmp_path: Path
) -> None:
    files = real_session_files[:1]
    logs = [tmp_path / f"{n}.db" for n in range(3)]
    await driven(logs[0], "sim:noisy:0.3:1", files, concurrency=1)
    await driven(logs[1], "sim:noisy:0.3:1", files, concurrency=16, epochs=2)
    await driven(logs[2], "sim:noisy:0.3:2", files, concurrency=4)
    alone, crowd, other = map(verdicts, logs)
    first = {key: verdict for key, verdict in crowd.items() if key[1] == 1}
    second = {(key[0], 1, key[2]): verdict for key, verdict in crowd.items() if key[1] == 2}
    assert first == alone
    assert second.keys() == alone.keys()
    assert second != alone
    assert other != alone
    assert {label for label, _ in alone.values()} == {"correct", "error"}


@pytest.mark.parametrize(
    "play",
    [
        PlayConfig(tools="relay"),
        PlayConfig(history="live", on_mismatch="continue"),
        PlayConfig(history="live", on_mismatch="continue", tools="relay"),
        PlayConfig(history="live", on_mismatch="continue", history_from="proxy"),
    ],
    ids=["relay", "live", "live relay", "live from the proxy"],
)
async def test_the_real_sessions_are_all_right_in_every_mode_for_an_llm_that_is(
    real_session_files: list[Path], tmp_path: Path, play: PlayConfig
) -> None:
    log = tmp_path / "log.db"
    report = await driven(log, "sim:oracle", real_session_files, concurrency=8, play=play)
    assert report.complete
    figures, _ = counts(log)
    assert figures["total_info"] == {"task": (72, 72), "session": (18, 18)}
    assert rows(log, "SELECT * FROM exchanges WHERE findings IS NOT NULL") == []


async def test_a_live_run_goes_on_after_errors_and_the_log_has_every_wrong_call_with_its_answer(
    real_session_files: list[Path], tmp_path: Path
) -> None:
    log = tmp_path / "log.db"
    play = PlayConfig(history="live", on_mismatch="continue")
    report = await driven(log, "sim:noisy:0.3", real_session_files, concurrency=8, play=play)
    assert report.complete
    wrong = rows(log, "SELECT * FROM tool_calls WHERE outcome NOT IN ('served', 'redundant')")
    assert {it["outcome"] for it in wrong} == {"unknown_tool", "invalid_arguments", "no_data"}
    assert all(json.loads(it["observation"])["error"]["message"] for it in wrong)
    after = "SELECT 1 FROM steps WHERE session_id = ? AND task = ? AND step = ?"
    ended = "SELECT 1 FROM tasks WHERE session_id = ? AND task = ? AND ending = 'stopped'"
    for it in wrong:
        place = it["session_id"], it["task"]
        assert rows(log, after, *place, it["step"] + 1) or rows(log, ended, *place)


# As a user has it


def test_a_user_drives_and_scores_with_two_commands(real_session_files: list[Path], tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    drive = [sys.executable, str(PROGRAM), "drive", "--agent", "builtin", "--provider", "sim:oracle"]
    scenarios = ["--scenarios", str(real_session_files[0]), "--limit", "3"]
    done = subprocess.run(
        [*drive, *scenarios, "--log", str(log)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"run_proxy.py score {log}" in done.stdout
    assert "12 of 12" in done.stdout
    table = run("score", log)
    assert table.exit_code == 0
    assert "12" in table.stdout
    document = run("score", log, "--format", "json")
    assert run("score", log, "--format", "json").stdout_bytes == document.stdout_bytes
    scores = json.loads(document.stdout)
    assert scores["scorers"]["wildtoolbench"]["metrics"]["total_info"]["task"] == {
        "accuracy": 1.0,
        "correct_count": 12,
        "total_count": 12,
    }
    for scorer in ("wildtoolbench", "strict"):
        assert [task["scores"][scorer]["label"] for task in scores["tasks"]] == ["correct"] * 12
    assert scores["disagreements"] == []


async def test_a_log_is_scored_when_its_scenario_file_is_gone(tmp_path: Path) -> None:
    file = scenes.write(tmp_path, scenes.SHOP, scenes.TWINS, name="gone.jsonl")
    log = tmp_path / "log.db"
    await driven(log, "sim:oracle", [file])
    file.unlink()
    elsewhere = tmp_path / "moved" / "renamed.db"
    elsewhere.parent.mkdir()
    shutil.move(log, elsewhere)
    document = json.loads(run("score", elsewhere, "--format", "json").stdout)
    assert document["scorers"]["wildtoolbench"]["metrics"]["total_info"]["task"]["correct_count"] == 6
    accuracy = document["scorers"]["strict"]["figures"]["task_accuracy"]
    assert (accuracy["successes"], accuracy["n"]) == (6, 6)
    assert document["config"]["provider"] == "sim:oracle"
    assert document["config"]["scenarios"][0]["file"] == "gone.jsonl"


def test_a_scenario_file_may_have_a_name_that_is_no_text(tmp_path: Path) -> None:
    file = scenes.write(tmp_path, scenes.chat("chat", 1), name=os.fsdecode(b"\xff.jsonl"))
    log = tmp_path / "log.db"
    drive = [sys.executable, str(PROGRAM), "drive", "--agent", "builtin", "--provider", "sim:oracle"]
    done = subprocess.run(
        [*drive, "--scenarios", str(file), "--log", str(log)], capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr[-500:].count(b"Error")) == (0, 0)
    document = json.loads(run("score", log, "--format", "json").stdout)
    assert document["config"]["scenarios"][0]["file"] == file.name


async def test_one_query_tells_which_calls_a_session_made_and_what_it_was_told(
    real_session_files: list[Path], tmp_path: Path
) -> None:
    log = tmp_path / "log.db"
    await driven(log, "sim:oracle", real_session_files[:1])
    database = Database(str(log))
    try:
        for scenario in load(real_session_files[:1])[0].scenarios:
            told = database.query(
                "select task, step, name, arguments, observation from tool_call_log "
                "where session = ? order by task, step, position",
                [f"{scenario.id}.e1"],
            )
            expected = []
            for number, task in enumerate(scenario.tasks, start=1):
                for step, batch in enumerate(minimal_path(task.nodes), start=1):
                    for node in (task.nodes[i] for i in batch):
                        if node.is_call:
                            said = observation_text(node.observation)
                            expected.append((number, step, node.name, node.arguments, said))
            found = [(*row.values(),) for row in told]
            assert [(*row[:3], json.loads(row[3]), row[4]) for row in found] == expected
    finally:
        database.close()


@pytest.mark.parametrize(("observations", "swapped"), [("matched", False), ("released", True)])
async def test_parallel_calls_are_told_their_own_results_unless_the_released_order_is_wanted(
    tmp_path: Path, observations: Any, swapped: bool
) -> None:
    """An LLM that calls in reverse order, and closes as soon as everything was answered."""
    chair, lamp = ("getPrice", {"thing": "chair"}), ("getPrice", {"thing": "lamp"})

    def say(body: Body, headers: Any) -> Body:
        results = [m for m in body["messages"] if m["role"] == "tool"]
        made = {0: [chair, lamp], 2: [("weigh", {"thing": "lamp", "kilos": 1.5})]}.get(len(results), [])
        return {"content": None if made else "Done.", "tool_calls": [_call(*it) for it in made] or None}

    def _call(name: str, arguments: Body) -> Body:
        thing = f"call_{name}_{arguments['thing']}"
        return {
            "id": thing,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }

    one = {**scenes.TWINS, "tasks": scenes.TWINS["tasks"][:1], "answer_list": scenes.TWINS["answer_list"][:1]}
    log = tmp_path / "log.db"
    async with provider_saying(say) as url:
        play = PlayConfig(observations=observations)
        await driven(log, url, [scenes.write(tmp_path, one)], play=play)
    told = {row["tool_call_id"]: row["observation"] for row in rows(log, "SELECT * FROM tool_calls")}
    prices = ('{"price": 3}', '{"price": 7}') if swapped else ('{"price": 7}', '{"price": 3}')
    assert (told["call_getPrice_chair"], told["call_getPrice_lamp"]) == prices
    assert list(verdicts(log).values()) == [("correct", True)]


async def test_a_grouping_that_only_the_released_rules_refuse_is_played_to_its_end_and_scored_by_both(
    tmp_path: Path,
) -> None:
    """Two calls of one name, then the third."""
    things = [["bed", "lamp"], ["chair"]]

    def say(body: Body, headers: Any) -> Body:
        priced = body["messages"][1]["content"].startswith("What")
        told = sum(message["role"] == "tool" for message in body["messages"])
        made = {0: things[0], 2: things[1]}.get(told, []) if priced and len(body["messages"]) < 7 else []
        return {"content": None if made else "Done.", "tool_calls": [_price(it) for it in made] or None}

    def _price(thing: str) -> Body:
        function = {"name": "getPrice", "arguments": json.dumps({"thing": thing})}
        return {"id": f"call_{thing}", "type": "function", "function": function}

    log = tmp_path / "log.db"
    async with provider_saying(say) as url:
        await driven(log, url, [scenes.write(tmp_path, scenes.TRIPLETS)])
    released, strict = (it.sessions[0].tasks for it in scored(log).scored)
    assert [task.label for task in released] == ["error", "correct"]
    assert [task.label for task in strict] == ["correct", "correct"]
    assert (strict[0].is_optimal, strict[0].matched) == (False, 4)
    told = {row["tool_call_id"]: row["observation"] for row in rows(log, "SELECT * FROM tool_calls")}
    assert told == {"call_bed": '{"price": 90}', "call_lamp": '{"price": 3}', "call_chair": '{"price": 7}'}


# What is written down


async def test_what_an_agent_has_seen_survives_a_kill(tmp_path: Path) -> None:
    file, log = scenes.write(tmp_path, scenes.chat("chat", 2)), tmp_path / "log.db"
    arguments = ("serve", "--scenarios", file, "--provider", "sim:oracle", "--log", log, "--port", 0)
    async with process(*arguments) as serving, aiohttp.ClientSession() as http:
        url = f"{serving.url}/s/chat/v1/chat/completions"
        async with http.post(url, json=prompt(1)) as response:
            assert (await response.json())["choices"][0]["message"]["content"] == "chat is told 1"
        await serving.stop(signal.SIGKILL)
    exchanges = rows(log, "SELECT side, finish_state FROM exchanges")
    assert {row["finish_state"] for row in exchanges} == {"complete"}
    assert verdicts(log)["chat", 1, 1] == ("correct", True)
    assert verdicts(log)["chat", 1, 2] == (None, False)


CANARIES = {
    "agent": "agent-canary-1a2b3c4d5e6f",
    "environment": "environment-canary-1a2b3c4d",
    "user": "user-canary-1a2b3c4d5e6f7",
    "query": "query-canary-1a2b3c4d5e6f",
}


@pytest.mark.parametrize("mode", ["play", "record"])
@pytest.mark.parametrize("of_the_proxy", [False, True])
async def test_no_secret_is_ever_written_down_or_printed(
    tmp_path: Path, mode: str, of_the_proxy: bool
) -> None:
    """The provider gives all that it was sent away again, in texts and in errors."""
    log = tmp_path / "log.db"
    seen: list[str] = []

    async def echo(request: Any) -> Any:
        what = f"{request.headers.get('Authorization')} {request.rel_url} "
        seen.append(what)
        if len(seen) % 2:
            return web.json_response({"error": {"message": f"no key {what}", "type": what}}, status=401)
        message = {"role": "assistant", "content": what}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "x", "choices": [choice], "model": "m"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", echo)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"127.0.0.1:{runner.addresses[0][1]}/v1?api_key={CANARIES['query']}"
    key: tuple[Any, ...] = ("--provider-key-env", "PROVIDER_KEY") if of_the_proxy else ()
    user = "" if of_the_proxy else f"user:{CANARIES['user']}@"
    files = ("--scenarios", scenes.write(tmp_path, scenes.chat("chat", 4))) if mode == "play" else ()
    arguments = ("serve", *files, "--provider", f"http://{user}{address}", *key, "--log", log, "--port", 0)
    env = {"PROVIDER_KEY": CANARIES["environment"]}
    try:
        async with process(*arguments, env=env) as serving, aiohttp.ClientSession() as http:
            for turn in (1, 1, 2, 2):
                async with http.post(
                    f"{serving.url}/s/chat/v1/chat/completions?token={CANARIES['agent']}",
                    json=prompt(turn, user=CANARIES["agent"]),
                    headers={"Authorization": f"Bearer {CANARIES['agent']}", "Cookie": CANARIES["agent"]},
                ) as response:
                    await response.read()
            assert await serving.stop() == 0
    finally:
        await runner.cleanup()
    assert len(seen) == 4
    assert any(canary in "".join(seen) for canary in CANARIES.values())
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.name.startswith("log.db"))
    answers = f"SELECT raw, {OWN_DICTIONARY} AS dictionary FROM exchanges WHERE raw IS NOT NULL"
    for row in rows(log, answers):
        written += unpack(row["raw"], row["dictionary"])
    for canary in CANARIES.values():
        assert canary.encode() not in written
        assert canary.encode() not in serving.said
    hashes = {row["key_hash"] for row in rows(log, "SELECT key_hash FROM exchanges WHERE side = 'agent'")}
    assert len(hashes) == 1
    assert None not in hashes
