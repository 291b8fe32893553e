"""The documentation is true: generated pages are fresh, commands run, examples give what is printed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from itertools import pairwise, takewhile
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from sqlite_utils import Database
from support.agent_runs import command
from support.commands import printed_in, understand
from support.ports import free_port

from run_proxy import main
from scenarios import LABELS, SUBTYPES, load
from scenarios.arguments import check_arguments

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCENARIO_FILES = (DOCS / "scenarios.md").read_text(encoding="utf-8")


def load_generator() -> ModuleType:
    """By its path: `docs` is no package, and another distribution may have one of that name."""
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generator = load_generator()


def block(kind: str, name: str, page: str = README) -> str:
    """A page's code block under the mark `<!-- KIND: NAME -->`."""
    found = re.findall(rf"<!-- {kind}: {name} -->\n```\w*\n(.*?)```", page, flags=re.DOTALL)
    assert len(found) == 1, f"there are {len(found)} blocks marked {kind}: {name}"
    return str(found[0])


def transcript(name: str) -> tuple[list[str], list[str]]:
    """The command of a console block as words, and the lines that it is said to print."""
    (only,) = transcripts(name, README)
    return only


def transcripts(name: str, page: str) -> list[tuple[list[str], list[str]]]:
    """The same for a block with several commands."""
    first, *parts = re.split(r"^\$ ", block("run", name, page), flags=re.MULTILINE)
    assert not first
    pairs = [(part.splitlines()[0], part.splitlines()[1:]) for part in parts]
    return [(shlex.split(command), lines) for command, lines in pairs]


VARIABLE = re.compile(r"[A-Z_]+=")


