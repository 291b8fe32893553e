"""Agents that do harm, on purpose or not: what it costs them, and that it costs no other Session."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest
from support import scenes
from support.agent_runs import command, has_ended, played
from support.driving import verdicts
from support.playing import rows

from proxy.drive.driver import DriveReport
from proxy.threads import OTHER_SYSTEM, WITHOUT_TOOLS
from scenarios.load import BUNDLED, read_file
from scenarios.types import ASK

pytestmark = pytest.mark.long

SCENARIOS = read_file(BUNDLED).scenarios
VICTIM = next(
    scenario.id
    for scenario in SCENARIOS
    if not any(node.name == ASK for task in scenario.tasks[:2] for node in task.nodes)
)
"""The Scenario in whose Session an agent misbehaves; in all others it behaves. Its first two
turns are its first two Tasks."""
EVERY_KIND = ("ledger_1", "ledger_2", "home_6")
"""Scenarios with every kind of Task, follow-up and number of asks that there is; see the first test."""
OTHER = next(scenario.id for scenario in SCENARIOS if scenario.id != VICTIM)
RIGHT = ("correct", True)
WRONG = ("error", False)


def victims(log: Path, scenario: str = VICTIM) -> list[tuple[str | None, bool]]:
    return [verdict for key, verdict in verdicts(log).items() if key[0] == scenario]


def others(log: Path) -> set[tuple[str | None, bool]]:
    return {verdict for key, verdict in verdicts(log).items() if key[0] != VICTIM}


def ends(report: DriveReport, scenario: str = VICTIM) -> list[str | None]:
    [state] = [it.state for it in report.played if it.planned.scenario == scenario]
    assert state is not None
    return [task.end for task in state.tasks]


def reasons(report: DriveReport) -> list[tuple[str, int | None, str]]:
    return [(failure.session, failure.turn, failure.reason) for failure in report.failures]


def test_few_scenarios_have_every_kind_of_task() -> None:
    def kinds(only: Collection[str]) -> set[object]:
        tasks = [task for scenario in SCENARIOS if scenario.id in only for task in scenario.tasks]
        asks = {sum(node.name == ASK for node in task.nodes) for task in tasks}
        return {*(task.label for task in tasks), *(task.subtype for task in tasks), *asks}

    assert kinds(EVERY_KIND) == kinds([scenario.id for scenario in SCENARIOS])


# All Scenarios are played below, beside an agent that harms itself.
@pytest.mark.parametrize("turn", [(), ("--", "{turn}")], ids=["per session", "per turn"])
@pytest.mark.parametrize(
    "agent",
    [
        "floods",
        "calls_twice",
        "sends_again",
        "drops_history",
        "wraps_twice",
        "makes_side_calls",
        "ignores_results",
    ],
)
async def test_what_does_no_harm_to_the_conversation_costs_nothing(
    tmp_path: Path, agent: str, turn: tuple[str, ...]
) -> None:
    report = await played(tmp_path / "log.db", command(agent, *turn), only=EVERY_KIND)
    assert reasons(report) == []
    assert report.complete
    assert report.notes == ()
    # Optimal too: what was sent twice was no Step more.
    assert set(verdicts(tmp_path / "log.db").values()) == {RIGHT}


async def test_title_and_router_calls_are_logged_with_the_reason_why_they_are_no_turns(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log.db"
    await played(log, command("makes_side_calls"), only=(VICTIM,))
    sides = rows(log, "SELECT reason FROM exchanges WHERE side = 'agent' AND reason IS NOT NULL")
    # Three a turn; but the first title came first of all, and was the conversation until the
    # agent showed its tools.
    assert len(sides) >= 3 * 4 - 1
    assert {side["reason"] for side in sides} <= {OTHER_SYSTEM, WITHOUT_TOOLS}


async def test_an_agent_that_exits_at_once_loses_its_session_and_no_other(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    report = await played(log, command("exits", f"{VICTIM}.e1"))
    assert victims(log) == [WRONG] * 4
    assert ends(report) == ["agent_stopped"] * 4
    assert others(log) == {RIGHT}
    assert [(session, turn) for session, turn, _ in reasons(report)] == [
        (f"{VICTIM}.e1", turn) for turn in (1, 2, 3, 4)
    ]
    first, *later = [reason for _, _, reason in reasons(report)]
    assert first == (
        "exited with code 3 without having sent the proxy a request for the turn that could be played; "
        "its last words: no config file: giving up"
    )
    assert set(later) == {"its process exited with code 3 in or after turn 1 and is not started again"}


async def test_an_agent_that_exits_in_the_middle_keeps_the_tasks_that_it_had_done(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    report = await played(log, command("leaves_early", f"{VICTIM}.e1"))
    assert victims(log) == [RIGHT, RIGHT, WRONG, WRONG]
    assert ends(report) == ["closed", "closed", "agent_stopped", "agent_stopped"]
    assert others(log) == {RIGHT}
    assert [(session, turn) for session, turn, _ in reasons(report)] == [
        (f"{VICTIM}.e1", 3),
        (f"{VICTIM}.e1", 4),
    ]
    first, *later = [reason for _, _, reason in reasons(report)]
    assert "exited with code 1" in first and first.endswith("its last words: out of memory")
    assert all("exited with code 1" in reason for reason in later)


def short(tmp_path: Path) -> Path:
    """A Scenario of one Task, in which it does not take long to see that an agent hangs."""
    nodes = [scenes.call("getPrice", {"thing": "lamp"}, {"price": 3}), scenes.close("It is 3.", 0)]
    file = tmp_path / "short.jsonl"
    file.write_text(json.dumps(scenes.record("short", ("What is a lamp?", nodes))) + "\n", encoding="utf-8")
    return file


async def test_an_agent_that_hangs_is_ended_with_all_its_children(tmp_path: Path) -> None:
    log, pids = tmp_path / "log.db", tmp_path / "pids"
    report = await played(
        log,
        command("hangs", "short.e1", str(pids)),
        files=(short(tmp_path), "bundled"),
        only=("short", VICTIM),
        turn_timeout=3,
    )
    assert victims(log, "short") == [WRONG]
    assert ends(report, "short") == ["agent_stopped"]
    assert victims(log) == [RIGHT] * 4
    assert [(failure.session, failure.turn, failure.kind) for failure in report.failures] == [
        ("short.e1", 1, "timeout")
    ]
    reason, _, words = report.failures[0].reason.partition("; its last words: ")
    said, _, hint = reason.partition("; does it read OPENAI_BASE_URL? (http://")
    assert said == "no answer within 3 s: it sent the proxy no request for the turn that could be played"
    assert hint.endswith("/s/short.e1/attempt/1/v1)")
    assert words == r"waiting for a lock \x1b[31mheld by\x07 nobody"
    assert all(has_ended(int(pid)) for pid in pids.read_text().split())


async def test_an_agent_that_hangs_in_one_turn_loses_that_turn_where_each_has_a_process(
    tmp_path: Path,
) -> None:
    log, pids = tmp_path / "log.db", tmp_path / "pids"
    report = await played(
        log, command("hangs", f"{VICTIM}.e1", str(pids), "--", "{turn}"), only=(VICTIM,), turn_timeout=3
    )
    assert victims(log) == [RIGHT, WRONG, RIGHT, RIGHT]
    assert ends(report) == ["closed", "agent_stopped", "closed", "closed"]
    assert [(failure.turn, failure.kind) for failure in report.failures] == [(2, "timeout")]
    assert all(has_ended(int(pid)) for pid in pids.read_text().split())


async def test_an_agent_that_asks_for_two_replies_is_told_so_and_loses_its_session(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    report = await played(log, command("asks_for_two", f"{VICTIM}.e1"))
    assert victims(log) == [WRONG] * 4
    assert ends(report) == ["agent_stopped"] * 4
    assert others(log) == {RIGHT}
    assert {session for session, _, _ in reasons(report)} == {f"{VICTIM}.e1"}
    assert "n must be 1 in a session" in reasons(report)[0][2]


async def test_an_agent_that_never_asks_the_proxy_is_told_from_one_that_fails(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    report = await played(
        log, command("says_nothing", f"{VICTIM}.e1", "--", "{turn}"), only=(VICTIM, "home_6")
    )
    assert victims(log) == [WRONG] * 4
    assert others(log) == {RIGHT}
    assert reasons(report) == [
        (
            f"{VICTIM}.e1",
            turn,
            "exited with code 0 without having sent the proxy a request for the turn that could be played; "
            "its last words: Done.",
        )
        for turn in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize("turn", [(), ("{turn}",)], ids=["per session", "per turn"])
async def test_an_ordinary_agent_gets_everything_right_with_an_oracle(
    tmp_path: Path, turn: tuple[str, ...]
) -> None:
    # A process takes a second to import the SDK, and the real sessions are played below: one will do.
    report = await played(tmp_path / "log.db", command("my_agent", *turn), only=(VICTIM,))
    assert reasons(report) == []
    assert report.complete
    assert set(verdicts(tmp_path / "log.db").values()) == {RIGHT}


@pytest.mark.parametrize(
    ("agent", "limit"),
    [(("my_agent",), 3), (("plain", "--", "{turn}"), 8)],
    ids=["per session", "per turn"],
)
async def test_an_ordinary_agent_gets_real_sessions_right_with_an_oracle(
    tmp_path: Path, real_session_files: list[Path], agent: tuple[str, ...], limit: int
) -> None:
    # A process takes a second to import the SDK; one a turn are dozens: with an agent that starts without.
    # That all of them can be played is seen with an agent that needs no process.
    few = [scenario.id for scenario in read_file(real_session_files[0]).scenarios[:limit]]
    report = await played(tmp_path / "log.db", command(*agent), files=real_session_files[:1], only=few)
    assert reasons(report) == []
    assert report.complete
    got = verdicts(tmp_path / "log.db")
    assert len(got) == limit * 4
    assert set(got.values()) == {RIGHT}
