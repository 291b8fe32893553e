"""A control token that a restarted proxy has again: a page or a driver that is connected goes on.

One secret of the user's own, in a file that nobody else can read, and the log's place make it:
each log has its own, and none is written down.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

SECRET_BYTES = 32


def token_for(log: Path, environ: Mapping[str, str]) -> str | None:
    """The token of the proxy on this log; None where no secret can be kept."""
    folder = state_folder(environ)
    secret = None if folder is None else _secret(folder)
    if secret is None:
        return None
    digest = hmac.digest(secret, os.fsencode(log.absolute().resolve()), hashlib.sha256)
    return base64.urlsafe_b64encode(digest[:24]).decode("ascii")


def state_folder(environ: Mapping[str, str]) -> Path | None:
    """Where programs keep what should outlive them (XDG Base Directory; on Windows LOCALAPPDATA)."""
    given = environ.get("XDG_STATE_HOME") or environ.get("LOCALAPPDATA")
    if given and Path(given).is_absolute():
        return Path(given) / "wildproxy"
    home = environ.get("HOME")
    return Path(home) / ".local" / "state" / "wildproxy" if home and Path(home).is_absolute() else None


def _secret(folder: Path) -> bytes | None:
    file = folder / "secret"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            _write_once(file, secrets.token_bytes(SECRET_BYTES))
        # Nor may a pipe in its place be waited for.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as opened:
            found = os.fstat(opened.fileno())
            content = opened.read(SECRET_BYTES + 1)
    except OSError:
        return None
    return content if _is_own(found) and len(content) == SECRET_BYTES else None


def _is_own(found: os.stat_result) -> bool:
    """A file that somebody else wrote, or could read, protects nothing."""
    if sys.platform == "win32":
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def _write_once(file: Path, content: bytes) -> None:
    """Whole or not at all, though several proxies may begin at a time. Raises FileExistsError."""
    if file.exists():
        raise FileExistsError(file)
    part = file.with_name(f"secret.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
        os.link(part, file)
    finally:
        part.unlink()
