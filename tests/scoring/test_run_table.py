"""A scored Run as a table: columns of the scorers, blocks, notes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import scenes, scored
from support.scored import rate, right, session, unscored, wrong

from scenarios.text import width
from scenarios.types import Reply, ToolCall
from scoring.metrics.calls import NEVER_PARALLEL
from scoring.metrics.definitions import DEFINITIONS
from scoring.metrics.figures import Figure
from scoring.metrics.null_agents import NullAgent, NullFigures
from scoring.metrics.writes import WriteFinding
from scoring.output.markdown import markdown_text
from scoring.output.run_table import run_table
from scoring.output.tables import align
from scoring.report import RunReport
from scoring.types import Evidence, TaskTrajectory, Trajectory
from scoring.verdicts.scorers import SCORERS

NOTES = (
    "Intervals: 95 %, Wilson; over tasks, those of one scenario are taken as a cluster, and there is none\n"
    "over a single one. What each figure means: docs/metrics.md.\n"
)
RELEASED = (
    rate("session_accuracy", 81, 263, low=0.2553, high=0.3662),
    rate("task_accuracy", 3, 4),
    rate("accuracy_by_label", 1, 2, "Chat"),
    rate("accuracy_by_label", 0, 0, "Clarify"),
)
STRICT = (
    rate("session_accuracy", 2, 8, low=0.07, high=0.59),
    rate("task_accuracy", 1, 1),
    rate("accuracy_by_label", 1, 2, "Chat"),
    rate("accuracy_by_label", 1, 1, "Clarify"),
)


def table_of(*figures: Figure, **changes: Any) -> str:
    """The table of a Run with these figures by the released rules alone."""
    return run_table(scored.report(scored.scored(session(right(), right()), figures=figures), **changes))


def two(**changes: Any) -> RunReport:
    """Two scorers, of which the second finds one more Task wrong."""
    return scored.report(
        scored.scored(session(right(), right()), figures=RELEASED),
        scored.scored(session(right(), wrong()), scorer="strict", version="2", figures=STRICT),
        **changes,
    )


def rows(text: str) -> dict[str, list[str]]:
    """What stands behind the label of each line, two blanks after it; of equal labels the first."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        label, _, rest = line.strip().partition("  ")
        found.setdefault(label, rest.split())
    return found


