"""The exchanges of a Session as they were on the wire, each message and tool list once. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence

from scoring.page.shown import ShownExchange
from scoring.types import JSON


class _Once:
    """Texts by hash, numbered as they first come up."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._numbers: dict[str, int] = {}

    def number(self, name: str | None) -> int | None:
        return None if name is None else self._numbers.setdefault(name, len(self._numbers))

    def numbers(self, names: Iterable[str] | None) -> list[int | None] | None:
        return None if names is None else [self.number(name) for name in names]

    def texts(self) -> list[str]:
        return [self._texts[name] for name in self._numbers]


def raw_document(key: str, exchanges: Sequence[ShownExchange], texts: Mapping[str, str]) -> JSON:
    """What was sent and received, in the order in which it began. `texts` are JSON texts by hash.

    Bodies are told as the log has them: JSON texts, and answers as they came, in base64 where they
    are no UTF-8.
    """
    messages, tools = _Once(texts), _Once(texts)
    told = [
        {
            **it.about,
            "stream": bool(it.about.get("stream")),
            "changes": it.about.get("changes") or [],
            "findings": it.about.get("findings") or [],
            "messages": messages.numbers(it.messages),
            "tools": tools.number(it.tools),
            "body": it.body,
            "message": messages.number(it.message),
            **_answer(it.answer),
        }
        for it in exchanges
    ]
    return {"key": key, "messages": messages.texts(), "tools": tools.texts(), "exchanges": told}


def _answer(answer: bytes | None) -> JSON:
    if answer is None:
        return {"answer": None, "answer_base64": None}
    try:
        return {"answer": answer.decode(), "answer_base64": None}
    except UnicodeDecodeError:
        return {"answer": None, "answer_base64": base64.b64encode(answer).decode()}
