"""Loses patience at once, hangs up and sends the same request again, as SDKs do."""

import plain

messages = [plain.SYSTEM]
for prompt in plain.prompts():
    messages.append(plain.user(prompt))
    plain.sent(messages).close()
    text = plain.read(plain.sent(messages, {"x-stainless-retry-count": "1"}))
    messages.append({"role": "assistant", "content": text})
