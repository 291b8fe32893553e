"""Runs probes against a proxy that is there: is it the right one, then one probe after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit

from tests.conformance.bench import Bench, Mode, Target
from tests.conformance.chunks import completion
from tests.conformance.http import Failed
from tests.conformance.log import Log
from tests.conformance.probe import Probe, Result, run_probe
from tests.conformance.probes import PROBES
from tests.conformance.provider import ScriptedProvider


class Unusable(Exception):
    """The probes cannot be run; one line that says why and what to do."""


def chosen(mode: Mode, patterns: Sequence[str], log: Path | None) -> list[Probe]:
    """The probes of a mode whose names fit one of the patterns. Raises Unusable if there are none."""
    found = [
        it
        for it in PROBES
        if mode in it.modes and (log is not None or not it.needs_log) and _fits(it.name, patterns)
    ]
    if not found:
        names = ", ".join(it.name for it in PROBES if mode in it.modes)
        raise Unusable(f"no probe of mode {mode} is called so; there are: {names}")
    return found


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def check_target(target: Target, log: Path | None) -> None:
    """Raises Unusable for a URL or a log that cannot be right."""
    parts = urlsplit(target.base)
    if parts.scheme != "http" or not parts.hostname or parts.query:
        raise Unusable(f"{target.base!r} is no base URL: give one such as http://127.0.0.1:8787/v1")
    if log is not None and not log.is_file():
        raise Unusable(f"{log}: no such log")


@asynccontextmanager
async def providing(port: int, patience: float) -> AsyncIterator[ScriptedProvider]:
    provider = ScriptedProvider(patience)
    try:
        await provider.start(port)
    except OSError as exc:
        raise Unusable(f"cannot listen on 127.0.0.1 port {port} as the provider: {exc.strerror}") from exc
    try:
        yield provider
    finally:
        await provider.stop()


async def run_all(
    target: Target, port: int, mode: Mode, probes: Sequence[Probe], log: Path | None
) -> list[Result]:
    """The result of each probe. Raises Unusable if the proxy does not ask this provider."""
    async with providing(port, target.patience) as provider:
        await _preflight(target, provider, mode)
        reader = None if log is None else Log(log, target.patience)
        return [await run_probe(it, mode, target, provider, reader) for it in probes]


async def _preflight(target: Target, provider: ScriptedProvider, mode: Mode) -> None:
    """One plain request, to tell a proxy that is not set up from one that fails."""
    own = f"http://127.0.0.1:{provider.port}/v1"
    bench = Bench(target, provider, mode)
    try:
        asking = await bench.ask()
        answered = asyncio.ensure_future(asking.head())
        asked = asyncio.ensure_future(provider.call())
        await asyncio.wait({answered, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            asked.cancel()
            raise Unusable(
                f"{target.base} answers {answered.result()[0]} without asking {own}: is that its provider?"
            )
        call = asked.result()
        if mode == "session" and b"next-user-turn" in call.raw:
            raise Unusable(f"{target.base} plays no sessions: start it with --scenarios bundled")
        await call.answer(completion({"content": "Hi."}))
        await answered
    except OSError as exc:
        raise Unusable(f"cannot reach {target.base}: {exc.strerror or exc}") from exc
    except Failed as exc:
        raise Unusable(f"{target.base} does not ask {own}: {exc}") from exc
    finally:
        bench.close()
        with suppress(UnboundLocalError, asyncio.CancelledError, OSError, Failed):
            answered.cancel()
            await answered
