"""Report pages taken apart, and a log for them of which everything is known."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from support import logs

from proxy.log.rows import Row
from proxy.log.writer import LogWriter

RIGHT = logs.call_message(("findPrice", '{"thing": "lamp"}'))
CLOSING = logs.text_message("It is 3.")
WRONG = logs.call_message(("findPrice", '{"thing": "table"}'), ("findPrice", '{"thing": "chair"}'))
TOOLS = [{"type": "function", "function": {"name": "findPrice"}}]
HELLO = '{"role":"user","content":"hello"}'
OVERLOADED = b'{"error":"overloaded"}'
BROKEN = b"\xff\x00"
"""An answer that is no UTF-8."""


@dataclass
class Page(HTMLParser):
    """What a browser reads of a page: its title, its policy, and every script element by its id."""

    title: str = ""
    policy: str = ""
    scripts: dict[str | None, str] = field(default_factory=dict)
    styles: list[str] = field(default_factory=list)
    _open: tuple[str, str | None] = ("", None)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._open = tag, given.get("id")
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        if tag == "script":
            assert given.get("id") not in self.scripts
            self.scripts[given.get("id")] = ""

    def handle_endtag(self, tag: str) -> None:
        self._open = ("", None)

    def handle_data(self, data: str) -> None:
        tag, name = self._open
        if tag == "title":
            self.title += data
        elif tag == "script":
            self.scripts[name] += data
        elif tag == "style":
            self.styles.append(data)

    def json(self, name: str) -> Any:
        """What is packed in the element with this id."""
        return json.loads(gzip.decompress(base64.b64decode(self.scripts[name], validate=True)))

    @property
    def document(self) -> Any:
        return self.json("document")

    def packed(self, kind: str) -> dict[str, Any]:
        """By Session, what is packed of each as `detail` or `raw`."""
        names = [name for name in self.scripts if name and name.startswith(f"{kind}-")]
        return {name.partition("-")[2]: self.json(name) for name in names}


def taken_apart(page: bytes | Path) -> Page:
    found = Page()
    found.feed((page.read_bytes() if isinstance(page, Path) else page).decode())
    found.close()
    return found


def write_log(path: Path, run: str = "r1") -> Path:
    """A Run of two Sessions: of the first a Task is right and one wrong, the second the provider lost."""
    with LogWriter.open(path) as writer:
        writer.commit_blocking(logs.run(run, history="gold", agent="builtin"), logs.scenario())
        writer.commit_blocking(*_played(run), *_failed(run))
    return path


def write_log_of_writes(path: Path) -> Path:
    """A Run of one Session whose calls write: the first is made twice, and is not undone as it should."""
    lamp, chair = ({"thing": it} for it in ("lamp", "chair"))
    undo = {**logs.RECORD["tools"][0]["function"], "name": "undo"}
    undoing = {**logs.RECORD["answer_list"][1][0], "action": {"name": "undo", "arguments": lamp}}
    record = {
        **logs.RECORD,
        "tools": [*logs.RECORD["tools"], {"type": "function", "function": undo}],
        "answer_list": [logs.RECORD["answer_list"][0], [undoing, logs.RECORD["answer_list"][1][1]]],
        "annotations": {
            "findPrice": {"side_effects": True},
            "undo": {"side_effects": True, "undoes": ["findPrice"]},
        },
    }
    other = logs.call_message(("findPrice", json.dumps(chair)))
    with LogWriter.open(path) as writer:
        writer.commit_blocking(
            *(logs.run(history="live"), logs.scenario("shop_1", record), logs.session(), logs.turn(1, 0)),
            *(logs.start("x1"), logs.finish("x1", message=RIGHT), logs.step(exchange_id="x1", message=RIGHT)),
            *(
                logs.start("x2"),
                logs.finish("x2", message=RIGHT),
                logs.step(1, exchange_id="x2", message=RIGHT),
            ),
            *(logs.end(0, "agent_stopped"), logs.turn(2, 1)),
            *(logs.start("x3", turn=2), logs.finish("x3", message=other)),
            *(logs.step(0, 1, turn=2, exchange_id="x3", message=other), logs.end(1, "agent_stopped")),
        )
    return path


def _played(run: str) -> list[Row]:
    """In Task 2 a first try fails, and of two calls one is wrong."""
    served = logs.call(0, "findPrice", '{"thing": "lamp"}', '{"price": 3}')
    return [
        logs.session(run_id=run),
        logs.turn(1, 0),
        logs.start("a1"),
        logs.start("x1", side="provider", parent_id="a1", body={"model": "m", "tools": TOOLS}),
        logs.finish("x1", message=RIGHT, input_tokens=100, output_tokens=7, raw=b'{"id": 1}'),
        logs.step(exchange_id="x1", decision="observe", message=RIGHT, nodes=(0,), calls=(served,)),
        logs.start("x2", side="provider", parent_id="a1"),
        logs.finish("x2", message=CLOSING, input_tokens=120, output_tokens=5, raw=BROKEN),
        logs.step(1, exchange_id="x2", message=CLOSING, nodes=(1,)),
        logs.finish("a1", message=CLOSING),
        logs.end(0, "closed"),
        logs.turn(2, 1),
        logs.start("x3", side="provider", turn=2),
        logs.finish("x3", finish_state="provider_error", status=503, error="overloaded", raw=OVERLOADED),
        logs.start("x4", side="provider", turn=2),
        logs.finish("x4", message=WRONG, input_tokens=130, output_tokens=9),
        logs.step(0, 1, turn=2, exchange_id="x4", decision="stop", message=WRONG, reason="wrong"),
        logs.end(1, "stopped"),
    ]


def _failed(run: str) -> list[Row]:
    return [
        logs.session("s2", epoch=2, run_id=run),
        logs.turn(1, 0, "s2"),
        logs.start("y1", "s2"),
        logs.finish("y1", finish_state="provider_error", status=503, error_type="http", error="overloaded"),
        logs.end(0, "infrastructure", "s2"),
    ]
