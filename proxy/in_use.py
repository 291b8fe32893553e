"""One proxy to a Run: a second one would judge the same Sessions by a record of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class InUse(Exception):
    """Another process plays in this Run; one line."""


@contextmanager
def claimed(log: Path, run_id: str) -> Iterator[None]:
    """Holds the Run of a log until the block is left. Raises InUse.

    By a locked file beside the log, so that a killed process holds nothing. Where there is no
    such lock (Windows), nothing is held.
    """
    if fcntl is None:
        yield
        return
    path = log.with_name(f".{log.name}.{run_id}.lock")
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUse(
                f"{log}: another proxy plays in run {run_id}: stop it, give another --log, "
                "or begin a run of your own with --new-run"
            ) from None
        yield
        with suppress(OSError):
            path.unlink()
    finally:
        os.close(descriptor)
