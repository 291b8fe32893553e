"""The page and the README's table on what is probed on the wire, from the probes themselves.

Each is a test of the suite, in each mode that it applies to: where one fails, nothing is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.conformance.probe import Probe
from tests.conformance.probes import PROBES

MODES = ("record", "session")
GROUPS = {
    "streams": "Streams, chunk by chunk",
    "stream_bytes": "Bytes of streams: characters cut, long lines, line ends, gzip",
    "tool_calls": "Tool calls: indexes, ids missing or doubled, `functions`",
    "content": "Content: null, empty, absent; unknown fields; models",
    "requests": "Requests: large, compressed, chunked",
    "headers": "Headers and connections",
    "endpoints": "Other endpoints",
    "errors": "Errors: 429, 400, 5xx, an error in a stream",
    "broken": "Providers that die before, in and after an answer",
    "leaving": "Agents that leave before the first token and in a stream",
    "secrets": "Keys stay out of the log",
    "sessions": "Answers in a session",
    "session_failures": "Failures in a session",
}
"""The modules of the probes, and what the README calls them."""

_TEXT = """\
Probes of what a proxy between an agent and its LLM must not break, each with the public thread, RFC or
reference that it comes from. `pass` means that the project's tests hold this proxy to it in that mode,
with its log looked at: *record* without scenarios, *session* while a session is played; `-` does not
apply. Any OpenAI-compatible proxy can be probed: `tests/conformance/README.md` says how."""


def conformance_page(notice: str) -> str:
    return "\n".join(["# Conformance on the wire", "", notice, "", _TEXT, *_pages()]) + "\n"


def summary() -> list[str]:
    """The README's table: how many probes of each group pass in each mode, and in all."""
    rows = [[title, *(_count(_of(group), mode) for mode in MODES)] for group, title in GROUPS.items()]
    rows.append(["All", *(_count(PROBES, mode) for mode in MODES)])
    head = ["| probes of | record | session |", "|---|---|---|"]
    return [*head, *(f"| {' | '.join(row)} |" for row in rows)]


def _pages() -> Iterator[str]:
    for group, title in GROUPS.items():
        yield from (
            "",
            f"## {title}",
            "",
            "| probe | record | session | what must be | source |",
            "|---|---|---|---|---|",
        )
        for probe in _of(group):
            passes = " | ".join("pass" if mode in probe.modes else "-" for mode in MODES)
            claim, source = (text.replace("|", "\\|") for text in (probe.claim, probe.source))
            yield f"| {probe.name} | {passes} | {claim} | {source} |"


def _of(group: str) -> list[Probe]:
    return [probe for probe in PROBES if probe.run.__module__.endswith(f".{group}")]


def _count(probes: Sequence[Probe], mode: str) -> str:
    """They all pass: else the tests, which run every one of them, would not."""
    number = sum(mode in probe.modes for probe in probes)
    return f"{number} of {number}" if number else "-"
