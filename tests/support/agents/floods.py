"""Prints megabytes on both outputs, before and after it asks."""

import sys

import plain

messages = [plain.SYSTEM]
for prompt in plain.prompts():
    sys.stdout.write("o" * 2_000_000)
    sys.stderr.write("e" * 2_000_000 + "\n")
    plain.ask([*messages, plain.user(prompt)])
    sys.stdout.write("\n" * 2_000_000)
