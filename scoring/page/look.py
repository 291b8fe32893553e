"""How pages look and what they do: the style and script files of this package, in a fixed order.

The components are shared with the proxy's live page; the rest is the report's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

VENDOR = ("vega.min.js", "vega-lite.min.js", "vega-interpreter.js")
"""Libraries in the order in which they need each other."""

LAST = "main.js"
"""The file of a folder that comes after its others: it calls what they define."""


@dataclass(frozen=True, slots=True)
class Look:
    """`css` and `script` are whole; `skeleton` is the report's HTML with placeholders `{{...}}`."""

    css: str
    script: str
    skeleton: str = ""


def report_look() -> Look:
    """The style, the script and the skeleton of the report."""
    assets = _assets()
    vendor = [assets / "vendor" / name for name in VENDOR]
    own = [*_sorted(assets / "components", ".js"), *_sorted(assets / "report", ".js")]
    css = [*_sorted(assets, ".css"), *_sorted(assets / "report", ".css")]
    script = "\n".join([*map(_text, vendor), _enclosed(own)])
    return Look(_joined(css), script, _text(assets / "report.html"))


def shared_look() -> Look:
    """The style, and the components, as declarations for another page's script to stand behind."""
    assets = _assets()
    return Look(_joined(_sorted(assets, ".css")), _joined(_sorted(assets / "components", ".js")))


def _assets() -> Traversable:
    return files("scoring.page") / "assets"


def _sorted(folder: Traversable, ending: str) -> list[Traversable]:
    if not folder.is_dir():
        return []
    found = [it for it in folder.iterdir() if it.name.endswith(ending)]
    return sorted(found, key=lambda it: (it.name == LAST, it.name))


def _enclosed(scripts: Iterable[Traversable]) -> str:
    """One scope for all of them, out of reach of everything else on the page."""
    return f'(() => {{\n"use strict";\n{_joined(scripts)}\n}})();\n'


def _joined(found: Iterable[Traversable]) -> str:
    return "\n".join(_texts(found))


def _texts(found: Iterable[Traversable]) -> Iterator[str]:
    return map(_text, found)


def _text(file: Traversable) -> str:
    return file.read_text(encoding="utf-8")
