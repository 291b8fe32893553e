"""The report in a real browser: read, filtered, opened, printed, and what it does with hostile output."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from support import commands, driving, hostile, logs, pages
from support.browsing import Open, Watched, violations

from proxy.log.writer import LogWriter
from scoring.page.look import shared_look
from scoring.report import RunReport, task_rows
from scoring.types import ERROR

BUNDLED = ["bundled"]
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 360, "height": 740}
STEP_OF_PAGE = 600


@dataclass(frozen=True)
class Written:
    """A report of a played run (`r0`) and a hostile one (`r1`), and what is known of the first."""

    url: str
    played: RunReport

    def tasks(self, which: Callable[[Any], bool]) -> list[tuple[str, int]]:
        """(session, Task from 1) of the played run."""
        return [(it.session.session, it.position + 1) for it in task_rows(self.played) if which(it)]


def write(folder: Path, *found: Path) -> str:
    target = folder / "report.html"
    result = commands.run("report", *found, "-o", target)
    assert result.exit_code in (0, 3), result.output
    return target.as_uri()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("report")
    played, evil = folder / "played.db", hostile.write_log(folder / "evil.db")
    # Of its own thread, as a browser of the sync API keeps a loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, driving.driven(played, "sim:noisy:0.3", BUNDLED)).result()
    return Written(write(folder, played, evil), driving.scored(played))


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of two sessions by hand: a Task right, one wrong, and a session that the provider lost."""
    folder = tmp_path_factory.mktemp("known")
    return write(folder, pages.write_log(folder / "known.db"))


def opened(open_page: Open, url: str, at: str = "", **options: Any) -> Watched:
    found = open_page(url + at, **{"viewport": WIDE, "color_scheme": "light", **options})
    expect(found.page.locator("html[data-ready]")).to_have_count(1)
    return found


def listed(page: Page) -> list[str]:
    return page.locator(".row-link").evaluate_all("links => links.map(it => it.dataset.key)")


def matching_tasks(page: Page) -> list[tuple[str, int]]:
    """(session, Task) of the cells that are not faded."""
    found: Sequence[str] = page.locator(".cell:not(.faded)").evaluate_all("cells => cells.map(it => it.hash)")
    names = dict(
        page.locator(".row-link").evaluate_all(
            "links => links.map(it => [it.dataset.key, it.querySelector('bdi').textContent])"
        )
    )
    parts = [dict(it.split("=") for it in address.removeprefix("#").split("&")) for address in found]
    return [(names[it["session"]], int(it["task"])) for it in parts]


def only_played(page: Page) -> None:
    page.get_by_label("Run", exact=True).select_option("r0")


