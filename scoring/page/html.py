"""One HTML file with everything in it, whatever the texts in it say. Pure.

JSON stands compressed in elements that browsers do not run: nothing in it is read as HTML. The policy of
the page lets run what was hashed here, and nothing else: no network, no style or script of another place.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scoring.page.look import Look

MOST_BYTES = 5_000_000
"""So large a page still opens at once."""

_PLACEHOLDER = re.compile(r"\{\{([a-z]+)\}\}")
_UNSAFE = re.compile("[<>&\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\uffff]")
_ENDS_SCRIPT = re.compile(r"<(?=/script|script|!--)", re.IGNORECASE)
_ENDS_STYLE = re.compile(r"<(?=/style)", re.IGNORECASE)


def page(document: Any, packed: Iterable[tuple[str, str]], look: Look) -> bytes:
    """The page. `packed` are (id, what `pack` gave) of the Sessions' details and raw exchanges."""
    script = _ENDS_SCRIPT.sub(r"\\x3c", look.script)
    parts = {
        "policy": html.escape(_policy(script)),
        "title": html.escape(str(document["title"]).encode("utf-8", "replace").decode()),
        "style": _ENDS_STYLE.sub(r"\\3c ", look.css),
        "script": script,
        "document": _element("document", pack(document)),
        "details": "\n".join(_element(name, text) for name, text in packed),
    }
    filled = _PLACEHOLDER.sub(lambda found: parts[found[1]], look.skeleton)
    return filled.encode()


def pack(value: Any) -> str:
    """JSON, compressed: the same value gives the same text, as no time is in it."""
    return base64.b64encode(gzip.compress(json_text(value).encode(), 9, mtime=0)).decode()


def json_text(value: Any) -> str:
    """Compact JSON that every browser reads back as it was, and that could stand in HTML as it is.

    Numbers that JSON does not have become their names.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_sayable(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _sayable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _sayable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return value


def _element(name: str, text: str) -> str:
    return f'<script type="application/gzip" id="{html.escape(name)}">{text}</script>'


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return "; ".join(_directives(digest))


def _directives(digest: str) -> Iterator[str]:
    yield "default-src 'none'"
    yield f"script-src 'sha256-{digest}'"
    yield "style-src 'unsafe-inline'"
    yield "img-src data: blob:"
    yield "base-uri 'none'"
    yield "form-action 'none'"
