"""A log, its Runs and an exchange in words. Pure; nothing that comes out is obeyed by a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from proxy.tail.messages import calls_of, text_of
from proxy.terminal.text import duration, moment, one_line, padded, visible_json
from scenarios.text import visible, width

if TYPE_CHECKING:
    from proxy.log.inspect import Document, RunSummary

COLUMNS = 60
"""Where a cell of a table is cut."""
LABEL_COLUMNS = 15
_INDENT = "    "
_SAID = frozenset({"role", "content", "tool_calls", "function_call", "tool_call_id", "name"})
"""What a message's heading and text already say."""


def json_text(value: Any) -> str:
    return visible_json(json.dumps(value, ensure_ascii=False, indent=2))


def info_text(info: Document, now: float, zone: tzinfo | None = None) -> str:
    rows = [
        ("log", info["path"]),
        ("size", size_text(info["bytes"])),
        ("schema", str(info["schema_version"])),
        ("made", _time(info["created_at"], zone)),
        *((name, f"{info[name]:,}") for name in ("runs", "scenarios", "sessions", "exchanges", "messages")),
        ("from", _time(info["first_at"], zone)),
        ("to", _time(info["last_at"], zone)),
        ("tokens", f"{info['input_tokens']:,} input, {info['output_tokens']:,} output"),
    ]
    for side, states in info["finish_states"].items():
        rows.append((f"{side} side", ", ".join(f"{count:,} {state}" for state, count in states.items())))
    for pending in info["oldest_pending"]:
        age = duration(now - pending["started_at"])
        where = "" if pending["session"] is None else f" of {pending['session']}, turn {pending['turn']}"
        rows.append(("unfinished", f"{pending['id']} ({pending['side']}{where}), for {age}"))
    return "\n".join(_labelled(rows))


def runs_text(runs: Sequence[RunSummary], zone: tzinfo | None = None) -> str:
    heads = ("run", "name", "begun", "sessions", "tasks", "exchanges", "unfinished", "tokens", "provider")
    rows = [
        (
            run.id,
            run.name or "",
            _time(run.created_at, zone),
            f"{run.sessions:,}",
            f"{run.tasks:,}",
            f"{run.exchanges:,}",
            f"{run.pending:,}",
            f"{run.input_tokens + run.output_tokens:,}",
            str(run.config.get("provider", "")),
        )
        for run in runs
    ]
    return "\n".join(_table([heads, *rows], right=range(3, 8)))


def runs_document(runs: Iterable[RunSummary]) -> list[Document]:
    return [asdict(run) for run in runs]


def exchange_text(document: Document, *, full: bool = False, zone: tzinfo | None = None) -> str:
    """An exchange whole. With `full` the tools are printed as they were sent, not by name alone."""
    lines = [
        *_labelled(_facts(document, zone)),
        *_block("parameters", _pretty(document["parameters"])),
        *_block("tools", _tools(document["tools"], full)),
    ]
    for number, message in enumerate(document["messages"] or (), 1):
        lines += _message(f"message {number}", message)
    if document["answer"] is not None:
        lines += _message("answer", document["answer"])
    return "\n".join(lines)


