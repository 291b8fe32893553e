"""Measures one contender: starts it, warms it up, and looks through windows of a few seconds each."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench import Bench, Load, Percentiles, Seen, Started
from contenders import Contender, Direct
from machine import busy_seconds, cpu_seconds, family, rss_megabytes

QUIET = 0.15
"""Cores that others may use in a quiet window."""
WARM_UP = Load(64, 0.5, 1)
BASE = Load(1, 0.5, 1)
SESSIONS = 100_000
"""More than a window begins: the next one's numbers start behind them."""


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


def measure(bench: Bench, contender: Contender, seconds: float) -> list[Window]:
    """A window of each kind. Raises BenchmarkError if it does not start or answers wrongly."""
    with bench.started(Direct()) as direct:
        base = bench.send(direct, BASE).answer
    with bench.started(contender) as started:
        bench.send(started, WARM_UP)
        kinds = [kind for kind in KINDS if contender.streams or not kind.stream]
        return [
            _window(bench, started, kind, base, seconds, SESSIONS * number)
            for number, kind in enumerate(kinds, 1)
        ]


def _window(
    bench: Bench, started: Started, kind: Kind, base: Percentiles, seconds: float, first: int
) -> Window:
    theirs = family(started.pid) if started.pid else []
    ours = [*theirs, bench.provider_pid]
    busy, known, cpu, start = busy_seconds(), cpu_seconds(ours), cpu_seconds(theirs), time.monotonic()
    seen = bench.send(started, Load(kind.connections, seconds * kind.share, first, kind.stream))
    busy, known, cpu = busy_seconds() - busy, cpu_seconds(ours) - known, cpu_seconds(theirs) - cpu
    foreign = max(0.0, (busy - known - seen.cpu) / (time.monotonic() - start))
    return Window(started.contender.name, kind.name, seen, base, cpu, rss_megabytes(theirs), foreign)
