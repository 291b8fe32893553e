"""Under which names a request offers the Scenario's tools, and calls by those names. Pure.

An agent that has the tools from the proxy's MCP endpoint may have put a prefix before each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy.wire.errors import ApiError
from scenarios.types import Scenario

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Offered:
    """The Scenario's tools that have another name with the agent: `names[own] = offered`."""

    names: Mapping[str, str] = field(default_factory=dict)

    def said(self, message: Message) -> Message:
        """A message of our record as the agent and its LLM know it."""
        return _renamed(message, self.names)

    def meant(self, message: Message) -> Message:
        """A message of the LLM with the Scenario's own names in it."""
        return _renamed(message, {offered: own for own, offered in self.names.items()})


def offered(scenario: Scenario, agent_tools: Iterable[str]) -> Offered:
    """Finds each of the Scenario's tools among the agent's, by name or by the name's end.

    Letters and digits alone count where the names as they are do not tell: frameworks write
    `getPrice` as `get_price`. Raises ApiError, with the names of both, for a tool that is not there
    or there twice.
    """
    own = [tool.name for tool in scenario.tools]
    agents = list(agent_tools)
    if (prefix := _prefix(own, agents)) is not None:
        return Offered({name: prefix + name for name in own} if prefix else {})
    found: dict[str, list[str]] = {name: [] for name in own}
    for name in agents:
        # Of several names that it ends with, the longest is meant.
        if ends := [it for it in own if plain(name).endswith(plain(it))]:
            found[max(ends, key=len)].append(name)
    names = {name: name if name in there else there[0] for name, there in found.items() if there}
    missing = [name for name, there in found.items() if name not in there and len(there) != 1]
    if missing:
        raise ApiError(
            400,
            "the request must offer every tool of the scenario, once, under its name or one that ends with "
            "it: with --tools mcp give the agent the tools of the session's MCP endpoint, else leave "
            f"--agent-tools keep out, and the proxy offers them; {_listed(missing)} cannot be told among "
            f"{_listed(agents) or 'no tools at all'}",
            param="tools",
            code="tools_missing",
        )
    return Offered({name: other for name, other in names.items() if name != other})


def plain(name: str) -> str:
    """A tool's name without what frameworks change in it: case, and all but letters and digits."""
    return "".join(filter(str.isalnum, name)).casefold()


def _prefix(own: Sequence[str], agents: Sequence[str]) -> str | None:
    """What the agent has put before each name, if it is the same for all; "" is nothing."""
    candidates = [name.removesuffix(own[0]) for name in agents if name.endswith(own[0])] if own else [""]
    there = set(agents)
    return next((it for it in sorted(candidates, key=len) if all(it + name in there for name in own)), None)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(list(names)[:20])


def _renamed(message: Message, names: Mapping[str, str]) -> Message:
    calls = message.get("tool_calls")
    if not names or not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [_renamed_call(call, names) for call in calls]}


def _renamed_call(call: Any, names: Mapping[str, str]) -> Any:
    for kind in ("function", "custom"):
        inner = call.get(kind) if isinstance(call, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        if isinstance(inner, dict) and isinstance(name, str) and name in names:
            return {**call, kind: {**inner, "name": names[name]}}
    return call
