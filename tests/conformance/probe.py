"""The probes: what one is, which there are, and running one."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.bench import TEXT_SCENARIO, Bench, Mode, Target
from tests.conformance.http import Failed
from tests.conformance.log import Log
from tests.conformance.provider import ScriptedProvider

Check = Callable[[Bench], Awaitable[str]]

BOTH: tuple[Mode, ...] = ("record", "session")
RECORD: tuple[Mode, ...] = ("record",)
SESSION: tuple[Mode, ...] = ("session",)

_ANSWER_ERRORS = (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, sqlite3.Error)
"""What reading an answer raises that is not what it should be."""


@dataclass(frozen=True, slots=True)
class Probe:
    """`run` gives what was seen, in one line, or raises Failed. `settings` are what tests start
    the proxy with, so that nobody waits; `needs_log`: without one there is nothing to see.
    """

    name: str
    modes: tuple[Mode, ...]
    run: Check
    claim: str
    source: str
    scenario: str
    needs_log: bool
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    probe: Probe
    mode: Mode
    passed: bool
    seen: str


PROBES: list[Probe] = []


def probe(
    name: str,
    modes: tuple[Mode, ...] = BOTH,
    *,
    scenario: str = TEXT_SCENARIO,
    needs_log: bool = False,
    **settings: Any,
) -> Callable[[Check], Check]:
    """Registers a probe. Its docstring is the claim in one line, then `Source:` and where it is from."""

    def register(run: Check) -> Check:
        claim, _, source = (run.__doc__ or "").partition("Source:")
        if not (claim.strip() and source.strip()):
            raise ValueError(f"the docstring of the probe {name!r} must have a claim and a source")
        claim, source = (" ".join(text.split()).removesuffix(".") for text in (claim, source))
        PROBES.append(Probe(name, modes, run, claim, source, scenario, needs_log, settings))
        return run

    return register


async def run_probe(
    probe: Probe, mode: Mode, target: Target, provider: ScriptedProvider, log: Log | None
) -> Result:
    """Whatever a proxy does, this gives a result."""
    bench = Bench(target, provider, mode, log, probe.scenario)
    try:
        seen = await probe.run(bench)
    except Failed as exc:
        return Result(probe, mode, False, str(exc))
    except _ANSWER_ERRORS as exc:
        return Result(probe, mode, False, f"{type(exc).__name__}: {' '.join(str(exc).split())[:160]}")
    finally:
        bench.close()
    return Result(probe, mode, True, seen)
