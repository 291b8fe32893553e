"""Says everything twice: the prompt in a template in a template, and again in a part of its own."""

import plain

messages = [plain.SYSTEM]
for prompt in plain.prompts():
    wrapped = f"<request>{prompt}</request>"
    text = f"Current task: {wrapped}\n\nRemember the original request:\n{prompt}"
    parts = [{"type": "text", "text": text}, {"type": "text", "text": f"Once more: {wrapped}"}]
    messages.append({"role": "user", "content": parts})
    messages.append({"role": "assistant", "content": plain.ask(messages)})
