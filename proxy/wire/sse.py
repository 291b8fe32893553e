"""Server-sent events: bytes in, events out (WHATWG HTML, section 9.2.6).

Two deliberate differences from the standard: an event that the end of the stream
cuts off before its blank line is still given by `flush`, because several providers
leave that line out; and `retry` is ignored, because nobody here reconnects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"[\r\n]")
_CR, _LF = 13, 10


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `data` is its data lines joined by LF; `event` and `id` are "" if never sent."""

    data: str
    event: str = ""
    id: str = ""


class SSEDecoder:
    """An incremental decoder; the events do not depend on how the bytes were cut up.

    Lines end at CR, LF or CRLF and nowhere else, so characters such as U+2028, which
    JSON may hold unescaped, stay inside their line. Bytes that are not UTF-8 become
    U+FFFD. `comments` collects the text of comment lines (keep-alives), in order.
    """

    def __init__(self) -> None:
        self.comments: list[str] = []
        self._buffer = bytearray()
        self._scanned = 0
        self._skip_lf = False
        self._at_start = True
        self._data: list[str] = []
        self._event = ""
        self._id = ""

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        self._buffer += data
        if self._at_start and not self._strip_bom():
            return []
        events = []
        for line in self._take_lines():
            event = self._line(line)
            if event is not None:
                events.append(event)
        return events

    @property
    def is_between_events(self) -> bool:
        """Has all that came so far been given as events?"""
        return not (self._buffer or self._data or self._event or self._at_start)

    def flush(self) -> list[Event]:
        """End of the stream: the event that was begun but not ended, if any."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._scanned = 0
        if rest:
            self._line(rest)
        event = self._dispatch()
        return [] if event is None else [event]

    def _strip_bom(self) -> bool:
        """Drop a leading byte order mark; False while it cannot be told yet."""
        if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer):
            return False
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        self._at_start = False
        return True

    def _take_lines(self) -> list[bytes]:
        buffer = self._buffer
        lines = []
        begin = 0
        if self._skip_lf and buffer:
            # The CR that ended the line before this LF has been acted on already:
            # waiting for the LF would hold an event back until the next bytes.
            begin = 1 if buffer[0] == _LF else 0
            self._skip_lf = False
        found = _LINE_END.search(buffer, max(begin, self._scanned))
        while found:
            lines.append(bytes(buffer[begin : found.start()]))
            begin = found.end()
            if buffer[found.start()] == _CR:
                if begin == len(buffer):
                    self._skip_lf = True
                elif buffer[begin] == _LF:
                    begin += 1
            found = _LINE_END.search(buffer, begin)
        del buffer[:begin]
        self._scanned = len(buffer)
        return lines

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        name, _, rest = line.partition(b":")
        value = rest.removeprefix(b" ").decode("utf-8", "replace")
        if not name:
            self.comments.append(value)
        elif name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        elif name == b"id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> Event | None:
        event = Event("\n".join(self._data), self._event, self._id) if self._data else None
        self._data = []
        self._event = ""
        return event
