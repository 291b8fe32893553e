"""A log of everything that a model, an agent or a scenario could say to break a page that shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support import logs

from proxy.log.rows import Row
from proxy.log.writer import LogWriter

BREAKS = "window.broken = 1"
"""What every script in these texts does, should it ever run."""

MARKUP = (
    f"<script>{BREAKS}</script></script><script>{BREAKS}//--><!--<script>"
    f'<img src=x onerror="{BREAKS}"><svg onload="{BREAKS}"><iframe srcdoc="<script>{BREAKS}</script>">'
    f'<a href="javascript:{BREAKS}">click</a><style>*{{display:none}}</style></style></textarea>'
    f"{{{{constructor.constructor('{BREAKS}')()}}}}${{{BREAKS}}}<%= {BREAKS} %>&lt;b&gt;&#60;"
)
UNSEEN = "a\x00b\x1b[31mred\x1b[0m\u202egnp.exe\u202c\u200bz\ufeff\u2028\x07\x9b2J"
RIGHT_TO_LEFT = "שלום, מה שלומך? مرحبا"
STACKED = "Z" + "\u0351\u0346\u0300" * 300
LONG = "x" * 1_000_000
"""A text without a place to break it."""

TOOL = f"find{MARKUP}"
ALL = f"{MARKUP}\n{UNSEEN}\n{RIGHT_TO_LEFT}\n{STACKED}"
HALF = "\ud800"
"""Half of a surrogate pair: a model can write it, as JSON has an escape for it; a scenario's file cannot."""


def record() -> dict[str, Any]:
    """A scenario that is hostile itself: its words, its tool, its answers; an id has letters alone."""
    ours: dict[str, Any] = json.loads(json.dumps(logs.record("evil_1")))
    ours["tasks"] = [ALL, RIGHT_TO_LEFT]
    ours["tools"][0]["function"] |= {"description": ALL}
    for answer in ours["answer_list"]:
        answer[0]["observation"] = {"said": ALL}
        answer[1]["observation"] = ALL
    return ours


def write_log(path: Path) -> Path:
    """A Run of one Session: in Task 1 a right call and a closing text, in Task 2 calls that are all wrong."""
    with LogWriter.open(path) as writer:
        writer.commit_blocking(*_rows())
    return path


def _rows() -> list[Row]:
    right = logs.call_message(("findPrice", '{"thing": "lamp"}'))
    wrong = logs.call_message(
        ("findPrice", json.dumps({"thing": LONG, MARKUP: UNSEEN, "__proto__": {"x": 1}})),
        (TOOL, ALL),
    )
    closing = logs.text_message(f"{ALL}{HALF}\n{LONG}")
    return [
        logs.run("r-hostile", history="gold", agent=MARKUP, model=MARKUP, provider=UNSEEN),
        logs.scenario("evil_1", record()),
        logs.session("s1", "evil_1", run_id="r-hostile"),
        logs.turn(1, 0),
        logs.start(
            "x1", side="provider", messages=[{"role": "user", "content": ALL}], body={"model": MARKUP}
        ),
        logs.finish("x1", message=right, raw=f"data: {MARKUP}".encode()),
        logs.step(
            exchange_id="x1",
            decision="observe",
            message=right,
            nodes=(0,),
            calls=(logs.call(0, "findPrice", '{"thing": "lamp"}', ALL),),
        ),
        logs.start("x2", side="provider"),
        logs.finish("x2", message=closing, raw=ALL.encode("utf-8", "surrogatepass")),
        logs.step(1, exchange_id="x2", message=closing, nodes=(1,)),
        logs.end(0, "closed"),
        logs.turn(2, 1),
        logs.start("x3", side="provider", turn=2),
        logs.finish("x3", message=wrong, error=MARKUP),
        logs.step(0, 1, turn=2, exchange_id="x3", decision="stop", message=wrong, reason=MARKUP),
        logs.end(1, "stopped"),
    ]