def sideways(page: Page) -> int:
    """How many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def everything(page: Page) -> None:
    """Opens all that can be opened, and what is in it."""
    for _ in range(3):
        page.evaluate(
            "document.querySelectorAll('details').forEach(it => it.fill ? it.fill() : (it.open = true))"
        )
    page.get_by_role("button", name="Show all").evaluate_all("all => all.forEach(it => it.click())")


def drawn(page: Page) -> None:
    """Scrolls down and up again, until every chart is there."""
    page.evaluate(
        """async step => {
            for (let y = 0; y < document.body.scrollHeight; y += step) {
                window.scrollTo(0, y);
                await new Promise(requestAnimationFrame);
            }
        }""",
        STEP_OF_PAGE,
    )
    expect(page.locator(".panel-picture:not(:has(svg))")).to_have_count(0)


# --- The first screen --------------------------------------------------------


def test_the_first_screen_has_the_figures_with_counts_and_intervals(known: str, open_page: Open) -> None:
    page = opened(open_page, known).page
    tasks = page.get_by_role("region", name="Task accuracy", exact=True)
    assert tasks.locator(".big").inner_text() == "50.0 %"
    assert tasks.locator(".counts").inner_text() == "1 of 2"
    assert tasks.locator(".interval").get_attribute("aria-label") == "50.0 per cent, no interval"
    assert page.get_by_text("without a model: 0.0 %").count() == 2
    bottom = page.locator(".headlines").bounding_box()
    assert bottom is not None
    assert bottom["y"] + bottom["height"] < WIDE["height"]


def test_a_figure_over_nothing_is_a_dash_and_never_nought(known: str, open_page: Open) -> None:
    page = opened(open_page, known).page
    optimal = page.get_by_role("region", name="Optimal path")
    assert optimal.locator(".big").inner_text() == "–"
    assert optimal.locator(".value").count() == 0


def test_a_log_without_sessions_is_a_page_that_says_so(tmp_path: Path, open_page: Open) -> None:
    with LogWriter.open(tmp_path / "empty.db") as writer:
        writer.commit_blocking(logs.run("r1", history="gold"))
    page = opened(open_page, write(tmp_path, tmp_path / "empty.db")).page
    assert page.locator(".big").all_inner_texts() == ["–"] * 4
    assert page.get_by_text("There are no sessions in the log.").is_visible()


def test_a_run_of_a_time_that_no_calendar_has_is_shown_all_the_same(tmp_path: Path, open_page: Open) -> None:
    log = tmp_path / "late.db"
    with LogWriter.open(log) as writer:
        writer.commit_blocking(logs.run("r1", created_at=1e300))
    page = opened(open_page, write(tmp_path, log)).page
    expect(page.get_by_text("1e+300 s")).to_be_visible()


def test_another_scorer_can_be_chosen(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url).page
    for scored in report.played.scored:
        page.get_by_label("Verdicts of").select_option(scored.scorer.name)
        figure = next(it for it in scored.figures if it.key == "task_accuracy")
        first = page.get_by_role("region", name="Task accuracy", exact=True).locator(".counts").first
        assert first.inner_text() == f"{figure.successes} of {figure.n}"


def test_every_chart_is_drawn_and_has_a_table_with_the_same_figures(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url).page
    drawn(page)
    assert page.locator(".chart h3").count() == page.locator(".chart").count() >= 6
    chart = page.locator("#positions")
    chart.get_by_text("Table").click()
    shown = [row.split("\t")[:3] for row in chart.locator("tbody").inner_text().splitlines()]
    figures = {it.group: it for it in report.played.scored[0].figures if it.name == "accuracy_by_position"}
    assert shown == [
        [group, f"{100 * it.value:.1f}", f"{it.successes}/{it.n}"]
        for group, it in figures.items()
        if group is not None and it.value is not None
    ]


# --- The list ----------------------------------------------------------------


def test_wrong_tasks_alone_are_listed(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url).page
    only_played(page)
    page.locator(".segment", has_text="Wrong").click()
    assert matching_tasks(page) == report.tasks(lambda it: it.scores["wildtoolbench"].label == ERROR)


def test_filters_are_asked_of_one_task_together(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url).page
    only_played(page)
    page.get_by_label("Label", exact=True).select_option("Chat")
    assert matching_tasks(page) == report.tasks(lambda it: it.task.label == "Chat")
    page.get_by_label("Error class").select_option("wrong_refusal")
    expected = report.tasks(
        lambda it: (
            it.task.label == "Chat"
            and (found := it.classes["wildtoolbench"]) is not None
            and found.name == "wrong_refusal"
        )
    )
    assert matching_tasks(page) == expected
    said = page.locator(".list-counts").inner_text()
    assert said.endswith(f"{len(expected)} task{'' if len(expected) == 1 else 's'}") or not expected


def test_words_of_the_user_are_found(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url).page
    page.get_by_label("Text", exact=True).fill("LIGHTS hallway")
    assert matching_tasks(page) == report.tasks(
        lambda it: all(word in it.task.text.lower() for word in ("lights", "hallway"))
    )
    page.get_by_label("Text", exact=True).fill("no such words anywhere")
    assert page.locator(".list-counts").inner_text() == "No session matches."
    page.get_by_role("button", name="Clear").click()
    assert len(listed(page)) == len(report.played.sessions) + 1


def test_filters_stay_in_the_address(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url, "#verdict=wrong&run=r0").page
    wanted = listed(page)
    page.reload()
    assert listed(page) == wanted
    assert page.get_by_label("Run", exact=True).input_value() == "r0"


def test_what_was_not_scored_can_be_listed(known: str, open_page: Open) -> None:
    page = opened(open_page, known).page
    page.get_by_role("link", name="Show these sessions").click()
    expect(page.locator(".row-link")).to_have_count(1)
    assert matching_tasks(page) == [("shop_1.e2", 1), ("shop_1.e2", 2)]


# --- Sessions ----------------------------------------------------------------


def test_the_keyboard_opens_a_session_and_comes_back_to_its_line(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url).page
    first, second = listed(page)[:2]
    page.locator(f".row-link[data-key={first}]").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".view h1")).to_be_focused()
    assert page.url.endswith(f"#session={second}")
    page.keyboard.press("k")
    expect(page).to_have_url(f"{report.url}#session={first}")
    page.keyboard.press("Escape")
    expect(page.locator(f".row-link[data-key={first}]")).to_be_focused()
    assert page.locator(".view").count() == 0


def test_a_deep_link_opens_a_task_and_back_goes_where_one_was(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url, "#session=r0s2&task=3").page
    expect(page.locator('[data-part="task 3"] .task-title')).to_be_focused()
    page.get_by_role("link", name="Next").click()
    expect(page).to_have_url(f"{report.url}#session=r0s3")
    page.go_back()
    expect(page).to_have_url(f"{report.url}#session=r0s2&task=3")
    expect(page.locator(".view h1")).to_contain_text(report.played.sessions[2].session)


def test_a_link_to_nothing_says_so(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url, "#session=nowhere").page
    expect(page.locator(".view h1")).to_have_text("No such session")


def test_a_wrong_argument_stands_beside_the_expected_one(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url, "#session=r1s0&task=2").page
    row = page.locator('[data-part="task 2"] .argument-row.wrong').first
    assert row.get_by_role("rowheader").inner_text() == "thing"
    assert row.locator(".argument-cell.expected .json").inner_text() == '"chair"'
    assert row.locator(".path").inner_text() == "$.thing"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of a session whose first write is made twice, and left standing in the end."""
    folder = tmp_path_factory.mktemp("written")
    return write(folder, pages.write_log_of_writes(folder / "written.db"))


