"""Asks again, by itself, after whatever error there was."""

import plain

for prompt in plain.prompts():
    answer = None
    while answer is None:
        try:
            answer = plain.ask([plain.SYSTEM, plain.user(prompt)])
        except RuntimeError as error:
            print(error)
