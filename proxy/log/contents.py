"""What is stored once, by its content: messages, links of histories, lists of tools."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from proxy.log import statements as sql
from proxy.log.chains import Link, chain, content_hash
from proxy.log.repeats import Histories, Texts

KNOWN_LIMIT = 50_000
"""Hashes remembered as stored, about 5 MB. What comes again mostly comes soon; else it costs a statement."""

Execute = Callable[[str, tuple[Any, ...]], sqlite3.Cursor]


class Contents:
    """Stores what is new. `text` makes the JSON text of a value: without secrets, as it is stored."""

    def __init__(self, execute: Execute, text: Callable[[Any], str]) -> None:
        self._execute = execute
        self._text = text
        self._known: set[str] = set()
        self._fresh: list[str] = []
        self._histories = Histories()
        self._tools = Texts()

    def begin(self) -> None:
        """What is stored from now on may have to be taken back by `undo`."""
        self._fresh.clear()

    def undo(self) -> None:
        self._known.difference_update(self._fresh)
        self.forget_texts()

    def forget(self) -> None:
        """What was stored may be stored no more."""
        self._known.clear()
        self.forget_texts()

    def forget_texts(self) -> None:
        """What was made of values may be another text now, or not be stored."""
        self._histories.clear()
        self._tools.clear()

    def history(self, messages: list[Any]) -> str | None:
        """The hash of the last link; None if there are no messages."""
        if not messages:
            return None
        looked = self._histories.look(messages)
        tip, count = (looked.known.tip, looked.known.count) if looked.known else (None, 0)
        links = chain([self.message(message) for message in messages[count:]], tip, count)
        for link in links:
            self._link(link)
        tips = [link.hash for link in links]
        self._histories.remember(looked, messages, tips)
        return tips[-1] if tips else tip

    def message(self, message: Any) -> str:
        """Its hash."""
        return self.stored(message)[0]

    def stored(self, message: Any) -> tuple[str, str]:
        """A message's hash, and its text as it is stored."""
        return self._content("messages", message)

    def tools(self, tools: list[Any]) -> str:
        """The hash of a request's tools."""
        return self._tools.made(tools, lambda it: self._content("tool_lists", it)[0])

    def _link(self, link: Link) -> None:
        if self._is_new(link.hash):
            self._execute(sql.LINK.sql, sql.LINK.values(link))

    def _content(self, table: str, value: Any) -> tuple[str, str]:
        text = self._text(value)
        name = content_hash(text)
        if self._is_new(table[0] + name):
            self._execute(sql.CONTENT[table].sql, (name, text))
        return name, text

    def _is_new(self, key: str) -> bool:
        if key in self._known:
            return False
        if len(self._known) >= KNOWN_LIMIT:
            self._known.clear()
        self._known.add(key)
        self._fresh.append(key)
        return True
