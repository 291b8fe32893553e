"""Values as what a log may hold of them: texts without secrets, which SQLite takes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from proxy.log.chains import TOO_DEEP, json_text, storable
from proxy.log.redaction import MASK, allowed_headers, mask, mask_bytes, scrub, scrub_bytes, scrub_json
from proxy.log.repeats import TEXTS, Texts

_SHORT = 256
"""Characters of a text that may come again, as names of models do."""


SPELT = f"{MASK}: a secret was spelt out in these bytes; the message is stored without it".encode()
"""Is stored in place of such bytes."""


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

    def raw(self, data: bytes, status: int | None, said: str) -> bytes:
        """An answer's bytes; `said` is the message in it as it is stored.

        A secret that is masked in that and is not found in the bytes came in pieces, chunk by chunk, or
        written in some other way.
        """
        failed = status is not None and status >= 400
        masked = (scrub_bytes if failed else mask_bytes)(data, self.secrets)
        return masked if MASK not in said or MASK.encode() in masked else SPELT

    def _scrubbed_text(self, text: str) -> str:
        return storable(scrub(text, self.secrets))

    def _scrubbed(self, value: Any) -> str:
        try:
            return json_text(scrub_json(value, self.secrets))
        except RecursionError:
            return TOO_DEEP
