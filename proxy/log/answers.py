"""Answers as they came, compressed.

What an answer says is in the log already, as the message that scoring reads; and what is around it is much
the same in all of them. So both are the dictionary that zlib begins with (RFC 1950, FDICT): an answer then
takes a fifth of the room, and half the time. The checksum that zlib keeps tells if the dictionary is another
one; what was compressed without any, in logs of before schema 6, is read in the same way.
"""

from __future__ import annotations

import zlib

_STREAM = (
    'data: {"id":"chatcmpl-","object":"chat.completion.chunk","created":17,"model":"gpt-",'
    '"service_tier":"default","system_fingerprint":"fp_","choices":[{"index":0,"delta":{"role":"assistant",'
    '"content":null,"refusal":null,"reasoning_content":"","tool_calls":[{"index":0,"id":"call_",'
    '"type":"function","function":{"name":"","arguments":""}}]},"logprobs":null,"finish_reason":null}],'
    '"usage":null}\n\ndata: {"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}]}'
    '\n\ndata: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1,'
    '"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":'
    '{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}'
    "\n\ndata: [DONE]\n\n"
)
_INDENTED = """{
  "id": "chatcmpl-",
  "object": "chat.completion",
  "created": 17,
  "model": "gpt-",
  "choices": [
    {
      "index": 0,
      "message": {
        "role": "assistant",
        "content": null,
        "tool_calls": [
          {
            "id": "call_",
            "type": "function",
            "function": {
              "name": "",
              "arguments": "{\\"
            }
          }
        ],
        "refusal": null,
        "annotations": []
      },
      "logprobs": null,
      "finish_reason": "stop"
    }
  ],
  "usage": {
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "total_tokens": 1,
    "prompt_tokens_details": {
      "cached_tokens": 0,
      "audio_tokens": 0
    },
    "completion_tokens_details": {
      "reasoning_tokens": 0,
      "audio_tokens": 0,
      "accepted_prediction_tokens": 0,
      "rejected_prediction_tokens": 0
    }
  },
  "service_tier": "default",
  "system_fingerprint": "fp_
}
"""
_SPACED = (
    '{"id": "chatcmpl-", "object": "chat.completion", "created": 17, "model": "", "choices": [{"index": 0, '
    '"message": {"role": "assistant", "content": null, "tool_calls": [{"id": "call_", "type": "function", '
    '"function": {"name": "", "arguments": "{\\"}"}}]}, "logprobs": null, "finish_reason": "tool_calls"}], '
    '"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 1}}'
)
_COMPACT = (
    '{"id":"chatcmpl-","object":"chat.completion","created":17,"model":"","choices":[{"index":0,"message":'
    '{"role":"assistant","content":null,"tool_calls":[]},"logprobs":null,"finish_reason":"stop"}],"usage":'
    '{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1}}'
)
DICTIONARY = _STREAM + _INDENTED + _SPACED + _COMPACT
"""What is around the messages in a stream, and in answers as providers lay them out. Schema 6 puts it into a
log, and from there it is taken: it is never changed.
"""

ANSWER_DICTIONARY = "SELECT value FROM meta WHERE key = 'answer_dictionary'"
OWN_DICTIONARY = f"""({ANSWER_DICTIONARY}) || coalesce(
    (SELECT messages.body FROM messages WHERE messages.hash = exchanges.output_message), '')"""
"""SQL: the dictionary of an exchange's answer."""

_LARGE = 65_536
_WINDOW = 8192
"""Bytes that zlib looks back here, and of an answer for which that is too few. For less, the tables that it
has by default, 256 KB, cost four times what compressing does."""


def pack(answer: bytes, dictionary: bytes) -> bytes:
    is_small = len(answer) < _LARGE and len(dictionary) < _WINDOW
    if is_small:
        packer = zlib.compressobj(wbits=13, memLevel=7, zdict=dictionary)
    else:
        packer = zlib.compressobj(zdict=dictionary)
    return packer.compress(answer) + packer.flush()


LARGEST = 1 << 28
"""Bytes of an answer that are read: in somebody else's log a small cell may hold far more."""


def unpack(packed: bytes, dictionary: str, most: int = 0) -> bytes:
    """The answer's bytes, the first `most` of them if that is not 0. Raises zlib.error."""
    unpacker = zlib.decompressobj(zdict=dictionary.encode())
    answer = unpacker.decompress(packed, most or LARGEST)
    if not unpacker.eof and not (most and len(answer) == most):
        raise zlib.error("incomplete, or too large")
    return answer
