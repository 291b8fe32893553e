"""Sessions that could not be played: whose agent ends unasked, or whose provider fails it for good."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from support.agent_runs import command, played
from support.commands import error_line, run
from support.playing import rows

ENDS = "SELECT ending FROM tasks"


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (["no_such_file.py"], "the agent ended with code 2 before it asked anything: "),
        (["-c", "import no_such_module"], "No module named 'no_such_module'"),
        (["-c", "pass", "{turn}"], "the agent ended with code 0 before it asked anything"),
    ],
)
def test_a_program_that_ends_before_it_asks_is_one_line_and_costs_no_task(
    tmp_path: Path, program: list[str], says: str
) -> None:
    log = tmp_path / "log.db"
    agent = shlex.join([sys.executable, *program])
    result = run("drive", "--agent", agent, "--provider", "sim:oracle", "--log", log)
    line = error_line(result, 3)
    assert says in line
    assert result.stderr.splitlines() == [line]
    assert rows(log, ENDS) == []
    assert run("score", log).exit_code == 3


def test_what_a_program_that_ended_at_once_left_is_played_by_resume(tmp_path: Path) -> None:
    log, program = tmp_path / "log.db", tmp_path / "agent.py"
    agent = shlex.join([sys.executable, str(program)])
    words = ("drive", "--agent", agent, "--provider", "sim:oracle", "--log", log, "--only", "home_6")
    assert run(*words).exit_code == 3
    folder = Path(shlex.split(command("plain"))[1]).parent
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(folder)!r}); runpy.run_module('plain', None, '__main__')"
    )
    program.write_text(code)
    resumed = run(*words, "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert [row["ending"] for row in rows(log, ENDS)] == ["closed"] * 4


async def test_a_program_that_ends_unasked_after_others_have_asked_has_failed(tmp_path: Path) -> None:
    folder = Path(shlex.split(command("plain"))[1]).parent
    code = (
        f"import os, runpy, sys; os.environ['EVAL_SESSION'] == 'home_6.e1' and sys.exit(3); "
        f"sys.path.insert(0, {str(folder)!r}); runpy.run_module('plain', None, '__main__')"
    )
    agent = shlex.join([sys.executable, "-c", code])
    report = await played(tmp_path / "log.db", agent, only=("ledger_1", "home_6"), concurrency=1)
    assert (report.halted, report.hopeless) == (None, False)
    ends = {it.session: [task.end for task in it.state.tasks] for it in report.played if it.state}
    assert ends == {"ledger_1.e1": ["closed"] * 4, "home_6.e1": ["agent_stopped"] * 4}


@pytest.mark.parametrize("agent", ["builtin", command("plain")])
@pytest.mark.parametrize("status", [401, 403])
async def test_a_provider_that_refuses_the_key_at_once_ends_the_drive(
    tmp_path: Path, provider: Any, agent: str, status: int
) -> None:
    log = tmp_path / "log.db"
    provider.script(lambda request: provider.as_json({"error": {"message": "no such key"}}, status))
    report = await played(log, agent, provider=provider.url, concurrency=1)
    assert report.hopeless
    assert report.halted == (
        f"the provider refused the key (HTTP {status}); set OPENAI_API_KEY, or --provider-key-env"
    )
    assert len(provider.requests) == 1
    assert len(report.not_started) == 9
    assert rows(log, ENDS) == []


@pytest.mark.parametrize("status", [400, 401])
async def test_an_agent_that_ends_because_the_provider_failed_loses_no_later_task(
    tmp_path: Path, provider: Any, status: int
) -> None:
    log = tmp_path / "log.db"
    provider.reply("Fine.")
    provider.script(lambda request: provider.as_json({"error": {"message": "over"}}, status))
    report = await played(log, command("plain"), provider=provider.url, only=("home_6",))
    assert (report.halted, report.hopeless) == (None, False)
    assert [it.end for it in report.played] == ["failed"]
    assert [row["ending"] for row in rows(log, ENDS)] in (["stopped"], ["closed"])
    [failure] = report.failures
    assert failure.turn == 2
    assert failure.reason.startswith("exited with code 1 after the provider had failed; its last words: ")
