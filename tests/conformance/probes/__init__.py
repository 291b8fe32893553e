"""The probes, by what they look at, in the order in which they are run and told."""

from __future__ import annotations

from importlib import import_module

from tests.conformance.probe import PROBES

__all__ = ["PROBES"]

for _name in (
    "streams",
    "stream_bytes",
    "tool_calls",
    "content",
    "requests",
    "headers",
    "endpoints",
    "errors",
    "broken",
    "leaving",
    "sessions",
    "session_failures",
    "secrets",
):
    import_module(f"tests.conformance.probes.{_name}")
