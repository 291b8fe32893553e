"""The token that a restarted proxy has again, and where it is told."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.commands import PROGRAM

from proxy.server import Running
from proxy.ui.address import page_address
from proxy.ui.kept_token import token_for

ADDRESS = re.compile(r"Live page: (http://127\.0\.0\.1:\d+/ui)#token=(\S+)")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_has_the_same_token_each_time_and_another_log_another(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    tokens = [token_for(tmp_path / name, environ) for name in ("a.db", "a.db", "b.db")]
    assert tokens[0] == tokens[1]
    assert tokens[0] != tokens[2]
    assert all(token and re.fullmatch(r"[\w-]{32}", token) for token in tokens)


def test_a_log_is_known_by_its_place_however_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = [Path("a.db"), tmp_path / "a.db", tmp_path / "link" / "a.db"]
    assert len({token_for(name, environ) for name in names}) == 1


def test_two_users_have_two_tokens_for_one_log(tmp_path: Path) -> None:
    users = [{"HOME": str(tmp_path / name)} for name in ("ann", "bob")]
    assert len({token_for(tmp_path / "a.db", environ) for environ in users}) == 2


def test_the_secret_is_for_its_owner_alone_and_is_no_token(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    token = token_for(tmp_path / "a.db", environ)
    assert token is not None
    [secret] = (tmp_path / "wildproxy").iterdir()
    assert secret.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "wildproxy").stat().st_mode & 0o777 == 0o700
    assert token.encode() not in secret.read_bytes()


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_file_that_holds_no_secret_of_ours_makes_no_token(tmp_path: Path, content: bytes) -> None:
    token_for(tmp_path / "a.db", {"XDG_STATE_HOME": str(tmp_path)})
    (tmp_path / "wildproxy" / "secret").write_bytes(content)
    assert token_for(tmp_path / "a.db", {"XDG_STATE_HOME": str(tmp_path)}) is None


def test_a_secret_that_others_can_read_makes_no_token(tmp_path: Path) -> None:
    token_for(tmp_path / "a.db", {"XDG_STATE_HOME": str(tmp_path)})
    (tmp_path / "wildproxy" / "secret").chmod(0o644)
    assert token_for(tmp_path / "a.db", {"XDG_STATE_HOME": str(tmp_path)}) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_secret_that_somebody_else_wrote_makes_no_token(tmp_path: Path) -> None:
    token_for(tmp_path / "a.db", {"XDG_STATE_HOME": str(tmp_path)})
    os.chown(tmp_path / "wildproxy" / "secret", 65534, -1)
    assert token_for(tmp_path / "a.db", {"XDG_STATE_HOME": str(tmp_path)}) is None


def test_a_pipe_in_place_of_the_secret_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "wildproxy").mkdir()
    os.mkfifo(tmp_path / "wildproxy" / "secret", 0o600)
    asked = f"""
from pathlib import Path
from proxy.ui.kept_token import token_for
print(token_for(Path("a.db"), {{"XDG_STATE_HOME": {str(tmp_path)!r}}}))
"""
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=PROGRAM.parent, capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b"None\n"


@pytest.mark.parametrize("environ", [{}, {"HOME": "relative"}, {"XDG_STATE_HOME": "/dev/null/nowhere"}])
def test_where_nothing_can_be_kept_there_is_no_token(tmp_path: Path, environ: dict[str, str]) -> None:
    assert token_for(tmp_path / "a.db", environ) is None


@pytest.mark.parametrize(
    ("base_url", "page"),
    [
        ("http://127.0.0.1:8787", "http://127.0.0.1:8787/ui"),
        ("http://0.0.0.0:80", "http://127.0.0.1:80/ui"),
        ("http://[::]:80", "http://[::1]:80/ui"),
        ("http://[fe80::1%eth0]:80", "http://[fe80::1%eth0]:80/ui"),
    ],
)
def test_the_address_can_be_opened_and_has_the_token_for_a_terminal_alone(base_url: str, page: str) -> None:
    running = Running(base_url, "a b#c", "r1")
    assert page_address(running, io.StringIO()) == page
    assert page_address(running, Terminal()) == f"{page}#token=a%20b%23c"


def test_a_terminal_is_told_the_same_address_after_a_restart(tmp_path: Path) -> None:
    told = [told_by_serve(tmp_path) for _ in range(2)]
    assert told[0] == told[1]
    assert told[0].encode() not in b"".join(
        file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()
    )


def told_by_serve(folder: Path) -> str:
    """The token in the address that `serve` prints on a terminal."""
    ours, theirs = pty.openpty()
    environ = {name: value for name, value in os.environ.items() if name != "EVAL_TOKEN"}
    command = [sys.executable, PROGRAM, "serve", "--provider", "sim:oracle", "--scenarios", "bundled"]
    process = subprocess.Popen(
        [*command, "--log", folder / "log.db", "--port", "0"],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**environ, "XDG_STATE_HOME": str(folder / "state")},
    )
    # Held by the process alone, so that its end is the end of what can be read.
    os.close(theirs)
    try:
        said = ""
        while not (found := ADDRESS.search(said)):
            said += os.read(ours, 4096).decode()
        return found[2]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
        os.close(ours)


def test_drive_says_on_a_terminal_where_its_page_is(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, PROGRAM, "drive", "--agent", "builtin", "--provider", "sim:oracle"]
    process = subprocess.Popen(
        [*command, "--limit", "1", "--log", tmp_path / "log.db"], stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    try:
        said = b""
        with suppress(OSError):  # how a terminal ends on Linux
            while chunk := os.read(ours, 4096):
                said += chunk
        out, _ = process.communicate()
        assert ADDRESS.search(said.decode())
        assert b"/ui" not in out
    finally:
        os.close(ours)
