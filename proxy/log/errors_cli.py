"""What goes wrong with a log, as a command tells it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from proxy.errors_cli import InputError


@contextmanager
def input_errors() -> Iterator[None]:
    from proxy.log.errors import LogError
    from scenarios.text import visible

    try:
        yield
    except LogError as error:
        raise InputError(visible(str(error))) from error
