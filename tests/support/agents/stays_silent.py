"""Answers its first turn; in the second it says in the fifo, its argument, that it waits, and does.

Ends when its input does.
"""

import sys
from pathlib import Path

import plain

for number, prompt in enumerate(plain.prompts(), 1):
    if number == 1:
        plain.ask([plain.SYSTEM, plain.user(prompt)])
    elif number == 2:
        with Path(sys.argv[1]).open("w") as fifo:
            fifo.write("waiting\n")
