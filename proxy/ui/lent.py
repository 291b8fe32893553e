"""What the composition root lends to the live page, which knows nothing of scoring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.tail.summary import Judge, PlayedTask

JSON = dict[str, Any]

ReadTasks = Callable[[Mapping[str, Any], Mapping[str, Any], Sequence[PlayedTask]], Sequence[JSON]]
"""As `Judge`, for a Session that is opened: of each Task its verdicts, its Reference and, Step by Step and
call by call, what was right. The shape is that of the report's."""


@dataclass(frozen=True, slots=True)
class Lent:
    """`css` and `script` are the look that the report has; the script is declarations alone.

    Without a `judge` the page tells right from wrong as the proxy does while it plays: by names.
    `words` says what the names in what is `read` mean: `classes` of errors and `rules` by their ids.
    """

    css: str
    script: str
    judge: Judge | None = None
    read: ReadTasks | None = None
    words: Callable[[], JSON] | None = None
