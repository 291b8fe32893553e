"""Values as what a log may hold of them: texts without secrets, which SQLite takes."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from proxy.log.chains import TOO_DEEP, json_text, storable
from proxy.log.redaction import MASK, allowed_headers, mask, mask_bytes, scrub, scrub_bytes, scrub_json
from proxy.log.repeats import TEXTS, Texts

_SHORT = 256
"""Characters of a text that may come again, as names of models do."""


_STREAM = (b"data:", b"event:", b":", b"id:", b"retry:")
"""What an event stream begins with."""
_FIELDS = tuple(
    f'"{name}":'.encode()
    for name in ("content", "arguments", "delta", "text", "reasoning", "reasoning_content", "refusal")
)
"""What comes in pieces, event by event."""
_TEXT = re.compile(rb' ?"((?:[^"\\]|\\.)*)"')

SPELT = f"{MASK}: a secret was spelt out in these bytes; the message is stored without it".encode()
"""Is stored in place of such bytes."""


def _unescaped(text: bytes) -> str:
    """The text that stands in JSON so; as it stands there, if it is none."""
    try:
        return str(json.loads(b'"%s"' % text))
    except ValueError:
        return text.decode("utf-8", "replace")


class StoredText:
    """Makes texts of values. `secrets` (as `redaction.forms` gives them) are masked in all of them.

    What was lately made is not made again for a secret that has become known since: it is in the log already.
    """

    def __init__(self) -> None:
        self.secrets: tuple[str, ...] = ()
        self._parameters, self._headers = Texts(), Texts()
        self._short = lru_cache(TEXTS)(self._scrubbed_text)

    def evidence(self, value: Any) -> str:
        """A JSON value of a conversation, masked and no more."""
        return mask(json_text(value), self.secrets)

    def evidence_text(self, text: object) -> str | None:
        """A text of a conversation. What should be text and is not is kept as JSON."""
        if text is None:
            return None
        return storable(mask(text if isinstance(text, str) else json_text(text), self.secrets))

    def parameters(self, value: Any) -> str:
        return self._parameters.made(value, self._scrubbed)

    def headers(self, headers: dict[str, str]) -> str:
        return self._headers.made(headers, lambda it: self._scrubbed(allowed_headers(it)))

    def text(self, text: object) -> str | None:
        """A text of the envelope. What should be text and is not, as some providers do, is kept as JSON."""
        if text is None:
            return None
        plain = text if isinstance(text, str) else json_text(text)
        return self._short(plain) if len(plain) <= _SHORT else self._scrubbed_text(plain)

    def raw(self, data: bytes, status: int | None, message: Any, said: str) -> bytes:
        """An answer's bytes; `said` is the `message` in it as it is stored.

        They are not kept if a secret is spelt out in them: chunk by chunk, or as `\\u0073k-...`.
        """
        failed = status is not None and status >= 400
        masked = (scrub_bytes if failed else mask_bytes)(data, self.secrets)
        if MASK in said and masked == data and MASK not in json_text(message):
            return SPELT
        return SPELT if data.startswith(_STREAM) and self._is_spelt_in(masked) else masked

    def _is_spelt_in(self, stream: bytes) -> bool:
        """Do the pieces of one field, event by event, come to a secret?"""
        if not self.secrets:
            return False
        after = (stream.split(field)[1:] for field in _FIELDS)
        found = (map(_TEXT.match, parts) for parts in after if len(parts) > 1)
        texts = (_unescaped(b"".join(it[1] for it in pieces if it)) for pieces in found)
        return any(mask(text, self.secrets) != text for text in texts)

    def _scrubbed_text(self, text: str) -> str:
        return storable(scrub(text, self.secrets))

    def _scrubbed(self, value: Any) -> str:
        try:
            return json_text(scrub_json(value, self.secrets))
        except RecursionError:
            return TOO_DEEP
