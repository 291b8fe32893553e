"""`export`: what the released evaluation code would read in the files, and the chats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner, Result
from support import logs

from proxy.drive.builtin import builtin
from proxy.drive.client import ControlClient
from proxy.drive.driver import drive
from proxy.drive.plan import plan
from proxy.log.rows import RunRow
from proxy.log.writer import LogWriter
from proxy.server import running
from proxy.settings import Settings
from scenarios.arguments import check_arguments
from scenarios.load import BUNDLED, load
from scenarios.types import PSEUDO_ACTIONS
from scoring.export import CANDIDATES, UNCHECKABLE
from scoring.export_cli import RESULT_FILE, export
from scoring.logs.reader import open_log
from scoring.metrics.accuracy import Counts, count
from scoring.transcript import UNANSWERED
from scoring.types import SessionScore
from scoring.verdicts.wildtoolbench import score_session

MODEL = "maker/model-1"
DATE = "Current Date: 2025-01-02 10:00:00 Thursday"
LAMP = ("findPrice", '{"thing": "lamp"}')
CHAIR = ("findPrice", '{"thing": "chair"}')
CLOSED = logs.text_message("It is 3.")


class Quiet:
    def began(self, session: str, tasks: int) -> None: ...

    def moved(self, state: object) -> None: ...

    def failed(self, failure: object) -> None: ...

    def finished(self, played: object) -> None: ...


Play = Callable[..., Awaitable[Path]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """`await play("sim:oracle", files)` plays all Sessions with the builtin agent; gives the log."""

    async def played(provider: str, files: Iterable[Path] = (BUNDLED,), epochs: int = 1) -> Path:
        log = tmp_path / "played.db"
        async with (
            running(Settings(log=log, provider=provider, scenarios=tuple(files))) as proxy,
            ControlClient(proxy.base_url, proxy.token) as control,
            builtin(MODEL) as factory,
        ):
            planned = plan((await control.run()).scenarios, epochs=epochs)
            report = await drive(control, planned, factory, concurrency=8, turn_timeout=60, progress=Quiet())
        assert report.complete
        return log

    return played


def run_export(*arguments: object) -> Result:
    return CliRunner().invoke(export, [str(argument) for argument in arguments])


def exported(log: Path, *arguments: object, model: str = "m") -> list[dict[str, Any]]:
    """The lines of the only result file that the log gives."""
    folder = log.parent / "results"
    result = run_export(log, "-o", folder, *arguments)
    assert result.exit_code == 0, result.output
    return read_lines(folder / model / RESULT_FILE)


def read_lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def scored(log: Path, epoch: int = 1) -> list[SessionScore]:
    opened = open_log(log)
    (run,) = opened.runs()
    return [score_session(it) for it in opened.trajectories(run.id) if it.epoch == epoch]


# --- The released evaluation, in few words -----------------------------------


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


@pytest.mark.parametrize(
    "provider", ["sim:oracle", "sim:serial", "sim:noisy:0.3:1", "sim:text-only", "sim:empty"]
)
async def test_the_files_of_the_bundled_sessions_evaluate_to_our_metrics(play: Play, provider: str) -> None:
    log = await play(provider)
    lines = exported(log, model="maker_model-1")
    assert evaluated(lines, (BUNDLED,)) == flat(count(scored(log)))


@pytest.mark.parametrize("provider", ["sim:oracle", "sim:serial", "sim:noisy:0.3:2"])
async def test_the_files_of_real_sessions_evaluate_to_our_metrics(
    play: Play, provider: str, real_session_files: list[Path]
) -> None:
    log = await play(provider, real_session_files)
    lines = exported(log, model="maker_model-1")
    assert [int(line["id"].rpartition("_")[2]) for line in lines] == [*range(8), *range(79, 89)]
    assert evaluated(lines, real_session_files) == flat(count(scored(log)))


# --- The form, from logs made by hand ----------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """`log([[message, ...], ...])` is the log of one Session of `shop_1`, played as said."""

    def write(
        tasks: list[list[Any]], record: dict[str, Any] | None = None, *, name: str = "log.db", **start: Any
    ) -> Path:
        record = record or logs.RECORD
        rows: list[Any] = [logs.run(), logs.scenario(record["id"], record), logs.session("s1", record["id"])]
        for task, messages in enumerate(tasks):
            rows.append(logs.turn(task + 1, task))
            rows += [row for step, said in enumerate(messages) for row in step_rows(task, step, said, start)]
            rows.append(logs.end(task, "agent_stopped"))
        with LogWriter.open(tmp_path / name) as writer:
            writer.commit_blocking(*rows)
        return tmp_path / name

    return write


def step_rows(task: int, step: int, said: Any, start: dict[str, Any]) -> Iterator[Any]:
    exchange = f"x{task}-{step}"
    calls = said.get("tool_calls") if isinstance(said, dict) else None
    told = [
        logs.call(i, it["function"]["name"], it["function"]["arguments"], '{"price": 3}')
        for i, it in enumerate(calls if isinstance(calls, list) else ())
        if isinstance(it, dict) and isinstance(it["function"]["arguments"], str)
    ]
    asked = {"messages": [{"role": "user", "content": f"request {task}-{step}"}], "started_at": 4.5}
    yield logs.start(exchange, turn=task + 1, **{**asked, **start})
    yield logs.finish(exchange, input_tokens=70 + step, output_tokens=7)
    yield logs.step(step, task, turn=task + 1, exchange_id=exchange, message=said, calls=tuple(told))


def node(name: str, arguments: dict[str, Any], observation: Any, *needs: int, **more: Any) -> dict[str, Any]:
    action = {"name": name, "arguments": arguments}
    return {"action": action, "observation": observation, "dependency_list": list(needs), **more}


def shop(*nodes: dict[str, Any], parameters: Any = None, scenario_id: str = "shop_1") -> dict[str, Any]:
    """A scenario of one Task with these nodes, whose one tool has these parameters."""
    function = logs.RECORD["tools"][0]["function"]
    tool = {"type": "function", "function": {**function, "parameters": parameters or function["parameters"]}}
    record = {**logs.RECORD, "id": scenario_id, "tools": [tool]}
    return {**record, "tasks": ["What is a lamp?"], "answer_list": [list(nodes)]}


def first_task(log: Path) -> dict[str, Any]:
    task: dict[str, Any] = exported(log)[0]["result"][0]
    return task


def test_a_line_has_the_keys_of_the_released_form_in_their_order(log: Callable[..., Path]) -> None:
    path = log([[logs.call_message(LAMP), CLOSED], [logs.call_message(CHAIR), CLOSED]])
    (line,) = exported(path)
    assert list(line) == ["id", "model_name", "result"]
    assert (line["id"], line["model_name"], len(line["result"])) == ("shop_1", "m", 2)
    task = line["result"][1]
    assert list(task) == [
        "action_name_label",
        "is_optimal",
        "inference_log",
        "latency",
        "input_token_count",
        "output_token_count",
    ]
    assert (task["action_name_label"], task["is_optimal"]) == ("correct", True)
    assert (task["latency"], task["input_token_count"], task["output_token_count"]) == (
        [0.5, 0.5],
        [70, 71],
        [7, 7],
    )
    record = task["inference_log"]
    assert list(record) == ["task_idx", "begin_of_current_task", "step_0", "step_1"]
    assert record["task_idx"] == 1
    assert record["begin_of_current_task"] == {"role": "user", "content": "request 1-0"}


def test_a_right_call_is_told_as_what_was_sent_what_was_said_and_the_one_answer(
    log: Callable[..., Path],
) -> None:
    path = log([[{**logs.call_message(LAMP), "reasoning_content": "Hm."}, CLOSED], []])
    step = first_task(path)["inference_log"]["step_0"]
    function = {"name": "findPrice", "arguments": '{"thing": "lamp"}'}
    assert list(step) == ["inference_input", "inference_output", "inference_answer"]
    assert step["inference_input"] == {
        "messages": [{"role": "user", "content": "request 0-0"}],
        "tools": logs.RECORD["tools"],
    }
    assert list(step["inference_output"].items()) == [
        ("reasoning_content", "Hm."),
        ("content", None),
        ("tool_calls", [{"id": "call_0", "type": "function", "function": function}]),
        ("current_action_name_label", "correct"),
    ]
    answer = step["inference_answer"]["candidate_0_answer_function_list"]
    assert list(step["inference_answer"]) == ["candidate_0_answer_function_list"]
    assert answer == {"action": [function]}
    assert list(answer["action"][0]) == ["arguments", "name"]


def test_texts_are_answered_with_the_words_of_the_ask_and_of_the_closing_node(
    log: Callable[..., Path],
) -> None:
    ask = node("ask_user_for_required_parameters", {}, "Which lamp?", user_input="The red one.")
    close = node("prepare_to_answer", {"answer_type": "chat"}, "Ah.", 0)
    task = first_task(log([[logs.text_message("Which?"), CLOSED]], shop(ask, close)))
    steps = [task["inference_log"][f"step_{i}"] for i in range(2)]
    assert [step["inference_output"]["tool_calls"] for step in steps] == [None, None]
    first, second = (step["inference_answer"]["candidate_0_answer_function_list"] for step in steps)
    assert list(first.items()) == [
        ("action", [{"arguments": "{}", "name": "ask_user_for_required_parameters"}]),
        ("observation", "Which lamp?"),
        ("user_input", "The red one."),
    ]
    assert list(second.items()) == [
        ("action", [{"arguments": '{"answer_type": "chat"}', "name": "prepare_to_answer"}]),
        ("observation", "Ah."),
    ]


def test_the_answer_to_a_batch_is_in_the_order_of_names(log: Callable[..., Path]) -> None:
    record = shop(
        node("findPrice", {"thing": "lamp"}, 1),
        node("askClerk", {}, 2),
        node("prepare_to_answer", {}, "Done.", 0, 1),
    )
    record["tools"] = [
        *record["tools"],
        {"type": "function", "function": {"name": "askClerk", "description": "", "parameters": {}}},
    ]
    step = first_task(log([[logs.call_message(LAMP, ("askClerk", "{}")), CLOSED]], record))["inference_log"]
    answer = step["step_0"]["inference_answer"]["candidate_0_answer_function_list"]
    assert [action["name"] for action in answer["action"]] == ["askClerk", "findPrice"]


def test_a_wrong_step_ends_the_task_and_lists_what_was_allowed(log: Callable[..., Path]) -> None:
    record = shop(
        node("findPrice", {"thing": "lamp"}, 1),
        node("prepare_to_answer", {}, "Just so.", 0),
    )
    task = first_task(log([[logs.call_message(("noSuchTool", "{}"))]], record))
    assert (task["action_name_label"], task["is_optimal"]) == ("error", False)
    step = task["inference_log"]["step_0"]
    assert list(step["inference_output"]) == [
        "reasoning_content",
        "content",
        "tool_calls",
        "current_action_name_label",
        "error_reason",
    ]
    assert step["inference_output"]["current_action_name_label"] == "error"
    assert step["inference_output"]["error_reason"] == ("action name not in candidate_answer_function_list")
    assert step["inference_answer"] == {
        "candidate_0_answer_function_list": {
            "action": [{"arguments": '{"thing": "lamp"}', "name": "findPrice"}]
        }
    }


def test_of_many_allowed_batches_a_few_are_listed(log: Callable[..., Path]) -> None:
    names = [f"tool{i}" for i in range(12)]
    record = shop(*(node(name, {}, 1) for name in names), node("prepare_to_answer", {}, "", *range(12)))
    record["answer_list"][0][-1]["observation"] = "Done."
    record["tools"] = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]
    answer = first_task(log([[CLOSED]], record))["inference_log"]["step_0"]["inference_answer"]
    assert list(answer) == [f"candidate_{i}_answer_function_list" for i in range(CANDIDATES)]
    assert [it["action"][0]["name"] for it in answer.values()] == names[:CANDIDATES]


@pytest.mark.parametrize("reply", [logs.text_message(""), {"role": "assistant", "content": None}, "odd"])
def test_an_empty_reply_has_answers_too(log: Callable[..., Path], reply: Any) -> None:
    step = first_task(log([[reply], []]))["inference_log"]["step_0"]
    assert step["inference_output"]["tool_calls"] is None
    assert step["inference_output"]["error_reason"] == "tool_calls and content are None"
    assert list(step["inference_answer"]) == ["candidate_0_answer_function_list"]


def test_an_agent_that_says_no_more_is_written_as_an_empty_reply(log: Callable[..., Path]) -> None:
    task = first_task(log([[logs.call_message(LAMP)], []]))
    assert task["action_name_label"] == "error"
    assert (task["latency"], task["input_token_count"]) == ([0.5, 0.0], [70, 0])
    step = task["inference_log"]["step_1"]
    assert step["inference_output"]["error_reason"] == "tool_calls and content are None"
    sent = step["inference_input"]["messages"]
    assert sent[0] == {"role": "user", "content": "request 0-0"}
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call_0"
    assert sent[2] == {"role": "tool", "content": '{"price": 3}', "tool_call_id": "call_0"}


def test_an_agent_that_never_asked_is_written_as_an_empty_reply_to_the_opening(
    log: Callable[..., Path],
) -> None:
    (line,) = exported(log([[logs.call_message(LAMP), CLOSED], []]))
    sent = line["result"][1]["inference_log"]["step_0"]["inference_input"]["messages"]
    assert sent[0] == {"role": "system", "content": DATE}
    assert sent[1] == {"role": "user", "content": "What is a lamp?"}
    assert sent[-1] == {"role": "user", "content": "And a chair?"}
    assert line["result"][1]["inference_log"]["begin_of_current_task"] == sent[-1]


ONE_CALL = (node("findPrice", {"thing": "lamp"}, 1), node("prepare_to_answer", {}, "3.", 0))
UNREADABLE = [
    (None, None),
    (None, {}),
    (None, {"thing": "lamp"}),
    (None, '{"thing": ' + "1" * 5000 + "}"),
    (None, "[" * 950 + "]" * 950),
    ({"type": "object", "properties": {"thing": {"type": ["string", "null"]}}}, '{"thing": "lamp"}'),
    ({"type": "object", "properties": None}, '{"thing": "lamp"}'),
    ({"type": "object", "properties": {}, "required": None}, "{}"),
]


@pytest.mark.parametrize(("parameters", "arguments"), UNREADABLE)
def test_what_would_crash_the_released_checker_is_written_as_arguments_that_are_no_json(
    log: Callable[..., Path], parameters: Any, arguments: Any
) -> None:
    path = log(
        [[logs.call_message(("findPrice", arguments)), CLOSED]], shop(*ONE_CALL, parameters=parameters)
    )
    task = first_task(path)
    step = task["inference_log"]["step_0"]
    (call,) = step["inference_output"]["tool_calls"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(call["function"]["arguments"])
    (score,) = scored(path)[0].tasks
    assert judged(task) == (score.label, False, score.steps_kept) == ("error", False, 1)


def test_after_a_wrong_argument_as_many_steps_are_left_as_we_count(log: Callable[..., Path]) -> None:
    chain = (
        node("findPrice", {"thing": "lamp"}, 1),
        node("findPrice", {"thing": "chair"}, 2, 0),
        node("findPrice", {"thing": "bed"}, 2, 1),
        node("prepare_to_answer", {}, "Done.", 2),
    )
    said = [logs.call_message(it) for it in (LAMP, LAMP, ("findPrice", '{"thing": "bed"}'))]
    path = log([[*said, CLOSED]], shop(*chain))
    task = first_task(path)
    (score,) = scored(path)[0].tasks
    assert [key for key in task["inference_log"] if key.startswith("step_")] == [
        f"step_{i}" for i in range(4)
    ]
    assert judged(task) == ("error", False, 3)
    assert score.steps_kept == 3


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"role": "assistant", "content": None, "tool_calls": "oops"}, "parse tool_calls failed"),
        ({"role": "assistant", "content": None, "tool_calls": [7]}, "parse tool_calls failed"),
        ({"role": "assistant", "content": "Hello."}, "action name not in"),
    ],
)
def test_what_was_said_in_a_wrong_step_stays_as_it_was(
    log: Callable[..., Path], said: dict[str, Any], reason: str
) -> None:
    output = first_task(log([[said], []]))["inference_log"]["step_0"]["inference_output"]
    assert (output["content"], output["tool_calls"]) == (said["content"], said.get("tool_calls"))
    assert output["error_reason"].startswith(reason)


def test_a_legacy_function_call_is_written_as_a_tool_call(log: Callable[..., Path]) -> None:
    function = {"name": "findPrice", "arguments": '{"thing": "lamp"}'}
    said = {"role": "assistant", "content": None, "function_call": function}
    output = first_task(log([[said, CLOSED], []]))["inference_log"]["step_0"]["inference_output"]
    assert output["tool_calls"] == [{"id": "call_0", "type": "function", "function": function}]
    assert output["current_action_name_label"] == "correct"


def test_tools_of_the_agent_that_were_sent_too_are_there(log: Callable[..., Path]) -> None:
    own = {"type": "function", "function": {"name": "mine", "parameters": {}}}
    path = log([[logs.call_message(LAMP), CLOSED], []], body={"tools": [own, *logs.RECORD["tools"]]})
    tools = first_task(path)["inference_log"]["step_0"]["inference_input"]["tools"]
    assert tools == [own, *logs.RECORD["tools"]]


def test_half_a_surrogate_pair_survives(log: Callable[..., Path]) -> None:
    (line,) = exported(log([[logs.call_message(LAMP), logs.text_message("half \ud83d")], []]))
    step = line["result"][0]["inference_log"]["step_1"]
    assert step["inference_output"]["content"] == "half \ud83d"


# --- Chats -------------------------------------------------------------------


async def test_a_chat_is_the_conversation_as_it_was_played(tmp_path: Path) -> None:
    """An agent with a system prompt and a template, over real HTTP."""
    path = tmp_path / "log.db"
    file = tmp_path / "shop.jsonl"
    file.write_text(json.dumps(logs.RECORD) + "\n", encoding="utf-8")
    async with (
        running(Settings(log=path, provider="sim:oracle", scenarios=(file,))) as proxy,
        aiohttp.ClientSession() as client,
    ):
        for turn in (1, 2):
            messages = [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": f"User says: [[next-user-turn {turn}]]"},
            ]
            url = f"{proxy.base_url}/s/shop_1/v1/chat/completions"
            async with client.post(url, json={"model": "m", "messages": messages}) as answer:
                assert answer.status == 200, await answer.text()
        async with ControlClient(proxy.base_url, proxy.token) as control:
            assert await control.open_turn("shop_1.e1") is None
    (chat,) = [json.loads(line) for line in run_export(path, "--format", "openai").stdout.splitlines()]
    assert list(chat) == ["session", "scenario", "epoch", "run", "model", "tools", "messages"]
    assert [chat[key] for key in ("session", "scenario", "epoch", "model")] == ["shop_1.e1", "shop_1", 1, "m"]
    assert chat["tools"] == logs.RECORD["tools"]
    system, *rest = chat["messages"]
    assert system == {"role": "system", "content": f"Be kind.\n\n{DATE}"}
    assert [message["role"] for message in rest] == ["user", "assistant", "tool", "assistant"] * 2
    assert [rest[i]["content"] for i in (0, 2, 3, 4, 7)] == [
        "User says: What is a lamp?",
        '{"price": 3}',
        "It is 3.",
        "User says: And a chair?",
        "It is 3.",
    ]
    for called, told in ((rest[1], rest[2]), (rest[5], rest[6])):
        assert called["tool_calls"][0]["id"] == told["tool_call_id"]
    assert rest[5]["tool_calls"][0]["function"] == {"name": "findPrice", "arguments": '{"thing": "chair"}'}


async def test_every_chat_is_one_that_chat_formats_accept(play: Play) -> None:
    log = await play("sim:noisy:0.4:3", epochs=2)
    target = log.parent / "chats.jsonl"
    assert run_export(log, "--format", "openai", "-o", target).exit_code == 0
    chats = read_lines(target)
    sessions = scored(log) + scored(log, epoch=2)
    assert sorted(chat["session"] for chat in chats) == sorted(it.session for it in sessions)
    for chat in chats:
        owed: list[str] = []
        for message in chat["messages"]:
            if message["role"] == "tool":
                assert message["tool_call_id"] == owed.pop(0)
                assert isinstance(message["content"], str)
                continue
            assert not owed
            calls = message.get("tool_calls", [])
            assert calls or isinstance(message["content"], str)
            assert all(isinstance(call["function"]["arguments"], str) for call in calls)
            owed = [call["id"] for call in calls]
        assert not owed


def test_a_call_that_was_told_nothing_says_so(log: Callable[..., Path]) -> None:
    path = log([[logs.call_message(("noSuchTool", None))], []])
    chat = json.loads(run_export(path, "--format", "openai").stdout)
    assert chat["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_0", "type": "function", "function": {"name": "noSuchTool", "arguments": "null"}}
            ],
        },
        {"role": "tool", "content": UNANSWERED, "tool_call_id": "call_0"},
    ]


# --- The command -------------------------------------------------------------


def test_a_file_that_is_there_is_kept_unless_forced(log: Callable[..., Path], tmp_path: Path) -> None:
    path = log([[CLOSED], []])
    for arguments, target in (
        (("-o", tmp_path / "out"), tmp_path / "out" / "m" / RESULT_FILE),
        (("--format", "openai", "-o", tmp_path / "chats.jsonl"), tmp_path / "chats.jsonl"),
    ):
        first = run_export(path, *arguments)
        assert first.stdout == f"{target}: 1 session\n"
        written = target.read_bytes()
        target.write_text("mine")
        again = run_export(path, *arguments)
        assert again.exit_code == 2
        assert again.stderr == (
            f"Error: {target}: is there already; overwrite it with --force or choose another -o\n"
        )
        assert target.read_text() == "mine"
        assert run_export(path, *arguments, "--force").exit_code == 0
        assert target.read_bytes() == written
        assert [entry.name for entry in target.parent.iterdir() if entry.suffix == ".part"] == []


def test_a_log_is_never_overwritten(log: Callable[..., Path]) -> None:
    path = log([[CLOSED], []])
    before = path.read_bytes()
    result = run_export(path, "--format", "openai", "-o", path, "--force")
    assert (result.exit_code, path.read_bytes()) == (2, before)
    assert "would overwrite the log" in result.stderr


async def test_the_first_epoch_is_exported_unless_another_is_chosen(play: Play) -> None:
    log = await play("sim:noisy:0.4:3", epochs=3)
    sessions = len(scored(log))
    for arguments, epoch in (((), 1), (("--epoch", 2, "--force"), 2)):
        result = run_export(log, "-o", log.parent / "out", *arguments)
        assert result.exit_code == 0
        assert f"epoch {epoch} of the epochs 1, 2, 3; {2 * sessions} sessions left out" in result.stderr
        lines = read_lines(log.parent / "out" / "maker_model-1" / RESULT_FILE)
        assert len(lines) == sessions
        assert evaluated(lines, (BUNDLED,)) == flat(count(scored(log, epoch)))
    missing = run_export(log, "-o", log.parent / "out", "--epoch", 4)
    assert missing.exit_code == 2
    assert "has no epoch 4; it has: 1, 2, 3" in missing.stderr


def unfinished_rows(scenario_id: str) -> list[Any]:
    session = f"s-{scenario_id}"
    return [
        logs.scenario(scenario_id),
        logs.session(session, scenario_id),
        logs.turn(session_id=session),
        logs.start(f"x-{session}", session),
        logs.finish(f"x-{session}", finish_state="provider_error", status=503, error="try later"),
    ]


@pytest.mark.parametrize("output_format", ["wildtoolbench", "openai"])
def test_a_session_that_was_not_played_to_its_end_is_left_out_and_named(
    log: Callable[..., Path], tmp_path: Path, output_format: str
) -> None:
    path = log([[CLOSED], []])
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*unfinished_rows("shop_2"))
    result = run_export(path, "--format", output_format, "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert result.stdout.endswith(": 1 session\n")
    assert result.stderr == (
        "left out shop_2.e1: task 1 was not scored (provider_error: status 503, try later)\n"
    )


def test_when_nothing_is_left_the_exit_code_is_3_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with LogWriter.open(path) as writer:
        writer.commit_blocking(logs.run(), *(row for i in range(12) for row in unfinished_rows(f"shop_{i}")))
    result = run_export(path, "-o", tmp_path / "out")
    assert result.exit_code == 3
    lines = result.stderr.splitlines()
    assert len(lines) == 12
    assert lines[-2:] == ["left out 2 sessions more", f"Error: {path}: no session to export"]
    assert not (tmp_path / "out").exists()


def test_a_log_without_a_run_has_nothing_to_export(tmp_path: Path) -> None:
    LogWriter.open(tmp_path / "log.db").close()
    assert run_export(tmp_path / "log.db", "-o", tmp_path / "out").exit_code == 3


def test_an_id_without_a_number_is_left_out_of_result_files_only(log: Callable[..., Path]) -> None:
    path = log([[CLOSED]], shop(*ONE_CALL, scenario_id="shop"))
    result = run_export(path, "-o", path.parent / "out")
    assert result.exit_code == 3
    assert "left out shop.e1: the released code finds a scenario by the number" in result.stderr
    assert run_export(path, "--format", "openai").exit_code == 0


async def test_scenarios_that_share_a_number_are_told(play: Play) -> None:
    log = await play("sim:oracle")
    result = run_export(log, "-o", log.parent / "out")
    ids = [scenario.id for scenario in load((BUNDLED,))[0].scenarios]
    numbers = [int(name.rpartition("_")[2]) for name in ids]
    told = [line for line in result.stderr.splitlines() if "end in the same number" in line]
    assert len(told) == len(numbers) - len(set(numbers))


def test_logs_are_joined_into_one_file_unless_they_hold_the_same_scenario(
    log: Callable[..., Path], tmp_path: Path
) -> None:
    one = log([[CLOSED], []], name="one.db")
    ten = log([[CLOSED], []], logs.record("shop_10"), name="ten.db")
    two = log([[CLOSED], []], logs.record("shop_2"), name="two.db")
    assert run_export(ten, two, one, "-o", tmp_path / "out").exit_code == 0
    assert [line["id"] for line in read_lines(tmp_path / "out" / "m" / RESULT_FILE)] == [
        "shop_1",
        "shop_2",
        "shop_10",
    ]
    other = log([[CLOSED], []], name="other.db")
    result = run_export(one, other, "-o", tmp_path / "again")
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: shop_1 is in run r1 of {one} and in run r1 of {other}; export them to different folders\n"
    )


def test_a_log_with_several_runs_needs_a_choice(log: Callable[..., Path], tmp_path: Path) -> None:
    path = log([[CLOSED], []])
    with LogWriter.open(path) as writer:
        writer.commit_blocking(RunRow("r2", 9.0, {}, "h", {}))
    result = run_export(path, "-o", tmp_path / "out")
    first, *listed = result.stderr.splitlines()
    assert result.exit_code == 2
    assert first == f"Error: {path} holds 2 runs; choose with --run:"
    assert [line.split()[0] for line in listed] == ["r1", "r2"]
    assert run_export(path, "-o", tmp_path / "out", "--run", "r1").exit_code == 0
    unknown = run_export(path, "-o", tmp_path / "out", "--run", "r9")
    assert unknown.exit_code == 2
    assert unknown.stderr.startswith("Error: unknown run 'r9'; choose one of these:\n  r1 ")


@pytest.mark.parametrize(("name", "folder"), [("maker/large", "maker_large"), ("a/b/c", "a_b_c")])
def test_the_model_may_be_named(log: Callable[..., Path], name: str, folder: str) -> None:
    (line,) = exported(log([[CLOSED], []]), "--model", name, model=folder)
    assert line["model_name"] == name


def test_a_run_of_several_models_is_one_file_with_all_their_names(log: Callable[..., Path]) -> None:
    path = log([[logs.call_message(LAMP)], []], request_model="b")
    with LogWriter.open(path) as writer:
        writer.commit_blocking(
            logs.start("y", turn=2, request_model="a"), logs.step(0, 1, turn=2, exchange_id="y")
        )
    assert exported(path, model="a+b")[0]["model_name"] == "a+b"


def test_an_agent_that_never_named_a_model_has_an_unknown_one(log: Callable[..., Path]) -> None:
    assert len(exported(log([[], []]), model="unknown")) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a folder with -o DIR"),
        (("-o", "-"), "name a folder with -o DIR"),
        (("-o", "{log}"), "is a file; name a folder"),
        (("-o", "out", "--model", ".."), "the model name '..' cannot be a folder's"),
        (("--format", "openai", "-o", "{folder}"), "is a folder; name a file"),
        (("--format", "openai", "-o", "{log}/chats.jsonl"), "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_one_clear_line(
    log: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    path = log([[CLOSED], []])
    monkeypatch.chdir(path.parent)
    before = sorted(path.parent.iterdir())
    given = [argument.format(log=path, folder=path.parent) for argument in arguments]
    result = run_export(path, *given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(path.parent.iterdir()) == before


def test_what_is_no_log_is_one_clear_line(tmp_path: Path) -> None:
    result = run_export(tmp_path / "none.db", "-o", tmp_path)
    assert (result.exit_code, result.stderr) == (2, f"Error: {tmp_path / 'none.db'}: no such log\n")
