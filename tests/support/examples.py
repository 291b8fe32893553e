"""How many examples a property is tried on, where it needs more or fewer than most."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

THOROUGH = "thorough"
TIMES = 10


LARGE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


def examples(count: int, *, large: bool = False) -> settings:
    """So many, and ten times as many with `--hypothesis-profile thorough`.

    `large`: each may take long to make, and is not made smaller for that.
    """
    times = TIMES if settings.get_current_profile_name() == THOROUGH else 1
    return settings(max_examples=count * times, deadline=None, suppress_health_check=LARGE if large else ())
