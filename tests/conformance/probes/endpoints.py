"""Other endpoints than chat completions."""

from __future__ import annotations

import json

from tests.conformance.bench import Bench, same
from tests.conformance.probe import BOTH, RECORD, probe

MODEL = {"id": "only-here", "object": "model", "owned_by": "scripted"}
MODELS = {"object": "list", "data": [MODEL]}


@probe("models")
async def models(bench: Bench) -> str:
    """`GET /models` gives the provider's list, not one of the proxy's own.

    Source: OpenAI API reference, list models
    """
    asking = await bench.request("GET", f"/models?mark={bench.marker}")
    call = await bench.provider.call(marked=False)
    same((call.method, call.path), ("GET", "/v1/models"), "the provider's request")
    await call.answer(MODELS)
    same((await asking.answer()).json, MODELS, "the list")
    await bench.logged(finish_state="complete", status=200)
    return "only-here"


@probe("models-one", BOTH)
async def one_model(bench: Bench) -> str:
    """A model whose name has a slash is asked for under its name as it was written.

    Source: RFC 3986, section 2.2 (an encoded slash is not a slash)
    """
    asking = await bench.request("GET", f"/models/some%2Fmodel?mark={bench.marker}")
    call = await bench.provider.call(marked=False)
    same(call.path, "/v1/models/some%2Fmodel", "the provider's path")
    await call.answer(MODEL)
    same((await asking.answer()).json, MODEL, "the answer")
    return "/models/some%2Fmodel"


@probe("models-head", RECORD)
async def head_models(bench: Bench) -> str:
    """`HEAD` passes, without a body, and the connection is good for the next request.

    Source: RFC 9110, section 9.3.2
    """
    line = await bench.line()
    asking = await bench.request("HEAD", f"/models?mark={bench.marker}", line=line)
    call = await bench.provider.call(marked=False)
    same(call.method, "HEAD", "the provider's method")
    await call.answer(MODELS, headers=[("Content-Type", "application/json"), ("x-odd", "1")])
    answer = await asking.answer()
    same((answer.status, answer.raw, answer.header("x-odd")), (200, b"", "1"), "the answer")
    asking = await bench.request("GET", f"/models?mark={bench.marker}", line=line)
    call = await bench.provider.call(marked=False)
    await call.answer(MODELS)
    same((await asking.answer()).json, MODELS, "the next answer")
    await bench.logged(2, finish_state="complete")
    return "no body, and the connection lives"


@probe("embeddings")
async def embeddings(bench: Bench) -> str:
    """`POST /embeddings` passes both ways.

    Source: OpenAI API reference, create embeddings
    """
    asked = {"model": "vectors", "input": ["ü"], "user": bench.marker, "encoding_format": "float"}
    told = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.1, -2e-05]}]}
    asking = await bench.request("POST", "/embeddings", body=json.dumps(asked).encode())
    call = await bench.provider.call()
    same((call.path, call.json), ("/v1/embeddings", asked), "the provider's request")
    await call.answer(told)
    same((await asking.answer()).json, told, "the answer")
    await bench.logged(finish_state="complete", request_model="vectors")
    return "asked and told as written"


@probe("answer-without-body", RECORD)
async def without_body(bench: Bench) -> str:
    """A 204 passes, and the connection is good for the next request.

    Source: RFC 9110, section 15.3.5
    """
    line = await bench.line()
    asking = await bench.request("DELETE", f"/files/file-1?mark={bench.marker}", line=line)
    call = await bench.provider.call(marked=False)
    same((call.method, call.path), ("DELETE", "/v1/files/file-1"), "the provider's request")
    await call.write(b"HTTP/1.1 204 No Content\r\nx-odd: 1\r\n\r\n")
    call.over.set()
    answer = await asking.answer()
    same((answer.status, answer.raw, answer.header("x-odd")), (204, b"", "1"), "the answer")
    await bench.logged(finish_state="complete", status=204)
    return "204"


@probe("answer-binary", RECORD)
async def binary(bench: Bench) -> str:
    """An answer that is no text passes byte for byte and is no failure.

    Source: OpenAI API reference, create speech
    """
    sound = bytes(range(256)) * 300
    asked = json.dumps({"model": "voice", "input": "Hi.", "voice": "a", "user": bench.marker}).encode()
    asking = await bench.request("POST", "/audio/speech", body=asked)
    call = await bench.provider.call()
    await call.answer(sound, headers=[("Content-Type", "audio/mpeg")])
    same((await asking.answer()).raw, sound, "the answer")
    await bench.logged(finish_state="complete", status=200)
    return f"{len(sound)} bytes"


@probe("answer-list", RECORD)
async def a_list(bench: Bench) -> str:
    """Nor is JSON that is no object a failure of an endpoint that is not chat completions.

    Source: RFC 8259, section 2
    """
    asking = await bench.request("GET", f"/anything?mark={bench.marker}")
    call = await bench.provider.call(marked=False)
    await call.answer(b"[1, 2]")
    same((await asking.answer()).raw, b"[1, 2]", "the answer")
    await bench.logged(finish_state="complete", status=200)
    return "[1, 2]"
