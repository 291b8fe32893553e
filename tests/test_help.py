"""Help: every command shows examples that work, the program says what to do first, shells complete."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from support.commands import PROGRAM, error_line, run, understand

from proxy.command_line.completion_cli import INSTALL
from proxy.command_line.context_cli import words_of
from proxy.command_line.effective import commands
from proxy.command_line.help import examples
from run_proxy import COMMANDS as TABLE
from run_proxy import Composition, main
from scenarios import load

ROOT = click.Context(main, info_name="wildproxy", obj=Composition())


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """Every command and group of commands, by its words; the program itself has none."""
    yield "", main
    for context in commands(ROOT):
        words = words_of(context)
        if len(words) > 1 and context.parent is not None:
            yield " ".join(words[:-1]), context.parent.command
        yield " ".join(words), context.command


COMMANDS = dict(all_commands())
EXAMPLES = list(dict.fromkeys(line for command in COMMANDS.values() for line in examples(command)))

NOT_RUN = (
    # these go on until they are stopped
    *("serve", "simulate", "tail -f"),
    # these take long, or need the network, or are run by the tests of the documentation
    *(
        "demo",
        "drive --agent 'python my_agent.py",
        "drive --agent builtin --provider sim:serial --scenarios ledger",
    ),
    # these name a run or an exchange of the reader's own log
    *("runs rename", "runs delete", "log show", "--run-a"),
    # this is the shell's business
    "eval",
)


def piped(example: str) -> list[list[str]]:
    """The words after each `wildproxy` in an example; what is no command of ours is left out."""
    found = re.search(r"\$\((.*)\)", example)
    line = found[1] if found else re.sub(r"\s#.*| > .*", "", example)
    parts = [shlex.split(part) for part in line.split(" | ")]
    return [words[1:] for words in parts if words[0] == "wildproxy"]


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples name: logs, chats."""
    folder = tmp_path_factory.mktemp("stock")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        played = run("drive", "--agent", "builtin", "--provider", "sim:oracle", "--only", "home_6")
        assert played.exit_code == 0, played.output
        [log] = Path("runs").glob("*.db")
        for name in ("run", "before", "after", "agent", "monday", "tuesday"):
            Path(f"{name}.db").write_bytes(log.read_bytes())
        Path("cases.jsonl").write_text(run("export", "run.db", "--format", "openai").stdout, "utf-8")
    return folder


