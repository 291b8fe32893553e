"""What the agents of this folder share: a client that starts fast, and how prompts come.

Run as a script it is an agent itself, one that behaves. Prompts come line by line on standard
input, or as the last argument after `--`.
"""

import http.client
import json
import os
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

SYSTEM = {"role": "system", "content": "You are a plain agent."}
SESSION = os.environ["EVAL_SESSION"]
TOOL = {"type": "function", "function": {"name": "my_own_tool", "parameters": {"type": "object"}}}

Message = dict[str, Any]


def prompts() -> Iterator[str]:
    if "--" in sys.argv:
        yield sys.argv[sys.argv.index("--") + 1]
    else:
        yield from (line.strip() for line in sys.stdin)


def is_its_turn() -> bool:
    """Is this the Session, the first argument, in which the agent shall misbehave?"""
    return sys.argv[1] == SESSION


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def sent(messages: list[Message], headers: dict[str, str] | None = None, **fields: Any) -> Any:
    """A connection on which a request was sent and its answer not read."""
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    assert url.hostname is not None
    connection = http.client.HTTPConnection(url.hostname, url.port)
    key = os.environ["OPENAI_API_KEY"]
    own = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **(headers or {})}
    body = json.dumps({"model": "gpt-4o", "messages": messages, **fields})
    connection.request("POST", f"{url.path}/chat/completions", body, own)
    return connection


def read(connection: Any) -> str:
    """The text of the answer. Anything but a 200 is an error, as with any client."""
    response = connection.getresponse()
    raw = response.read().decode()
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"Error code: {response.status} - {raw}")
    text = json.loads(raw)["choices"][0]["message"]["content"]
    assert isinstance(text, str)
    return text


def ask(messages: list[Message], **fields: Any) -> str:
    return read(sent(messages, **fields))


def behave() -> None:
    messages = [SYSTEM]
    for prompt in prompts():
        messages.append(user(prompt))
        messages.append({"role": "assistant", "content": ask(messages)})


if __name__ == "__main__":
    behave()
