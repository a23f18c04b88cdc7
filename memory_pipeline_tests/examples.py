"""How many examples Hypothesis makes up, by the profile: see `conftest`."""

import os

from hypothesis import settings

THOROUGH = 100


def times(factor: float) -> int:
    """So many times the number of examples of the profile; at least one."""
    return max(1, round(factor * settings().max_examples))


def thorough(factor: float) -> int:
    """The same for readers, redaction and Markdown, of which CI tries as many examples as `make test-nightly`."""
    return max(1, round(factor * THOROUGH)) if os.environ.get("CI") else times(factor)
