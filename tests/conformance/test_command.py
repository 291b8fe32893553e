"""The command, and that its probes can fail: against no proxy at all, and against a careless one."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.conformance.bench import Target, new_key
from tests.conformance.probe import Probe, run_probe
from tests.conformance.probes import PROBES
from tests.conformance.provider import ScriptedProvider
from tests.conformance.report import FORMATS
from tests.conformance.run import providing

ROOT = Path(__file__).resolve().parent.parent.parent
RECORD = [probe for probe in PROBES if "record" in probe.modes and not probe.needs_log]

NEEDS_A_PROXY = {"request-hop-by-hop", "answer-hop-by-hop", "dies-before-headers", "dies-and-lives-again"}
"""What a direct connection cannot do: take headers off, answer for a provider that does not."""

CARELESS = ("stream-incremental", "comments", "error-429", "dies-after-first-chunk", "request-bytes")


def test_the_command_ends_with_one_line_where_it_cannot_begin() -> None:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    with servers[0]:
        busy, closed, free = (server.getsockname()[1] for server in servers)
        for server in servers[1:]:
            server.close()
        url = f"http://127.0.0.1:{closed}/v1"
        for words, told in (
            ([url, "--provider-port", f"{busy}"], f"cannot listen on 127.0.0.1 port {busy}"),
            ([url, "--provider-port", f"{free}"], f"cannot reach {url}"),
            (["nonsense", "--provider-port", "9901"], "'nonsense' is no base URL"),
            ([url, "--provider-port", "9901", "--only", "nope"], "no probe of mode record"),
        ):
            command = [sys.executable, "-m", "tests.conformance", *words]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
            assert told in done.stderr


@pytest.mark.parametrize("probe", RECORD, ids=lambda probe: probe.name)
async def test_a_direct_connection_passes_all_that_needs_no_proxy(probe: Probe) -> None:
    async with providing(0, 60.0) as provider:
        target = Target(f"http://127.0.0.1:{provider.port}/v1", new_key(), 60.0, 60.0)
        result = await run_probe(probe, "record", target, provider, None)
    assert result.passed == (probe.name not in NEEDS_A_PROXY), result.seen


@pytest.mark.parametrize("name", CARELESS)
async def test_a_proxy_that_reads_whole_answers_and_writes_them_anew_fails(name: str) -> None:
    [probe] = [it for it in PROBES if it.name == name]
    async with providing(0, 1.0) as provider, careless(provider) as base:
        result = await run_probe(probe, "record", Target(base, new_key(), 1.0), provider, None)
    assert not result.passed
    assert result.seen
    assert "\n" not in result.seen
    for shape in FORMATS.values():
        assert name in shape([result])
    [told] = json.loads(FORMATS["json"]([result]))
    assert (told["probe"], told["passed"]) == (name, False)


@asynccontextmanager
async def careless(provider: ScriptedProvider) -> AsyncIterator[str]:
    """A proxy as they are written in an afternoon."""

    async def handle(request: web.Request) -> web.Response:
        url = f"http://127.0.0.1:{provider.port}{request.path_qs}"
        try:
            async with session.request(request.method, url, json=await request.json()) as answer:
                return web.Response(text=await answer.text(), status=answer.status)
        except aiohttp.ClientError as exc:
            return web.json_response({"error": str(exc)})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    async with aiohttp.ClientSession() as session:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        finally:
            await runner.cleanup()
