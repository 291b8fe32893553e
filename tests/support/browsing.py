"""Real pages in a real browser, watched: what they ask of the network and what they complain of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Route

DEFAULT_BROWSER = "/usr/bin/chromium"

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

PATIENCE = 20_000
"""Milliseconds after which what does not come to pass in a page is a failure."""

SERIOUS = ("serious", "critical")

Open = Callable[..., "Watched"]
"""`open_page(url, allow=..., **context options)`: see `Watched`."""


def executable() -> Path | None:
    """The browser of this machine: `$WILDPROXY_CHROMIUM`, else the usual place; None without one."""
    found = shutil.which(os.environ.get("WILDPROXY_CHROMIUM") or DEFAULT_BROWSER)
    return Path(found) if found else None


@dataclass
class Watched:
    """A page, and everything about it that should be empty at the end of a test.

    `complaints` are lines of the console above `info`, exceptions that nobody caught, and requests that
    leave the prefixes in `allow`, which were not let through. A test that provokes one takes it out.
    """

    page: Page
    allow: tuple[str, ...]
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext) -> None:
        context.route("**/*", self._let_through)
        context.on("request", self._requested)
        context.on("console", self._said)
        context.on("weberror", lambda it: self.complaints.append(f"exception: {it.error}"))

    def _let_through(self, route: Route) -> None:
        if route.request.url.startswith(self.allow):
            route.continue_()
        else:
            route.abort()

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((*self.allow, "data:", "blob:")):
            self.complaints.append(f"request: {request.url[:200]}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.complaints.append(f"{message.type}: {message.text}")


@contextmanager
def watched(browser: Browser, url: str, allow: tuple[str, ...] = (), **options: Any) -> Iterator[Watched]:
    """The page of an address in a context of its own, with `options` for it (viewport, color_scheme).

    Only addresses beginning with `allow`, by default the page's own, are let through.
    """
    context = browser.new_context(**options)
    try:
        context.set_default_timeout(PATIENCE)
        found = Watched(context.new_page(), allow or (url.split("#", maxsplit=1)[0],))
        found.watch(context)
        found.page.goto(url)
        yield found
    finally:
        context.close()


def violations(page: Page) -> list[str]:
    """What axe finds serious or critical: its rule, and the first element that breaks it."""
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{it['id']}: {node['html'][:160]}"
        for it in found
        if it["impact"] in SERIOUS
        for node in it["nodes"][:1]
    ]
