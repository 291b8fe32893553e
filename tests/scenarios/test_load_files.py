"""Files of scenarios: lines, documents, packs, several at once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from support.records import changed, record, write

from scenarios import BUNDLED, ScenarioError, load, parse_record, read_file
from scenarios.packs import packs

# Files


def test_a_file_gives_its_sessions_with_their_lines_and_its_sha256(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    lines = [json.dumps(record(id="b")), "", "   ", json.dumps(record(id="a"))]
    path.write_text("\n".join(lines), encoding="utf-8")
    file = read_file(path)
    assert [scenario.id for scenario in file.scenarios] == ["b", "a"]
    assert file.lines == (1, 4)
    assert file.errors == ()
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (file.path, file.language) == (path, "en")


def test_a_byte_order_mark_and_windows_line_ends_are_tolerated(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    text = json.dumps(record(id="a")) + "\r\n" + json.dumps(record(id="b")) + "\r\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [scenario.id for scenario in read_file(path).scenarios] == ["a", "b"]


def test_only_a_line_feed_ends_a_record(tmp_path: Path) -> None:
    words = "one\u2028two\u0085three"
    file = read_file(write(tmp_path / "f.jsonl", record(tasks=[words, "x"])))
    assert file.scenarios[0].tasks[0].text == words


def test_all_errors_of_a_file_are_collected_and_the_rest_is_read(tmp_path: Path) -> None:
    broken = changed(["answer_list", 1, 0, "user_input"], ...)
    broken["tasks"][0] = 5
    path = write(tmp_path / "f.jsonl", record(id="a"), broken, record(id="b"))
    with path.open("a") as file:
        file.write("{nonsense\n[]\n" + json.dumps(record(id="a")) + "\n")
    read = read_file(path)
    assert [scenario.id for scenario in read.scenarios] == ["a", "b"]
    assert [(error.line, error.field) for error in read.errors] == [
        (2, "tasks[0]"),
        (2, "answer_list[1][0].user_input"),
        (4, ""),
        (5, ""),
        (6, "id"),
    ]
    assert all(error.path == str(path) for error in read.errors)
    assert "line 1" in read.errors[-1].reason
    assert str(read.errors[0]) == f"{path}:2: tasks[0]: must be text, not a number"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (json.dumps(record()).replace("180", "NaN", 1), "NaN is no JSON number"),
        (json.dumps(record()).replace("180", "-Infinity", 1), "-Infinity is no JSON number"),
        (json.dumps(record()).replace("180", "1e999", 1), "1e999 is too large"),
        (json.dumps(record()).replace("180", "9" * 5000, 1), "not usable"),
        (json.dumps(record()).replace("180", "[" * 300 + "]" * 300, 1), "nested more than 200 levels deep"),
        ("[" * 100_000, "nested more than 200 levels deep"),
        ("hello", "not JSON"),
        ("7", "must be an object, not a number"),
    ],
)
def test_a_line_that_cannot_be_used_says_why(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(line + "\n")
    read = read_file(path)
    assert read.scenarios == ()
    (error,) = read.errors
    assert error.line == 1
    assert reason in error.reason


def test_a_line_that_is_not_utf8_says_so(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(json.dumps(record()).encode() + b"\n\xff\xfe\n")
    (error,) = read_file(path).errors
    assert (error.line, "UTF-8" in error.reason) == (2, True)


def test_half_a_surrogate_pair_in_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(json.dumps(record(tasks=["x\ud800", "y"])))
    (error,) = read_file(path).errors
    assert error.field == "tasks"


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("", 0, "holds no records"),
        ("\n \n", 0, "holds no records"),
        ("// Nothing but a comment.\n", 0, "holds no records"),
        ("[\n]\n", 0, "holds no records"),
        ("# Notes\n\nSome text.\n- a\n- b\n", 1, "not JSON"),
    ],
)
def test_a_file_that_is_no_scenario_file_gives_one_error(
    tmp_path: Path, content: str, line: int, reason: str
) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(content)
    (error,) = read_file(path).errors
    assert error.line == line
    assert reason in error.reason


def test_a_missing_file_and_a_folder_are_errors_without_a_line(tmp_path: Path) -> None:
    (missing,) = read_file(tmp_path / "none.jsonl").errors
    (folder,) = read_file(tmp_path).errors
    assert str(missing).startswith(f"{tmp_path / 'none.jsonl'}: no such file")
    assert str(folder).startswith(f"{tmp_path}: is a directory")


# One JSON document


def test_a_record_laid_out_over_lines_is_the_session_of_its_one_line(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("\n\n" + json.dumps(record(), indent=2))
    file = read_file(path)
    assert (file.errors, file.scenarios, file.lines) == ((), (parse_record(record()),), (3,))


def test_a_list_of_records_gives_each_with_the_line_on_which_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    laid_out = ",\n\n".join(json.dumps(record(id=name), indent=1) for name in "abc")
    path.write_text(f"[{laid_out} ]\n")
    file = read_file(path)
    assert file.errors == ()
    assert [scenario.id for scenario in file.scenarios] == ["a", "b", "c"]
    lines = path.read_text().split("\n")
    assert [lines[number] for number in file.lines] == [f' "id": "{name}",' for name in "abc"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"tasks":', "tasks:", "not JSON (column 3: "),
        ('"env_info":', '"env_info"', "not JSON (column 14: "),
        ('"tasks": [', '"tasks": [NaN,', "not JSON: NaN is no JSON number"),
        ('"tasks": [', '"tasks": [1e999,', "not usable: the number 1e999 is too large"),
    ],
)
def test_a_document_that_is_not_json_is_told_by_line_and_column(
    old: str, new: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.json"
    text = json.dumps(record(), indent=2)
    path.write_text(text.replace(old, new))
    (error,) = read_file(path).errors
    assert error.line == 1 + text[: text.index(old)].count("\n")
    assert error.reason.startswith(reason)


def test_what_stands_after_a_document_is_told_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    text = json.dumps([record()], indent=2)
    path.write_text(f"{text}\n]")
    (error,) = read_file(path).errors
    assert (error.line, "Extra data" in error.reason) == (2 + text.count("\n"), True)


def test_errors_in_a_document_name_the_line_of_their_record(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("[\n" + json.dumps(record()) + ",\n" + json.dumps(record(tasks=[5, ""])) + ",\n7]")
    assert [(error.line, error.field) for error in read_file(path).errors] == [
        (3, "tasks[0]"),
        (3, "tasks[1]"),
        (4, ""),
    ]


def test_lines_that_begin_with_two_slashes_are_comments_in_either_form(tmp_path: Path) -> None:
    words = "Is it at https://example.org, or\n// not?"
    one, other = tmp_path / "f.jsonl", tmp_path / "f.json"
    one.write_text("// A comment.\n" + json.dumps(record(tasks=[words, "x"])) + "\n  // {\n")
    laid_out = json.dumps(record(tasks=[words, "x"]), indent=2).split("\n")
    other.write_text("\n  // So is this.\n".join(laid_out))
    for path, line in ((one, 2), (other, 1)):
        file = read_file(path)
        assert (file.errors, file.lines) == ((), (line,))
        assert file.scenarios[0].tasks[0].text == words


def test_a_broken_line_between_records_does_not_make_the_file_a_document(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"id":\n' + json.dumps(record()) + "\n")
    file = read_file(path)
    assert ([scenario.id for scenario in file.scenarios], file.lines) == (["fruit_1"], (2,))
    assert [error.line for error in file.errors] == [1]


def test_a_document_that_is_not_utf8_is_told_by_the_line(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(json.dumps(record(id="fruit"), indent=2).encode().replace(b"fruit", b"fr\xff", 1))
    (error,) = read_file(path).errors
    assert (error.line, "UTF-8" in error.reason) == (2, True)


# Packs


def test_the_word_bundled_means_the_bundled_file() -> None:
    assert read_file("bundled").path == BUNDLED
    assert read_file("bundled").scenarios == read_file(BUNDLED).scenarios


def test_every_other_file_beside_it_is_a_pack_called_by_its_stem() -> None:
    stems = sorted(path.stem for path in BUNDLED.parent.glob("*.jsonl") if path != BUNDLED)
    assert list(packs()) == ["bundled", *stems]
    for name, path in packs().items():
        assert read_file(name).path == path
        assert read_file(name).scenarios == read_file(path).scenarios


def test_all_packs_can_be_played_together() -> None:
    files = load(packs())
    assert sum(len(file.scenarios) for file in files) == len({s.id for file in files for s in file.scenarios})


def test_a_file_that_is_called_like_a_pack_is_meant_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "everyday", record())
    assert [scenario.id for scenario in read_file("./everyday").scenarios] == ["fruit_1"]
    assert [scenario.id for scenario in read_file(Path("everyday")).scenarios] == ["fruit_1"]
    assert read_file("everyday").path == packs()["everyday"]


@pytest.mark.parametrize("name", ["everday", "everydays", "everyday.jsonl", "./everyday"])
def test_a_name_like_that_of_a_pack_is_told_which_was_meant(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (error,) = read_file(name).errors
    listed = ", ".join(packs())
    assert str(error) == (
        f"{name}: no such file, and no pack of that name; did you mean everyday? the packs are {listed}"
    )


# Loading several


def test_load_returns_sound_files_in_order(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", record(id=name)) for name in ("b", "a")]
    assert [file.scenarios[0].id for file in load(paths)] == ["b", "a"]


def test_load_raises_the_first_error(tmp_path: Path) -> None:
    good = write(tmp_path / "good.jsonl", record())
    bad = write(tmp_path / "bad.jsonl", changed(["answer_list", 1, 1, "dependency_list"], [2]))
    with pytest.raises(ScenarioError, match=r"bad\.jsonl:1: answer_list\[1\]: has a cyclic dependency"):
        load([good, bad])


def test_load_refuses_one_id_in_two_files(tmp_path: Path) -> None:
    first = write(tmp_path / "first.jsonl", record())
    second = write(tmp_path / "second.jsonl", record(id="x"), record())
    with pytest.raises(ScenarioError, match=r"second\.jsonl:2: id: fruit_1 .*first\.jsonl"):
        load([first, second])


@pytest.mark.parametrize("apart", [True, False])
def test_load_refuses_an_id_that_names_an_epoch_of_another_session(tmp_path: Path, apart: bool) -> None:
    records = [record(id="x.e12"), record(id="x")]
    if apart:
        files = [write(tmp_path / f"{number}.jsonl", it) for number, it in enumerate(records)]
    else:
        files = [write(tmp_path / "0.jsonl", *records)]
    with pytest.raises(ScenarioError, match=r"0\.jsonl:1: id: x\.e12 names an epoch of x"):
        load(files)
    if not apart:
        assert [it.line for it in read_file(files[0]).errors] == [1]
    assert load([write(tmp_path / "alone.jsonl", record(id="y.e1"), record(id="x"))])
