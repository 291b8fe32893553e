"""The builtin agent: the baseline for a bare model. A plain loop with the `openai` SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from proxy.drive.agent import AgentAnswer, AgentFactory, AgentFailure, AgentSession

MAX_TOOL_ROUNDS = 50
"""How often a turn goes on after tool calls, of which this agent can do none."""
TIMEOUT_S = 3600.0
"""For one request. The driver's turn timeout is the one that is meant to end a turn."""
TEMPERATURE = 0.0
"""As the released harness sends it."""

Message = dict[str, Any]


@asynccontextmanager
async def builtin(
    model: str, *, stream: bool = False, timeout: float = TIMEOUT_S
) -> AsyncIterator[AgentFactory]:
    """A factory of builtin agents that ask for `model`; they share connections, nothing else.

    `timeout` is in seconds. The agents must not be used after the context has ended.
    """
    # The address is always the proxy's: an HTTP proxy of the environment has no part in it.
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(api_key="-", http_client=http, max_retries=0, timeout=timeout) as client:

        def factory(session: AgentSession) -> BuiltinAgent:
            own = client.with_options(base_url=session.base_url, api_key=session.api_key)
            return BuiltinAgent(own, model, stream=stream)

        yield factory


class BuiltinAgent:
    """Sends exactly its messages, the model and the temperature, and keeps the history.

    No system prompt and no tools of its own. A turn that fails leaves no trace in the
    history.
    """

    def __init__(self, client: AsyncOpenAI, model: str, *, stream: bool = False) -> None:
        self._client = client
        self._model = model
        self._stream = stream
        self._history: list[Message] = []

    async def turn(self, prompt: str, number: int = 0) -> AgentAnswer:
        messages = [*self._history, {"role": "user", "content": prompt}]
        for _ in range(MAX_TOOL_ROUNDS + 1):
            try:
                answer = await self._ask(messages)
            except openai.OpenAIError as error:
                raise AgentFailure(_reason(error)) from error
            messages = [*messages, answer]
            if not answer.get("tool_calls"):
                self._history = messages
                return AgentAnswer(answer["content"])
            messages += [_refusal(call) for call in answer["tool_calls"]]
        raise AgentFailure(f"the model went on calling tools after {MAX_TOOL_ROUNDS} rounds of errors")

    def last_words(self) -> str:
        """Nothing: what it meets is in its failures."""
        return ""

    async def close(self) -> None:
        """Nothing to do: the connections belong to all agents of the factory."""

    async def _ask(self, messages: list[Message]) -> Message:
        request: dict[str, Any] = {"messages": messages, "model": self._model, "temperature": TEMPERATURE}
        if self._stream:
            request |= {"stream": True, "stream_options": {"include_usage": True}}
        answer: object = await self._client.chat.completions.create(**request)
        return await _folded(answer) if isinstance(answer, AsyncStream) else _message(answer)


def _message(answer: object) -> Message:
    """The assistant message of an answer. The SDK does not check what it is given."""
    choices = answer.choices if isinstance(answer, ChatCompletion) else None
    if not choices or not choices[0].message:
        raise AgentFailure("the answer is no chat completion with a choice in it")
    message = choices[0].message
    calls = [call.model_dump(exclude_unset=True) for call in message.tool_calls or []]
    return _assistant(message.content, calls)


async def _folded(stream: AsyncStream[ChatCompletionChunk]) -> Message:
    content = ""
    calls: dict[int, Message] = {}
    finished = False
    async with stream:
        async for chunk in stream:
            for choice in (chunk.choices or [])[:1]:
                finished = finished or choice.finish_reason is not None
                content += (choice.delta and choice.delta.content) or ""
                for part in (choice.delta and choice.delta.tool_calls) or []:
                    _fold_call(calls, part)
    # The SDK says nothing when a stream just ends.
    if not finished:
        raise AgentFailure("the stream ended before the answer did")
    return _assistant(content, [calls[index] for index in sorted(calls)])


def _fold_call(calls: dict[int, Message], part: Any) -> None:
    call = calls.setdefault(
        part.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    )
    call["id"] = part.id or call["id"]
    if part.function:
        call["function"]["name"] += part.function.name or ""
        call["function"]["arguments"] += part.function.arguments or ""


def _assistant(content: str | None, calls: list[Message]) -> Message:
    message: Message = {"role": "assistant", "content": content or ""}
    return {**message, "tool_calls": calls} if calls else message


def _refusal(call: Message) -> Message:
    name = (call.get("function") or {}).get("name")
    return {
        "role": "tool",
        "tool_call_id": call.get("id"),
        "content": f"Error: there is no tool {name!r} here.",
    }


def _reason(error: openai.OpenAIError) -> str:
    if isinstance(error, openai.APIStatusError):
        return f"HTTP {error.status_code}: {error.message}"
    if isinstance(error, openai.APITimeoutError):
        return "the proxy gave no answer in time"
    if isinstance(error, openai.APIConnectionError):
        return f"the connection to the proxy failed ({error.__cause__ or error})"
    return f"{type(error).__name__}: {error}"
