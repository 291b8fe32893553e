"""Makes the moving picture of the terminal that the README shows.

    python docs/pictures/record.py            # writes docs/pictures/terminal.svg

Types real commands into a shell in a pseudo terminal, keeps what its screen shows over time, and
draws that as one SVG file that moves by CSS alone: sharp at any size, and it plays where scripts
do not. Long waits are shortened; nothing else is touched up. Needs `pyte`, of the extra `docs`.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = ROOT / "docs" / "pictures" / "terminal.svg"
COLUMNS, LINES = 104, 30
PROMPT = "$ "
COMMANDS = (
    "wildproxy drive --agent builtin --scenarios everyday --provider sim:noisy:0.15 --log agent.db",
    "wildproxy tail --wide --session everyday_3.e1 agent.db",
    "wildproxy score agent.db | head -24",
)
KEYSTROKE_S = 0.03
LONGEST_WAIT_S = 0.8
READING_S = 3.5
"""How long the end of a command's output stays."""
FRAME_S = 0.08
LINE_HEIGHT, CHARACTER_WIDTH, MARGIN = 18, 8.42, 14

COLOURS = {
    "default": "#d8dee9",
    "black": "#4c566a",
    "red": "#ff7b85",
    "green": "#a3d977",
    "brown": "#f2cc60",
    "blue": "#7aa2f7",
    "magenta": "#d3a1e0",
    "cyan": "#7fd6e8",
    "white": "#f0f3f8",
    "brightblack": "#8b95a7",
}
BACKGROUND = "#1b1f2a"
TOKEN = re.compile(r"#token=[\w%-]+")


@dataclass(frozen=True, slots=True)
class Frame:
    """What the screen showed from `at` seconds on: a line of SVG text for each row."""

    at: float
    rows: tuple[str, ...]


@dataclass(slots=True)
class Recording:
    """Frames so far, on a clock that does not count long waits."""

    frames: list[Frame] = field(default_factory=list)
    clock: float = 0.0

    def show(self, screen: pyte.Screen, waited: float) -> None:
        self.clock += min(waited, LONGEST_WAIT_S)
        rows = tuple(row_of(screen, number) for number in range(screen.lines))
        if self.frames and self.frames[-1].rows == rows:
            return
        if self.frames and self.clock - self.frames[-1].at < FRAME_S:
            self.clock = self.frames[-1].at
            self.frames.pop()
        self.frames.append(Frame(self.clock, rows))


def row_of(screen: pyte.Screen, number: int) -> str:
    """One row of the screen as SVG spans; neighbours of one look share a span."""
    spans: list[tuple[tuple[str, bool], int, str]] = []
    for column in range(screen.columns):
        char = screen.buffer[number][column]
        look = (char.fg, char.bold)
        if spans and spans[-1][0] == look and spans[-1][1] + len(spans[-1][2]) == column:
            spans[-1] = (look, spans[-1][1], spans[-1][2] + char.data)
        elif char.data.strip():
            spans.append((look, column, char.data))
    # A picture is no place for a token, even of a proxy that is gone.
    shown = ((look, column, TOKEN.sub("#token=...", text.rstrip())) for look, column, text in spans)
    return "".join(_span(look, column, text) for look, column, text in shown if text)


def _span(look: tuple[str, bool], column: int, text: str) -> str:
    colour = COLOURS.get(look[0], look[0] if look[0].startswith("#") else COLOURS["default"])
    weight = ' font-weight="bold"' if look[1] else ""
    return f'<tspan x="{column * CHARACTER_WIDTH:.1f}" fill="{colour}"{weight}>{escape(text)}</tspan>'


def record(folder: Path) -> Recording:
    """Runs the commands in a shell of their own and keeps what is seen."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    recording = Recording()
    with shell(folder) as terminal:
        _until_prompt(terminal, stream, screen, recording)
        for command in COMMANDS:
            for key in command:
                os.write(terminal, key.encode())
                _read(terminal, stream, KEYSTROKE_S)
                recording.show(screen, KEYSTROKE_S)
            os.write(terminal, b"\n")
            _until_prompt(terminal, stream, screen, recording)
            recording.clock += READING_S
    return recording


class shell:
    """A shell in a pseudo terminal, with the project's program in its path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> int:
        self._terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self._folder),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PS1": PROMPT,
        }
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=self._folder,
            env=environment,
            start_new_session=True,
        )
        os.close(inner)
        return self._terminal

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


def _until_prompt(terminal: int, stream: pyte.ByteStream, screen: pyte.Screen, recording: Recording) -> None:
    """Reads until the shell waits for the next command."""
    while True:
        began = time.monotonic()
        got = _read(terminal, stream, 30.0)
        recording.show(screen, time.monotonic() - began)
        line = screen.display[screen.cursor.y].rstrip()
        if line == PROMPT.rstrip() and not _read(terminal, stream, 0.3):
            return
        if not got:
            raise SystemExit("the command has said nothing for 30 s")


def _read(terminal: int, stream: pyte.ByteStream, wait: float) -> bool:
    ready, _, _ = select.select([terminal], [], [], wait)
    if ready:
        stream.feed(os.read(terminal, 65536))
    return bool(ready)


def svg(recording: Recording) -> str:
    """All frames as one strip that is moved a screen at a time."""
    total = recording.clock + READING_S
    height = LINES * LINE_HEIGHT + 2 * MARGIN
    width = COLUMNS * CHARACTER_WIDTH + 2 * MARGIN
    numbers: dict[str, int] = {}
    strip = "".join(_strip(recording.frames, numbers, height))
    symbols = "".join(f'<text id="l{number}">{row}</text>' for row, number in numbers.items())
    moves = "".join(
        f"{frame.at / total:.4%}{{transform:translateY(-{index * height}px)}}"
        for index, frame in enumerate(recording.frames)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        'aria-label="A recording of the terminal: sessions are played, one is looked at, the log is scored">'
        f"<style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        f"white-space:pre}}#strip{{animation:play {total:.1f}s step-end infinite}}@keyframes play{{{moves}}}"
        f"</style><defs>{symbols}</defs>"
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>'
        f'<svg width="{width:.0f}" height="{height}"><g id="strip">{strip}</g></svg></svg>\n'
    )


def _strip(frames: list[Frame], numbers: dict[str, int], height: int) -> Iterator[str]:
    for index, frame in enumerate(frames):
        for line, row in enumerate(frame.rows):
            if row:
                number = numbers.setdefault(row, len(numbers))
                y = index * height + MARGIN + (line + 1) * LINE_HEIGHT - 5
                yield f'<use href="#l{number}" x="{MARGIN}" y="{y}"/>'


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        drawn = svg(record(folder))
    finally:
        shutil.rmtree(folder)
    if leaked := re.search(rf"{re.escape(str(folder))}|{TOKEN.pattern}", drawn):
        raise SystemExit(f"the picture would show what is nobody's business: {leaked.group()}")
    TARGET.write_text(drawn, encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(drawn) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
