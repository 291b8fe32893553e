"""What can go wrong with a log."""

from __future__ import annotations


class LogError(Exception):
    """A log that cannot be opened, read or written. One line: what, where, how to mend."""
