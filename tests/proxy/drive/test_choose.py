"""What `--agent` means, and what is wrong with it before anything is started."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.agent_runs import seat

from proxy.drive.builtin import BuiltinAgent
from proxy.drive.choose import AgentError, AgentOptions, chosen, kind_of
from proxy.drive.functions import FunctionAgent
from proxy.drive.http_agent import HttpAgent
from proxy.drive.programs import SessionProgram, TurnProgram


@pytest.mark.parametrize(
    ("agent", "kind"),
    [
        ("builtin", "builtin"),
        (" builtin ", "builtin"),
        ("http://127.0.0.1:9000/v1", "http"),
        ("HTTPS://agent.example", "http"),
        ("my_agent:ask", "function"),
        ("package.module:Agent.run", "function"),
        ("./builtin", "command"),
        ("python my_agent.py", "command"),
        ("curl http://127.0.0.1", "command"),
        ("my-agent:ask", "command"),
        ("run my_agent:ask", "command"),
        ("C:\\agent.exe", "command"),
    ],
)
def test_the_form_of_the_text_says_what_an_agent_is(agent: str, kind: str) -> None:
    assert kind_of(agent) == kind


@pytest.mark.parametrize(
    ("options", "agent"),
    [
        (AgentOptions("builtin"), BuiltinAgent),
        (AgentOptions("http://127.0.0.1:9"), HttpAgent),
        (AgentOptions("http://127.0.0.1:9", body='{"input": "{turn}"}'), HttpAgent),
        (AgentOptions("json:loads"), FunctionAgent),
        (AgentOptions(f"{sys.executable} -c 'a b'"), SessionProgram),
        (AgentOptions(f"{sys.executable} -c 'a b'", per="session"), SessionProgram),
        (AgentOptions(f"{sys.executable} -c 'a b'", per="turn"), TurnProgram),
        (AgentOptions(f"{sys.executable} 'a {{turn}}'"), TurnProgram),
    ],
)
async def test_each_kind_gets_its_agents(options: AgentOptions, agent: type[object]) -> None:
    async with chosen(options) as factory:
        made = factory(seat("answered"))
        assert type(made) is agent
        await made.close()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (AgentOptions(""), "--agent is empty"),
        (AgentOptions("python 'my agent.py"), "cannot be split into words (No closing quotation)"),
        (AgentOptions("no-such-program-here x"), "there is no program 'no-such-program-here'"),
        (AgentOptions("~/agent"), "no shell reads the command"),
        (AgentOptions("no_such_module_here:ask"), "no module 'no_such_module_here' in"),
        (AgentOptions("json:lauds"), "no 'lauds' in module 'json' in"),
        (AgentOptions("json.decoder:lauds"), "no 'lauds' in module 'json.decoder' in"),
        (AgentOptions("http://"), "is no address"),
        (AgentOptions("http://a b/"), "is no address"),
        (AgentOptions("http://host:port/"), "is no address"),
        (AgentOptions("http://h", body="{turn}"), "--agent-body is not JSON"),
        (AgentOptions("http://h", body='{"input": "x"}'), "--agent-body lacks {turn}"),
        (
            AgentOptions("builtin", body='{"input": "{turn}"}'),
            "--agent-body is for an agent that is a server",
        ),
        (AgentOptions("builtin", per="turn"), "--per is for an agent that is a command"),
        (AgentOptions("json:loads", per="session"), "--per is for an agent that is a command"),
        (AgentOptions(f"{sys.executable} {{turn}}", per="session"), "{turn} in --agent needs --per turn"),
        (AgentOptions("http://h", inject="driver"), "tells a server's sessions apart"),
        (AgentOptions("http://h", body='{"input": "{turn}"}', inject="driver"), "put {session} into"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_at_once(options: AgentOptions, says: str) -> None:
    with pytest.raises(AgentError) as refused:
        chosen(options)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(AgentError) as refused:
        chosen(AgentOptions("http://me:hunter2@host:port/"))
    assert "hunter2" not in str(refused.value)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`module(name)` puts a module into the current folder that must not be imported here."""
    monkeypatch.chdir(tmp_path)

    def put(name: str) -> None:
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('imported')\ndef ask(): ...")

    return put


@pytest.mark.parametrize(("file", "target"), [("mine", "mine:ask"), ("pack/deep", "pack.deep:ask")])
def test_a_module_of_the_current_folder_is_found_and_not_imported(
    module: Any, file: str, target: str
) -> None:
    module(file)
    chosen(AgentOptions(target))


def test_a_program_is_looked_for_on_the_path_that_the_agent_will_have(tmp_path: Path) -> None:
    program = tmp_path / "my-agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    chosen(AgentOptions("my-agent"), {"PATH": str(tmp_path)})
    with pytest.raises(AgentError):
        chosen(AgentOptions("my-agent"), {"PATH": "/nowhere"})


@pytest.mark.parametrize(
    "source",
    [
        "from elsewhere import *",
        "from elsewhere import ( * )",
        "def __getattr__(name): ...",
        "globals()['a' + 'sk'] = print",
        "exec('a' 'sk = print')",
        "ask: object",
        "import elsewhere as ask",
        "ask (",
    ],
)
@pytest.mark.parametrize("file", ["mine.py", "mine/__init__.py"])
def test_a_name_that_may_be_there_is_left_to_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, file: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(f"raise SystemExit('imported')\n{source}")
    chosen(AgentOptions("mine:ask"))


@pytest.mark.parametrize("target", ["os.path:join", "math:sqrt", "json.nowhere:loads"])
def test_a_module_without_a_source_or_a_file_of_its_own_is_left_to_the_agent(target: str) -> None:
    chosen(AgentOptions(target))


def test_a_module_of_the_current_folder_goes_before_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("def tell(): ...")
    chosen(AgentOptions("json:tell"))
    with pytest.raises(AgentError):
        chosen(AgentOptions("json:loads"))


async def test_a_server_that_is_told_its_session_can_have_the_words_injected() -> None:
    for options in (
        AgentOptions("http://h/{session}", inject="driver"),
        AgentOptions("http://h", body='{"input": "{turn}", "id": "{session}"}', inject="driver"),
    ):
        async with chosen(options) as factory:
            await factory(seat("answered")).close()
