"""Reads its prompts, content with everything, and never asks anybody."""

import plain

if plain.is_its_turn():
    for _ in plain.prompts():
        print("Done.")
else:
    plain.behave()
