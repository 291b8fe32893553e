"""An agent as people write them: the openai SDK, streaming, a template around the user's words."""

import sys

from openai import OpenAI

client = OpenAI()
messages = [{"role": "system", "content": "You are Pat, a helpful assistant of ACME. Be brief."}]
for line in [sys.argv[1]] if len(sys.argv) > 1 else sys.stdin:
    messages.append({"role": "user", "content": f"A customer writes:\n\n{line.strip()}\n\nHelp them."})
    stream = client.chat.completions.create(model="gpt-4o", messages=messages, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    messages.append({"role": "assistant", "content": text})
    print(text)
