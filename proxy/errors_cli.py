"""What the commands of this package end with when they cannot do what they were told."""

from __future__ import annotations

import click


class InputError(click.ClickException):
    """Broken input or usage."""

    exit_code = 2
