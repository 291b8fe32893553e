"""Remembers nothing, and has no system prompt."""

import plain

for prompt in plain.prompts():
    plain.ask([plain.user(prompt)])
