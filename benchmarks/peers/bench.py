"""The bench that contenders are put on: a provider that runs, and a load generator."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contenders import Contender, Place
from machine import (
    LOAD_CORE,
    PROXY_CORE,
    BenchmarkError,
    compiled,
    free_port,
    output_of,
    running,
    wait_until_listening,
)
from traffic import Traffic, write_traffic

GAP_US = 5000
"""Microseconds between the chunks of a stream."""
WRONG = "[task over]"
"""What our proxy says after a wrong step. The provider's are right, so it means a fault of this benchmark."""

Percentiles = tuple[float, ...]
"""Microseconds at percentiles 50, 95, 99 and 100; empty if there was nothing."""
Command = list[str]


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent by how many connections for how many seconds; sessions have numbers from `first` on."""

    connections: int
    seconds: float
    first: int
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What the load generator prints (load.c)."""

    answered: int
    seconds: float
    cpu: float
    answer: Percentiles
    first: Percentiles
    transit: Percentiles


@dataclass(frozen=True, slots=True)
class Started:
    """A contender that runs: its port, its process (none if it is the provider itself), what it prints."""

    contender: Contender
    port: int
    pid: int | None
    output: Path


@dataclass(frozen=True, slots=True)
class Bench:
    generator: Path
    traffic: Traffic
    provider: int
    provider_pid: int

    @contextmanager
    def started(
        self, contender: Contender, wrap: Callable[[Command], Command] = lambda command: command
    ) -> Iterator[Started]:
        """Runs a contender until the block is left, in a folder of its own; `wrap` may change its command.

        Raises BenchmarkError if it does not start.
        """
        with tempfile.TemporaryDirectory(prefix="wildproxy-bench-") as name:
            place = Place(Path(name), self.traffic, self.provider, free_port())
            command, output = contender.command(place), place.folder / "output.txt"
            if not command:
                yield Started(contender, self.provider, None, output)
                return
            environ = contender.environ()
            with output.open("wb") as file, running(wrap(command), PROXY_CORE, file, environ) as pid:
                wait_until_listening(place.port, pid, output)
                yield Started(contender, place.port, pid, output)

    def send(self, to: Started, load: Load) -> Seen:
        """Raises BenchmarkError at a wrong answer, and if there is none."""
        contender = to.contender
        bodies = self.traffic.stream if load.stream else contender.bodies(self.traffic)
        numbers = [to.port, contender.path, load.connections, load.seconds, load.first, WRONG, *bodies]
        seen = Seen(**json.loads(output_of([str(self.generator), *map(str, numbers)], LOAD_CORE)))
        if not seen.answered:
            raise BenchmarkError("no answer came")
        return seen


@contextmanager
def bench() -> Iterator[Bench]:
    """Compiles the load generator and the provider, which runs until the block is left."""
    with tempfile.TemporaryDirectory(prefix="wildproxy-bench-") as name:
        folder, port = Path(name), free_port()
        command = [str(compiled("provider", folder)), str(port), str(GAP_US)]
        output = folder / "provider.txt"
        with output.open("wb") as file, running(command, LOAD_CORE, file) as pid:
            wait_until_listening(port, pid, output)
            yield Bench(compiled("load", folder), write_traffic(folder), port, pid)
