"""A failure says why the proxy refused the agent's request."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.agent_runs import command
from support.commands import run_in

from proxy.drive.agent import LOG_SAYS
from proxy.drive.refusal import refusals_in, told

REFUSAL = "HTTP 400, tools_missing: the request must offer every tool of the scenario, once"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("exited with code 1", f"exited with code 1; the proxy had refused its request ({REFUSAL})"),
        (
            "exited with code 1; its last words: HTTP 400",
            f"exited with code 1; the proxy had refused its request ({REFUSAL}); its last words: HTTP 400",
        ),
        (
            "exited with code 1; its last words: the request must offer every tool of the scenario…",
            f"exited with code 1; the proxy had refused its request ({REFUSAL})",
        ),
        (f"the proxy refused its request {LOG_SAYS}", f"the proxy refused its request ({REFUSAL})"),
        (
            "HTTP 400: the request must offer every tool of the scenario, once",
            "HTTP 400: the request must offer every tool of the scenario, once",
        ),
    ],
)
def test_a_refusal_stands_in_the_reason_unless_the_agent_has_told_it(reason: str, expected: str) -> None:
    assert told(reason, REFUSAL) == expected
    assert told(reason, None) == reason


def test_a_log_that_is_not_there_knows_of_no_refusal(tmp_path: Path) -> None:
    assert refusals_in(tmp_path / "none.db", "r1")("a.e1", 1) is None


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--tools", "mcp"], "with --tools mcp give the agent the tools of the session's MCP endpoint"),
        (["--agent-tools", "keep"], "else leave --agent-tools keep out"),
    ],
)
def test_an_agent_without_the_scenarios_tools_is_told_of_with_what_the_proxy_said(
    options: list[str], advice: str, tmp_path: Path
) -> None:
    words = ["--agent", command("my_agent"), "--limit", "1", "--provider", "sim:oracle", "--log", "a.db"]
    done = run_in(tmp_path, "drive", *words, *options)
    assert done.exit_code == 3
    [line] = [it for it in done.stderr.splitlines() if it.startswith("! ")]
    assert line.startswith("! ledger_1.e1, turn 1 failed: ")
    assert "the proxy had refused its request (HTTP 400, tools_missing: the request must offer every" in line
    assert advice in line
    assert "ledger_1.e1   0/4 names right" in done.stderr and "4 failures" in done.stderr
    [summed] = [it for it in done.stdout.splitlines() if it.startswith("4 failures: ")]
    assert "HTTP 400, tools_missing" in summed and summed.endswith(" (1); and for it 3 later turns")