def test_writes_at_fault_are_counted_on_the_first_screen_and_lead_to_their_calls(
    written: str, open_page: Open
) -> None:
    page = opened(open_page, written).page
    notice = page.locator(".notice.writes")
    notice.get_by_text("Writes at fault: 2 of 3; writes left standing: 1").click()
    assert notice.get_by_role("listitem").count() == 3
    notice.get_by_role("link", name="shop_1.e1, task 1, step 2, call 1").click()
    calls = page.locator('[data-part="task 1"] .step .call')
    expect(calls).to_have_count(2)
    first, second = (call.locator(".badge.warn").all_inner_texts() for call in calls.all())
    assert [first, [it.removeprefix("!").strip() for it in second]] == [[], ["repeated write", "wrong write"]]
    assert calls.last.locator(".write-fault").inner_text() == (
        "This write was made before, and was made more often than the task wants."
    )
    standing = page.locator('[data-part="task 2"] .standing')
    assert 'undo {"thing": "lamp"} was not made: the write of findPrice stands' in standing.inner_text()


def test_a_run_without_tools_that_write_counts_none(known: str, open_page: Open) -> None:
    assert opened(open_page, known).page.locator(".notice.writes").count() == 0


def test_the_graph_says_in_words_what_was_done(known: str, open_page: Open) -> None:
    page = opened(open_page, known, "#session=r0s0").page
    graph = page.locator('[data-part="task 1"] svg.graph')
    assert graph.get_attribute("aria-label") == (
        "Reference: 1: findPrice, done in step 1, call 1; 2: answer, after 1, done in step 2."
    )
    assert graph.locator(".node .state").all_text_contents() == ["done in step 1, call 1", "done in step 2"]


def test_raw_exchanges_are_opened_and_saved(known: str, open_page: Open) -> None:
    page = opened(open_page, known, "#session=r0s0").page
    step = page.locator('[data-part="task 1"] [data-part="step 1"]')
    step.get_by_text("1 raw exchange").click()
    assert step.locator(".exchange .code").inner_text() == '{"id": 1}'
    with page.expect_download() as waiting:
        step.get_by_role("button", name="Download").click()
    saved = json.loads(waiting.value.path().read_text(encoding="utf-8"))
    assert saved == {
        "request": {"model": "m", "messages": [{"role": "user", "content": "hello"}], "tools": pages.TOOLS},
        "answer": '{"id": 1}',
    }


# --- Themes, paper, phones, other ways to read -------------------------------


def test_the_chosen_theme_is_kept(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url).page
    before = page.locator("body").evaluate("it => getComputedStyle(it.parentElement).backgroundColor")
    page.get_by_role("button", name="Switch to the dark theme").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.locator("html").evaluate("it => getComputedStyle(it).backgroundColor") != before


