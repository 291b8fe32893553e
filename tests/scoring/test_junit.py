from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from support import scored
from support.scored import HOSTILE, rate, right, session, unscored, wrong

from scoring.gates import check, parse_gate
from scoring.metrics.writes import WriteFinding
from scoring.output.junit import junit_text
from scoring.report import RunReport


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode())


def counts_of(element: ElementTree.Element) -> dict[str, str | None]:
    return {name: element.get(name) for name in ("tests", "failures", "errors")}


def mixed() -> RunReport:
    return scored.report(
        scored.scored(
            session(right(), wrong(), name="rooms.e1"),
            session(wrong(), unscored(), name="rooms.e2", epoch=2),
        ),
        scored.scored(
            session(right(), right(), name="rooms.e1"),
            session(wrong(), unscored(), name="rooms.e2", epoch=2),
            scorer="strict",
            version="7",
        ),
    )


def test_a_session_is_a_suite_and_a_task_a_case_with_right_counts() -> None:
    root = parsed(junit_text([mixed()]))
    assert root.tag == "testsuites"
    assert counts_of(root) == {"tests": "4", "failures": "2", "errors": "1"}
    assert [(suite.get("name"), *counts_of(suite).values()) for suite in root] == [
        ("rooms.e1", "2", "1", "0"),
        ("rooms.e2", "2", "1", "1"),
    ]
    assert [(case.get("classname"), case.get("name")) for case in root.iter("testcase")] == [
        ("rooms", "task 1: Single-Tool"),
        ("rooms", "task 2: Chat"),
    ] * 2
    for suite in root:
        assert counts_of(suite) == {
            "tests": str(len(suite.findall("testcase"))),
            "failures": str(len(suite.findall("testcase/failure"))),
            "errors": str(len(suite.findall("testcase/error"))),
        }


def test_a_suite_says_what_was_played_and_who_judged() -> None:
    [_, suite] = parsed(junit_text([mixed()]))
    assert {it.get("name"): it.get("value") for it in suite.iter("property")} == {
        "log": "agent.db",
        "run": "r1",
        "scenario": "rooms",
        "hash": "hash-rooms",
        "epoch": "2",
        "scorer": "wildtoolbench 1",
    }


def test_a_run_that_is_not_comparable_says_so_in_each_suite() -> None:
    report = scored.report(config={"history": "live"})
    notes = parsed(junit_text([report])).findall("testsuite/properties/property[@name='note']")
    assert [it.get("value") for it in notes] == [
        "live history, wrong steps do not end a task: not comparable with published figures"
    ]


def test_a_wrong_task_is_a_failure_with_its_rule_and_all_its_evidence() -> None:
    [failure] = parsed(junit_text([scored.report(scored.scored(session(wrong())))])).iter("failure")
    assert failure.attrib == {
        "type": "args.value",
        "message": "step 1, args.value at $.room: expected blue, got red",
    }
    assert failure.text is not None
    reason, evidence = failure.text.split("\n", 1)
    assert reason == "expected blue, got red"
    [fault] = json.loads(evidence)["faults"]
    assert (fault["path"], fault["expected"], fault["actual"]) == ("$.room", "blue", "red")


def test_steps_and_calls_count_from_one_wherever_a_case_names_them() -> None:
    score = wrong(reason="step 1: expected blue, got red")
    assert score.evidence is not None
    score = replace(score, evidence=replace(score.evidence, step=1, call=0))
    [failure] = parsed(junit_text([scored.report(scored.scored(session(score)))])).iter("failure")
    assert failure.get("message") == "step 2, args.value at $.room: expected blue, got red"
    assert failure.text is not None
    reason, evidence = failure.text.split("\n", 1)
    assert reason == "step 2: expected blue, got red"
    assert {key: json.loads(evidence)[key] for key in ("step", "call")} == {"step": 2, "call": 1}


def test_a_wrong_task_without_evidence_has_its_reason() -> None:
    report = scored.report(scored.scored(session(wrong(evidence=None, reason="no step matches"))))
    [failure] = parsed(junit_text([report])).iter("failure")
    assert failure.attrib == {"type": "wrong", "message": "no step matches"}
    assert failure.text == "no step matches"


def test_a_task_that_was_completed_after_errors_is_a_failure_that_says_so() -> None:
    report = scored.report(scored.scored(session(wrong(verdict="correct_after_errors", evidence=None))))
    [failure] = parsed(junit_text([report])).iter("failure")
    assert failure.text == "expected blue, got red\nverdict: correct_after_errors"


def test_a_task_that_was_not_scored_is_an_error_of_the_infrastructure() -> None:
    report = scored.report(scored.scored(session(unscored("provider_error: status 503"), right())))
    [case, _] = parsed(junit_text([report])).iter("testcase")
    assert [(it.tag, it.attrib) for it in case] == [
        ("error", {"type": "infrastructure", "message": "provider_error: status 503"})
    ]


