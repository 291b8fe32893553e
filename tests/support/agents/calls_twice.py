"""Sends every request twice at once, and waits for both answers."""

import plain

messages = [plain.SYSTEM]
for prompt in plain.prompts():
    messages.append(plain.user(prompt))
    both = [plain.sent(messages), plain.sent(messages)]
    texts = [plain.read(connection) for connection in both]
    assert texts[0] == texts[1], texts
    messages.append({"role": "assistant", "content": texts[0]})