def test_on_paper_all_is_open_and_light(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url, color_scheme="dark").page
    closed = page.locator(".overview details:not([open])").count()
    page.emulate_media(media="print")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert page.locator(".overview details:not([open])").count() == 0
    assert page.get_by_role("button").count() == 0
    page.emulate_media(media="screen")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.locator(".overview details:not([open])").count() == closed


def test_a_phone_has_no_need_to_scroll_sideways(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url, viewport=PHONE).page
    drawn(page)
    assert sideways(page) == 0
    page.evaluate("location.hash = 'session=r1s0'")
    expect(page.locator(".session")).to_be_visible()
    everything(page)
    assert sideways(page) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(report: Written, open_page: Open, scheme: str) -> None:
    page = opened(open_page, report.url, color_scheme=scheme, reduced_motion="reduce").page
    drawn(page)
    page.get_by_text("All figures").click()
    assert violations(page) == []
    page.evaluate("location.hash = 'session=r1s0'")
    expect(page.locator(".session")).to_be_visible()
    assert violations(page) == []


# --- Hostile output ----------------------------------------------------------


def test_hostile_output_is_text_and_nothing_else(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url, "#session=r1s0").page
    expect(page.locator(".session")).to_be_visible()
    everything(page)
    assert page.evaluate("window.broken") is None
    assert page.locator("img, iframe, object, embed, script:not([type]) ~ script:not([type])").count() == 0
    assert page.locator('a[href^="javascript"]').count() == 0
    text = page.locator('[data-part="task 1"] [data-part="step 2"]').inner_text()
    assert hostile.MARKUP in text.replace("\n", "")
    assert [it for it in hostile.UNSEEN if it in text and not it.isprintable()] == []
    assert "ESC[31mred" in text
    assert "U+202E" in text


def test_a_text_of_a_million_characters_is_shown_when_asked_for(report: Written, open_page: Open) -> None:
    page = opened(open_page, report.url, "#session=r1s0").page
    words = page.locator('[data-part="task 1"] [data-part="step 2"] .words')
    assert len(words.inner_text()) < 10_000
    words.get_by_role("button", name="Show all").click()
    assert words.evaluate("it => it.textContent.match(/x+$/)[0].length") > 10_000
    assert sideways(page) == 0


# --- The libraries and the parts ---------------------------------------------


def test_the_libraries_are_those_whose_sums_are_written_down() -> None:
    folder = Path(str(files("scoring.page") / "assets" / "vendor"))
    table = (folder / "README.md").read_text(encoding="utf-8")
    for script in folder.glob("*.js"):
        assert hashlib.sha256(script.read_bytes()).hexdigest() in table, script.name
        assert (folder / f"LICENSE.{script.name.split('.')[0]}").is_file()


def test_what_a_reader_opened_stays_open_while_the_session_grows(tmp_path: Path, open_page: Open) -> None:
    look = shared_look()
    page_of_parts = f"<!doctype html><title>parts</title><style>{look.css}</style><main></main>"
    (tmp_path / "parts.html").write_text(f"{page_of_parts}<script>{look.script}</script>", encoding="utf-8")
    page = open_page((tmp_path / "parts.html").as_uri()).page
    step = {"number": 1, "text": None, "calls": [{"name": "find", "arguments": "{}", "observation": "found"}]}
    task = {"number": 1, "turns": [{"user": "Where?", "origin": "task"}], "steps": [step]}
    detail = {"key": None, "scenario": "x", "state": "playing", "tasks": [task]}
    page.evaluate("it => document.querySelector('main').append(window.shown = renderSession(it, {}))", detail)
    page.get_by_text("Observation").click()
    expect(page.locator(".observation .disclosed")).to_have_text("found")
    page.evaluate("window.kept = document.querySelector('[data-part=\"step 1\"]')")
    grown = {**task, "steps": [step, {"number": 2, "text": "There.", "calls": []}], "ending": "closed"}
    page.evaluate("it => updateSession(window.shown, it)", {**detail, "tasks": [grown]})
    assert page.locator(".step").count() == 2
    assert page.evaluate("window.kept === document.querySelector('[data-part=\"step 1\"]')")
    judged = {**grown, "steps": [{**step, "verdict": "right"}, grown["steps"][1]]}
    page.evaluate("it => updateSession(window.shown, it)", {**detail, "tasks": [judged]})
    assert page.locator('[data-part="step 1"] .badge').first.inner_text().endswith("right")
    expect(page.locator(".observation .disclosed")).to_be_visible()