def size_text(count: int) -> str:
    """`812 bytes`, `12.3 kB`, `4.5 MB`."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _facts(document: Document, zone: tzinfo | None) -> Iterator[tuple[str, str]]:
    yield "exchange", f"{document['id']} ({document['side']} side)"
    yield "run", " ".join(text for text in (document["run_id"], document["run_name"]) if text)
    yield "session", _session(document)
    yield "request", f"{document['method']} {document['path']}{', streamed' if document['stream'] else ''}"
    yield "outcome", _outcome(document)
    yield "error", ": ".join(text for text in (document["error_type"], document["error"]) if text)
    yield "times", _times(document, zone)
    yield "model", _model(document)
    yield "tokens", _tokens(document)
    yield "side call", document["reason"] or ""
    yield "changes", ", ".join(map(text_of, document["changes"] or ()))
    for finding in document["findings"] or ():
        yield "finding", f"turn {finding['turn']}: {finding['what']}: {finding['detail']}"
    yield "key", document["key_hash"] or ""
    yield "parent", document["parent_id"] or ""
    for child in document["provider_exchanges"]:
        yield "provider", f"{child['id']} {_outcome(child)}, {_tokens(child) or 'no tokens'}"
    for step in document["steps"]:
        reason = f": {step['reason']}" if step["reason"] else ""
        yield "step", f"task {step['task'] + 1}, step {step['step'] + 1}: {step['decision']}{reason}"
    for title, headers in (("sent", document["request_headers"]), ("received", document["response_headers"])):
        for name, value in (headers or {}).items():
            yield title, f"{name}: {value}"


def _session(document: Document) -> str:
    if document["session"] is None:
        return ""
    attempt = f", attempt {document['attempt']}" if document["attempt"] > 1 else ""
    task = "" if document["task"] is None else f", task {document['task'] + 1}"
    turn = "" if document["turn"] is None else f", turn {document['turn']}"
    found = f" (found by {document['correlation']})" if document["correlation"] else ""
    return f"{document['session']}{attempt}{task}{turn}{found}"


def _outcome(document: Document) -> str:
    status = "" if document["status"] is None else f", status {document['status']}"
    return f"{document['finish_state']}{status}"


def _times(document: Document, zone: tzinfo | None) -> str:
    parts = [_time(document["started_at"], zone)]
    for word, name in (("finished", "finished_at"), ("delivered", "delivered_at")):
        if document[name] is not None:
            parts.append(f"{word} after {duration(document[name] - document['started_at'])}")
    if document["time_to_first_chunk"] is not None:
        parts.append(f"first chunk after {duration(document['time_to_first_chunk'])}")
    return ", ".join(parts)


def _model(document: Document) -> str:
    names = (("asked for", "request_model"), ("answered by", "response_model"), ("id", "response_id"))
    parts = [f"{word} {document[name]}" for word, name in names if document[name]]
    reasons = ", ".join(map(text_of, document["finish_reasons"] or ()))
    return "; ".join([*parts, *([f"finished by {reasons}"] if reasons else [])])


def _tokens(document: Document) -> str:
    counts = (document["input_tokens"], document["output_tokens"])
    if counts == (None, None):
        return ""
    return "{} input, {} output".format(*("?" if count is None else f"{count:,}" for count in counts))


def _tools(tools: Any, full: bool) -> str:
    if not tools or full:
        return _pretty(tools)
    return ", ".join(map(_tool_name, tools))


def _tool_name(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    named = function if isinstance(function, dict) else tool
    return text_of(named["name"] if isinstance(named, dict) and "name" in named else tool)


def _message(title: str, message: Any) -> Iterator[str]:
    """A message: its role and ids, its text line by line, its calls, what else it holds."""
    if not isinstance(message, dict):
        yield from _block(title, _pretty(message))
        return
    heading = [text_of(message[key]) for key in ("role", "name", "tool_call_id") if message.get(key)]
    parts = [text_of(message.get("content"))]
    parts += [f"→ {name} {arguments or ''}".rstrip() for name, arguments in calls_of(message)]
    parts += [
        f"{name}: {_pretty(value)}"
        for name, value in message.items()
        if name not in _SAID and value not in (None, [], "")
    ]
    text = "\n".join(part for part in parts if part)
    yield from _block(f"{title} ({', '.join(heading)})" if heading else title, text or "(empty)")


def _block(title: str, text: str) -> Iterator[str]:
    if text:
        yield ""
        yield visible(title)
        for line in text.split("\n"):
            yield _INDENT + visible(line.removesuffix("\r"))


def _pretty(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, indent=2)


def _time(at: float | None, zone: tzinfo | None) -> str:
    return "-" if at is None else f"{moment(at, zone):%Y-%m-%d %H:%M:%S}"


def _labelled(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for label, text in rows:
        if text:
            yield padded(label, LABEL_COLUMNS) + visible(text)


def _table(rows: Sequence[Sequence[str]], right: Iterable[int]) -> Iterator[str]:
    cells = [[one_line(cell, COLUMNS) for cell in row] for row in rows]
    columns = [max(map(width, column)) for column in zip(*cells, strict=True)]
    right = frozenset(right)
    for row in cells:
        placed = [
            " " * (columns[i] - width(cell)) + cell if i in right else padded(cell, columns[i])
            for i, cell in enumerate(row)
        ]
        yield "  ".join(placed).rstrip()
