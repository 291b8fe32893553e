"""Fold the chunks of a streamed chat completion into the whole one."""

from __future__ import annotations

import json
from typing import Any, TypeGuard

from scenarios.replies import join_text

TEXT_FIELDS = ("content", "refusal", "reasoning_content", "reasoning", "thinking")
"""Message fields that arrive in pieces; every other scalar arrives whole."""

_IGNORED = frozenset({"object", "choices", "usage", "error", "obfuscation"})


class Fold:
    """Collects `chat.completion.chunk` objects; `response()` is the `chat.completion`.

    Lenient on purpose: whatever is missing or malformed is passed over, never raised.
    """

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._usage: dict[str, Any] | None = None
        self._choices: dict[int, _Choice] = {}

    @property
    def finished(self) -> bool:
        """Every choice seen so far (at least one) has its finish_reason."""
        return bool(self._choices) and all(c.fields.get("finish_reason") for c in self._choices.values())

    def add(self, chunk: object) -> None:
        """Take in one parsed chunk."""
        if not isinstance(chunk, dict):
            return
        for key, value in chunk.items():
            if value is not None and key not in _IGNORED:
                # The first id, model and time name the completion; later values of
                # anything else (a running counter, say) are newer knowledge.
                if key in ("id", "created", "model"):
                    self._top.setdefault(key, value)
                else:
                    self._top[key] = value
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                index = choice.get("index")
                self._choices.setdefault(index if _is_int(index) else 0, _Choice()).add(choice)

    def response(self) -> dict[str, Any]:
        """The whole completion; `choices` in the order of their index."""
        response: dict[str, Any] = {"id": "", "object": "chat.completion", "created": 0, "model": ""}
        response.update(self._top)
        response["choices"] = [self._choices[index].whole(index) for index in sorted(self._choices)]
        if self._usage is not None:
            response["usage"] = self._usage
        return response


class _Text:
    """A text that grows piece by piece, in time and room that grow with its length and no faster."""

    def __init__(self, text: str) -> None:
        self._pieces = [text]

    def add(self, text: str) -> None:
        if self._pieces[-1]:
            self._pieces.append(text)
        else:
            self._pieces[-1] = text

    def may_be_json(self) -> bool:
        """Told by its ends, without looking at all of it."""
        return self._pieces[0].lstrip()[:1] != "{" or self._pieces[-1].rstrip()[-1:] in ("}", "")

    def whole(self) -> str:
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]


class _Choice:
    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[_Call] = []
        self._latest: dict[int, _Call] = {}
        """The calls by their index; of those with one, the last."""
        self._top = -1
        self._broken: list[object] = []
        self._function_call: _Call | None = None

    def add(self, choice: dict[str, Any]) -> None:
        for key, value in choice.items():
            if key == "logprobs" and isinstance(value, dict):
                self.fields[key] = _extended(self.fields.get(key), value)
            elif value is not None and key not in ("index", "delta", "message"):
                self.fields[key] = value
        # A few servers put the whole message into one chunk.
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._add_delta(delta)

    def _add_delta(self, delta: dict[str, Any]) -> None:
        for key, value in delta.items():
            if key == "tool_calls":
                self._add_calls(value)
            elif key == "function_call" and isinstance(value, dict) and value:
                self._function_call = self._function_call or _Call(0)
                self._function_call.add({"function": value})
            elif key in TEXT_FIELDS:
                text = join_text(value) if isinstance(value, list) else value
                if isinstance(text, str):
                    _grow(self._message, key, text)
            elif isinstance(value, list):
                _grow_list(self._message, key, value)
            elif value is not None:
                self._message[key] = value

    def _add_calls(self, value: object) -> None:
        """What is no call is kept as an entry that is none: it must not pass as a plain text answer."""
        for fragment in value if isinstance(value, list) else [[value]] if value else ():
            if isinstance(fragment, dict):
                self._call_for(fragment).add(fragment)
            elif fragment is not None:
                self._broken.append(fragment)

    def _call_for(self, fragment: dict[str, Any]) -> _Call:
        """The call that a fragment belongs to, by index; a new one where it starts one.

        Servers that send index 0 for every call are told by a new id with a name. A
        new id alone is no sign: some servers make one up for every fragment.
        """
        index = fragment.get("index")
        if not _is_int(index):
            return self._call_without_index(fragment)
        same = self._latest.get(index)
        return self._begun(index) if same is None or same.is_other(fragment) else same

    def _call_without_index(self, fragment: dict[str, Any]) -> _Call:
        last = self._calls[-1] if self._calls else None
        if last is not None and not (last.is_other(fragment) or last.is_followed_by(fragment)):
            return last
        return self._begun(self._top + 1)

    def _begun(self, index: int) -> _Call:
        self._top = max(index, self._top)
        self._latest[index] = call = _Call(index)
        self._calls.append(call)
        return call

    def whole(self, index: int) -> dict[str, Any]:
        message = _joined(self._message)
        calls = [call.whole() for call in sorted(self._calls, key=lambda call: call.index)]
        if calls or self._broken:
            message["tool_calls"] = [*calls, *self._broken]
        if self._function_call is not None:
            message["function_call"] = self._function_call.function
        return {"index": index, "message": message, "finish_reason": None, **self.fields}


