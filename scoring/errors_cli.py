"""What the commands of this package end with when they cannot do what they were told."""

from __future__ import annotations

import click


class InputError(click.ClickException):
    """Broken input or usage."""

    exit_code = 2


class NothingScorable(click.ClickException):
    """The input is sound, but there is nothing in it to score."""

    exit_code = 3


class ThresholdMissed(click.ClickException):
    """A figure is on the wrong side of its threshold."""

    exit_code = 1
