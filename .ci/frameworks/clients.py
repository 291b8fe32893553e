"""The clients beside this file: what a client.toml says, the cells that follow, how a client is installed."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MODES = ("intercept", "relay", "mcp")
SERIAL = "serial"
"""A variant of every client, for relay: an LLM that makes one call a step, so that a tool may come again."""
INSTALL_TIMEOUT_S = 1800


class Broken(Exception):
    """What had to be there is not: a file, a package, a key."""


@dataclass(frozen=True, slots=True)
class Client:
    """One folder. README.md says what its fields, those of client.toml, mean."""

    folder: Path
    name: str
    package: str
    language: str
    apis: Sequence[str]
    streaming: bool
    setup: str
    expect: Mapping[str, str]
    variants: Mapping[str, Mapping[str, str]]
    environment: Mapping[str, str]
    node: str

    @property
    def lock(self) -> Path:
        return self.folder / ("requirements.txt" if self.language == "python" else "package-lock.json")


@dataclass(frozen=True, slots=True)
class Cell:
    """One way to play a client; with the mode `setup`, the program of its client.toml as it is."""

    client: Client
    mode: str
    api: str = ""
    stream: bool = False
    variant: str = "default"

    @property
    def words(self) -> tuple[str, ...]:
        if self.mode == "setup":
            return (self.mode,)
        return (self.mode, self.api, "stream" if self.stream else "plain", self.variant)

    @property
    def expected(self) -> str:
        """`yes` or `no`, by the key of client.toml that names most of this cell's words."""
        keys = [key for key in self.client.expect if set(key.split()) <= set(self.words)]
        said = self.client.expect[max(keys, key=lambda key: len(key.split()))] if keys else "yes"
        return said.split(":", 1)[0].strip()

    @property
    def environment(self) -> dict[str, str]:
        """What tells the client's program which cell it is in."""
        found = {**self.client.environment, **self.client.variants[self.variant], "API": self.api}
        found |= {"STREAM": "1"} if self.stream else {}
        return found | ({"USE_MCP": "1"} if self.mode == "mcp" else {})


def client_names() -> list[str]:
    return sorted(file.parent.name for file in HERE.glob("*/client.toml"))


def read_client(name: str) -> Client:
    """Raises Broken if there is no such client or its file is incomplete."""
    folder = HERE / name
    try:
        data: dict[str, Any] = tomllib.loads((folder / "client.toml").read_text(encoding="utf-8"))
        client = Client(
            folder=folder,
            name=data["name"],
            package=data["package"],
            language=data["language"],
            apis=data["apis"],
            streaming=data["streaming"],
            setup=data["setup"],
            expect=data["expect"],
            variants={"default": {}, **data.get("variants", {}), SERIAL: {"STREAM": "0"}},
            environment=data.get("environment", {}),
            node=data.get("node", ""),
        )
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise Broken(f"{name}/client.toml: {error!r}") from error
    check(client)
    return client


def check(client: Client) -> None:
    """Raises Broken if an expectation is missing or belongs to no cell."""
    keys, played = set(client.expect), list(cells(client, MODES))
    known = {word for cell in played for word in cell.words}
    odd = [key for key in keys if key.split()[0] not in MODES or not set(key.split()) <= known]
    if odd := [*sorted(set(MODES) - keys), *sorted(odd)]:
        raise Broken(f"{client.folder.name}/client.toml: [expect] has too little or too much: {odd}")


def cells(client: Client, modes: Sequence[str]) -> Iterator[Cell]:
    """All cells of these modes. A variant that sets API or STREAM is played with that alone."""
    if "setup" in modes:
        yield Cell(client, "setup")
    for mode, variant, api, stream in product(MODES, client.variants, client.apis, (False, True)):
        asked = {"API": api, "STREAM": str(int(stream))}
        if mode not in modes or (variant == SERIAL and mode != "relay") or (stream and not client.streaming):
            continue
        if all(asked.get(name, value) == value for name, value in client.variants[variant].items()):
            yield Cell(client, mode, api, stream, variant)


def install(client: Client, cache: Path) -> Path:
    """The folder in which the client is installed, made anew if its lock has changed. Raises Broken."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}" if client.language == "python" else "node"
    digest = hashlib.sha256(version.encode() + client.lock.read_bytes()).hexdigest()[:12]
    place = cache / f"{client.folder.name}-{digest}"
    done = place / "installed"
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for command in _install_commands(client, place):
            code, output = run(command, place, INSTALL_TIMEOUT_S)
            if code:
                raise Broken(f"{client.folder.name} does not install: {last_line(output)}")
        done.touch()
    if client.language == "node":
        shutil.copy(client.folder / "agent.mjs", place)
    return place


def _install_commands(client: Client, place: Path) -> Iterator[Sequence[str | Path]]:
    if client.language == "python":
        yield sys.executable, "-m", "venv", place
        # The lock is whole: what it lacks is an error, not something to be looked for.
        yield place / "bin" / "pip", "install", "--quiet", "--no-deps", "-r", client.lock
        return
    oldest = int("".join(filter(str.isdigit, client.node)) or 0)
    yield "node", "-e", f"if (parseInt(process.versions.node) < {oldest}) throw 'needs node {client.node}'"
    for name in ("package.json", "package-lock.json"):
        shutil.copy(client.folder / name, place)
    yield "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"


def program(client: Client, place: Path, file: Path | None = None) -> list[str]:
    """The command that runs `file`, or the client's agent, with the client installed at `place`."""
    if client.language == "python":
        return [str(place / "bin" / "python"), str(file or client.folder / "agent.py")]
    # Packages are looked for from where a file is.
    return ["node", str(file or place / "agent.mjs")]


def run(command: Sequence[str | Path], folder: Path, seconds: float, **environ: str) -> tuple[int, str]:
    """Runs it in `folder` to its end: exit code and all it wrote. After `seconds` it is killed, with its
    children. Nothing of the caller's environment leads it to another provider.
    """
    kept = {name: it for name, it in os.environ.items() if not name.startswith(("OPENAI_", "EVAL_"))}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**kept, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0] + f"\nnot done after {seconds:.0f} s"
    return process.returncode, output


def last_line(output: str) -> str:
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "it wrote nothing"