class _Call:
    """One tool call in the making. Id, type and name are set; only arguments grow."""

    def __init__(self, index: int) -> None:
        self.index = index
        self._function: dict[str, Any] = {"name": "", "arguments": ""}
        self._fields: dict[str, Any] = {}

    @property
    def function(self) -> dict[str, Any]:
        return _joined(self._function)

    def add(self, fragment: dict[str, Any]) -> None:
        for key, value in fragment.items():
            # A later id is another name for the same call (see `_call_for`): keep the first.
            if key in ("index", "function") or value in (None, "") or (key == "id" and "id" in self._fields):
                continue
            if key == "custom" and isinstance(value, dict):
                self._add_custom(value)
            else:
                self._fields[key] = value
        function = fragment.get("function")
        for key, value in function.items() if isinstance(function, dict) else ():
            if key == "arguments":
                self._add_arguments(value)
            elif value not in (None, ""):
                self._function[key] = value

    def _add_custom(self, value: dict[str, Any]) -> None:
        """A custom call, which has its input in the place of arguments."""
        before = self._fields.get("custom")
        custom = self._fields["custom"] = before if isinstance(before, dict) else {}
        for key, it in value.items():
            if key == "input" and isinstance(it, str) and isinstance(custom.get(key, ""), (str, _Text)):
                _grow(custom, key, it)
            elif it not in (None, "") or key not in custom:
                custom[key] = it

    def _add_arguments(self, value: object) -> None:
        old = self._function["arguments"]
        if isinstance(value, str) and isinstance(old, (str, _Text)):
            _grow(self._function, "arguments", value)
        elif value is not None and (old == "" or (isinstance(old, _Text) and not old.whole())):
            self._function["arguments"] = value

    def is_other(self, fragment: dict[str, Any]) -> bool:
        """The fragment has an id and a name, and the id is not this call's."""
        new, mine = fragment.get("id"), self._fields.get("id")
        return bool(new and mine and new != mine and _name(fragment))

    def is_followed_by(self, fragment: dict[str, Any]) -> bool:
        """Without index and id: a name begins a call once this one is complete or of another name."""
        name = _name(fragment)
        if not name or not self._function["name"] or (fragment.get("id") and "id" in self._fields):
            return False
        return name != self._function["name"] or _is_json(self._function["arguments"])

    def whole(self) -> dict[str, Any]:
        fields = dict(self._fields)
        if isinstance(fields.get("custom"), dict):
            fields["custom"] = _joined(fields["custom"])
        if "custom" in fields and not self._function["name"]:
            return fields
        return {"type": "function", **fields, "function": self.function}


def _name(fragment: dict[str, Any]) -> object:
    function = fragment.get("function")
    return function.get("name") if isinstance(function, dict) else None


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_json(text: object) -> bool:
    if isinstance(text, _Text):
        if not text.may_be_json():
            return False
        text = text.whole()
    if not isinstance(text, str):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _grow(fields: dict[str, Any], key: str, text: str) -> None:
    held = fields.get(key)
    if isinstance(held, _Text):
        held.add(text)
    else:
        fields[key] = _Text((held or "") + text)


def _grow_list(fields: dict[str, Any], key: str, more: list[Any]) -> None:
    held = fields.get(key)
    if isinstance(held, list):
        held.extend(more)
    else:
        fields[key] = list(more)


def _joined(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: it.whole() if isinstance(it, _Text) else it for key, it in fields.items()}


def _extended(before: object, more: dict[str, Any]) -> dict[str, Any]:
    """Lists go on where they were; whatever else comes takes the place of what was there."""
    found = before if isinstance(before, dict) else {}
    for key, value in more.items():
        if isinstance(value, list):
            _grow_list(found, key, value)
        elif value is not None:
            found[key] = value
    return found
