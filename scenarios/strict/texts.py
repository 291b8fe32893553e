"""Texts by their meaning: Unicode forms, case and spaces aside; dates, times and URLs in canonical form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import date
from typing import Any
from urllib.parse import SplitResult, urlsplit

from scenarios.strict.faults import Fault
from scenarios.strict.places import Place
from scenarios.strict.rules import Steps, fault, shown

DATE = (
    r"(?P<year>\d{4})(?:-(?P<month>\d{1,2})-|/(?P<month2>\d{1,2})/|年(?P<month3>\d{1,2})月)"
    r"(?P<day>\d{1,2})[日号]?"
)
TIME = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"(?: ?(?P<half>a\.?m\.?|p\.?m\.?)(?![a-z]))?"
)
ZONE = r"(?: ?(?P<zone>z|utc|gmt|[+-]\d{2}(?::?\d{2})?))?"

_DATE = re.compile(DATE)
_TIME = re.compile(TIME + ZONE)
_DATETIME = re.compile(rf"{DATE}(?: ?t ?|,? ?){TIME}{ZONE}")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#]+[^\s]*", re.IGNORECASE)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_PORTS = {"http": 80, "https": 443, "ftp": 21, "ws": 80, "wss": 443}


def normal(text: str) -> str:
    """NFKC, casefolded, trimmed, every run of blanks one space.

    What is raised or a fraction stays apart from a number before it: 10² is not 102, nor 1½ 11/2.
    """
    if not text.isascii():
        text = _AFTER_NUMBER.sub(lambda found: f"{'^' if found[1] else ' '}{found[0]}", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


_AFTER_NUMBER = re.compile(r"(?<=\d)(?:([²³¹⁰⁴-⁹])|[¼-¾⅐-⅞↉])")


def text_faults(place: Place, steps: Steps, actual: str, expected: str) -> list[Fault]:
    """How two texts differ, where they are no free text."""
    if actual == expected:
        return []
    if place.is_exact:
        what = f"{shown(actual)} is not {shown(expected)}, and must be character by character"
        return [fault("args.exact", steps, what, expected, actual)]
    rule, expected_form, actual_form = _forms(expected, actual)
    if expected_form == actual_form:
        return []
    what = f"{shown(actual)} is not {shown(expected)}"
    return [fault(rule, steps, what, expected, actual, (expected_form, actual_form))]


def text_form(place: Place, text: str) -> str:
    """A form that only equal texts share."""
    if place.is_exact or place.is_free_text:
        return text
    return next((form for _, read in _KINDS if (form := read(text)) is not None), normal(text))


def _forms(expected: str, actual: str) -> tuple[str, str, str]:
    """The rule that compares two texts, and the form of each."""
    for rule, read in _KINDS:
        mine, theirs = read(expected), read(actual)
        if mine is not None and theirs is not None:
            return rule, mine, theirs
    return "args.text", normal(expected), normal(actual)


def read_moment(text: str) -> str | None:
    """The canonical form of a date, a time or both; None where the text is nothing but that.

    `2024-07-13`, `08:00`, `2024-07-13T08:00+00:00`; seconds where there are any but :00.
    """
    text = normal(text)
    for pattern in (_DATE, _TIME, _DATETIME):
        found = pattern.fullmatch(text)
        if found is not None:
            return moment_form(found)
    return None


def moment_form(found: re.Match[str]) -> str | None:
    """The canonical form of a match of `DATE`, `TIME` and `ZONE`; None for what no calendar or clock has."""
    parts = found.groupdict()
    day = _date_form(parts) if parts.get("year") is not None else ""
    clock = _time_form(parts) if parts.get("hour") is not None else ""
    if day is None or clock is None:
        return None
    return f"{day}T{clock}" if day and clock else day or clock


def _date_form(parts: dict[str, str | None]) -> str | None:
    month = parts["month"] or parts["month2"] or parts["month3"]
    try:
        return date(int(parts["year"] or 0), int(month or 0), int(parts["day"] or 0)).isoformat()
    except ValueError:
        return None


def _time_form(parts: dict[str, str | None]) -> str | None:
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    half = (parts["half"] or "")[:1]
    if parts["minute"] is None and not half:
        return None
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half == "p")
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = (parts["fraction"] or "").rstrip("0")
    seconds = f":{second:02}" + (f".{fraction}" if fraction else "") if second or fraction else ""
    return f"{hour:02}:{minute:02}{seconds}{_zone_form(parts.get('zone'))}"


def _zone_form(zone: str | None) -> str:
    if not zone:
        return ""
    if zone in ("z", "utc", "gmt"):
        return "+00:00"
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return "+00:00" if digits == "0000" else f"{zone[0]}{digits[:2]}:{digits[2:]}"


def read_url(text: str) -> str | None:
    """The canonical form of a URL with a host, by RFC 3986 6.2.2 and 6.2.3; None where the text is none."""
    text = text.strip()
    if not _URL.fullmatch(text):
        return None
    try:
        parts = urlsplit(text)
        host = _host_form(parts)
    except ValueError:
        return None
    end = "".join(mark + _escapes(it) for mark, it in (("?", parts.query), ("#", parts.fragment)) if it)
    return f"{parts.scheme.lower()}://{host}{_escapes(parts.path) or '/'}{end}"


def _host_form(parts: SplitResult) -> str:
    user, at, _ = parts.netloc.rpartition("@")
    host = parts.hostname or ""
    port = parts.port
    if ":" in host:
        host = f"[{host}]"
    if port is not None and port != _PORTS.get(parts.scheme.lower()):
        host += f":{port}"
    return f"{user}{at}{host}"


def _escapes(part: str) -> str:
    """Percent-escapes only where they are needed, in upper case; what is not ASCII as escaped UTF-8."""
    encoded = "".join(
        char if char.isascii() else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for char in part
    )
    return _ESCAPE.sub(_escape, encoded)


def _escape(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16))
    return char if _UNRESERVED.fullmatch(char) else found[0].upper()


_KINDS: tuple[tuple[str, Callable[[str], Any]], ...] = (("args.date", read_moment), ("args.url", read_url))
