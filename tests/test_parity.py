"""The released harness's own replies, played through the proxy, score as the released scorer says.

The released scorer's verdicts on single Tasks and arguments are in tests/scoring.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.driving import Body, driven, provider_saying, scored

from scenarios.history import released_tools
from scenarios.load import load
from scenarios.types import Scenario
from scoring.metrics.accuracy import released_metrics

ID = re.compile(r'"(?:tool_call_id|id)": "([^"]*)"')
EMPTY: Body = {"content": "", "tool_calls": None}


class Replaying:
    """Gives recorded replies; finds Session, Task and Step in the words of the request."""

    def __init__(self, scenarios: list[Scenario], replies: Mapping[str, list[list[Body]]]) -> None:
        self.asked: dict[tuple[str, int, int], Body] = {}
        self._replies = replies
        self._scenarios = {(f"Current Date: {it.date}", it.tasks[0].text): it for it in scenarios}
        assert len(self._scenarios) == len(scenarios)

    def __call__(self, body: Body, headers: Mapping[str, str]) -> Body:
        messages = body["messages"]
        first_user = next(m for m in messages if m["role"] == "user")
        scenario = self._scenarios[messages[0]["content"], first_user["content"]]
        openings = {task.text: number for number, task in enumerate(scenario.tasks)}
        at = max(i for i, m in enumerate(messages) if m["role"] == "user" and m["content"] in openings)
        task = openings[messages[at]["content"]]
        step = sum(m["role"] == "assistant" for m in messages[at:])
        assert (scenario.id, task, step) not in self.asked, "a step was asked for twice"
        self.asked[scenario.id, task, step] = body
        replies = self._replies[scenario.id][task]
        return replies[step] if step < len(replies) else EMPTY


def with_plain_ids(messages: list[Body]) -> str:
    text = json.dumps(messages, ensure_ascii=False)
    for number, call_id in enumerate(dict.fromkeys(ID.findall(text))):
        text = text.replace(f'"{call_id}"', f'"ID{number}"')
    return text


@pytest.mark.parametrize("concurrency", [1, 16])
async def test_the_recorded_replies_give_every_released_figure_and_every_released_prompt(
    shared: Path, real_session_files: list[Path], tmp_path: Path, concurrency: int
) -> None:
    released = json.loads((shared / "parity" / "metrics.json").read_text("utf-8"))
    scenarios = [it for file in load(real_session_files) for it in file.scenarios]
    replaying = Replaying(scenarios, {it["id"]: it["replies"] for it in released["sessions"]})
    log = tmp_path / "log.db"
    async with provider_saying(replaying) as url:
        report = await driven(log, url, real_session_files, concurrency=concurrency)
    assert report.complete
    sessions = scored(log).sessions
    assert released_metrics(sessions, empty=0.0) == released["expect"]
    by_id = {session.scenario.id: session for session in sessions}
    assert len(by_id) == len(released["sessions"]) == 18
    for expected in released["sessions"]:
        tasks = by_id[expected["id"]].tasks
        assert [task.label for task in tasks] == expected["labels"], expected["id"]
        assert [task.is_optimal for task in tasks] == expected["is_optimal"], expected["id"]
    check_prompts(shared, replaying.asked, {it.id: it for it in scenarios})


def check_prompts(
    shared: Path, asked: Mapping[tuple[str, int, int], Body], scenarios: Mapping[str, Scenario]
) -> None:
    """What the provider was sent: the four fields of the released harness, its messages, its tools."""
    for (scenario_id, _, _), body in asked.items():
        assert body.keys() == {"messages", "model", "temperature", "tools"}
        assert (body["model"], body["temperature"]) == ("some-model", 0.0)
        assert body["tools"] == released_tools(scenarios[scenario_id])
    lines = (shared / "parity" / "history.jsonl").read_text("utf-8").splitlines()
    for line in lines:
        expected: Any = json.loads(line)
        sent = asked[expected["id"], expected["task"], 0]["messages"]
        assert with_plain_ids(sent) == with_plain_ids(expected["messages"])
    assert len(lines) == 40
