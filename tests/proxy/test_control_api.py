"""The description of the control API: it is served, it is sound, and nothing is missing in it."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from support.described import check_answer, check_event, described
from support.playing import Proxy, playing

from proxy import control
from proxy.control_api import ERRORS, control_api

METHODS = ("get", "post", "put", "delete", "patch", "head", "options")
OPERATIONS = [
    (method.upper(), path, operation)
    for path, item in control_api()["paths"].items()
    for method, operation in item.items()
    if method in METHODS
]
NAMES = [operation["operationId"] for _, _, operation in OPERATIONS]
EXAMPLES = {"session": "shop.e1"}
SOURCE = inspect.getsource(control)


def concrete(path: str) -> str:
    return path.format(**EXAMPLES)


def parameters(path: str, operation: dict[str, Any], where: str) -> set[str]:
    shared = control_api()["paths"][path].get("parameters", [])
    found = [_resolved(it) for it in (*shared, *operation.get("parameters", []))]
    return {it["name"] for it in found if it["in"] == where}


def _resolved(value: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in value:
        found: Any = control_api()
        for key in value["$ref"].removeprefix("#/").split("/"):
            found = found[key]
        value = found
    return value


async def opened(proxy: Proxy) -> None:
    await proxy.control("POST", "/sessions", json={"scenario": "shop"})


def routes() -> set[tuple[str, str]]:
    """What the proxy serves below `/eval`, but for what only refuses."""
    served = control.Control._served(control.Control.__new__(control.Control))
    return {(route.method, route.path) for route in served}


def test_every_route_is_described_and_no_other() -> None:
    assert {(method, path) for method, path, _ in OPERATIONS} == routes()


def test_every_parameter_and_field_that_is_read_is_described() -> None:
    """A name that is read stands as a constant where it is read."""
    read = set(re.findall(r"(?:query\.get\(|_number\(request, )\"(\w+)\"", SOURCE))
    read |= set(re.findall(r"\"(\w+)\" in request\.query", SOURCE))
    assert read == {it for _, path, op in OPERATIONS for it in parameters(path, op, "query")}
    fields = set(re.findall(r"(?:\)|fields|wanted|body)\.get\(\"(\w+)\"\)", SOURCE))
    fields |= set(re.findall(r"_(?:flag|turn)\(wanted, \"(\w+)\"\)", SOURCE))
    assert fields == {it for _, _, op in OPERATIONS for it in sent_fields(op)}


def sent_fields(operation: dict[str, Any]) -> set[str]:
    """Of the body, and of the objects in its arrays."""
    if "requestBody" not in operation:
        return set()
    schema = _resolved(operation["requestBody"]["content"]["application/json"]["schema"])
    names = set(schema["properties"])
    for value in schema["properties"].values():
        if "items" in value:
            names |= set(_resolved(value["items"])["properties"])
    return names


def test_every_schema_is_a_json_schema_and_every_reference_leads_somewhere() -> None:
    whole = control_api()
    for schema in whole["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for reference in re.findall(r'"\$ref": "([^"]+)"', json.dumps(whole)):
        assert _resolved({"$ref": reference})


@pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=lambda it: it if str(it) == it else ""
)
async def test_all_but_the_description_need_the_token(
    provider: Any, tmp_path: Path, method: str, path: str, operation: dict[str, Any]
) -> None:
    free = operation.get("security") == []
    async with playing(tmp_path, provider.url) as proxy:
        await opened(proxy)
        answer = await proxy.send(method, concrete(path), headers={"Authorization": "Bearer wrong"})
        assert answer.status == (200 if free else 401)
        assert free or "401" in operation["responses"]


async def test_the_description_is_served(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        assert (await proxy.send("GET", "/eval/openapi.json")).json == json.loads(json.dumps(control_api()))


@pytest.mark.parametrize(("method", "path"), sorted({("DELETE", it[1]) for it in OPERATIONS}))
async def test_another_method_is_refused_with_those_that_there_are(
    provider: Any, tmp_path: Path, method: str, path: str
) -> None:
    allowed = {it[0] for it in OPERATIONS if it[1] == path}
    async with playing(tmp_path, provider.url) as proxy:
        for given, status in ((proxy.token, 405), ("wrong", 401)):
            answer = await proxy.send(method, concrete(path), headers={"Authorization": f"Bearer {given}"})
            assert answer.status == status
            assert answer.error["message"]
            if status == 405:
                assert set(answer.headers["Allow"].split(", ")) == allowed
        assert proxy.exchanges() == []


async def test_a_path_that_the_control_api_lacks_is_not_found(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        headers = {"Authorization": f"Bearer {proxy.token}"}
        answer = await proxy.send("GET", "/eval/sesions%0A", headers=headers)
        assert (answer.status, "openapi.json" in answer.error["message"]) == (404, True)
        assert (await proxy.send("GET", "/eval/sesions")).status == 401


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("answered=nan", "answered"),
        ("answered=inf", "answered"),
        ("answered=1e400", "answered"),
        ("answered=1.5", "answered"),
        ("answered=-1", "answered"),
        ("answered=x", "answered"),
        ("answered=", "answered"),
        ("answered=1&wait=nan", "wait"),
        ("answered=1&wait=-1", "wait"),
        ("wait=soon", "wait"),
        ("wait=1.5.5", "wait"),
        ("answered=" + "9" * 5000, "answered"),
    ],
)
async def test_a_parameter_that_is_no_such_number_is_refused(
    provider: Any, tmp_path: Path, query: str, param: str
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        await opened(proxy)
        answer = await proxy.control("GET", f"/sessions/shop.e1?{query}")
        assert (answer.status, answer.error["param"]) == (400, param)


@pytest.mark.parametrize("wait", ["0", "0.0", "0.001", "1e-7"])
async def test_a_wait_may_be_written_as_any_number(provider: Any, tmp_path: Path, wait: str) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        await opened(proxy)
        assert (await proxy.control("GET", f"/sessions/shop.e1?answered=1&wait={wait}")).status == 200


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/sessions", {"scenario": "shop", "again": "yes"}, "again"),
        ("/sessions", {"scenario": "shop", "epoch": [[1] * 1000]}, "epoch"),
        ("/sessions/shop.e1/turns", {"after": "1"}, "after"),
        ("/sessions/shop.e1/turns", {"after": True}, "after"),
        ("/sessions/shop.e1/turns", {"after": -1}, "after"),
        ("/sessions/shop.e1/turns", {"after": 1.5}, "after"),
        ("/sessions/shop.e1/turns", {"wait": None}, "wait"),
        ("/plan", {"sessions": "all"}, "sessions"),
    ],
)
async def test_a_field_of_the_wrong_kind_is_refused_and_nothing_is_done(
    provider: Any, tmp_path: Path, path: str, body: dict[str, Any], param: str
) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        await opened(proxy)
        answer = await proxy.control("POST", path, json=body)
        assert (answer.status, answer.error["param"]) == (400, param)
        assert len(answer.error["message"]) < 200
        assert (await proxy.control("GET", "/sessions/shop.e1")).json["turn"] == 0


async def test_a_whole_number_may_be_written_with_a_fraction_of_nought(provider: Any, tmp_path: Path) -> None:
    """As JSON Schema has it, which the API is described by."""
    async with playing(tmp_path, provider.url) as proxy:
        answer = await proxy.control("POST", "/sessions", json={"scenario": "shop", "epoch": 2.0, "more": 1})
        assert (answer.status, answer.json["session"]) == (201, "shop.e2")
        answer = await proxy.control("POST", "/sessions/shop.e2/turns", json={"after": 0.0, "more": 1})
        assert (answer.status, answer.json["turn"]) == (200, 1)


async def test_a_body_that_cannot_be_unpacked_is_refused(provider: Any, tmp_path: Path) -> None:
    async with playing(tmp_path, provider.url) as proxy:
        headers = {"Authorization": f"Bearer {proxy.token}", "Content-Encoding": "gzip"}
        answer = await proxy.send("POST", "/eval/sessions", data=b"plain", headers=headers)
        assert answer.status == 400
        assert "the body cannot be read" in answer.error["message"]


def test_an_answer_with_a_key_too_many_or_too_few_is_not_as_described() -> None:
    """The check that every test of the control API makes can fail."""
    told = {"turn": 1, "prompt": "[[next-user-turn 1]]", "text": "Hi.", "over": False}
    asked = ("POST", "/eval/sessions/shop.e1/turns")
    check_answer(*asked, 200, "application/json", told)
    for wrong in ({**told, "more": 1}, {"turn": 1}, {**told, "turn": "1"}):
        with pytest.raises(ValidationError):
            check_answer(*asked, 200, "application/json", wrong)
    with pytest.raises(KeyError):
        check_answer(*asked, 500, "application/json", told)
    with pytest.raises(ValidationError):
        check_event("task_ended", {"place": {}, "at": 1.0, "ending": "closed"})


def test_each_error_is_described_once() -> None:
    used = {
        status for _, _, operation in OPERATIONS for status in operation["responses"] if int(status) >= 400
    }
    assert used == {str(status) for status in ERRORS}
    assert described("GET", "/eval/sessions/a.e1?answered=1")["operationId"] == "state"
