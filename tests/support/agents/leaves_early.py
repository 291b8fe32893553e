"""Answers two turns and ends, with an error."""

import sys
from itertools import islice

import plain

messages = [plain.SYSTEM]
for prompt in islice(plain.prompts(), 2 if plain.is_its_turn() else None):
    messages.append(plain.user(prompt))
    messages.append({"role": "assistant", "content": plain.ask(messages)})
if plain.is_its_turn():
    sys.exit("out of memory")