@pytest.fixture
def folder(stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own, where the files of the stock are at hand."""
    monkeypatch.chdir(tmp_path)
    for path in stock.iterdir():
        Path(path.name).symlink_to(path)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_one_to_three_examples_of_itself(name: str) -> None:
    shown = run(*name.split(), "--help").output
    section = re.search(r"^(?:Examples|First steps):\n((?:  .*(?:\n|$))+)", shown, re.MULTILINE)
    assert section is not None
    told = examples(COMMANDS[name])
    assert 1 <= len(told) <= 3
    assert [line for line in told if len(line) > 78] == []
    assert [line for line in told if f"  {line}\n" not in f"{section[1]}\n"] == []
    assert [line for line in told if f"wildproxy {name}" not in line] == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_understood_as_it_is_typed(example: str, folder: Path) -> None:
    for words in piped(example):
        understand(*words)


@pytest.mark.parametrize("example", [it for it in EXAMPLES if not any(part in it for part in NOT_RUN)])
def test_an_example_does_what_it_says(example: str, folder: Path) -> None:
    if "scenarios validate" in example:
        assert run("scenarios", "new", "my.json").exit_code == 0
    said = b""
    for words in piped(example):
        result: Result = CliRunner().invoke(main, words, input=said)
        # With --gate, nobody can tell two runs that are the same from two that are not.
        assert result.exit_code == (4 if "--gate" in words else 0), (words, result.output)
        said = result.stdout_bytes


def test_the_program_alone_says_what_to_do_first_then_lists_its_commands_by_use() -> None:
    alone = run()
    assert (alone.exit_code, alone.stderr) == (0, "")
    assert alone.stdout == run("--help").stdout
    headings = re.findall(r"^(\w[\w ]*):", alone.stdout, re.MULTILINE)
    assert headings == ["Usage", "First steps", *dict.fromkeys(it.use for it in TABLE.values()), "Options"]
    listed = re.findall(r"^  (\w+)  +\S", alone.stdout.partition("\nPlay:")[2], re.MULTILINE)
    assert sorted(listed) == sorted(TABLE)
    for word in ("demo", "serve", "score", "docs/tutorial.md"):
        assert word in alone.stdout.partition("\nPlay:")[0]


@pytest.mark.parametrize(
    "arguments, told",
    [
        ("scoer", "No such command 'scoer': did you mean 'score'? See wildproxy --help"),
        ("log rusn list", "No such command 'rusn': did you mean 'runs'? See wildproxy log --help"),
        ("log runs lst x", "No such command 'lst': did you mean 'list'? See wildproxy log runs --help"),
        ("serve --prt 1", "No such option --prt: did you mean '--port'? See wildproxy serve --help"),
        ("--confg x serve", "No such option --confg: did you mean '--config'? See wildproxy --help"),
        (
            "score --debug",
            "No such option --debug: it goes before the command, as in 'wildproxy --debug ...'. "
            "See wildproxy score --help",
        ),
        (
            "compare a b --metric tsak",
            "Invalid value for '--metric': 'tsak' is not one of 'task', 'session'. Did you mean 'task'? "
            "See wildproxy compare --help",
        ),
        ("judge", "Missing argument 'CASES.jsonl'. See wildproxy judge --help"),
        ("drive", "Missing option '--agent'. See wildproxy drive --help"),
        ("config show drvie", "there is no command 'drvie': did you mean 'drive'?"),
    ],
)
def test_wrong_usage_is_one_line_with_the_nearest_name_and_where_help_is(arguments: str, told: str) -> None:
    result = run(*arguments.split())
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: {told}\n")


def test_a_run_a_session_and_a_scenario_are_answered_with_the_nearest(folder: Path) -> None:
    for arguments, meant in [
        (("scenarios", "show", "bundled", "hom_6"), "'home_6'"),
        (("tail", "run.db", "--session", "home6"), "'home_6.e1'"),
        (("drive", "--agent", "builtin", "--provider", "sim:oracle", "--only", "hom_6"), "'home_6'"),
        (("drive", "--agent", "builtin", "--provider", "sim:orcale"), "'oracle'"),
    ]:
        assert f"did you mean {meant}" in error_line(run(*arguments), 2)
    run("log", "runs", "rename", "after.db", "2", "baseline")
    for arguments in (("tail", "after.db", "--run"), ("score", "after.db", "--run")):
        assert "(did you mean 'baseline'?)" in run(*arguments, "basline").stderr


def completed(words: str) -> list[str]:
    """What a shell is told after these words; the last is what has been typed of it."""
    place = str(words.count(" "))
    environ = {"COMP_WORDS": words, "COMP_CWORD": place, "_WILDPROXY_COMPLETE": "bash_complete"}
    result = CliRunner().invoke(main, [], env=environ, prog_name="wildproxy")
    return [line.partition(",")[2] for line in result.stdout.splitlines()]


@pytest.mark.parametrize("command", [("tail",), ("judge",), ("report", "--no-raw")])
def test_a_name_that_no_file_can_have_is_one_line_that_names_it(command: tuple[str, ...]) -> None:
    name = "a" * 300
    line = error_line(run(*command, f"{name}.db"), 3)
    assert line.startswith(f"Error: cannot go on: {name}.")
    assert line.endswith(": File name too long")


def test_a_shell_completes_commands_options_choices_packs_and_ids() -> None:
    assert completed("wildproxy ") == list(TABLE)
    assert completed("wildproxy log runs re") == ["rename"]
    assert completed("wildproxy drive --hist") == ["--history", "--history-from"]
    assert completed("wildproxy drive --history ") == ["gold", "live"]
    assert completed("wildproxy serve --scenarios bun") == ["bundled"]
    assert completed("wildproxy config show log runs l") == ["list"]
    ids = [it.id for it in load(["bundled"])[0].scenarios]
    assert completed("wildproxy drive --only ") == ids
    assert completed("wildproxy scenarios show bundled home") == ["home_6"]


@pytest.mark.parametrize("shell", INSTALL)
def test_a_completion_script_begins_with_how_to_install_it(shell: str) -> None:
    first, *script = run("completion", shell).stdout.splitlines()
    assert first == f"# In every new terminal: {INSTALL[shell]}"
    assert any(f"_WILDPROXY_COMPLETE={shell}_complete" in line for line in script)


def test_bash_completes_by_the_script(tmp_path: Path) -> None:
    program = tmp_path / "wildproxy"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(PROGRAM))} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "script").write_text(run("completion", "bash").stdout)
    typed = (
        ". ./script; COMP_WORDS=(wildproxy score --format js); COMP_CWORD=3; "
        "_wildproxy_completion wildproxy; echo ${COMPREPLY[*]}"
    )
    done = subprocess.run(
        ["bash", "-c", typed],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("json\n", "")
