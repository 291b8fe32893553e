"""How many examples a property is tried on, where it needs more or fewer than most."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = "thorough"
TIMES = 10


def examples(count: int) -> settings:
    """So many, and ten times as many with `--hypothesis-profile thorough`."""
    times = TIMES if settings.get_current_profile_name() == THOROUGH else 1
    return settings(max_examples=count * times, deadline=None)
