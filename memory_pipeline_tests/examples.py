"""How many examples Hypothesis makes up, by the profile: see `conftest`."""

from hypothesis import settings


def times(factor: float) -> int:
    """So many times the number of examples of the profile; at least one."""
    return max(1, round(factor * settings().max_examples))
