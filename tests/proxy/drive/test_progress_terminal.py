"""A drive on a real terminal, and in a pipe: what is left of it, compared whole with snapshots."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from support.commands import run
from support.screen import Screen
from support.terminal import on_terminal

SNAPSHOTS = Path(__file__).resolve().parents[2] / "data" / "terminal"
DRIVE = ("--agent", "builtin", "--scenarios", "bundled", "--limit", "2", "--concurrency", "1")
SIMULATED = ("--provider", "sim:noisy:0.3")


def of_the_drive(shown: str) -> str:
    """What a drive says of what was played, with `#` for times, which differ; up to its closing words."""
    lines = [line for line in shown.split("\n\n")[0].splitlines() if not line.startswith("Live page: ")]
    return re.sub(r" +\d+(\.\d+)?s", " #s", re.sub(r"in \d+ s:", "in # s:", "\n".join(lines))) + "\n"


def test_a_drive_on_a_terminal_leaves_a_line_for_each_session_and_the_summary(tmp_path: Path) -> None:
    with on_terminal("drive", *DRIVE, *SIMULATED, "--log", tmp_path / "log.db") as terminal:
        sent = terminal.rest()
        assert terminal.process.returncode == 0
    screen = Screen(80).write(sent)
    shown = of_the_drive("\n".join(screen.lines))
    assert shown == (SNAPSHOTS / "drive-80.txt").read_text(encoding="utf-8")
    assert screen.colored
    # While it played, the block was there, with the session that was played.
    assert "  ledger_1.e1 ···· task 1/4" in sent
    assert "names right: 0/0 sessions, 0/0 tasks, 0 tokens" in sent


def test_a_drive_in_a_pipe_is_a_line_for_each_session_and_the_summary(tmp_path: Path) -> None:
    result = run("drive", *DRIVE, *SIMULATED, "--log", tmp_path / "log.db")
    assert result.exit_code == 0, result.output
    shown = of_the_drive(result.stderr) + of_the_drive(result.stdout)
    assert shown == (SNAPSHOTS / "drive-piped.txt").read_text(encoding="utf-8")
    assert all(line.isprintable() for line in shown.splitlines())


def test_a_drive_that_is_interrupted_leaves_no_block_behind(tmp_path: Path) -> None:
    """The provider's port takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        provider = f"http://127.0.0.1:{mute.getsockname()[1]}/v1"
        with on_terminal(
            "drive", *DRIVE, "--provider", provider, "--log", tmp_path / "log.db", OPENAI_API_KEY="none"
        ) as terminal:
            terminal.until("waits for the provider")
            terminal.press(b"\x03")
            sent = terminal.rest()
            assert terminal.process.returncode == 130
    shown = of_the_drive("\n".join(Screen(80).write(sent).lines))
    assert shown == (SNAPSHOTS / "drive-interrupted.txt").read_text(encoding="utf-8")
