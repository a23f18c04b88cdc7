"""How many cases are tried: Hypothesis makes up examples by its profile (see `conftest`), `part` picks from a list."""

import os
from collections.abc import Iterable
from typing import TypeVar

from hypothesis import settings

THOROUGH = 100
Case = TypeVar("Case")


def times(factor: float) -> int:
    """So many times the number of examples of the profile; at least one."""
    return max(1, round(factor * settings().max_examples))


def thorough(factor: float) -> int:
    """The same for readers, redaction and Markdown, of which CI tries as many examples as `make test-nightly`."""
    return max(1, round(factor * THOROUGH)) if os.environ.get("CI") else times(factor)


def stride(step: int) -> int:
    """1 at night, else the step with which places are tried of which each is much like the next."""
    return 1 if settings().max_examples >= THOROUGH else step


def part(cases: Iterable[Case], step: int) -> list[Case]:
    """All cases in CI and at night, in `make test` one of every `step`."""
    return list(cases)[:: 1 if os.environ.get("CI") or settings().max_examples >= THOROUGH else step]
