"""The live page in a real browser, of a real proxy: what a person sees while a run plays."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from support import hostile, scenes
from support.answering import TOKEN, Provider, Served, answering, served
from support.browsing import Open, violations

PHONE = {"width": 390, "height": 844}
LAMP = ("getPrice", '{"thing": "lamp"}')


@pytest.fixture(scope="module")
def provider_and_url() -> Iterator[tuple[Provider, str]]:
    with answering() as found:
        yield found


@pytest.fixture
def provider(provider_and_url: tuple[Provider, str]) -> Provider:
    return provider_and_url[0]


@pytest.fixture(scope="module")
def proxy(
    provider_and_url: tuple[Provider, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """One proxy, in whose log there is an earlier run, of a hostile model."""
    folder = tmp_path_factory.mktemp("live")
    scenarios = scenes.write(folder, scenes.SHOP, scenes.chat("chat"))
    log = hostile.write_log(folder / "log.db")
    with served(log, provider_and_url[1], "--scenarios", str(scenarios)) as process:
        yield process


@pytest.fixture(scope="module")
def recording(
    provider_and_url: tuple[Provider, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("recorded") / "log.db", provider_and_url[1]) as process:
        yield process


def choose(page: Page, name: str) -> None:
    """By keyboard alone: a row is a link."""
    page.locator(".session-row", has_text=name).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#content h2")).to_have_text(name)


def is_live(page: Page) -> None:
    expect(page.locator(".connection")).to_have_text("✓live")


def test_a_session_is_seen_as_it_plays(provider: Provider, proxy: Served, open_page: Open) -> None:
    watched = open_page(proxy.page)
    page = watched.page
    is_live(page)
    # The token does not stay where it could be read over a shoulder, or kept in a history.
    assert TOKEN not in page.url
    expect(page.locator("#content")).to_contain_text(f"{proxy.url}/s/SCENARIO_ID/v1")
    asked = threading.Event()
    provider.reply(None, LAMP, gate=asked)
    provider.reply("A lamp is 3.")
    with proxy.chatting("shop.e1", 1):
        # Before the model has said anything, its turn can be seen.
        expect(page.locator(".session-row")).to_contain_text("task 1 of 4 · asks the LLM")
        expect(page.locator(".turn.user")).to_have_text("UserWhat does a lamp cost?")
        expect(page.locator(".turn.step")).to_have_count(0)
        asked.set()
    expect(page.locator(".turn.step")).to_have_count(2)
    expect(page.locator(".turn.step").last).to_contain_text("A lamp is 3.")
    expect(page.locator(".task-facts .badge")).to_have_text("✓right")
    expect(page.locator(".session-row .dot").first).to_have_attribute("title", "task 1: right")
    provider.reply("I do not know.")
    proxy.chat("shop.e1", 2)
    expect(page.locator(".task")).to_have_count(2)
    expect(page.locator(".task").last.locator(".evidence")).to_contain_text("replied in text")
    # References of tasks that are over are shown, beside what was done.
    expect(page.locator(".task").first.locator(".graph")).to_be_visible()
    expect(page.locator(".figure-card", has_text="Tasks right")).to_contain_text("1 / 2")
    expect(page.locator(".figure-card", has_text="Tokens")).to_contain_text("3.6k")
    assert all(url.startswith(f"{proxy.url}/ui") for url in watched.requests)


def test_what_a_provider_fails_is_listed_and_opens(
    provider: Provider, proxy: Served, open_page: Open
) -> None:
    page = open_page(proxy.page).page
    is_live(page)
    provider.fail(503, "The model is overloaded <b>now</b>.")
    proxy.chat("chat.e1", 1)
    page.get_by_role("link", name="Errors (1)").click()
    error = page.locator(".error-row")
    expect(error).to_contain_text("503")
    expect(error).to_contain_text("The model is overloaded <b>now</b>.")
    error.click()
    expect(page.locator("#content h2")).to_have_text("m")
    page.locator("#content summary", has_text="raw exchange").click()
    expect(page.locator(".exchange")).to_contain_text("proxy → provider")
    expect(page.locator(".exchange")).to_contain_text("503")


def test_a_page_outlives_its_proxy(provider: Provider, proxy: Served, open_page: Open) -> None:
    watched = open_page(proxy.page)
    page = watched.page
    is_live(page)
    provider.reply("Fine.")
    proxy.chat("chat.e2", 1)
    choose(page, "chat.e2")
    page.evaluate("window.sameDocument = true")
    proxy.stop()
    expect(page.locator(".connection")).to_have_text("!reconnecting")
    # What was seen stays.
    expect(page.locator(".turn.step")).to_contain_text("Fine.")
    proxy.start()
    is_live(page)
    provider.reply("Fine again.")
    proxy.chat("chat.e2", 2)
    expect(page.locator(".turn.step").last).to_contain_text("Fine again.")
    expect(page.locator(".content-head .badge")).to_have_text("over")
    assert page.evaluate("window.sameDocument") is True
    # The browser itself says of each try that nobody answered.
    watched.complaints[:] = [it for it in watched.complaints if "ERR_" not in it]


def test_what_a_hostile_model_says_is_text(provider: Provider, proxy: Served, open_page: Open) -> None:
    page = open_page(proxy.page).page
    is_live(page)
    arguments = '{"thing": "lamp", "<img src=x onerror=alert(1)>": "\\u202e\\ud800"}'
    provider.reply(hostile.ALL, (hostile.MARKUP, hostile.MARKUP), ("getPrice", arguments))
    proxy.chat("shop.e2", 1)
    provider.reply(f"{hostile.ALL}{hostile.HALF}{hostile.LONG}")
    proxy.chat("shop.e2", 2)
    choose(page, "shop.e2")
    expect(page.locator(".turn.step")).to_have_count(2)
    expect(page.locator(".turn.step .words").first).to_contain_text(f"<script>{hostile.BREAKS}</script>")
    expect(page.locator(".turn.step .words").first).to_contain_text(hostile.RIGHT_TO_LEFT)
    expect(page.locator(".unseen").first).to_be_visible()
    page.goto(f"{proxy.url}/ui#run=r-hostile&session=s1")
    expect(page.locator("#content h2")).to_have_text("evil_1.e1")
    expect(page.locator(".task")).to_have_count(2)
    expect(page.locator(".content-head")).to_contain_text("Too long to be judged")
    for details in page.locator("#content details").all():
        details.evaluate("it => it.open = true")
    expect(page.locator(".exchange").first).to_be_visible()
    assert page.evaluate("window.broken") is None
    assert page.locator("#content script, #content img, #content iframe, #content style").count() == 0
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, PHONE], ids=["wide", "phone"])
def test_the_page_can_be_used_by_everybody(proxy: Served, open_page: Open, size: dict[str, int]) -> None:
    page = open_page(proxy.page, color_scheme="dark", viewport=size).page
    is_live(page)
    expect(page.locator(".session-row").first).to_be_visible()
    assert violations(page) == []
    choose(page, "shop.e1")
    expect(page.locator(".follow input")).not_to_be_checked()
    assert violations(page) == []
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert violations(page) == []
    if size is PHONE:
        expect(page.locator(".session-row").first).to_be_hidden()
        page.get_by_role("link", name="‹ Sessions").click()
        expect(page.locator(".session-row").first).to_be_visible()
        expect(page.locator("#content")).to_be_hidden()
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0


def test_without_the_token_the_page_says_what_to_do(proxy: Served, open_page: Open) -> None:
    watched = open_page(f"{proxy.url}/ui")
    page = watched.page
    expect(page.get_by_text("Open the address that the proxy printed on its terminal")).to_be_visible()
    expect(page.locator(".figures")).to_be_hidden()
    assert violations(page) == []
    field = page.get_by_label("paste its token")
    for token, state in [("wrong", "✗no token"), (TOKEN, "✓live")]:
        field.fill(token)
        page.keyboard.press("Enter")
        expect(page.locator(".connection")).to_have_text(state)
    expect(page.locator(".session-row").first).to_be_visible()
    page.reload()
    is_live(page)
    [refused] = watched.complaints
    assert "401" in refused
    watched.complaints.clear()


def test_a_page_that_nobody_sees_asks_for_nothing(proxy: Served, open_page: Open) -> None:
    page = open_page(proxy.page).page
    is_live(page)
    for state, said in [("hidden", "·paused"), ("visible", "✓live")]:
        page.evaluate(
            """state => {
                Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
                document.dispatchEvent(new Event("visibilitychange"));
            }""",
            state,
        )
        expect(page.locator(".connection")).to_have_text(said)


def test_sessions_can_be_looked_for_and_earlier_runs_chosen(proxy: Served, open_page: Open) -> None:
    page = open_page(proxy.page).page
    is_live(page)
    page.get_by_label("Filter by words").fill("SHOP")
    expect(page.locator(".session-row", has_text="chat")).to_have_count(0)
    expect(page.locator(".session-row", has_text="shop.e1")).to_be_visible()
    page.get_by_label("Filter by words").fill("")
    page.get_by_label("Which sessions").select_option("Right")
    expect(page.locator(".session-row code")).to_have_text(["chat.e2"])
    page.get_by_label("Which sessions").select_option("All")
    page.get_by_label("Run", exact=True).select_option("r-hostile")
    expect(page.locator(".session-row code")).to_have_text(["evil_1.e1"])
    expect(page.locator(".figure-card", has_text="Sessions over")).to_contain_text("1 / 1")
    page.go_back()
    expect(page.locator(".session-row", has_text="shop.e1")).to_be_visible()


def test_a_proxy_that_only_records_shows_exchanges_and_what_was_said(
    provider: Provider, recording: Served, open_page: Open
) -> None:
    page = open_page(recording.page).page
    is_live(page)
    expect(page.locator("#content")).to_contain_text(f"{recording.url}/v1")
    provider.reply("Good day to you.", LAMP)
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Good day, you!"}]
    recording.post("/v1/chat/completions", {"model": "m", "messages": messages})
    expect(page.locator(".exchange-row")).to_contain_text("Good day, you!")
    expect(page.locator(".exchange-row")).to_contain_text("1,000 → 200 tokens")
    expect(page.locator(".turn .words")).to_have_text(["Be kind.", "Good day, you!", "Good day to you."])
    expect(page.locator(".call-name")).to_have_text("getPrice")
    expect(page.locator(".figure-card .label")).to_have_text(["Requests a minute", "Tokens", "Errors"])
    assert violations(page) == []
