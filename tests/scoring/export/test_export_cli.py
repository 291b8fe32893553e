"""The command `export`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import logs
from support.exporting import (
    CLOSED,
    LAMP,
    ONE_CALL,
    Play,
    exported,
    read_lines,
    run_export,
    scored,
    shop,
)
from support.released_evaluation import evaluated, flat

from proxy.log.rows import RunRow
from proxy.log.writer import LogWriter
from scenarios.load import BUNDLED, load
from scoring.export_cli import RESULT_FILE
from scoring.metrics.accuracy import count


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
