"""The pages on agent frameworks, from the files by which the real clients are tested."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / ".ci" / "frameworks"
MODES = ("intercept", "relay", "mcp")

_FRAMEWORKS = """# Agent frameworks

Which client plays in which [tool mode](how-it-works.md#who-carries-out-the-calls). Each cell is played
with the real client, in the version named here, against a simulated LLM that knows the answers: **yes**
means that every task of real sessions comes out right, over each API that the client has, streaming or
not; **no** means that it cannot, and is played too, so that a no that has become a yes is noticed. The
agents have two tools of their own, neither of which the sessions know, so in `relay` the client gets
calls of tools that it does not have; in `mcp` it has the proxy's.

Where `relay` says no, use `intercept`, which is the default and works with every client, or `mcp`, in
which the agent has the tools.

To play them all again: `python .ci/frameworks/play.py` (clients are installed into a cache; needs Python
3.11 and node 20)."""

_AGENTS = """# Connecting an agent

Three things are set, and nothing of the agent's code changes: the **base URL** names the session
(`http://127.0.0.1:8787/s/SCENARIO_ID/v1`), the **key** is any text (the provider's own, if it is to be
passed on), and the **prompts** are placeholders, `[[next-user-turn 1]]`, `[[next-user-turn 2]]` and so
on.

Most clients take the first two from the environment, so a program that has them in no other place is run
as it is:

```sh
export OPENAI_BASE_URL=http://127.0.0.1:8787/s/home_6/v1
export OPENAI_API_BASE=$OPENAI_BASE_URL     # LlamaIndex, LiteLLM and CrewAI read this name
export OPENAI_API_KEY=none
```

`wildproxy drive` sets them for each session, writes the prompts to the program's standard input, and
switches off what frameworks send elsewhere (traces, telemetry, price lists). In `--tools mcp` it also
sets `EVAL_MCP_URL`, the address of the MCP server (streamable HTTP) to give to the agent. What the program
writes to standard error is kept for the line that says why a turn failed, and not shown otherwise."""

_CLIENTS = """## Clients, one by one

Each client in its shortest form, against

```sh
wildproxy serve --scenarios bundled --provider sim:oracle --log agent.db
```

Each of these programs is run as it stands by `.ci/frameworks/play.py`, with the client's version that
[frameworks](frameworks.md) names; that page also says in which tool modes it plays."""


@dataclass(frozen=True, slots=True)
class _Client:
    """What a `client.toml` says, and the version in the lock beside it."""

    name: str
    package: str
    version: str
    language: str
    apis: tuple[str, ...]
    setup: str
    expect: Mapping[str, str]
    environment: Mapping[str, str]


def frameworks_page(notice: str) -> str:
    return "\n".join([_head(_FRAMEWORKS, notice), *_table(), *_notes()]) + "\n"


def agents_page(notice: str) -> str:
    driving = (FOLDER / "driving.md").read_text(encoding="utf-8")
    return "\n".join([_head(_AGENTS, notice), "", driving, _CLIENTS, *_setups()]) + "\n"


def _head(text: str, notice: str) -> str:
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{notice}\n{rest}"


def _table() -> Iterator[str]:
    yield from (
        "",
        "| client | tested version | APIs, its default first | intercept | relay | mcp |",
        "|---|---|---|---|---|---|",
    )
    for client in _clients():
        cells = " | ".join(_cell(client, mode) for mode in MODES)
        apis = ", ".join(client.apis)
        yield f"| {client.name} | {client.package} {client.version} | {apis} | {cells} |"


def _cell(client: _Client, mode: str) -> str:
    """Yes or no, and whether there is more to say."""
    said = client.expect[mode].partition(":")
    narrower = any(key.startswith(f"{mode} ") for key in client.expect)
    return f"{said[0]}, see below" if said[2] or narrower else said[0]


def _notes() -> Iterator[str]:
    yield from ("", "## Conditions, and what happens instead")
    for client in _clients():
        lines = [f"- `{key}`: {value}" for key, value in client.expect.items() if ":" in value or " " in key]
        if lines:
            yield from ("", f"**{client.name}**", "", *lines)


def _setups() -> Iterator[str]:
    for client in _clients():
        kind = "python" if client.language == "python" else "js"
        yield from ("", f"## {client.name}", "", f"```{kind}", client.setup.strip(), "```")
        if client.environment:
            told = ", ".join(f"`{name}={value}`" for name, value in client.environment.items())
            yield from ("", f"For a clean run, set also {told}.")


def _clients() -> list[_Client]:
    found = [_client(file) for file in FOLDER.glob("*/client.toml")]
    return sorted(found, key=lambda client: client.name.casefold())


def _client(file: Path) -> _Client:
    data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    return _Client(
        name=data["name"],
        package=data["package"],
        version=_version(file.parent, data["package"]),
        language=data["language"],
        apis=tuple(data["apis"]),
        setup=data["setup"],
        expect=data["expect"],
        environment=data.get("environment", {}),
    )


def _version(folder: Path, package: str) -> str:
    """The version of a package that the lock in `folder` pins."""
    lock = folder / "package-lock.json"
    if lock.exists():
        packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
        return str(packages[f"node_modules/{package}"]["version"])
    pinned = re.compile(rf"^{re.escape(package)}==(\S+)$", re.IGNORECASE | re.MULTILINE)
    match = pinned.search((folder / "requirements.txt").read_text(encoding="utf-8"))
    if match is None:
        raise SystemExit(f"{folder.name}/requirements.txt does not pin {package}")
    return match[1]
