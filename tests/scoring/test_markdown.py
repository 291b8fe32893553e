from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from support import scored
from support.scored import HOSTILE, rate, right, session, unscored, wrong

from scoring.gates import Outcome, check, parse_gate
from scoring.metrics.figures import Figure
from scoring.metrics.writes import WriteFinding
from scoring.output.markdown import MOST, markdown_text
from scoring.report import RunReport

OUR_TAGS = re.compile(r"</?(?:code|details|summary)>")


def shown(text: str) -> str:
    """The text as a reader sees it, near enough."""
    return re.sub(r"&#(\d+);", lambda match: chr(int(match[1])), OUR_TAGS.sub("", text))


def gated(report: RunReport, *gates: str) -> tuple[Outcome, ...]:
    return check([parse_gate(gate, "under") for gate in gates], [report])


def row_of(text: str, start: str) -> str:
    [row] = [line for line in shown(text).splitlines() if line.startswith(f"| {start} |")]
    return row


def two_scorers() -> RunReport:
    return scored.report(
        scored.scored(
            session(right(), wrong(), unscored(), name="s-1"),
            figures=[
                rate("session_accuracy", 2, 25, low=0.0222, high=0.2497),
                rate("task_accuracy", 50, 100),
                rate("accuracy_by_label", 8, 20, "Chat"),
                rate("accuracy_by_label", 0, 0, "Clarify"),
                rate("accuracy_by_position", 1, 4, "1"),
                rate("optimal_path_rate", 3, 10, "Total"),
                rate("error_share", 5, 5, "param_value"),
                rate("error_share", 0, 5, "refusal"),
            ],
        ),
        scored.scored(
            session(right(), right(), unscored(), name="s-1"),
            scorer="strict",
            version="3",
            figures=[rate("session_accuracy", 5, 25), rate("accuracy_by_label", 9, 20, "Chat")],
        ),
        figures=(
            Figure("steps_per_task", None, 2.5, 40),
            Figure("latency_per_step", "p95", 3.0, 40),
            Figure("cost_total", None, None, 0),
        ),
    )


def test_the_title_names_the_run_and_missed_thresholds_come_first() -> None:
    report = two_scorers()
    outcomes = gated(
        report, "strict:session_accuracy=0.1", "accuracy_by_label[Clarify]=0.5", "session_accuracy=0.1"
    )
    lines = [line for line in shown(markdown_text([report], outcomes)).splitlines() if line]
    assert [line.partition("; 1 task")[0] for line in lines[:4]] == [
        "### Scores of run r1",
        "- **failed**: session_accuracy is 8.0 % (2 of 25), under the threshold of 10.0 %",
        "- **nothing to tell**: accuracy_by_label[Clarify] has nothing to tell, as it is over none; "
        "the threshold is 50.0 %",
        "- **passed**: strict:session_accuracy is 20.0 % (5 of 25), not under the threshold of 10.0 %",
    ]


def test_a_run_that_is_not_comparable_says_so_below_its_title() -> None:
    text = shown(markdown_text([scored.report(config={"history": "live"})], []))
    assert text.splitlines()[2] == (
        "> **Not comparable with published figures**: live history, wrong steps do not end a task"
    )


def test_the_main_rates_stand_side_by_side() -> None:
    text = markdown_text([two_scorers()], [])
    lines = shown(text).splitlines()
    head = lines.index("|  | wildtoolbench 1 | strict 3 |")
    assert lines[head : head + 7] == [
        "|  | wildtoolbench 1 | strict 3 |",
        "| --- | --- | --- |",
        "| Session accuracy | 8.0 % (2/25, 95 %: 2.2-25.0) | 20.0 % (5/25) |",
        "| Task accuracy | 50.0 % (50/100) |  |",
        "| By task label: Chat | 40.0 % (8/20) | 45.0 % (9/20) |",
        "| By task label: Clarify | - |  |",
        "| Optimal path rate: Total | 30.0 % (3/10) |  |",
    ]


def test_behaviour_has_what_is_known_and_errors_what_occurs() -> None:
    text = markdown_text([two_scorers()], [])
    assert row_of(text, "Param Value Error") == "| Param Value Error | 100.0 % (5/5) |  |"
    assert "Refusal" not in text
    [behaviour] = re.findall(r"\| Behaviour \|  \| n \|\n\| --- \| --- \| --- \|\n((?:\|.*\n)+)", text)
    assert behaviour.splitlines() == ["| Steps per task | 2.50 | 40 |"]


def test_wrong_tasks_come_with_their_evidence_and_disagreements_with_their_verdicts() -> None:
    wrongs, disagreements = (
        shown(markdown_text([two_scorers()], []))
        .split("Wrong tasks, by at least one scorer: 1")[1]
        .split("Tasks on which the scorers disagree: 1")
    )
    assert (
        "| s-1 | 2 | Chat | step 1, args.value at $.room: expected blue, got red | correct |"
        in wrongs.splitlines()
    )
    assert "| s-1 | 2 | Chat | error args.value | correct |" in disagreements.splitlines()


def test_what_was_not_scored_is_said() -> None:
    expected = "Not scored: 1 of 3 tasks, so 1 of 1 sessions: provider_error: status 503 (1)"
    assert expected in shown(markdown_text([two_scorers()], [])).splitlines()


def test_a_run_without_mistakes_has_no_lists_of_them() -> None:
    text = markdown_text([scored.report()], [])
    assert "<details>" not in text
    assert text.endswith("\n\nNot scored: none.\n")


def many(wrong_tasks: int, **changes: str) -> RunReport:
    sessions = [session(wrong(), name=f"s{i:03}") for i in range(wrong_tasks)]
    return scored.report(scored.scored(*sessions), **changes)


def test_fifty_wrong_tasks_are_shown_and_the_others_counted() -> None:
    text = shown(markdown_text([many(50)], []))
    assert ("| s049 |" in text, "more" in text) == (True, False)
    text = shown(markdown_text([many(52)], []))
    assert ("| s049 |" in text, "| s050 |" in text) == (True, False)
    assert "and 2 more tasks: --format json has everything" in text.splitlines()


def hostile(sessions: int = 1, size: int = 1) -> RunReport:
    text = HOSTILE * size
    found = [
        session(wrong(text, text), unscored(text), name=text, scenario=scored.scenario(text, [text] * 2))
        for _ in range(sessions)
    ]
    figures = [rate("accuracy_by_label", 1, 2, f"{text}{i}") for i in range(sessions)]
    by_scorer = [scored.scored(*found, scorer=name, figures=figures) for name in ("wildtoolbench", "strict")]
    return scored.report(
        *by_scorer, run=text, log=text, model=text, config={"history": text, "on_mismatch": "continue"}
    )


def test_nothing_of_others_is_markup_a_link_a_mention_or_obeyed_by_a_terminal() -> None:
    text = markdown_text([hostile()], [])
    assert "<b>&\\n\\x00\\x1b[31m\\ud800\\uffff\\u202e[x](y) @all #1 www.a.b http://a.b" in shown(text)
    assert all(char.isprintable() for char in text.replace("\n", ""))
    left = re.sub(r"&#\d+;", "?", OUR_TAGS.sub("", text))
    assert set(left) & set("<&`@[]") == set()
    assert "www." not in left
    assert "http://" not in left
    rows = [line for line in left.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {4, 6}
    tags = OUR_TAGS.findall(text)
    for tag in ("code", "details", "summary"):
        assert tags.count(f"<{tag}>") == tags.count(f"</{tag}>")


def test_the_text_fits_into_a_comment_whatever_is_in_it() -> None:
    text = markdown_text([hostile(300, size=9)], [])
    assert 1_000 < len(text) <= MOST < 65_536
    [more] = {line for line in text.splitlines() if line.startswith("and ")}
    assert more.endswith("more tasks: --format json has everything")


def test_many_thresholds_are_cut_short_but_counted() -> None:
    report = two_scorers()
    outcomes = gated(report, *(f"session_accuracy={i / 1000}" for i in range(60)))
    assert (
        "- and 10 more thresholds: --format json has everything"
        in markdown_text([report], outcomes).splitlines()
    )


def test_runs_that_do_not_fit_are_counted() -> None:
    text = markdown_text([hostile(30), *(many(1, run=f"r{i}") for i in range(300))], [])
    assert len(text) <= MOST
    titles = text.count("### Scores of run")
    assert 0 < titles < 301
    assert f"{301 - titles} runs left out, too long for a comment: --format json has everything." in text


def test_each_run_has_its_own_thresholds() -> None:
    reports = [many(1, run="r1"), many(1, run="r2")]
    for report, successes in zip(reports, (1, 2), strict=True):
        object.__setattr__(report.scored[0], "figures", (rate("task_accuracy", successes, 2),))
    outcomes = check([parse_gate("task_accuracy=0.9", "under")], reports)
    first, second = shown(markdown_text(reports, outcomes)).split("### Scores of run r2")
    assert "- **failed**: task_accuracy is 50.0 % (1 of 2)" in first
    assert "**passed**" not in first
    assert "- **passed**: task_accuracy is 100.0 % (2 of 2)" in second
    assert "**failed**" not in second


def test_no_run_is_said() -> None:
    assert markdown_text([], []) == "### Scores\n\nThere is no run.\n"


def test_the_same_report_gives_the_same_bytes() -> None:
    assert markdown_text([hostile(3)], []) == markdown_text([hostile(3)], [])


def test_the_command_writes_markdown_and_nothing_else(tmp_path: Path) -> None:
    log = scored.write_log(tmp_path / "a.db")
    result = scored.run_score(log, "--format", "markdown", "--fail-under", "task_accuracy=0.5")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("### Scores of run <code>r1</code>\n\n- **passed**: ")
    assert "<summary>Wrong tasks: 1</summary>" in result.stdout


REPEATED = WriteFinding("rooms.e1", 1, 1, 0, 0, "book", "repeated_write", '{"day": 1}', "was made before")
WRONG_TOO = replace(REPEATED, kind="wrong_write", why="is no call that the task wants")
STALE = replace(REPEATED, kind="stale_write", call=None, tool="cancel", why="was not made")


def test_writes_at_fault_are_listed_each_once_apart_from_those_left_standing() -> None:
    text = shown(markdown_text([scored.report(writes=(REPEATED, WRONG_TOO, STALE))], []))
    at_fault, standing = text.split("Writes at fault: 1\n")[1].split("Writes left standing: 1\n")
    assert (
        '| rooms.e1, task 2, step 1, call 1 | repeated, wrong write | book {"day": 1} was made before, '
        "and is no call that the task wants |"
    ) in at_fault.splitlines()
    assert (
        '| rooms.e1, task 2, step 1 | stale write | cancel {"day": 1} was not made |' in standing.splitlines()
    )


def test_long_arguments_of_a_write_do_not_push_out_what_is_wrong_with_it() -> None:
    text = shown(markdown_text([scored.report(writes=(replace(REPEATED, arguments="x" * 1000),))], []))
    assert "xxx... was made before |" in text
    assert len(text) < 1000