def test_thresholds_are_cases_of_a_suite_of_their_own() -> None:
    report = scored.report(scored.scored(session(right()), figures=[rate("session_accuracy", 2, 25)]))
    gates = [parse_gate(f"session_accuracy={value}", "under") for value in ("0.08", "0.1")]
    suite = parsed(junit_text([report], check(gates, [report])))[-1]
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("thresholds", "2", "1")
    passed, missed = suite.iter("testcase")
    assert (passed.get("name"), list(passed)) == ("--fail-under session_accuracy", [])
    [failure] = missed
    assert failure.tag == "failure"
    assert failure.attrib == {
        "type": "threshold",
        "message": "session_accuracy is 8.0 % (2 of 25), under the threshold of 10.0 %",
    }


def test_a_threshold_with_nothing_to_tell_is_an_error_and_all_are_in_the_totals() -> None:
    report = scored.report(scored.scored(session(wrong()), figures=[rate("accuracy_by_label", 0, 0, "Chat")]))
    outcomes = check([parse_gate("accuracy_by_label[Chat]=0.1", "over")], [report])
    root = parsed(junit_text([report], outcomes))
    assert counts_of(root) == {"tests": "2", "failures": "1", "errors": "1"}
    assert [suite.get("name") for suite in root] == ["rooms.e1", "thresholds"]
    [case] = root[1]
    assert case.attrib == {"classname": "thresholds", "name": "--fail-over accuracy_by_label[Chat]"}
    [error] = case
    assert (error.tag, error.get("type")) == ("error", "infrastructure")


def test_a_threshold_of_hostile_text_leaves_the_document_well_formed() -> None:
    report = scored.report(
        scored.scored(session(right()), figures=[rate("accuracy_by_label", 1, 2, HOSTILE)])
    )
    outcomes = check([parse_gate(f"accuracy_by_label[{HOSTILE}]=0.9", "under")], [report])
    [failure] = parsed(junit_text([report], outcomes)).iter("failure")
    assert "\\x00\\x1b[31m\\ud800\\uffff\\u202e" in failure.attrib["message"]


def test_two_sessions_that_score_the_same_are_two_suites() -> None:
    same = session(right(), wrong())
    root = parsed(junit_text([scored.report(scored.scored(same, same))]))
    assert [counts_of(suite)["tests"] for suite in root] == ["2", "2"]


def test_hostile_text_leaves_the_document_well_formed() -> None:
    of = session(
        wrong(HOSTILE, HOSTILE),
        unscored(HOSTILE),
        wrong(HOSTILE, evidence=None),
        name=HOSTILE,
        scenario=scored.scenario(HOSTILE, [HOSTILE] * 3),
    )
    root = parsed(junit_text([scored.report(scored.scored(of), run=HOSTILE, log=HOSTILE)]))
    assert counts_of(root) == {"tests": "3", "failures": "2", "errors": "1"}
    told = r"""=`|<b>&\n\x00\x1b[31m\ud800\uffff\u202e[x](y) @all #1 www.a.b http://a.b ]]> ' \""""
    told = told.replace('\\"', '"')
    assert root[0].get("name") == told
    assert {case.get("classname") for case in root.iter("testcase")} == {told}
    assert [it.get("message") for it in root.iter("error")] == [told]
    assert [it.get("type") for it in root.iter("failure")] == [told, "wrong"]


def test_no_run_is_a_document_without_tests() -> None:
    assert counts_of(parsed(junit_text([]))) == {"tests": "0", "failures": "0", "errors": "0"}


def test_the_same_report_gives_the_same_bytes() -> None:
    assert junit_text([mixed()]) == junit_text([mixed()])


def test_the_command_writes_xml_and_nothing_else(tmp_path: Path) -> None:
    result = scored.run_score(scored.write_log(tmp_path / "a.db"), "--format", "junit")
    assert (result.exit_code, result.stderr) == (0, "")
    root = parsed(result.stdout)
    assert counts_of(root) == {"tests": "2", "failures": "1", "errors": "0"}
    assert [[it.tag for it in case] for case in root.iter("testcase")] == [[], ["failure"]]


REPEATED = WriteFinding("rooms.e1", 1, 1, 0, 0, "book", "repeated_write", '{"day": 1}', "was made before")
WRONG_TOO = replace(REPEATED, kind="wrong_write", why="is no call that the task wants")
STALE = replace(REPEATED, kind="stale_write", call=None, tool="cancel", why="was not made")


def test_the_writes_at_fault_of_a_task_are_told_in_its_case() -> None:
    report = scored.report(writes=(REPEATED, WRONG_TOO, STALE))
    first, second = parsed(junit_text([report])).iter("testcase")
    assert list(first) == []
    assert [(it.tag, it.text) for it in second] == [
        (
            "system-out",
            "Writes at fault: 1\n"
            '  rooms.e1, task 2, step 1, call 1: repeated, wrong write: book {"day": 1} was made before, and '
            "is no call that the task wants\n"
            "Writes left standing: 1\n"
            '  rooms.e1, task 2, step 1: stale write: cancel {"day": 1} was not made',
        )
    ]
