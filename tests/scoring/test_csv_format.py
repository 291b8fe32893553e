from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from support import scored
from support.scored import HOSTILE, rate

from scoring.metrics.figures import Figure
from scoring.metrics.null_agents import NullAgent, NullFigures
from scoring.output.csv_format import csv_text

HEADER = "log,run,model,scorer,figure,group,value,n,successes,low,high,note"


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_each_figure_is_a_line_with_its_scorer_group_counts_and_bounds() -> None:
    report = scored.report(
        scored.scored(
            figures=[
                rate("session_accuracy", 2, 25, low=0.02, high=0.25),
                rate("accuracy_by_label", 0, 0, "Chat"),
            ]
        ),
        scored.scored(scorer="strict", figures=[rate("session_accuracy", 5, 25)]),
        figures=(Figure("latency_per_step", "p95", 1.25, 7),),
    )
    assert csv_text([report]).splitlines() == [
        HEADER,
        "agent.db,r1,m-1,wildtoolbench,session_accuracy,,0.08,25,2,0.02,0.25,",
        "agent.db,r1,m-1,wildtoolbench,accuracy_by_label,Chat,,0,0,,,",
        "agent.db,r1,m-1,strict,session_accuracy,,0.2,25,5,,,",
        "agent.db,r1,m-1,,latency_per_step,p95,1.25,7,,,,",
    ]


def test_runs_follow_one_another_under_one_header() -> None:
    of = scored.scored(figures=[rate("task_accuracy", 1, 2)])
    text = csv_text([scored.report(of), scored.report(of, log="b.db", run="r2", model=None)])
    assert text == (
        f"{HEADER}\nagent.db,r1,m-1,wildtoolbench,task_accuracy,,0.5,2,1,,,\n"
        "b.db,r2,,wildtoolbench,task_accuracy,,0.5,2,1,,,\n"
    )


def test_what_agents_without_a_model_get_stands_with_each_scorer() -> None:
    figures = NullFigures(
        "strict",
        "1",
        rate("null_session_accuracy", 0, 8, "text-only"),
        rate("null_task_accuracy", 4, 32, "text-only"),
    )
    report = scored.report(
        scored.scored(),
        scored.scored(scorer="strict"),
        null_agents=(NullAgent("text-only", "a text at every step", (figures,)),),
    )
    assert csv_text([report]).splitlines()[1:] == [
        "agent.db,r1,m-1,strict,null_session_accuracy,text-only,0.0,8,0,,,",
        "agent.db,r1,m-1,strict,null_task_accuracy,text-only,0.125,32,4,,,",
    ]


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_no_text_of_others_is_a_formula(start: str) -> None:
    text = start + "cmd()"
    of = scored.scored(figures=[rate("accuracy_by_label", 1, 2, text)])
    [row] = rows_of(csv_text([scored.report(of, log=text, run=text, model=text)]))
    assert {row[name][0] for name in ("log", "run", "model", "group")} == {"'"}


def test_a_number_below_zero_stays_a_number() -> None:
    report = scored.report(figures=(Figure("steps_lost", None, -1.5, 4, None, -2.0, -1.0),))
    [row] = rows_of(csv_text([report]))
    assert [float(row[name]) for name in ("value", "low", "high")] == [-1.5, -2.0, -1.0]


def test_text_of_others_takes_one_line_and_its_own_cell() -> None:
    of = scored.scored(figures=[rate("accuracy_by_label", 1, 2, 'a,"b"\r\n' + HOSTILE)])
    text = csv_text([scored.report(of, run=HOSTILE)])
    assert text.count("\n") == 2
    assert text.encode().decode() == text
    [row] = rows_of(text)
    assert row["group"].startswith('a,"b"\\r\\n=`|<b>&\\n\\x00\\x1b[31m\\ud800\\uffff\\u202e[x](y)')
    assert row["value"] == "0.5"


def test_the_same_report_gives_the_same_bytes() -> None:
    def text() -> str:
        return csv_text([scored.report(scored.scored(figures=[rate("task_accuracy", 1, 3)]))])

    assert text() == text()


def test_the_command_writes_csv_and_nothing_else(tmp_path: Path) -> None:
    result = scored.run_score(scored.write_log(tmp_path / "a.db"), "--format", "csv")
    assert (result.exit_code, result.stderr) == (0, "")
    found = {(row["scorer"], row["figure"], row["group"]): row for row in rows_of(result.stdout)}
    for scorer in ("wildtoolbench", "strict"):
        row = found[scorer, "task_accuracy", ""]
        assert (row["log"], row["run"], row["value"], row["n"], row["successes"]) == (
            "a.db",
            "r1",
            "0.5",
            "2",
            "1",
        )
    assert found["", "steps_per_task", ""]["n"] == "2"
