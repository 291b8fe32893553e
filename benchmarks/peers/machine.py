"""Processes on cores of their own, and what the machine did meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import click

HERE = Path(__file__).resolve().parent
LOAD_CORE, PROXY_CORE = 0, 1
RAISED, RAISED_SESSION = -10, -20
"""The nice value of everything that is measured, so that other work disturbs it less, and its session's,
by which the scheduler weighs where autogroups are on. Only root may."""
READY_S = 60.0
STOP_S = 40.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CHUNK = 1 << 16


class BenchmarkError(click.ClickException):
    """What keeps the benchmark from running; one line."""


def compiled(name: str, folder: Path) -> Path:
    """The program of `NAME.c` here, compiled into the folder."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise BenchmarkError("no C compiler: install one (apt-get install gcc)")
    program = folder / name
    subprocess.run([compiler, "-O2", "-o", str(program), str(HERE / f"{name}.c")], check=True)
    return program


def raise_priority() -> bool:
    """Whether this process, and all that it starts, got more weight."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, RAISED)
        return True
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str], core: int, output: IO[bytes], environ: Mapping[str, str] | None = None
) -> Iterator[int]:
    """Runs a program on a core until the block is left; gives its process id."""
    with _begun(command, core, stdout=output, stderr=subprocess.STDOUT, environ=environ) as process:
        try:
            yield process.pid
        finally:
            _stop(process)


def output_of(command: Sequence[str], core: int) -> str:
    """What a program prints on a core. Raises BenchmarkError with what it complains of."""
    with _begun(command, core, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        printed, complaint = process.communicate()
    if process.returncode:
        raise BenchmarkError(f"{Path(command[0]).name} failed: {_end_of(complaint)}")
    return printed.decode()


def _begun(
    command: Sequence[str],
    core: int,
    *,
    stdout: IO[bytes] | int,
    stderr: int,
    environ: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        ["taskset", "--cpu-list", str(core), *command],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        env={**os.environ, **(environ or {})},
    )
    with suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(str(RAISED_SESSION), encoding="ascii")
    return process


def _end_of(text: bytes) -> str:
    """As one line."""
    return " ".join(text.decode(errors="replace").split())[-600:]


def _stop(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def wait_until_listening(port: int, pid: int, log: Path, within: float = READY_S) -> float:
    """Waits until something accepts connections; gives the seconds that it took."""
    start = time.monotonic()
    while time.monotonic() - start < within:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return time.monotonic() - start
        if _has_ended(pid):
            break
        time.sleep(0.005)
    raise BenchmarkError(f"it did not start: {_end_of(log.read_bytes())}")


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name; none if there is no such process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return []


def _has_ended(pid: int) -> bool:
    fields = _stat(pid)
    return not fields or fields[0] == "Z"


def family(pid: int) -> list[int]:
    """The process and all that it started in its session."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [it for it in pids if (fields := _stat(it)) and int(fields[3]) == pid]


def cpu_seconds(pids: Sequence[int]) -> float:
    """User and system time, that of children which have ended too."""
    return sum(sum(int(ticks) for ticks in _stat(pid)[11:15]) for pid in pids) / _TICKS


def rss_megabytes(pids: Sequence[int]) -> float:
    return sum(int(fields[21]) for pid in pids if (fields := _stat(pid))) * _PAGE / 1e6


def busy_seconds() -> float:
    """What all cores have done since the machine was started, for whomever, the host included."""
    user, nice, system, _, _, irq, softirq, steal = (
        int(ticks) for ticks in Path("/proc/stat").read_text(encoding="ascii").split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS
