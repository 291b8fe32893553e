"""Settings: the command line, the environment, a file, the defaults; where a log goes that nobody named."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result
from support.commands import PROGRAM, error_line, process, run

from proxy.command_line.config_cli import TEMPLATE
from proxy.command_line.context_cli import words_of
from proxy.command_line.effective import commands
from proxy.command_line.options import SHARED, key_of, options, variables
from proxy.command_line.places import NAME, find
from proxy.command_line.runs_folder import new_log, newest_log
from proxy.play_cli import given_beside_proxy
from run_proxy import main

OPTIONS = {
    " ".join(words_of(context)): {key_of(it): it for it in options(context.command)}
    for context in commands(click.Context(main, info_name="wildproxy"))
}
"""Every command's options, by its words and their long names."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own, and no variable of ours."""
    for name in [it for it in os.environ if it.startswith("WILDPROXY_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(text: str, path: Path = Path(NAME)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def shown(*words: str, env: Mapping[str, str] | None = None, config: tuple[str, ...] = ()) -> dict[str, Any]:
    """What `config show` says of a command's options: (value, source, where)."""
    result = run(*config, "config", "show", "--format", "json", *words, env=dict(env or {}))
    assert (result.exit_code, result.stderr) == (0, "")
    [(name, found)] = json.loads(result.stdout)["commands"].items()
    assert " ".join(words).startswith(name)
    return {option: (it["value"], it["source"], it["where"]) for option, it in found.items()}


def refused(text: str, *arguments: str) -> str:
    """What is said of a settings file with this text, after its name."""
    settings(text)
    line = error_line(run(*(arguments or ("drive",))), 2)
    assert line.startswith(f"Error: {NAME}: ")
    return line.removeprefix(f"Error: {NAME}: ")


def test_the_command_line_comes_before_the_environment_before_the_file_before_the_default() -> None:
    settings('[defaults]\nmodel = "m0"\nprovider = "p0"\n[drive]\nmodel = "m1"\nlimit = 5\nepochs = 2\n')
    env = {"WILDPROXY_MODEL": "m2", "WILDPROXY_DRIVE_LIMIT": "6", "WILDPROXY_DRIVE_EPOCHS": "7"}
    found = shown("drive", "--", "--epochs", "3", env=env)
    assert {it: found[it] for it in ("epochs", "limit", "model", "provider", "concurrency", "per")} == {
        "epochs": (3, "command line", None),
        "limit": (6, "environment", "WILDPROXY_DRIVE_LIMIT"),
        "model": ("m2", "environment", "WILDPROXY_MODEL"),
        "provider": ("p0", "file", "wildproxy.toml: defaults.provider"),
        "concurrency": (4, "default", None),
        "per": (None, "default", None),
    }
    assert shown("drive")["model"] == ("m1", "file", "wildproxy.toml: drive.model")
    both = {"WILDPROXY_DRIVE_MODEL": "m3", "WILDPROXY_MODEL": "m2"}
    assert shown("drive", env=both)["model"] == ("m3", "environment", "WILDPROXY_DRIVE_MODEL")
    assert shown("serve", env=both)["model"] == ("m2", "environment", "WILDPROXY_MODEL")


def test_a_command_gets_what_config_show_says() -> None:
    settings(
        '[defaults]\nprovider = "sim:oracle"\n[drive]\nagent = "builtin"\nlimit = 3\nonly = ["home_6"]\n'
    )
    assert "1 of 1 session played" in run("drive").stdout
    assert "2 of 2 sessions played" in run("drive", env={"WILDPROXY_DRIVE_ONLY": "home_6 ledger_1"}).stdout
    assert "1 of 1 session played" in run("drive", "--only", "ledger_1").stdout


@pytest.mark.parametrize("name", [name for name in OPTIONS if OPTIONS[name]])
def test_every_option_of_every_command_is_read_from_a_variable_of_its_own_and_from_the_file(
    name: str,
) -> None:
    words = name.split()
    given = {key: sample(option) for key, option in OPTIONS[name].items()}
    env = {variables(words, OPTIONS[name][key])[0]: plain for key, (plain, _) in given.items()}
    for key in OPTIONS[name]:
        assert f"WILDPROXY_{name}_{key}".replace(" ", "_").replace("-", "_").upper() in env
    if name != "config show":
        from_environment = shown(*words, env=env)
        assert {source for _, source, _ in from_environment.values()} == {"environment"}
        lines = [f"{key} = {json.dumps(value)}" for key, (_, value) in given.items()]
        settings("\n".join([f"[{'.'.join(words)}]", *lines]))
        from_file = shown(*words)
        assert {source for _, source, _ in from_file.values()} == {"file"}
        assert [it[0] for it in from_file.values()] == [it[0] for it in from_environment.values()]


def sample(option: click.Option) -> tuple[str, Any]:
    """A value that is not the default: as a variable has it, and as a file does."""
    kind = option.type
    if option.is_flag:
        return "1", True
    if isinstance(kind, click.Choice):
        value = list(kind.choices)[-1]
        return str(value), [value] if option.multiple else value
    if isinstance(kind, click.types.IntParamType):
        return "2", 2
    if isinstance(kind, click.types.FloatParamType):
        return "0.25", 0.25
    return "x", ["x"] if option.multiple else "x"


def test_switches_and_several_values_are_said_in_the_environment_as_in_the_file() -> None:
    env = {"WILDPROXY_DRIVE_STREAM": "1", "WILDPROXY_DRIVE_ONLY": "a b", "WILDPROXY_DRIVE_RESUME": "0"}
    found = shown("drive", env=env)
    assert [found[it][0] for it in ("stream", "only", "resume")] == [True, ["a", "b"], False]
    assert shown("drive", "--", "--no-stream", env=env)["stream"] == (False, "command line", None)
    settings('[drive]\nstream = true\nonly = "a"\nkeep_tool = ["t_*", "u"]\n')
    found = shown("drive")
    assert [found[it][0] for it in ("stream", "only", "keep-tool")] == [True, ["a"], ["t_*", "u"]]
    assert shown("drive", env={"WILDPROXY_DRIVE_STREAM": ""})["stream"][1] == "file"


@pytest.mark.parametrize("key, names", SHARED.items())
def test_an_option_that_is_set_for_several_commands_is_an_option_of_each(
    key: str, names: tuple[str, ...]
) -> None:
    assert len(names) > 1
    assert [name for name in names if key not in OPTIONS[name]] == []


def test_what_is_set_for_all_leaves_options_of_the_same_name_with_another_meaning_alone() -> None:
    settings('[defaults]\nmodel = "m"\nscenarios = "ledger"\n')
    env = {"WILDPROXY_MODEL": "m2", "WILDPROXY_SCENARIOS": "zh"}
    for name, key in (("export", "model"), ("score", "scenarios")):
        assert shown(name, env=env)[key] == (None, "default", None)


@pytest.mark.parametrize(
    "text, told",
    [
        ("[drive\n", "not TOML: "),
        ("limit = 3\n", "limit: stands in no table: put it under [defaults] or a command\n"),
        ("[drvie]\n", "[drvie]: there is no command of that name: did you mean 'drive'?\n"),
        ("[default]\n", "[default]: there is no command of that name: did you mean 'defaults'?\n"),
        ("[drive]\nlimt = 3\n", "drive.limt: 'drive' has no option of that name: did you mean 'limit'?\n"),
        (
            '[defaults]\nmodle = "x"\n',
            "defaults.modle: is not shared by several commands: did you mean 'model'?\n",
        ),
        ("[drive]\nlimit = true\n", "drive.limit: must be a whole number, not true or false\n"),
        ("[drive]\nlimit = '3'\n", "drive.limit: must be a whole number, not a text\n"),
        ("[drive]\nlimit = 0\n", "drive.limit: 0 is not in the range x>=1.\n"),
        ("[drive]\nresume = 'yes'\n", "drive.resume: must be true or false, not a text\n"),
        ("[drive]\nmodel = 4\n", "drive.model: must be a text in quotes, not a number\n"),
        ("[drive]\nmodel = 2026-01-01\n", "drive.model: must be a text in quotes, not a date or time\n"),
        (
            "[drive]\nonly = ['a', 1]\n",
            "drive.only: must be a text in quotes, or a list of them, not a number\n",
        ),
        ("[drive]\nturn-timeout = []\n", "drive.turn-timeout: must be a number, not a list\n"),
        (
            "[drive]\nhistory = 'life'\n",
            "drive.history: 'life' is not one of 'gold', 'live'. Did you mean 'live'?\n",
        ),
        ("[drive.limit]\n", "drive.limit: must be a whole number, not a table\n"),
        (f"[drive]\nonly = {'[' * 5000}{']' * 5000}\n", "not TOML: maximum recursion depth exceeded"),
        (f"[drive]\nlimit = {'9' * 5000}\n", "not TOML: Exceeds the limit"),
        ('[drive]\nlog = "a\\u0000b"\n', "drive.log: has a NUL character in it: take it out\n"),
        (
            '[drive]\nlog = "~nobody-of-that-name/run.db"\n',
            "drive.log: '~nobody-of-that-name/run.db': no home of that user is known\n",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_one_line_with_the_key_and_the_nearest_name(text: str, told: str) -> None:
    assert f"{refused(text)}\n".startswith(told)


def test_a_file_may_begin_with_a_byte_order_mark() -> None:
    settings("\ufeff[drive]\nlimit = 3\n")
    assert shown("drive")["limit"] == (3, "file", "wildproxy.toml: drive.limit")


def test_tables_of_commands_of_several_words_are_checked_too() -> None:
    listing = ("log", "runs", "list", "x.db")
    nothing = "log.rusn: there is no such command: did you mean 'runs'?"
    assert refused("[log.rusn]\n", *listing) == nothing
    assert refused("[log]\nruns = 1\n", *listing) == "log.runs: is a command: make it a table, [log.runs]"
    assert refused("[log.runs.list]\nformt = 'json'\n", *listing) == (
        "log.runs.list.formt: 'log runs list' has no option of that name: did you mean 'format'?"
    )
    settings("[log.runs.list]\nformat = 'json'\n")
    assert shown("log", "runs", "list")["format"] == ("json", "file", "wildproxy.toml: log.runs.list.format")


def test_a_value_that_does_not_fit_is_told_with_where_it_comes_from() -> None:
    told = "Invalid value for '--port': 'x' is not a valid integer range."
    line = error_line(run("serve", env={"WILDPROXY_SERVE_PORT": "x"}), 2)
    assert (
        line
        == f"Error: {told} It comes from the environment: WILDPROXY_SERVE_PORT. See wildproxy serve --help"
    )
    settings("[drive]\nturn-timeout = inf\nagent = 'builtin'\n")
    line = error_line(run("drive", "--provider", "sim:oracle"), 2)
    assert "It comes from wildproxy.toml: drive.turn-timeout." in line


def test_the_file_is_looked_for_as_far_up_as_the_repository_goes(folder: Path) -> None:
    inner = folder / "repository" / "a" / "b"
    inner.mkdir(parents=True)
    above = settings("", folder / NAME)
    assert find(folder) == above
    assert find(inner) is None
    (folder / "repository" / ".git").mkdir()
    assert find(inner) is None
    at_root = settings("", folder / "repository" / NAME)
    assert find(inner) == at_root
    assert find(inner.parent) == at_root
    nearest = settings("", inner / NAME)
    assert find(inner) == nearest


def test_another_file_can_be_named_or_none() -> None:
    settings("[drive]\nlimit = 1\n")
    other = settings("[drive]\nlimit = 2\n", Path("other/mine.toml"))
    assert shown("drive")["limit"] == (1, "file", "wildproxy.toml: drive.limit")
    assert shown("drive", config=("--config", str(other)))["limit"] == (2, "file", f"{other}: drive.limit")
    assert shown("drive", config=("--config", ""))["limit"] == (None, "default", None)
    assert shown("drive", env={"WILDPROXY_CONFIG": str(other)})["limit"][0] == 2
    line = error_line(run("--config", "none.toml", "drive"), 2)
    assert line == "Error: none.toml: cannot be read: No such file or directory"


def test_paths_in_a_file_are_meant_from_its_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".git").mkdir()
    settings(
        '[defaults]\nlog = "logs/a.db"\nscenarios = ["mine.jsonl", "ledger"]\n[score]\nprices = "~/p.json"\n'
    )
    assert shown("drive")["log"][0] == "logs/a.db"
    monkeypatch.setenv("HOME", str(folder / "home"))
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert shown("drive")["log"][0] == str(folder / "logs" / "a.db")
    assert shown("drive")["scenarios"][0] == [str(folder / "mine.jsonl"), "ledger"]
    assert shown("score")["prices"][0] == str(folder / "home" / "p.json")
    assert shown("drive", "--", "--log", "b.db")["log"][0] == "b.db"


def test_a_file_that_is_overruled_takes_what_goes_with_it_along() -> None:
    """`history-from` makes sense with live history alone."""
    settings('[defaults]\nprovider = "sim:oracle"\nhistory = "live"\nhistory-from = "proxy"\nmax-steps = 5\n')
    drive = ("drive", "--agent", "builtin", "--only", "home_6")
    assert run(*drive).exit_code == 0
    assert run(*drive, "--history", "gold").exit_code == 0
    line = error_line(run(*drive, "--history", "gold", "--history-from", "proxy"), 2)
    assert line.startswith("Error: --history-from is for --history live")
    settings('[defaults]\nprovider = "sim:oracle"\nhistory-from = "proxy"\n')
    assert error_line(run(*drive), 2).startswith("Error: --history-from is for --history live")


def test_a_proxy_that_runs_already_may_be_named_beside_a_file_that_has_a_provider() -> None:
    settings('[defaults]\nprovider = "sim:oracle"\nlog = "x.db"\n[drive]\nagent = "builtin"\n')
    token = {"EVAL_TOKEN": "token-of-a-test"}
    context = main.make_context("wildproxy", ["drive"])
    command = main.get_command(context, "drive")
    assert command is not None
    assert given_beside_proxy(command.make_context("drive", ["--proxy", "http://x"], parent=context)) == []
    line = error_line(run("drive", "--proxy", "http://127.0.0.1:9", "--log", "x.db", env=token), 2)
    assert line.startswith("Error: --log: the proxy at --proxy has its own; leave it out.")


def test_config_show_says_what_a_default_is_worked_out_from() -> None:
    lines = run("config", "show", "drive").stdout.splitlines()
    told = {line.split()[0]: line.partition("  default")[2] for line in lines if "  default" in line}
    assert told["log"] == ": a new one in ./runs"
    assert told["on-mismatch"] == ": stop; continue with --history live"
    assert told["scenarios"] == ": bundled"
    assert told["provider-key-env"].startswith(": the agent's own key is passed on")
    assert (told["limit"], told["epochs"]) == ("", "")


def test_config_show_tells_of_all_commands_what_is_set_and_which_variables_are_none() -> None:
    settings('[log.runs.list]\nformat = "json"\n[demo]\nfolder = "d"\n')
    said = run("config", "show", env={"WILDPROXY_SERVE_PROT": "1", "WILDPROXY_TAIL_WIDE": "yes"}).stdout
    assert said.splitlines() == [
        "File: wildproxy.toml",
        "",
        "demo",
        "  folder  d  wildproxy.toml: demo.folder",
        "",
        "tail",
        "  wide  true  environment: WILDPROXY_TAIL_WIDE",
        "",
        "log runs list",
        "  format  json  wildproxy.toml: log.runs.list.format",
        "",
        "WILDPROXY_SERVE_PROT is set, but no option is called so: did you mean WILDPROXY_SERVE_PORT?",
        "",
        "All options of a command: wildproxy config show COMMAND",
    ]


def test_config_show_says_where_a_file_was_looked_for(folder: Path) -> None:
    said = run("config", "show").stdout.splitlines()
    assert said[0] == f"File: none (wildproxy.toml is looked for in {folder})"
    assert said[2] == "Nothing is set. All options of a command: wildproxy config show COMMAND"
    (folder / ".git").mkdir()
    (folder / "in").mkdir()
    os.chdir("in")
    first = run("config", "show").stdout.splitlines()[0]
    assert (
        first == f"File: none (wildproxy.toml is looked for in {folder / 'in'} and above it, up to {folder})"
    )


SECRET = "sk-proj-abcdefgh12345678"


@pytest.mark.parametrize(
    "text, arguments",
    [
        (f'[defaults]\nprovider = "https://me:{SECRET}@host/v1"\n', ("config", "show", "drive")),
        (f'[defaults]\nprovider-key-env = "{SECRET}"\n', ("config", "show")),
        (f'[drive]\nagent = "env OPENAI_API_KEY={SECRET} python a.py"\n', ("config", "show", "drive")),
        (f'[drive]\nagent-body = \'{{"api_key": "{SECRET}"}}\'\n', ("config", "show", "drive")),
        (f'[drive]\nhistory = "{SECRET}"\n', ("drive",)),
        (f'[drive]\napi-key = "{SECRET}"\n', ("drive",)),
        (f'[drive]\nagent = "{SECRET}\n', ("drive",)),
        (f'["{SECRET}"]\n', ("drive",)),
    ],
)
def test_nothing_that_looks_like_a_secret_is_shown(text: str, arguments: tuple[str, ...]) -> None:
    settings(text)
    for more in ((), ("--format", "json")) if arguments[0] == "config" else ((),):
        result = run(*arguments, *more)
        assert "Traceback" not in result.output
        assert SECRET not in result.output
    result = run("serve", env={"WILDPROXY_SERVE_PORT": SECRET})
    assert SECRET not in result.output


def test_no_option_takes_a_secret() -> None:
    words = re.compile("token|secret|password|api-?key")
    # One that ends in `-env` takes the name of a variable.
    named = re.compile(r"-env$")
    keys = [key for found in OPTIONS.values() for key in found if not named.search(key)]
    assert [key for key in keys if words.search(key)] == []


def test_the_template_is_written_once_and_says_nothing_until_a_line_is_uncommented() -> None:
    assert run("config", "init").exit_code == 0
    assert Path(NAME).read_text(encoding="utf-8") == TEMPLATE
    assert run("config", "show").stdout.splitlines()[2].startswith("Nothing is set.")
    Path(NAME).write_text("[drive]\n", encoding="utf-8")
    assert error_line(run("config", "init"), 2) == f"Error: {NAME}: is there already, and was left as it is"
    assert Path(NAME).read_text(encoding="utf-8") == "[drive]\n"


def test_every_line_of_the_template_can_be_uncommented() -> None:
    text = re.sub(r"^# (?=[a-z-]+ = )", "", TEMPLATE, flags=re.MULTILINE)
    tables = tomllib.loads(text)
    assert all(tables[name] for name in ("defaults", "serve", "drive", "score", "log"))
    settings(text)
    assert shown("drive")["limit"][1] == "file"
    assert shown("log", "runs", "list")["format"][1] == "file"


def test_a_help_text_and_completion_need_no_file_not_even_a_sound_one() -> None:
    settings("[drive\n")
    for name in ("", *OPTIONS):
        assert run(*name.split(), "--help").exit_code == 0
    assert run("completion", "bash").exit_code == 0
    program = "import sys, run_proxy; run_proxy.main(['drive', '--help'], standalone_mode=False); "
    checked = program + "sys.exit('tomllib' in sys.modules)"
    environ = {**os.environ, "PYTHONPATH": str(PROGRAM.parent)}
    subprocess.run([sys.executable, "-c", checked], env=environ, stdout=subprocess.DEVNULL, check=True)


NOON = datetime(2026, 11, 30, 12, 5)


@pytest.mark.parametrize(
    "scenarios, stem",
    [
        (("bundled",), "bundled"),
        (("some/where/My sessions.v2.jsonl",), "My-sessions-v2"),
        (("bundled", "a.jsonl", "b.jsonl"), "bundled-and-2-more"),
        (("../...",), "scenarios"),
        ((), "recorded"),
    ],
)
def test_a_log_that_nobody_named_is_called_by_the_minute_and_the_scenarios(
    scenarios: tuple[str, ...], stem: str
) -> None:
    with new_log(scenarios, NOON) as path:
        assert path == Path("runs") / f"2026-11-30-1205-{stem}.db"


def test_no_two_logs_share_a_name_and_one_that_was_not_written_to_is_taken_away() -> None:
    with new_log(("bundled",), NOON) as first, new_log(("bundled",), NOON) as second:
        assert [first.name, second.name] == ["2026-11-30-1205-bundled.db", "2026-11-30-1205-bundled-2.db"]
        second.write_bytes(b"written")
    assert (first.exists(), second.read_bytes()) == (False, b"written")
    with new_log(("bundled",), NOON) as again:
        assert again == first
    second.unlink()
    with new_log(("bundled",), NOON):
        pass
    assert not Path("runs").exists()


def test_the_newest_log_is_the_one_that_was_written_last() -> None:
    assert newest_log() is None
    Path("runs").mkdir()
    for age, name in enumerate(["c.db", "b.db", "a.db", "c.scores.db", "notes.txt", "d.db-wal"]):
        Path("runs", name).write_bytes(b"x")
        os.utime(Path("runs", name), (1000 - age, 1000 - age))
    Path("runs/empty.db").touch()
    Path("runs/gone.db").symlink_to("nowhere.db")
    assert newest_log() == Path("runs/c.db")
    # A proxy that plays writes to the file beside the log.
    Path("runs/a.db-wal").write_bytes(b"x")
    assert newest_log() == Path("runs/a.db")


def test_of_logs_that_were_written_at_one_time_the_last_that_was_made_is_the_newest() -> None:
    for _ in range(11):
        with new_log(("bundled",), NOON) as path:
            path.write_bytes(b"written")
    for log in Path("runs").iterdir():
        os.utime(log, (1000, 1000))
    assert newest_log() == Path("runs/2026-11-30-1205-bundled-11.db")


def drive(*more: str) -> Result:
    return run("drive", "--agent", "builtin", "--provider", "sim:oracle", "--only", "home_6", *more)


def test_drive_says_first_and_last_where_its_log_is_and_score_takes_it() -> None:
    played = drive()
    [log] = Path("runs").glob("*.db")
    first, *_, place, score, look = played.stdout.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d{4}-bundled\.db", log.name)
    assert (first, place) == (f"Log: {log}", f"Log: {log}")
    assert [line.split()[-2:] for line in (score, look)] == [["score", str(log)], ["report", str(log)]]
    scored = run("score")
    assert scored.stderr == f"{log}: the newest log in ./runs\n"
    assert scored.stdout == run("score", log).stdout
    for command in (("tail",), ("export", "--format", "openai"), ("report", "-o", "-")):
        assert run(*command).stderr.startswith(f"{log}: the newest log in ./runs\n")
    resumed = drive("--resume")
    assert resumed.stdout.splitlines()[0] == f"Log: {log}, the newest in ./runs"
    assert list(Path("runs").glob("*.db")) == [log]


def test_without_a_log_in_runs_one_has_to_be_named() -> None:
    for command in ("score", "report", "export", "tail"):
        line = error_line(run(command), 2)
        assert line.startswith(
            "Error: Missing argument 'LOG.db': none was named, and there is none in ./runs."
        )
    assert "--resume: there is no log in ./runs" in error_line(drive("--resume"), 2)
    assert "Missing argument" in error_line(run("compare"), 2)
    assert not Path("runs").exists()


def test_a_command_that_fails_before_it_plays_leaves_no_log_and_speaks_of_none() -> None:
    for words in (("drive", "--agent", "builtin"), ("serve", "--scenarios", "bundled")):
        refused = run(*words, "--provider", "sim:orcale")
        assert error_line(refused, 2) and refused.stdout == ""
    unknown = drive("--only", "zzz")
    assert "no scenario 'zzz'" in error_line(unknown, 2) and unknown.stdout == ""
    assert not Path("runs").exists()
    Path("runs").touch()
    assert error_line(drive(), 2).startswith("Error: runs: File exists: name a log with --log.")


def test_a_run_gets_its_name_from_drive_and_is_compared_by_it() -> None:
    for name in ("baseline", "candidate"):
        assert drive("--log", "run.db", "--name", name).exit_code == 0
    assert run("compare", "run.db", "--run-a", "baseline", "--run-b", "newest").exit_code in (0, 4)
    taken = drive("--log", "run.db", "--name", "baseline")
    assert error_line(taken, 2).endswith("is already called 'baseline': take another name")
    for word in ("all", "newest", " "):
        assert "cannot be a run's name" in error_line(drive("--name", word), 2)
    listed = json.loads(run("log", "runs", "list", "run.db", "--format", "json").stdout)
    assert [it["name"] for it in listed] == ["baseline", "candidate"]
    assert not Path("runs").exists()


def test_a_run_that_is_resumed_may_get_a_name() -> None:
    assert drive("--log", "run.db").exit_code == 0
    assert drive("--log", "run.db", "--resume", "--name", "nightly").exit_code == 0
    listed = json.loads(run("log", "runs", "list", "run.db", "--format", "json").stdout)
    assert [it["name"] for it in listed] == ["nightly"]


async def test_serve_says_first_and_last_where_its_log_is(folder: Path) -> None:
    env = {"WILDPROXY_SERVE_PORT": "0", "WILDPROXY_PROVIDER": "sim:oracle"}
    async with process("serve", "--scenarios", "bundled", env=env) as serving:
        assert await serving.stop() == 0
    [log] = Path("runs").glob("*.db")
    _, first, *_, place, score, look = serving.said.decode().splitlines()
    assert f"   Log: {log}   " in first and place == f"Log: {log}"
    assert score.endswith(f"score {log}")
    assert look.endswith(f"report {log}")
