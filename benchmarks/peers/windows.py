"""Measures one contender: starts it, warms it up, and looks through windows of a few seconds each."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contenders import Contender, Direct, Place
from machine import (
    LOAD_CORE,
    PROXY_CORE,
    BenchmarkError,
    busy_seconds,
    compiled,
    cpu_seconds,
    family,
    free_port,
    output_of,
    rss_megabytes,
    running,
    wait_until_listening,
)
from traffic import Traffic, write_traffic

GAP_US = 5000
"""Microseconds between the chunks of a stream."""
QUIET = 0.15
"""Cores that others may use in a quiet window."""
WARM_UP_S = 0.5
WRONG = "[task over]"
"""What our proxy says after a wrong step. The provider's are right, so it means a fault of this benchmark."""

Percentiles = tuple[float, ...]
"""Microseconds at percentiles 50, 95, 99 and 100; empty if there was nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is sent in a window, by how many connections, and for which part of the usual time."""

    name: str
    connections: int
    stream: bool = False
    share: float = 1.0


ALONE = Kind("alone", 1)
CROWD = Kind("crowd", 64)
STREAM = Kind("stream", 1, stream=True, share=1.5)
STREAMS = Kind("streams", 16, stream=True, share=0.5)
KINDS = (ALONE, CROWD, STREAM, STREAMS)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the load generator prints (load.c)."""

    count: int
    answered: int
    seconds: float
    cpu: float
    answer: Percentiles
    first: Percentiles
    transit: Percentiles


@dataclass(frozen=True, slots=True)
class Window:
    """What was seen of a contender. `base` are answers of the provider itself right before, `cpu` the
    contender's seconds, `rss` its MB afterwards, `foreign` how many cores others used meanwhile."""

    contender: str
    kind: str
    seen: Seen
    base: Percentiles
    cpu: float
    rss: float
    foreign: float

    @property
    def quiet(self) -> bool:
        return self.foreign < QUIET


@dataclass(frozen=True, slots=True)
class Bench:
    """The provider that runs, the load generator, and what it sends."""

    load: Path
    traffic: Traffic
    provider: int
    provider_pid: int
    seconds: float

    def measure(self, contender: Contender) -> list[Window]:
        """Windows of each kind. Raises BenchmarkError if it does not start or answers wrongly."""
        base = self._load(Direct(), self.provider, ALONE, 1, 0.5)
        with self._started(contender) as (port, pid):
            self._load(contender, port, CROWD, 1, WARM_UP_S)
            kinds = [kind for kind in KINDS if contender.streams or not kind.stream]
            return [
                self._window(contender, port, pid, kind, 100_000 * number, base.answer)
                for number, kind in enumerate(kinds, 1)
            ]

    @contextmanager
    def _started(self, contender: Contender) -> Iterator[tuple[int, int | None]]:
        with tempfile.TemporaryDirectory(prefix="wildproxy-bench-") as name:
            place = Place(Path(name), self.traffic, self.provider, free_port())
            command = contender.command(place)
            if not command:
                yield self.provider, None
                return
            output = place.folder / "output.txt"
            with output.open("wb") as file, running(command, PROXY_CORE, file, contender.environ()) as pid:
                wait_until_listening(place.port, pid, output)
                yield place.port, pid

    def _window(
        self, contender: Contender, port: int, pid: int | None, kind: Kind, first: int, base: Percentiles
    ) -> Window:
        theirs = family(pid) if pid else []
        ours = [*theirs, self.provider_pid]
        busy, known, cpu, start = busy_seconds(), cpu_seconds(ours), cpu_seconds(theirs), time.monotonic()
        seen = self._load(contender, port, kind, first, self.seconds * kind.share)
        busy, known, cpu = busy_seconds() - busy, cpu_seconds(ours) - known, cpu_seconds(theirs) - cpu
        foreign = (busy - known - seen.cpu) / (time.monotonic() - start)
        return Window(contender.name, kind.name, seen, base, cpu, rss_megabytes(theirs), max(0.0, foreign))

    def _load(self, contender: Contender, port: int, kind: Kind, first: int, seconds: float) -> Seen:
        bodies = self.traffic.stream if kind.stream else contender.bodies(self.traffic)
        numbers = [port, contender.path, kind.connections, seconds, first, WRONG, *bodies]
        seen = Seen(**json.loads(output_of([str(self.load), *map(str, numbers)], LOAD_CORE)))
        if not seen.count:
            raise BenchmarkError(f"no answer within {seen.seconds:.0f} s")
        return seen


@contextmanager
def bench(seconds: float) -> Iterator[Bench]:
    """Compiles the load generator and the provider, which runs until the block is left."""
    with tempfile.TemporaryDirectory(prefix="wildproxy-bench-") as name:
        folder, port = Path(name), free_port()
        command = [str(compiled("provider", folder)), str(port), str(GAP_US)]
        output = folder / "provider.txt"
        with output.open("wb") as file, running(command, LOAD_CORE, file) as pid:
            wait_until_listening(port, pid, output)
            yield Bench(compiled("load", folder), write_traffic(folder), port, pid, seconds)
