"""The HTML around a document: whatever is in it, a browser reads it back as it was and runs nothing of it."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from support.pages import taken_apart
from support.scored import HOSTILE

from scoring.page.html import json_text, pack, page
from scoring.page.look import Look, report_look, shared_look

SKELETON = (
    '<meta http-equiv="Content-Security-Policy" content="{{policy}}"><title>{{title}}</title>'
    "<style>{{style}}</style>{{document}}<script>{{script}}</script>{{details}}"
)
LOOK = Look("p { color: red }", "run();", SKELETON)
ENDS = "</script><script>alert(1)</script><!-- --> {{script}} \\u003c"


def digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@pytest.mark.parametrize("text", [HOSTILE, ENDS, "\u2028\u2029\x00\x7f\ud800", "𝕏 שלום مرحبا"])
def test_any_text_is_read_back_as_it_was(text: str) -> None:
    document = {"title": "t", text: [text, {"deep": text}]}
    found = taken_apart(page(document, [("detail-r0s0", pack(document))], LOOK))
    assert found.document == document
    assert found.packed("detail") == {"r0s0": document}
    assert found.scripts.keys() == {"document", None, "detail-r0s0"}


def test_json_that_stands_in_html_as_it_is_ends_no_element() -> None:
    written = json_text([HOSTILE, ENDS])
    assert json.loads(written) == [HOSTILE, ENDS]
    assert not set(written) & {*"<>&", "\u2028", "\u202e", "\ud800", "\x1b", "\n"}


def test_numbers_that_json_does_not_have_are_told_by_name() -> None:
    assert json.loads(json_text({"a": [float("nan"), float("inf"), 1.5]})) == {"a": ["nan", "inf", 1.5]}


def test_a_hostile_title_is_a_title() -> None:
    found = taken_apart(page({"title": "</title><script>alert(1)</script>{{script}}.db"}, [], LOOK))
    assert found.title == "</title><script>alert(1)</script>{{script}}.db"
    assert found.scripts.keys() == {"document", None}


def test_the_policy_lets_the_own_script_run_and_nothing_else() -> None:
    found = taken_apart(page({"title": "t"}, [], LOOK))
    assert found.policy.split("; ") == [
        "default-src 'none'",
        f"script-src 'sha256-{digest('run();')}'",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_scripts_and_styles_cannot_end_their_elements() -> None:
    look = Look('p::after { content: "</style>" }', 'say("</script><!--<SCRIPT>");', SKELETON)
    found = taken_apart(page({"title": "t"}, [], look))
    assert found.scripts[None] == r'say("\x3c/script>\x3c!--\x3cSCRIPT>");'
    assert found.styles == [r'p::after { content: "\3c /style>" }']
    assert digest(found.scripts[None]) in found.policy


def test_the_same_value_is_packed_into_the_same_text() -> None:
    assert pack({"a": "b"}) == pack({"a": "b"})


def test_the_reports_look_is_whole_and_its_own_scope() -> None:
    look = report_look()
    vendor, _, own = look.script.rpartition('(() => {\n"use strict";\n')
    for name in ("policy", "title", "style", "script", "document", "details"):
        assert look.skeleton.count("{{" + name + "}}") == 1
    assert "vega" in vendor
    assert shared_look().script in own
    assert shared_look().css in look.css
    assert own.endswith("})();\n")
