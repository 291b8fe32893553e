"""JSON as it is written wherever a command writes it. Pure."""

from __future__ import annotations

import json
import re

_UNSAFE = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def json_bytes(value: object, *, indent: int | None = None) -> bytes:
    """`value` as one JSON text in UTF-8, ended by a newline.

    Characters that a terminal would obey and lone surrogates are escaped; they can
    only stand inside strings. Raises ValueError for a number that JSON does not have.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    safe = _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return (safe + "\n").encode("utf-8", "backslashreplace")
