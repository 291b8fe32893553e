"""Commands on a real terminal (a pty): what it was sent."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "run_proxy.py"


class Terminal:
    """A command and the terminal that it runs on."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.sent = ""
        self._master = master
        self._decode = codecs.getincrementaldecoder("utf-8")().decode

    def until(self, text: str) -> None:
        """Reads until the terminal was sent this."""
        while text not in self.sent:
            assert self._read(), f"the terminal was sent no {text!r}, but {self.sent!r}"

    def rest(self) -> str:
        """All that the terminal is sent until the command is over."""
        while self._read():
            pass
        self.process.wait()
        return self.sent

    def resize(self, columns: int, rows: int = 24) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def _read(self) -> bool:
        """Reads on; False at the end. A character may come in two pieces."""
        try:
            chunk = os.read(self._master, 65536)
        except OSError:
            return False  # how Linux tells that the other side has closed the terminal
        self.sent += self._decode(chunk)
        return bool(chunk)


@contextmanager
def on_terminal(*arguments: object, columns: int = 80, **environment: str) -> Iterator[Terminal]:
    """`wildproxy` with these arguments on a terminal of 24 rows, as the leader of its session."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), *map(str, arguments)],
        env={**plain, "TERM": "xterm", **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,
    ) as process:
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            process.kill()
            os.close(master)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
