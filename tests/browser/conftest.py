"""A real browser: one a module, and pages in it that must not complain."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from support.browsing import ARGUMENTS, DEFAULT_BROWSER, PATIENCE, Open, Watched, executable, watched


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium: absent on some machines, required in CI."""
    found = executable()
    if found is None:
        problem = f"no browser at {os.environ.get('WILDPROXY_CHROMIUM') or DEFAULT_BROWSER}"
        if os.environ.get("CI"):
            pytest.fail(f"CI is set, but there is {problem}")
        pytest.skip(problem)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens pages, `open_page(url, **options)`; the test fails if one of them complained of anything."""
    opened: list[Watched] = []
    with ExitStack() as stack:

        def open_(url: str, allow: tuple[str, ...] = (), **options: Any) -> Watched:
            opened.append(stack.enter_context(watched(browser, url, allow, **options)))
            return opened[-1]

        yield open_
    assert [it.complaints for it in opened if it.complaints] == []
