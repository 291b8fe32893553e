"""Wants two replies to choose from."""

import plain

fields = {"n": 2} if plain.is_its_turn() else {}
messages = [plain.SYSTEM]
for prompt in plain.prompts():
    messages.append(plain.user(prompt))
    messages.append({"role": "assistant", "content": plain.ask(messages, **fields)})
