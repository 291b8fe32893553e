"""Agents that are prompted with the user's words themselves: they are none the wiser, and nothing is lost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import scenes
from support.agent_runs import BOUND_S, command
from support.driving import Silence, provider_saying, verdicts
from support.playing import ONE_TRY, history, rows

from proxy.drive.choose import AgentOptions, chosen
from proxy.drive.client import ControlClient
from proxy.drive.driver import DriveReport, drive
from proxy.drive.plan import plan
from proxy.server import running
from proxy.settings import Settings

LETTER = 'Dear shop,\n\n  what does\ta lamp cost?\r\n  (I want "two".)  \n\nYours, Ann 世界'
TALK = scenes.record(
    "talk",
    (LETTER, [scenes.call("getPrice", {"thing": "lamp"}, {"price": 3}), scenes.close("It costs 3.", 0)]),
    (
        "Book one.",
        [
            scenes.ask("Which day?", "On Monday,\nplease."),
            scenes.call("book", {"thing": "lamp", "day": "Monday"}, "booked", 0),
            scenes.close("Booked.", 1),
        ],
    ),
    ("Yes.", [scenes.close("Well.")]),
    ("Yes.", [scenes.close("Well.")]),
)
WORDS = [LETTER, "Book one.", "On Monday,\nplease.", "Yes.", "Yes."]


async def driven(log: Path, agent: str, *, provider: str = "sim:oracle", **options: Any) -> DriveReport:
    """Plays TALK against an agent that is prompted with the words."""
    files = (scenes.write(log.parent, TALK),)
    settings = Settings(log=log, provider=provider, scenarios=files, **ONE_TRY)
    async with (
        running(settings, environ={}) as proxy,
        ControlClient(proxy.base_url, proxy.token) as control,
        chosen(AgentOptions(agent, inject="driver", **options)) as factory,
    ):
        return await drive(
            control,
            plan((await control.run()).scenarios),
            factory,
            concurrency=1,
            turn_timeout=BOUND_S,
            progress=Silence(),
            inject="driver",
        )


def heard(log: Path) -> list[str]:
    """The text of the user's last message as the LLM had it in each turn."""
    sql = """SELECT turn, max(arrival), tip FROM exchanges
        WHERE side = 'provider' AND reason IS NULL GROUP BY turn ORDER BY turn"""
    told = []
    for row in rows(log, sql):
        users = [it for it in history(log, row["tip"]) if it["role"] == "user"]
        told.append(users[-1]["content"])
    return told


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        (command("plain"), {}),
        (command("plain", "--", "{turn}"), {}),
        (command("sends_again"), {}),
        (command("drops_history"), {}),
        (command("makes_side_calls"), {}),
        ("builtin", {}),
        ("builtin", {"stream": True}),
    ],
)
async def test_the_llm_is_told_each_turns_words_as_they_are(
    tmp_path: Path, agent: str, options: dict[str, Any]
) -> None:
    log = tmp_path / "log.db"
    report = await driven(log, agent, **options)
    assert (report.failures, report.complete) == ((), True)
    assert heard(log) == WORDS
    assert verdicts(log) == {("talk", 1, task): ("correct", True) for task in (1, 2, 3, 4)}


async def test_the_agents_template_stays_around_the_words(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    report = await driven(log, command("wraps_twice"))
    assert (report.failures, report.complete) == ((), True)
    for parts, words in zip(heard(log), WORDS, strict=True):
        wrapped = f"<request>{words}</request>"
        text = f"Current task: {wrapped}\n\nRemember the original request:\n{words}"
        assert [part["text"] for part in parts] == [text, f"Once more: {wrapped}"]


async def test_an_agent_that_is_a_function_gets_the_words_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(shlex.split(command("plain"))[1]).parent
    (tmp_path / "mine.py").write_text(
        f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport json, pathlib, plain\n"
        "def ask(prompt):\n"
        "    with pathlib.Path('prompts').open('a') as file:\n"
        "        file.write(json.dumps(prompt) + '\\n')\n"
        "    return plain.ask([plain.user(f'{len(prompt)}: {prompt}')])\n"
    )
    log = tmp_path / "log.db"
    report = await driven(log, "mine:ask")
    assert (report.failures, report.complete) == ((), True)
    assert heard(log) == [f"{len(words)}: {words}" for words in WORDS]


async def test_side_calls_of_such_an_agent_see_the_words_too(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    asked: list[str] = []

    def say(body: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        last = body["messages"][-1]["content"]
        asked.append(last)
        return {"content": "Something."}

    async with provider_saying(say) as provider:
        await driven(log, command("makes_side_calls"), provider=provider)
    line = LETTER.replace("\r\n", " ").replace("\n", " ").strip()
    assert f"Route this: {line}" in asked
    # A title came before the agent had shown its tools: what was played of it does not count.
    sql = """SELECT turn FROM steps JOIN sessions ON id = session_id
        WHERE attempt = (SELECT max(attempt) FROM sessions) ORDER BY steps.seq"""
    assert [row["turn"] for row in rows(log, sql)] == [1, 2, 3, 4, 5]