def block(text: str, title: str) -> list[str]:
    """The lines of the block, or of the section of rates, whose first line begins with `title`."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith(title)), len(lines))
    return lines[start : lines.index("", start) if "" in lines[start:] else len(lines)]


# --- Header ------------------------------------------------------------------


def test_the_header_says_what_was_scored_by_whom() -> None:
    other = session(right(), name="t.e1", scenario=scored.scenario("other", ["Chat"]))
    sessions = (session(right()), session(right(), name="rooms.e2", epoch=2), other)
    text = run_table(
        scored.report(
            scored.scored(*sessions, version="7"), scored.scored(*sessions, scorer="strict", version="2")
        )
    )
    assert text.split("\n\n")[0].splitlines() == [
        "Log        agent.db",
        "Run        r1",
        "Model      m-1",
        "History    gold",
        "Scenarios  2 (3 sessions)",
        "Scorers    wildtoolbench 7, strict 2",
    ]


def test_one_session_is_one() -> None:
    assert "Scenarios  1 (1 session)" in table_of().splitlines()


def test_the_agent_the_provider_and_later_scenarios_are_named_where_they_are_known() -> None:
    text = run_table(
        scored.report(
            config={"history": "gold", "provider": "sim:noisy:0.3", "agent": "python my_agent.py"},
            judged_by="later scenarios: 1 of 1 changed since the log",
        )
    )
    assert text.split("\n\n")[0].splitlines() == [
        "Log        agent.db",
        "Run        r1",
        "Model      m-1",
        "Agent      python my_agent.py",
        "Provider   sim:noisy:0.3",
        "History    gold",
        "Scenarios  1 (1 session)",
        "Judged by  later scenarios: 1 of 1 changed since the log",
        "Scorers    wildtoolbench 1",
    ]


def test_a_run_without_model_history_or_sessions_says_so() -> None:
    text = run_table(scored.report(scored.scored(), model=None, config={}))
    assert rows(text)["Model"] == rows(text)["History"] == ["-"]
    assert "Not scored: the run has no sessions." in text.splitlines()


# --- Rates -------------------------------------------------------------------


def test_a_rate_has_its_count_and_its_interval() -> None:
    # Newcombe 1998, Table I, method 3: 81 of 263 is 0.2553 to 0.3662.
    text = table_of(*RELEASED)
    assert rows(text)["Session accuracy"] == ["30.8", "81/263", "25.5-36.6"]
    assert rows(text)["Task accuracy"] == ["75.0", "3/4", "-"]
    assert [line.split() for line in block(text, "By task label")] == [
        ["By", "task", "label"],
        ["Chat", "50.0", "1/2", "-"],
        ["Clarify", "-", "0/0", "-"],
    ]
    assert "difference" not in text


def test_two_scorers_stand_side_by_side_under_their_names_with_their_difference() -> None:
    text = run_table(two())
    assert text.split("\n\n")[2].splitlines() == [
        " " * 28 + "wildtoolbench" + " " * 16 + "strict",
        "                     %     k/n       95 %      %  k/n      95 %  difference",
        "Session accuracy  30.8  81/263  25.5-36.6   25.0  2/8  7.0-59.0        -5.8",
        "Task accuracy     75.0     3/4          -  100.0  1/1         -       +25.0",
    ]
    assert [line.split() for line in block(text, "By task label")[1:]] == [
        ["Chat", "50.0", "1/2", "-", "50.0", "1/2", "-"],  # no difference, so none is told
        ["Clarify", "-", "0/0", "-", "100.0", "1/1", "-"],  # nothing to differ from
    ]


def test_three_scorers_have_no_difference() -> None:
    columns = [
        scored.scored(session(right()), scorer=name, figures=[rate("task_accuracy", n, 4)])
        for n, name in enumerate(("wildtoolbench", "strict", "published"))
    ]
    text = run_table(scored.report(*columns))
    assert rows(text)["Task accuracy"] == ["0.0", "0/4", "-", "25.0", "1/4", "-", "50.0", "2/4", "-"]
    assert "wildtoolbench" in text.split("\n\n")[2].splitlines()[0]
    assert "difference" not in text


def test_a_figure_that_one_scorer_alone_has_leaves_the_others_place_empty() -> None:
    text = run_table(
        scored.report(
            scored.scored(session(right()), figures=[rate("progress_released", 3, 4, "Total")]),
            scored.scored(session(right()), scorer="strict", figures=[rate("progress_nodes", 1, 2, "Total")]),
        ),
        verbose=True,
    )
    released, strict = block(text, "Progress rate, as released")[1], block(text, "Progress, in nodes")[1]
    assert (released.split(), strict.split()) == (
        ["Total", "75.0", "3/4", "-"],
        ["Total", "50.0", "1/2", "-"],
    )
    assert released.index("3/4") < strict.index("1/2") - len("75.0  3/4  -")


def test_agents_without_a_model_stand_below_the_task_accuracy_without_an_interval() -> None:
    def null(name: str, *counts: int) -> NullAgent:
        figures = tuple(
            NullFigures(
                scorer,
                "1",
                rate("null_session_accuracy", 0, 3, name),
                rate("null_task_accuracy", count, 8, name),
            )
            for scorer, count in zip(("wildtoolbench", "strict"), counts, strict=True)
        )
        return NullAgent(name, "words", figures)

    text = run_table(two(null_agents=(null("text-only", 2, 1), null("reference", 8, 8))))
    below = text.splitlines()[text.splitlines().index(block(text, "Task accuracy")[0]) + 1 :][:2]
    assert [line.split() for line in below] == [
        ["text-only", "(no", "model)", "25.0", "2/8", "12.5", "1/8"],
        ["reference", "(no", "model)", "100.0", "8/8", "100.0", "8/8"],
    ]


def test_passes_are_told_only_where_a_scenario_was_played_twice() -> None:
    figures = [rate("flip_rate", 1, 2), Figure("pass_hat_k", "2", 0.5, 4)]
    once = scored.report(scored.scored(session(right()), figures=figures))
    again = scored.report(
        scored.scored(session(right()), session(right(), name="rooms.e2", epoch=2), figures=figures)
    )
    titles = ("Pass^k, sessions", "Flip rate")
    assert [title in run_table(once) for title in titles] == [False, False]
    assert [title in run_table(again) for title in titles] == [True, True]
    assert block(run_table(again), "Pass^k, sessions")[1].split() == ["2", "50.0", "4", "-"]


@pytest.mark.parametrize("verbose", [False, True])
def test_further_figures_are_told_if_more_is_wanted(verbose: bool) -> None:
    names = ("accuracy_by_subtype", "progress_released", "pass_at_k", "task_pass_at_k")
    figures = [*(rate(name, 1, 2, "2") for name in names), rate("pass_hat_k", 1, 2, "2")]
    sessions = session(right()), session(right(), name="rooms.e2", epoch=2)
    text = run_table(scored.report(scored.scored(*sessions, figures=figures)), verbose=verbose)
    assert [bool(block(text, DEFINITIONS[name].title)) for name in names] == [verbose] * 4
    assert block(text, DEFINITIONS["pass_hat_k"].title)


@pytest.mark.parametrize("verbose", [False, True])
def test_changes_between_kinds_are_told_if_more_is_wanted(verbose: bool) -> None:
    figures = [rate("accuracy_by_kind_changes", 1, 2, "0"), rate("accuracy_by_half_changes", 1, 2, "0")]
    text = run_table(scored.report(scored.scored(session(right()), figures=figures)), verbose=verbose)
    titles = ("Accuracy by changes of kind", "Accuracy by changes between tool and text")
    assert [title in text for title in titles] == [verbose, verbose]


# --- Behaviour, errors, notes ------------------------------------------------


def test_quantities_have_their_unit_and_groups_are_told_if_more_is_wanted() -> None:
    figures = (
        Figure("redundant_calls", None, 3.0, 2),
        Figure("steps_per_task", None, 2.5, 4),
        Figure("latency_per_step", "p95", 3.0, 8),
        Figure("cost_total", None, None, 0),
    )
    report = scored.report(figures=figures)
    assert block(run_table(report), "Behaviour") == [
        "Behaviour",
        *align([("  Redundant calls", "3", "n = 2"), ("  Steps per task", "2.50", "n = 4")]),
    ]
    assert block(run_table(report, verbose=True), "Behaviour")[-1].split() == [
        *("Latency", "per", "step,", "p95", "3.00", "s", "n", "=", "8"),
    ]


def test_what_correct_tasks_took_stands_side_by_side_as_each_scorer_has_its_own() -> None:
    report = two(currency="EUR")
    first = (Figure("steps_over_optimal", None, 1.25, 4), Figure("cost_per_correct_task", None, 0.0125, 4))
    second = (Figure("steps_over_optimal", None, 1.0, 1), Figure("cost_per_correct_task", None, None, 0))
    nothing = rate("missed_parallelism", 0, 0)
    by_scorer = zip(report.scored, (first, second), strict=True)
    report = replace(
        report, scored=tuple(replace(it, figures=(*it.figures, *own, nothing)) for it, own in by_scorer)
    )
    lines = block(run_table(report), "Correct tasks")
    assert [line.split() for line in lines] == [
        ["Correct", "tasks", "wildtoolbench", "strict"],
        ["Steps", "over", "optimal", "path", "1.25", "n", "=", "4", "1.00", "n", "=", "1"],
        ["Cost", "per", "correct", "task", "0.0125", "EUR", "n", "=", "4", "-", "n", "=", "0"],
    ]
    assert lines[0].index("strict") > lines[1].index("n = 4")


def test_a_run_without_a_correct_task_has_no_block_of_them() -> None:
    assert "Correct tasks" not in table_of(*RELEASED, Figure("steps_over_optimal", None, None, 0))


def test_costs_are_told_in_the_currency_of_the_prices() -> None:
    report = scored.report(figures=(Figure("cost_total", None, 0.5, 2),), currency="EUR")
    assert block(run_table(report), "Behaviour")[1].split() == ["Cost", "0.5", "EUR", "n", "=", "2"]


def test_what_the_figures_lack_is_told_below_them_and_cannot_move_the_cursor() -> None:
    report = scored.report(
        figures=(Figure("steps_per_task", None, 2.5, 4),), notes=("no price for model m\x1b[2J",)
    )
    assert block(run_table(report), "Behaviour")[-1] == "no price for model m\\x1b[2J"


def test_only_error_classes_that_occur_are_told_in_the_order_of_the_published_table() -> None:
    report = scored.report(
        scored.scored(
            session(wrong()),
            figures=[
                rate("error_share", 0, 4, "refusal"),
                rate("error_share", 1, 4, "param_value"),
                rate("error_share", 3, 4, "wrong_name"),
            ],
        ),
        scored.scored(
            session(wrong()),
            scorer="strict",
            figures=[
                rate("error_share", 0, 5, "refusal"),
                rate("error_share", 5, 5, "param_value"),
                rate("error_share", 0, 5, "wrong_name"),
            ],
        ),
    )
    text = run_table(report)
    assert [line.split() for line in block(text, "Errors, of the failed tasks")] == [
        ["Errors,", "of", "the", "failed", "tasks"],
        ["Wrong", "Name", "/", "Missing", "Info", "75.0", "3/4", "-", "0.0", "0/5", "-"],
        ["Param", "Value", "Error", "25.0", "1/4", "-", "100.0", "5/5", "-"],
    ]
    assert "Refusal" not in text


def test_a_run_without_a_failed_task_has_no_errors() -> None:
    assert "Errors" not in table_of(rate("error_share", 0, 0, "refusal"))


def played(*batches: int) -> Trajectory:
    """The two parallel calls of the second Task of SHOP in replies of so many calls."""
    names = iter((("getPrice", "chair"), ("countStock", "lamp")))
    replies = [
        Reply(
            None,
            tuple(
                ToolCall(None, name, f'{{"thing": "{thing}"}}')
                for name, thing in (next(names) for _ in range(n))
            ),
        )
        for n in batches
    ]
    idle = TaskTrajectory((), finished=False)
    tasks = (idle, TaskTrajectory((*replies, Reply("7, and 12.")), "closed"), idle, idle)
    return Trajectory("shop.e1", 1, scenes.scenario(), tasks)


def test_an_agent_that_never_calls_in_parallel_is_told_what_that_makes_of_the_optimal_path_rate() -> None:
    serial, parallel = played(1, 1), played(2)
    told = [
        NEVER_PARALLEL in " ".join(run_table(scored.report(trajectories=trajectories)).split())
        for trajectories in ((serial,), (parallel,), (serial, parallel), ())
    ]
    assert told == [True, False, False, False]


def test_what_was_left_out_is_told_right_below_the_header() -> None:
    assert table_of(*RELEASED).split("\n\n")[1] == "Not scored: none."
    left = session(right(), unscored("provider: 503"), unscored("provider: 503"))
    text = run_table(scored.report(scored.scored(left, figures=RELEASED)))
    assert text.split("\n\n")[1] == "Not scored: 2 of 3 tasks, so 1 of 1 sessions: provider: 503 (2)"


@pytest.mark.parametrize("verbose", [False, True])
def test_the_last_lines_say_what_the_intervals_are(verbose: bool) -> None:
    report = two(
        figures=(Figure("steps_per_task", None, 2.5, 4),),
        notes=("no price for model m",),
        writes=(at_fault(0),),
    )
    assert run_table(report, verbose=verbose).endswith(f"\n\n{NOTES}")


def test_what_scorers_leave_out_is_told_apart_where_it_differs() -> None:
    report = scored.report(
        scored.scored(session(right(), unscored("lost"))),
        scored.scored(session(right(), right()), scorer="strict"),
    )
    assert run_table(report).split("\n\n")[1].splitlines() == [
        "wildtoolbench: Not scored: 1 of 2 tasks, so 1 of 1 sessions: lost (1)",
        "strict: Not scored: none.",
    ]


def test_there_is_no_column_for_differences_where_there_is_none() -> None:
    sessions = session(right(), wrong())
    same = [scored.scored(sessions, scorer=name, figures=RELEASED) for name in ("wildtoolbench", "strict")]
    assert "difference" not in run_table(scored.report(*same))
    assert "difference" in run_table(two())


def test_a_title_makes_no_column_wider_and_the_table_fits_a_terminal() -> None:
    long = "accuracy_by_half_changes"
    assert len(DEFINITIONS[long].title) > 40
    figures = [rate("task_accuracy", 48, 48, low=0.712, high=1.0), rate(long, 1, 1, "Sequential Multi-Tool")]
    same = [scored.scored(session(right()), scorer=name, figures=figures) for name in SCORERS]
    text = run_table(scored.report(*same[:2]), verbose=True)
    assert DEFINITIONS[long].title in text.splitlines()
    start = text.splitlines().index(next(line for line in text.splitlines() if "k/n" in line)) - 1
    assert max(map(len, text.splitlines()[start : start + 6])) <= 80


# --- Writes, verdicts and evidence -------------------------------------------


def at_fault(task: int, call: int | None = 0, **changes: Any) -> WriteFinding:
    found = WriteFinding("rooms.e1", 1, task, 1, call, "book", "repeated_write", "{}", "was made before")
    return replace(found, **changes)


def test_writes_at_fault_are_told_with_their_place_counted_from_one() -> None:
    report = scored.report(
        writes=(at_fault(0, 2), at_fault(1, None, kind="stale_write", why="was not made\x1b[2J"))
    )
    assert block(run_table(report), "Writes at fault") == [
        "Writes at fault: 1",
        "  rooms.e1, task 1, step 2, call 3: repeated write: book {} was made before",
        "Writes left standing: 1",
        "  rooms.e1, task 2, step 2: stale write: book {} was not made\\x1b[2J",
    ]
    assert "Writes at fault" not in table_of()


def test_many_writes_at_fault_are_cut_short_but_counted_and_all_are_told_if_more_is_wanted() -> None:
    report = scored.report(writes=tuple(map(at_fault, range(7))))
    short = block(run_table(report), "Writes at fault")
    assert [line.split(": ")[0] for line in short[1:-1]] == [
        f"  rooms.e1, task {n}, step 2, call 1" for n in range(1, 6)
    ]
    assert (short[0], short[-1]) == ("Writes at fault: 7", "  and 2 more: --verbose has them all")
    full = block(run_table(report, verbose=True), "Writes at fault")
    assert [line.split(", ")[1] for line in full[1:]] == [f"task {n}" for n in range(1, 8)]


def test_writes_of_sessions_that_were_not_scored_are_said_to_be_beyond_the_figures() -> None:
    left_out = session(right(), unscored(), name="rooms.e2", epoch=2)
    run = scored.scored(session(right(), right()), left_out)
    writes = (at_fault(0), at_fault(0, session="rooms.e2", epoch=2))
    title = "Writes at fault: 2, 1 of them in sessions that were not scored"
    assert block(run_table(scored.report(run, writes=writes)), "Writes at fault")[0] == title
    assert f"<summary>{title}</summary>" in markdown_text([scored.report(run, writes=writes)], [])
    assert "Writes at fault: 1\n" in run_table(scored.report(run, writes=writes[:1]))


def test_a_write_that_is_wrong_in_several_ways_is_one_write_at_fault() -> None:
    wrong_too = at_fault(0, kind="wrong_write", why="is no call that the task wants")
    report = scored.report(writes=(at_fault(0), wrong_too, at_fault(0, 1), at_fault(1)))
    lines = block(run_table(report), "Writes at fault")
    assert (lines[0], len(lines)) == ("Writes at fault: 3", 4 + 1)
    assert lines[1:3] == [
        "  rooms.e1, task 1, step 2, call 1: repeated, wrong write: book {} was made before, and is no call",
        "    that the task wants",
    ]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_sentences_are_no_wider_than_the_terminal_and_arguments_are_not_cut(columns: int) -> None:
    arguments = json.dumps({f"key {n}": "some words of text" for n in range(10)})
    table = run_table(two(writes=(at_fault(0, arguments=arguments),)), columns=columns, verbose=True)
    block_lines = block(table, "Writes at fault")
    assert arguments in " ".join(" ".join(block_lines).split())
    sentences = [*block_lines, *block(table, "Intervals"), *block(table, "The scorers disagree")]
    assert max(map(width, sentences)) <= columns


def test_a_reason_without_evidence_counts_its_step_from_one() -> None:
    bare = wrong(evidence=None, reason="step 0: no call")
    report = scored.report(
        scored.scored(session(right(), bare)), scored.scored(session(right(), right()), scorer="strict")
    )
    text = run_table(report, verbose=True)
    assert [line.strip() for line in text.splitlines() if "no call" in line] == [
        "wildtoolbench: step 1: no call",
        "step 1: no call",
    ]


def test_scorers_that_agree_are_said_to() -> None:
    sessions = session(right(), wrong())
    report = scored.report(scored.scored(sessions), scored.scored(sessions, scorer="strict"))
    assert "The scorers agree on every task." in run_table(report).splitlines()
    assert "agree" not in table_of()


def test_a_disagreement_has_both_labels_and_the_reason_of_the_stricter() -> None:
    assert block(run_table(two()), "The scorers disagree") == [
        "The scorers disagree on 1 of 2 tasks",
        "  rooms.e1, task 2: wildtoolbench correct, strict error",
        "    strict: step 1, args.value at $.room: expected blue, got red",
    ]


def test_many_disagreements_are_cut_short_but_counted_and_all_are_told_if_more_is_wanted() -> None:
    names = [f"s{n}" for n in range(7)]
    scenario = scored.scenario(labels=["Chat"])
    report = scored.report(
        scored.scored(*(session(right(), name=name, scenario=scenario) for name in names)),
        scored.scored(*(session(wrong(), name=name, scenario=scenario) for name in names), scorer="strict"),
    )
    short = block(run_table(report), "The scorers disagree")
    assert [line for line in short if "task 1" in line] == [
        f"  s{n}, task 1: wildtoolbench correct, strict error" for n in range(5)
    ]
    assert short[0] == "The scorers disagree on 7 of 7 tasks"
    assert short[-1] == "  and 2 more: --verbose, or --format json, has them all"
    full = block(run_table(report, verbose=True), "The scorers disagree")
    assert sum("task 1" in line for line in full) == 7
    assert "more:" not in full[-1]


def test_the_evidence_for_every_wrong_task_is_told_if_more_is_wanted() -> None:
    evidence = Evidence(1, "step.text", "replied in text", allowed=(("book",), ("book", "pay")))
    bare = replace(right(), label="error", reason="the reason alone", evidence=None)
    report = scored.report(
        scored.scored(session(wrong(), replace(right(), label="error", evidence=evidence), right())),
        scored.scored(session(bare, wrong(), right()), scorer="strict"),
    )
    assert "Wrong tasks" not in run_table(report)
    assert block(run_table(report, verbose=True), "Wrong tasks") == [
        "Wrong tasks",
        "  rooms.e1, task 1 (Single-Tool)",
        "    wildtoolbench (param_value)",
        "      step 1, args.value at $.room: expected blue, got red",
        '      $.room: expected "blue", got "red" [args.value]',
        "    strict (param_value)",
        "      the reason alone",
        "  rooms.e1, task 2 (Chat)",
        "    wildtoolbench (param_value)",
        "      step 2, step.text: replied in text",
        "      allowed: book or book + pay",
        "    strict (param_value)",
        "      step 1, args.value at $.room: expected blue, got red",
        '      $.room: expected "blue", got "red" [args.value]',
    ]


def test_the_title_of_wrong_tasks_is_true_of_all_of_them() -> None:
    by_one = scored.report(
        scored.scored(session(right(), wrong())), scored.scored(session(wrong(), wrong()), scorer="strict")
    )
    live = replace(by_one, config={"history": "live"})
    alone = replace(live, scored=live.scored[:1])
    titles = [
        [line for line in run_table(it, verbose=True).splitlines() if line.startswith("Wrong")]
        for it in (by_one, live, alone)
    ]
    assert titles == [
        ["Wrong tasks, by at least one scorer"],
        ["Wrong tasks, and others with a wrong step, by at least one scorer"],
        ["Wrong tasks, and others with a wrong step"],
    ]


def test_a_wrong_task_of_a_live_run_has_its_verdict_beside_each_scorer() -> None:
    report = scored.report(
        scored.scored(session(wrong(verdict="correct_after_errors"))),
        scored.scored(session(wrong(verdict="wrong")), scorer="strict"),
        config={"history": "live"},
    )
    lines = block(run_table(report, verbose=True), "Wrong tasks, and others with a wrong step")
    assert [line for line in lines if line.startswith("    ") and line[4] != " "] == [
        "    wildtoolbench: correct after errors (param_value)",
        "    strict: wrong (param_value)",
    ]


def test_a_verdict_that_its_label_contradicts_is_told_with_it() -> None:
    report = scored.report(scored.scored(session(wrong(verdict="correct"))), config={"history": "live"})
    lines = run_table(report, verbose=True).splitlines()
    assert "    wildtoolbench: correct as played, but its label is error (param_value)" in lines


def test_nothing_of_a_foreign_log_can_move_the_cursor() -> None:
    hostile = "\x1b]0;x\x07\n\r\u202e\x9b\ud800"
    foreign = scored.scenario(hostile, [hostile, hostile])
    lost = session(wrong(hostile), unscored(hostile), name=hostile, scenario=foreign)
    report = scored.report(
        scored.scored(lost, figures=[rate("accuracy_by_label", 1, 2, hostile)]),
        scored.scored(session(right(), right(), name=hostile, scenario=foreign), scorer="strict"),
        **{"log": hostile, "run": hostile, "model": hostile},
        config={"history": hostile, "agent": hostile, "provider": hostile},
        notes=(hostile,),
        judged_by=hostile,
        writes=(at_fault(0, session=hostile, arguments=hostile, why=hostile),),
    )
    for verbose in (False, True):
        text = run_table(report, verbose=verbose)
        assert not any(character in text for character in "\x1b\x07\r\u202e\x9b\ud800")
        assert "\\x1b]0;x\\x07\\n\\r\\u202e\\x9b\\ud800" in text


def test_the_published_rules_are_shown_only_to_those_who_ask(tmp_path: Path) -> None:
    log = scored.write_log(tmp_path / "a.db")
    usual, asked = scored.run_score(log).stdout, scored.run_score(log, "--scorer", "published").stdout
    assert "published" not in usual
    assert f"Scorers    published {SCORERS['published'].version}" in asked.splitlines()
    assert "wildtoolbench" not in asked
