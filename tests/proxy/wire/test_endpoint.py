from __future__ import annotations

import pytest

from proxy.wire.endpoint import Endpoint, display_url, joined, request_headers, response_headers


@pytest.mark.parametrize(
    "url",
    [
        "http://host:1/v1",
        "http://host:1/v1/",
        "http://host:1/v1/chat/completions",
        " http://host:1/v1/chat/completions/ ",
        "http://host:1/v1/responses",
        "http://host:1/v1#part",
    ],
)
def test_every_way_to_write_a_base_url_leads_to_the_same_place(url: str):
    assert Endpoint.parse(url).url("/chat/completions") == "http://host:1/v1/chat/completions"


def test_a_base_url_without_path_is_kept_as_it_is():
    assert Endpoint.parse("https://host").url("models") == "https://host/models"


def test_the_query_of_the_base_url_goes_with_every_request():
    endpoint = Endpoint.parse("https://host/d/chat/completions?api-version=1")
    assert endpoint.url("/models?limit=2") == "https://host/d/models?api-version=1&limit=2"


def test_a_user_in_the_url_becomes_basic_authorization_and_leaves_the_address():
    endpoint = Endpoint.parse("https://me:p%40ss@host/v1")
    assert (endpoint.base, endpoint.authorization) == ("https://host/v1", "Basic bWU6cEBzcw==")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@host:1/v1?key=secret#secret", "https://host:1/v1"),
        ("user:secret@host/v1?secret", "host/v1"),
        ("http://host/v1", "http://host/v1"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str):
    assert display_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000/v1",
        "ftp://host/v1",
        "http://",
        "http:///v1",
        "http://host:99999/v1",
        "http://host:0/v1",
        "http://ho st/v1",
        "http://[::1/v1",
        "http://user:secret@/v1?k=secret",
        "user:secret@host",
        "http://user:sec/secret@host/v1",
    ],
)
def test_what_is_no_http_url_is_refused_in_one_line_without_secrets(url: str):
    with pytest.raises(ValueError, match="give an address such as") as caught:
        Endpoint.parse(url)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_request_headers_that_end_here_are_dropped_and_unknown_ones_kept():
    sent = request_headers(
        [
            ("Host", "proxy"),
            ("Connection", "keep-alive, X-Per-Hop"),
            ("X-Per-Hop", "1"),
            ("Keep-Alive", "5"),
            ("Transfer-Encoding", "chunked"),
            ("TE", "trailers"),
            ("Upgrade", "h2c"),
            ("Proxy-Authorization", "x"),
            ("Content-Length", "3"),
            ("Accept-Encoding", "gzip"),
            ("Expect", "100-continue"),
            ("X-Eval-Session", "s"),
            ("x-eval-anything", "s"),
            ("X-Bytes", "\udcff"),
            ("X-Custom", "a"),
            ("X-Custom", "b"),
            ("x-stainless-lang", "python"),
            ("Content-Type", "application/json"),
        ],
        None,
    )
    assert sent == [
        ("X-Custom", "a"),
        ("X-Custom", "b"),
        ("x-stainless-lang", "python"),
        ("Content-Type", "application/json"),
        ("Accept-Encoding", "identity"),
    ]


def authorization(value: str, own: str | None = None) -> list[str]:
    sent = request_headers([("authorization", value)], own)
    return [value for name, value in sent if name.lower() == "authorization"]


def test_the_providers_key_takes_the_place_of_the_agents():
    assert authorization("Bearer agent", "Bearer own") == ["Bearer own"]
    assert authorization("Bearer sk-eval-s1", "Bearer own") == ["Bearer own"]


def test_the_agents_key_is_passed_on_unless_it_names_a_session():
    assert authorization("Bearer agent") == ["Bearer agent"]
    assert authorization("Bearer sk-eval-s1") == []
    assert authorization("bearer  sk-eval-s1") == []
    assert request_headers([("api-key", "sk-eval-s1"), ("x-api-key", "real")], None)[0] == (
        "x-api-key",
        "real",
    )


def test_response_headers_lose_what_no_longer_holds():
    headers = [("Content-Length", "9"), ("Content-Encoding", "gzip"), ("Connection", "close"),
               ("Set-Cookie", "a"), ("Set-Cookie", "b"), ("x-request-id", "r")]  # fmt: skip
    kept = [("Set-Cookie", "a"), ("Set-Cookie", "b"), ("x-request-id", "r")]
    assert response_headers(headers, decoded=True) == kept
    assert response_headers(headers, decoded=False) == [("Content-Encoding", "gzip"), *kept]


def test_repeated_headers_are_joined_under_one_lower_case_name():
    assert joined([("A", "1"), ("b", "2"), ("a", "3")]) == {"a": "1, 3", "b": "2"}
