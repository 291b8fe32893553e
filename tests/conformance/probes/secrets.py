"""Keys: to the provider, and nowhere else."""

from __future__ import annotations

import json
from base64 import b64encode

from tests.conformance.bench import Bench, check, same
from tests.conformance.chunks import completion
from tests.conformance.probe import probe
from tests.conformance.provider import JSON


@probe("key-in-no-log", needs_log=True)
async def in_no_log(bench: Bench) -> str:
    """No key is in the log: not from headers, the query, errors that repeat it, or answers.

    Source: BerriAI/litellm#35678, BerriAI/litellm#30736, PromptSail/prompt_sail#57
    """
    key = bench.target.key
    own = [("api-key", key), ("x-api-key", key), ("Cookie", f"session={key}")]
    error = json.dumps({"error": {"message": f"Incorrect API key provided: {key}."}}).encode()
    asking = await bench.request("GET", f"/models?mark={bench.marker}&api-key={key}", *own)
    call = await bench.provider.call(marked=False)
    await call.answer(error, 401, [JSON, ("Set-Cookie", f"session={key}"), ("x-request-id", key)])
    same((await asking.answer()).raw, error, "the answer")
    asking = await bench.ask(*own, x_token=key, metadata={"api_key": key})
    call = await bench.provider.call()
    same(call.header("Authorization"), f"Bearer {key}", "the provider's Authorization")
    await call.answer(completion({"content": f"Your key is {key}"}))
    await asking.answer()
    asking = await bench.again().ask(*own)
    call = await bench.provider.call()
    await call.answer(error, 401, [JSON])
    same((await asking.answer()).status, 401, "the status")
    await bench.logged(2)
    assert bench.log is not None
    found = bench.log.everything()
    for form in (key.encode(), b64encode(key.encode()), key.encode().hex().encode()):
        at = found.find(form)
        check(at < 0, f"the key is in the log, behind {found[max(0, at - 40) : max(0, at)]!r}")
    return f"not in {len(found) / 1e6:.1f} MB of log"