def run(words: list[str], folder: Path) -> str:
    """What a command of the README prints, as it would with the environment active.

    Variables may be set before it, as a shell takes them.
    """
    variables = dict(word.split("=", 1) for word in takewhile(VARIABLE.match, words))
    words = words[len(variables) :]
    if words[0] == "wildproxy":
        return printed_in(folder, *words[1:], env=environment() | variables)
    programs = {
        "python": [sys.executable],
        "sqlite-utils": [sys.executable, "-m", "sqlite_utils"],
    }
    done = subprocess.run(
        [*programs[words[0]], *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment() | variables,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment() -> dict[str, str]:
    # The `python` of an activated environment is its own.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def assert_shows(shown: list[str], printed: str) -> None:
    """The shown lines are printed in this order; `...` alone stands for lines, at an end for the rest of one.

    Blanks and rules may differ in length: a cut cell makes a column narrower.
    """
    pattern = ""
    for line in shown:
        if line == "...":
            pattern += r"(?:.*\n)*?"
            continue
        cut = line.endswith("...")
        words = re.escape(" ".join(re.sub("-{3,}", "---", line.removesuffix("...")).split()))
        pattern += words + (".*" if cut else "") + r"\n"
    text = "".join(" ".join(re.sub("-{3,}", "---", line).split()) + "\n" for line in printed.splitlines())
    assert re.search("(?m)^" + pattern, text), (
        f"the page shows\n{os.linesep.join(shown)}\nbut it is\n{printed}"
    )


def rows_of(log: Path, sql: str) -> list[dict[str, Any]]:
    with closing(Database(log)) as database:
        return list(database.query(sql))


@contextmanager
def serving(words: list[str], folder: Path) -> Iterator[str]:
    """A page's `serve`, on a free port; gives the address."""
    variables = dict(word.split("=", 1) for word in takewhile(VARIABLE.match, words))
    words = words[len(variables) + 1 :]
    command = [sys.executable, str(ROOT / "run_proxy.py"), *words, "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, env=environment() | variables, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
            assert address is not None
            yield address[0]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The README's walk as far as its log `agent.db`: the folder, and what the agent printed."""
    folder = tmp_path_factory.mktemp("walk")
    with serving(shlex.split(block("run", "serve")), folder) as address:
        program = block("file", "agent.py").replace("http://127.0.0.1:8787", address)
        (folder / "agent.py").write_text(program, encoding="utf-8")
        words, _ = transcript("agent")
        return folder, run(words, folder)


@pytest.fixture(scope="module")
def noisy_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All bundled sessions, some of them gone wrong."""
    folder = tmp_path_factory.mktemp("noisy")
    run(["wildproxy", "demo", "--folder", "."], folder)
    return folder / "demo.db"


@pytest.fixture(scope="module")
def forgetful_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session on the history of an agent that has none, before an LLM that errs."""
    folder = tmp_path_factory.mktemp("forgetful")
    played = ["--scenarios", "bundled", "--only", "home_6", "--provider", "sim:noisy:0.7:5"]
    agent = ["--agent", command("drops_history"), "--history", "live"]
    run(["wildproxy", "drive", *played, *agent, "--log", "forgetful.db"], folder)
    return folder / "forgetful.db"


@pytest.mark.parametrize("name", generator.PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == generator.PAGES[name](), "run python docs/generate.py"


@pytest.mark.parametrize("name", generator.PAGES)
def test_a_generated_page_does_not_depend_on_the_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = generator.PAGES[name]()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LANG", "C")
    assert generator.PAGES[name]() == before


@pytest.mark.parametrize("question, sql", generator.EXAMPLES)
def test_an_example_query_runs_on_a_log(
    question: str, sql: str, noisy_log: Path, forgetful_log: Path
) -> None:
    found = rows_of(noisy_log, sql) or rows_of(forgetful_log, sql)
    assert found or question == "What failed?"


def test_the_last_request_of_a_session_can_be_read_back(noisy_log: Path) -> None:
    (sql,) = [sql for question, sql in generator.EXAMPLES if question.startswith("Which messages")]
    found = rows_of(noisy_log, sql)
    assert [row["position"] for row in found] == list(range(len(found)))
    assert found[0]["role"] == "system"
    assert all(json.loads(row["body"])["role"] == row["role"] for row in found)


@pytest.mark.parametrize("name", ["demo", "test"])
def test_the_readme_commands_are_one_line_each(name: str) -> None:
    assert len(block("command", name).splitlines()) == 1


def test_the_readme_shows_what_the_demo_prints(noisy_log: Path) -> None:
    printed = run(["wildproxy", "score", str(noisy_log)], noisy_log.parent)
    assert_shows(block("output", "demo").splitlines(), printed)


def test_the_readme_shows_what_its_agent_prints(walk: tuple[Path, str]) -> None:
    assert_shows(transcript("agent")[1], walk[1])


@pytest.mark.parametrize("name", ["score", "query"])
def test_the_readme_shows_what_its_log_says(name: str, walk: tuple[Path, str]) -> None:
    words, shown = transcript(name)
    assert_shows(shown, run(words, walk[0]))


@pytest.mark.long
def test_the_readme_program_is_driven_through_every_bundled_session(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(block("file", "my_agent.py"), encoding="utf-8")
    words, shown = transcript("drive")
    # No other `python` has the SDK for certain.
    words = [word.replace("python ", f"{shlex.quote(sys.executable)} ", 1) for word in words]
    assert_shows(shown, run(words, tmp_path))


@pytest.mark.parametrize("name", ["show", "own"])
def test_the_example_of_a_scenario_file_is_shown_checked_and_played_as_said(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "garden.json").write_text(block("file", "garden.json", SCENARIO_FILES), encoding="utf-8")
    for words, shown in transcripts(name, SCENARIO_FILES):
        assert_shows(shown, run(words, tmp_path))


def test_the_example_of_annotations_is_shown_as_said(tmp_path: Path) -> None:
    record = json.loads(block("file", "rooms.json", SCENARIO_FILES))
    (tmp_path / "rooms.jsonl").write_text(json.dumps(record), encoding="utf-8")
    for words, shown in transcripts("rooms", SCENARIO_FILES):
        assert_shows(shown, run(words, tmp_path))


@pytest.mark.parametrize("name", ["packs", "balance"])
def test_the_packs_are_listed_and_played_as_said(name: str, tmp_path: Path) -> None:
    for words, shown in transcripts(name, SCENARIO_FILES):
        assert_shows(shown, run(words, tmp_path))


def test_the_way_from_an_empty_file_to_a_score_is_as_said(tmp_path: Path) -> None:
    for words, shown in transcripts("begin", SCENARIO_FILES):
        assert_shows(shown, run(words, tmp_path))
    edit("mistake", tmp_path / "library.json")
    words, shown = console(block("fails", "mistake", SCENARIO_FILES))
    refused = CliRunner().invoke(main, [*words[1:-1], str(tmp_path / words[-1])])
    assert refused.exit_code == 2
    assert_shows(shown, refused.output.replace(f"{tmp_path}{os.sep}", ""))
    edit("words", tmp_path / "library.json")
    for words, shown in transcripts("play", SCENARIO_FILES):
        assert_shows(shown, run(words, tmp_path))


def console(text: str) -> tuple[list[str], list[str]]:
    command, *shown = text.splitlines()
    return shlex.split(command.removeprefix("$ ")), shown


def edit(name: str, file: Path) -> None:
    """Replaces in the file what the table under `<!-- edit: NAME -->` says, each once."""
    text = file.read_text(encoding="utf-8")
    rows = CHANGE.findall(SCENARIO_FILES.partition(f"<!-- edit: {name} -->")[2].partition("\n\n")[0])
    assert rows
    for old, new in rows:
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


CHANGE = re.compile(r"^\| `(?P<change>[^`]+)` \| `(?P<printed>.*)` \|$", flags=re.MULTILINE)


@pytest.mark.parametrize("table, level", [("refused", "error: "), ("found", "")])
def test_each_change_to_the_example_is_found_as_said(table: str, level: str, tmp_path: Path) -> None:
    rows = CHANGE.findall(SCENARIO_FILES.partition(f"<!-- table: {table} -->")[2].partition("\n\n")[0])
    assert len(rows) > 5
    for change, printed in rows:
        file = tmp_path / "garden.json"
        file.write_text(json.dumps(changed(garden(), change)) + "\n", encoding="utf-8")
        result = CliRunner().invoke(main, ["scenarios", "validate", str(file)])
        findings = [line for line in result.stdout.splitlines() if line.startswith(str(file))]
        assert findings == [f"{file}:1: {level}{said}" for said in printed.split("`<br>`")]


def garden() -> Any:
    return json.loads(block("file", "garden.json", SCENARIO_FILES))


def changed(record: Any, change: str) -> Any:
    """The record after `PATH = JSON` or `del PATH`."""
    path, _, value = change.removeprefix("del ").partition(" = ")
    *way, last = (int(key) if key.isdigit() else key for key in re.findall(r"\w+", path))
    place = record
    for key in way:
        place = place[key]
    if change.startswith("del "):
        del place[last]
    else:
        place[last] = json.loads(value)
    return record


def test_the_labels_of_a_file_are_counted_as_said(tmp_path: Path) -> None:
    (command,) = re.findall(r"<!-- count -->\n```sh\n(.*?)```", SCENARIO_FILES, flags=re.DOTALL)
    listing, counting = command.replace("Wild-Tool-Bench.jsonl", "bundled").split(" | ")
    words = shlex.split(counting)
    assert words[:2] == ["python", "-c"]
    done = subprocess.run(
        [sys.executable, *words[1:]],
        input=run(shlex.split(listing), tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    tasks = [task for scenario in load(["bundled"])[0].scenarios for task in scenario.tasks]
    first, *counts = done.stdout.splitlines()
    assert first == f"{len(tasks) // 4} sessions, {len(tasks)} tasks"
    assert {line[5:]: int(line[:4]) for line in counts} == {
        name: [*(task.label for task in tasks), *(task.subtype for task in tasks)].count(name)
        for name in (*LABELS, *SUBTYPES)
    }


def test_the_counts_of_the_benchmark_add_up() -> None:
    """256 sessions of four tasks; a subtype for all but the first."""
    (shown,) = re.findall(r"<!-- counted -->\n```\n(.*?)```", SCENARIO_FILES, flags=re.DOTALL)
    first, *lines = shown.splitlines()
    counts = {line[5:]: int(line[:4]) for line in lines}
    assert first == "256 sessions, 1024 tasks"
    assert list(counts) == sorted([*LABELS, *SUBTYPES])
    assert sum(counts[label] for label in LABELS) == 1024
    assert sum(counts[subtype] for subtype in SUBTYPES) == 768


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_within_the_documentation_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        parts = urlsplit(target)
        if parts.scheme:
            continue
        file = page.parent / parts.path if parts.path else page
        if not file.is_file() or (parts.fragment and parts.fragment not in anchors(file)):
            broken.append(target)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_command_in_the_documentation_exists() -> None:
    known = set(re.findall(r"^## (\S.*)$", (DOCS / "cli.md").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        (page.name, command)
        for page in PAGES
        for command in re.findall(r"wildproxy ([a-z]+)\b", page.read_text(encoding="utf-8"))
    }
    assert {it for it in named if it[1] not in known} == set()


BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]+) -->\n)?^```(?:sh|console)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE
)
WITH_COMMAND = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*(wildproxy|python3?|sqlite-utils|pip|git) ", re.MULTILINE)


def blocks_of_commands() -> Iterator[tuple[str, str, str]]:
    """Page, mark and text of each block with a command; those of cli.md are the examples of the help."""
    for page in PAGES:
        for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
            if page.name != "cli.md" and WITH_COMMAND.search(found["text"]):
                yield page.name, found["mark"] or "", found["text"]


def test_every_command_of_the_documentation_is_run_or_it_is_said_why_not() -> None:
    found = list(blocks_of_commands())
    run_here = {text for _, mark, text in found if re.match(r"(run|command|fails): |count$", mark)}
    said = {text for _, mark, text in found if mark.startswith("not run: ")}
    assert [(page, text) for page, _, text in found if text not in run_here | said] == []


def test_a_command_that_needs_the_network_is_understood_all_the_same() -> None:
    lines = [
        line
        for _, mark, text in blocks_of_commands()
        if mark.startswith("not run: ")
        for line in text.replace("\\\n", " ").splitlines()
        if line.startswith("wildproxy ")
    ]
    assert len(lines) > 4
    for line in lines:
        understand(*shlex.split(line, comments=True)[1:])


@pytest.mark.parametrize("page", ["README.md", "scenarios.md"])
def test_a_block_that_is_marked_to_be_run_is_run(page: str) -> None:
    """The other pages are run as a whole."""
    marks = [mark for name, mark, _ in blocks_of_commands() if name == page and mark.startswith("run: ")]
    source = Path(__file__).read_text(encoding="utf-8")
    assert [mark for mark in marks if f'"{mark.removeprefix("run: ")}"' not in source] == []


def test_the_conformance_suite_is_pointed_at_a_proxy_as_the_readme_says(tmp_path: Path) -> None:
    serve, probe = block("run", "conformance").splitlines()
    port = str(free_port())
    with serving(shlex.split(serve.replace("9901", port)), tmp_path) as address:
        words = shlex.split(
            probe.replace("9901", port).replace("http://127.0.0.1:8787", address), comments=True
        )
        words[words.index("probed.db")] = str(tmp_path / "probed.db")
        assert words[:3] == ["python", "-m", "tests.conformance"]
        command = [sys.executable, *words[1:], "--only", "error-429"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


EXAMPLE = re.compile(r"\| (\d+) \| `(.*?)` \| `(.*?)` \| (?:`(.*?)`|\(nothing\)) \| `(.*)` \|")


@pytest.mark.parametrize(
    "row, schema, annotated, sent, message", EXAMPLE.findall((DOCS / "facts.md").read_text(encoding="utf-8"))
)
def test_an_example_of_the_facts_gets_its_message(
    row: str, schema: str, annotated: str, sent: str, message: str
) -> None:
    parameters = {"type": "object", "properties": {"p": json.loads(schema)}, "required": []}
    assert check_arguments(parameters, sent, json.loads(annotated)) == message


def test_every_fact_that_the_code_cites_is_there() -> None:
    facts = (DOCS / "facts.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## (\d+)\. ", facts, flags=re.MULTILINE))
    rows = set(re.findall(r"^\| (\d+) \| ", facts, flags=re.MULTILINE))
    missing = []
    for path in sorted(
        path for package in ("proxy", "scenarios", "scoring") for path in ROOT.glob(f"{package}/**/*.py")
    ):
        text = " ".join(path.read_text(encoding="utf-8").split())
        for section, cited in re.findall(
            r"[Ff]acts: section (\d+)(?:[^)]*?, rows? (\d+[\d, and to]*))?", text
        ):
            missing += [f"{path.name}: section {section}"] if section not in sections else []
            missing += [f"{path.name}: row {row}" for row in spelt_out(cited) if row not in rows]
    assert missing == []


def spelt_out(cited: str) -> list[str]:
    """`4 to 6` -> 4, 5, 6; `1, 2` -> 1, 2; `19 and 20` -> 19, 20."""
    numbers = [int(number) for number in re.findall(r"\d+", cited)]
    if " to " in cited:
        return [str(n) for first, last in pairwise(numbers) for n in range(first, last + 1)]
    return [str(number) for number in numbers]


def test_the_changelog_begins_with_what_is_unreleased() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"


def test_the_version_is_the_one_in_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert version("wildtoolbench-proxy") == project["version"]


def test_the_readmes_table_of_what_passes_on_the_wire_is_what_the_probes_say() -> None:
    assert generator.readme() == README, "run python docs/generate.py"


def test_the_readme_shows_evidence_and_a_threshold(walk: tuple[Path, str], noisy_log: Path) -> None:
    (walk[0] / "live.db").write_bytes(noisy_log.read_bytes())
    for name in ("evidence", "report"):
        for words, shown in transcripts(name, README):
            assert_shows(shown, run(words, walk[0]))


def test_the_readme_compares_two_runs_as_said(tmp_path: Path) -> None:
    for words, shown in transcripts("compare", README):
        assert_shows(shown, run(words, tmp_path))


@pytest.mark.parametrize(
    "name", ["configuration", "scoring", pytest.param("tutorial", marks=pytest.mark.long)]
)
def test_a_page_runs_as_it_stands(name: str, tmp_path: Path) -> None:
    """Its files are written and its commands run in the order of the page."""
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for kind, label in re.findall(r"<!-- (file|run): (\S+) -->", page):
        if kind == "file":
            (tmp_path / label).write_text(block(kind, label, page), encoding="utf-8")
            continue
        for words, shown in transcripts(label, page):
            assert_shows(shown, run(words, tmp_path))


@pytest.mark.long
def test_the_readmes_live_run_says_that_its_figures_are_not_comparable(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(block("file", "my_agent.py"), encoding="utf-8")
    for words, shown in transcripts("live", README):
        assert_shows(shown, run(words, tmp_path))


@pytest.mark.long
def test_the_page_on_the_terminal_runs_as_it_stands(tmp_path: Path) -> None:
    """By a shell, for its pipes; times, which differ, are the same for the comparison."""
    page = (DOCS / "terminal.md").read_text(encoding="utf-8")
    (tmp_path / "wrong.py").write_text(block("file", "wrong.py", page), encoding="utf-8")
    programs = f"""
        wildproxy() {{ {shlex.join([sys.executable, str(ROOT / "run_proxy.py")])} "$@"; }}
        python() {{ {shlex.quote(sys.executable)} "$@"; }}
    """
    for name in re.findall(r"<!-- run: (\w+) -->", page):
        for part in re.split(r"^\$ ", block("run", name, page), flags=re.MULTILINE)[1:]:
            command, *shown = timeless(part).splitlines()
            done = subprocess.run(
                ["bash", "-c", f"{programs}\n{command} 2>&1"],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                env=environment(),
            )
            assert done.returncode == 0, done.stderr
            assert_shows(shown, timeless(done.stdout))


def timeless(text: str) -> str:
    """Without dates, times of day, seconds, and ids of runs."""
    return re.sub(r"\d{8}-\d{6}-\w{4}|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\d+\.\d+s", "#", text)


AGENTS = (DOCS / "agents.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_page_on_agents_drives_a_function_as_said(tmp_path: Path) -> None:
    (tmp_path / "assistant.py").write_text(block("file", "assistant.py", AGENTS), encoding="utf-8")
    for words, shown in transcripts("function", AGENTS):
        assert_shows(shown, run(words, tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("label, port, driven", [("server", 9000, "served"), ("remembering", 9001, "asked")])
def test_the_page_on_agents_drives_a_server_as_said(
    label: str, port: int, driven: str, tmp_path: Path
) -> None:
    with serving(shlex.split(block("run", "serve", AGENTS)), tmp_path) as proxy:
        program = block("file", f"{label}.py", AGENTS).replace("http://127.0.0.1:8787", proxy)
        (tmp_path / f"{label}.py").write_text(told_port(program, port), encoding="utf-8")
        with agent_server(shlex.split(block("run", label, AGENTS)), tmp_path) as agent:
            for words, shown in transcripts(driven, AGENTS):
                here = [
                    word.replace("http://127.0.0.1:8787", proxy).replace(f"http://127.0.0.1:{port}", agent)
                    for word in words
                ]
                assert_shows(shown, run(here, tmp_path))


def told_port(program: str, port: int) -> str:
    """The same server on a free port, which it says once it listens."""
    line = f'ThreadingHTTPServer(("127.0.0.1", {port}), Agent).serve_forever()'
    assert program.count(line) == 1
    return program.replace(
        line,
        'server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)\n'
        "print(server.server_port, flush=True)\nserver.serve_forever()",
    )


@contextmanager
def agent_server(words: list[str], folder: Path) -> Iterator[str]:
    """A server that says its port; gives its address."""
    assert words[0] == "python"
    with subprocess.Popen(
        [sys.executable, *words[1:]], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
