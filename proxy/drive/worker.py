"""The process that calls an agent which is a Python function. Run by `proxy.drive.functions`.

    python worker.py MODULE:FUNCTION

Reads `{"turn": 1, "prompt": "..."}` line by line on standard input and writes
`{"turn": 1, "text": "..."}` or `{"turn": 1, "error": "..."}` for each on standard output;
`{"error": "..."}` without a turn says that there is no function to call. The function gets
neither: its own standard input is empty, and what it prints goes to standard error.

Imports nothing of ours, so that the agent's modules are the only ones there are beside the
standard library's.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TextIO

TEXT_LENGTH = 65536
"""Characters of an answer that are handed on; nothing is scored by it."""


def main(target: str) -> int:
    prompts, answers = _take_pipes()
    sys.path.insert(0, os.getcwd())
    sys.argv = sys.argv[:1]
    try:
        function = find(target)
    except Exception as error:
        traceback.print_exc()
        _say(answers, {"error": f"{target} cannot be used: {_last_line(error)}"})
        return 1
    with asyncio.Runner() as runner:
        for line in prompts:
            asked = json.loads(line)
            _say(answers, {"turn": asked["turn"], **call(function, asked["prompt"], runner)})
    return 0


def find(target: str) -> Callable[[str], Any]:
    """What `module:name` names. A class is instantiated, once; its instance is called."""
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if inspect.isclass(found):
        found = found()
    if not callable(found):
        raise TypeError(f"{target} is a {type(found).__name__}, which cannot be called")
    called: Callable[[str], Any] = found
    return called


def call(function: Callable[[str], Any], prompt: str, runner: asyncio.Runner) -> dict[str, str | None]:
    """The function's answer, or its error. One event loop serves all turns of a Session."""
    try:
        answer = function(prompt)
        if inspect.isawaitable(answer):
            answer = runner.run(_awaited(answer))
    except Exception as error:
        traceback.print_exc()
        return {"error": _last_line(error)}
    return {"text": answer[:TEXT_LENGTH] if isinstance(answer, str) else None}


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


def _last_line(error: Exception) -> str:
    return traceback.format_exception_only(error)[-1].strip()


def _take_pipes() -> tuple[TextIO, TextIO]:
    """The two pipes, out of the agent's reach: its prints and its children's go to standard error."""
    prompts = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return prompts, answers


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
