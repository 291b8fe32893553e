"""The command `simulate`."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from proxy.simulate.cli import simulate
from proxy.simulate.policies import POLICIES
from scenarios.types import Scenario

ROOT = Path(__file__).resolve().parents[3]
START = "from proxy.simulate.cli import simulate; simulate()"


@pytest.fixture
def file(tmp_path: Path, library: Scenario) -> str:
    path = tmp_path / "library.jsonl"
    path.write_text(json.dumps(library.record) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """started(*arguments): the command in a process of its own."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(simulate, list(arguments))
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    return result.output


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_base_url_serves_there_and_stops_quietly(
    stop: signal.Signals, file: str, started: Callable[..., subprocess.Popen[str]]
) -> None:
    process = started("--scenarios", file, "--policy", "serial", "--port", "0")
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(
        r"simulated provider, policy serial, 1 scenario: (http://127\.0\.0\.1:\d+/v1)\n", line
    )
    assert found, line
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Thank you!"}]}).encode()
    with urllib.request.urlopen(f"{found[1]}/chat/completions", data=body, timeout=30) as response:
        assert json.load(response)["choices"][0]["message"]["content"] == "You are welcome."
    process.send_signal(stop)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0


def test_a_busy_port_is_one_clear_line(file: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused("--scenarios", file, "--port", str(port)) == (
            f"Error: port {port} of 127.0.0.1 is in use; "
            "stop what listens there or choose another with --port\n"
        )


def test_an_address_of_another_machine_is_one_clear_line(file: str) -> None:
    # 192.0.2.0/24 is reserved for documentation (RFC 5737): no machine has it.
    output = refused("--scenarios", file, "--host", "192.0.2.1", "--port", "0")
    assert output.startswith("Error: cannot listen on http://192.0.2.1:0/v1: ")


def test_an_unknown_policy_is_one_clear_line_with_the_allowed_ones(file: str) -> None:
    assert refused("--scenarios", file, "--policy", "orcale") == (
        "Error: policy 'orcale': there is no such policy (did you mean 'oracle'?); "
        "use one of oracle, serial, noisy:P[:SEED], text-only, always-call, empty\n"
    )


def test_a_broken_scenario_file_is_one_clear_line(tmp_path: Path, file: str) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{]\n", encoding="utf-8")
    assert refused("--scenarios", file, "--scenarios", str(broken)).startswith(f"Error: {broken}:1: not JSON")
    assert "no such file" in refused("--scenarios", str(tmp_path / "absent.jsonl"))


@pytest.mark.parametrize("latency", ["-1", "nan", "inf"])
def test_a_latency_that_is_no_time_is_refused(latency: str, file: str) -> None:
    result = CliRunner().invoke(simulate, ["--scenarios", file, "--latency", latency])
    assert result.exit_code == 2
    assert "not a number of seconds" in result.output


def test_help_does_not_load_the_http_server() -> None:
    code = f"""
import sys
try:
    {START}
except SystemExit:
    pass
print([name for name in ("aiohttp", "openai", "sqlite_utils", "jieba") if name in sys.modules])
"""
    result = subprocess.run(
        [sys.executable, "-c", code, "--help"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout.rstrip().endswith("[]")
    assert "Serve a scripted OpenAI-compatible provider" in result.stdout


def test_every_policy_is_named_in_the_help() -> None:
    shown = CliRunner().invoke(simulate, ["--help"]).output
    assert all(written in shown for _, written in POLICIES.values())
