"""What an agent's process finds in its environment: the way to the proxy, and to nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.agent_runs import seat

from proxy.drive.environment import agent_environment, secrets_of

HOST = "http://127.0.0.1:9"
SESSION = seat("answered", name="a.e1", base_url=f"{HOST}/s/a.e1/v1")


@pytest.mark.parametrize(
    ("name", "value", "reader"),
    [
        ("OPENAI_BASE_URL", f"{HOST}/s/a.e1/v1", "the openai SDKs, and most frameworks through them"),
        (
            "OPENAI_API_BASE",
            f"{HOST}/s/a.e1/v1",
            "llama-index, which reads no other; litellm, crewai",
        ),
        ("OPENAI_API_KEY", "sk-eval-a.e1", "every client; the key names the session and opens nothing"),
        ("OPENAI_CUSTOM_HEADERS", "x-eval-session: a.e1", "the openai SDK from 2.34 on"),
        ("EVAL_BASE_URL", f"{HOST}/s/a.e1/v1", "agents with a configuration of their own"),
        ("EVAL_MCP_URL", f"{HOST}/s/a.e1/mcp", "MCP clients"),
        ("EVAL_SESSION", "a.e1", "agents that name the session themselves"),
        ("OPENAI_TIMEOUT", "600", "haystack, which has 30 s otherwise"),
        ("OPENAI_AGENTS_DISABLE_TRACING", "1", "openai-agents, py and js"),
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True", "litellm, and through it adk and crewai"),
        ("CREWAI_DISABLE_TELEMETRY", "true", "crewai"),
        ("OTEL_SDK_DISABLED", "true", "crewai, and all that use OpenTelemetry"),
        ("AGNO_TELEMETRY", "false", "agno"),
        ("PYTHONUNBUFFERED", "1", "Python, so that last words are not lost"),
        ("NO_PROXY", "127.0.0.1", "HTTP clients behind an HTTP proxy"),
        ("no_proxy", "127.0.0.1", "those that read it in small letters"),
    ],
)
def test_every_client_finds_what_it_reads(name: str, value: str, reader: str) -> None:
    assert agent_environment(SESSION, {})[name] == value, reader


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_TIMEOUT",
        "OPENAI_AGENTS_DISABLE_TRACING",
        "LITELLM_LOCAL_MODEL_COST_MAP",
        "CREWAI_DISABLE_TELEMETRY",
        "OTEL_SDK_DISABLED",
        "AGNO_TELEMETRY",
        "PYTHONUNBUFFERED",
        "HTTP_PROXY",
        "ANYTHING_ELSE",
    ],
)
def test_the_users_own_environment_goes_before_a_default(name: str) -> None:
    assert agent_environment(SESSION, {name: "mine"})[name] == "mine"


@pytest.mark.parametrize(
    "name",
    ["OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY", "EVAL_SESSION", "EVAL_BASE_URL", "EVAL_MCP_URL"],
)
def test_what_leads_to_the_session_cannot_be_set_from_outside(name: str) -> None:
    assert agent_environment(SESSION, {name: "mine"})[name] != "mine"


def test_the_sessions_header_stands_behind_the_users_own() -> None:
    own = "X-Team: red\nX-Eval-Session: another"
    environment = agent_environment(SESSION, {"OPENAI_CUSTOM_HEADERS": own})
    assert environment["OPENAI_CUSTOM_HEADERS"] == "X-Team: red\nx-eval-session: a.e1"


def test_what_no_agent_may_see_is_left_out() -> None:
    given = {"EVAL_TOKEN": "t", "PROVIDER_KEY": "k", "OTHER": "o"}
    environment = agent_environment(SESSION, given, ["PROVIDER_KEY"])
    assert [name for name in given if name in environment] == ["OTHER"]


def test_hosts_that_need_no_http_proxy_are_joined_by_the_proxys() -> None:
    environment = agent_environment(SESSION, {"NO_PROXY": "a.example, b.example", "no_proxy": "b.example"})
    assert environment["NO_PROXY"] == environment["no_proxy"] == "a.example,b.example,127.0.0.1"


def test_a_name_that_no_header_can_hold_is_named_by_the_address_alone() -> None:
    mcp = f"{HOST}/s/%C3%BC.e1/mcp"
    session = replace(SESSION, name="ü.e1", base_url=f"{HOST}/s/%C3%BC.e1/v1", mcp_url=mcp)
    environment = agent_environment(session, {})
    assert environment["EVAL_MCP_URL"] == mcp
    assert environment["OPENAI_API_KEY"] == "sk-eval-unnamed"
    assert "OPENAI_CUSTOM_HEADERS" not in environment


def test_values_of_secret_names_are_known() -> None:
    environ = {
        "MY_API_KEY": "abcdefgh1234",
        "DB_PASSWORD": "correct-horse-battery",
        "HOME": "/home/me-myself",
    }
    assert secrets_of(environ) == ("abcdefgh1234", "correct-horse-battery")


def test_there_is_no_mcp_server_to_be_found_where_none_is_offered() -> None:
    environment = agent_environment(replace(SESSION, mcp_url=None), {"EVAL_MCP_URL": "http://elsewhere"})
    assert "EVAL_MCP_URL" not in environment
