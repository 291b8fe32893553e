"""How a help text looks: the examples of a command are a section of their own."""

from __future__ import annotations

import click

EXAMPLES = "Examples:"
FIRST_STEPS = "First steps:"
_MARKS = tuple(f"\b\n{heading}\n" for heading in (EXAMPLES, FIRST_STEPS))
"""How the epilog of a command begins: click leaves a paragraph under \\b as it is."""


class Formatter(click.HelpFormatter):
    """Sets examples as a section, where click would indent them below the options."""

    def write_text(self, text: str) -> None:
        if not text.startswith(_MARKS):
            super().write_text(text)
            return
        for line in text.splitlines()[1:]:
            self.write(f"{line}\n")


def examples(command: click.Command) -> tuple[str, ...]:
    """The lines under a command's `Examples:`, as they are typed; a comment may follow the command."""
    lines = (command.epilog or "").splitlines()
    return tuple(line.strip() for line in lines if line.strip().startswith("wildproxy"))
