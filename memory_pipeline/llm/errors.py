"""Errors of requests to models. Each message is a sentence that says what to do."""

from __future__ import annotations

import os
import re

from memory_pipeline.errors import CannotGoOnError, MemoryPipelineError, TryAgainLaterError

_SHOWN = 300
_NAMES_A_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_MIN_SECRET = 8  # shorter values may be ordinary words


class TransientError(MemoryPipelineError):
    """The model was temporarily busy, broken or unreachable; worth another attempt. Never leaves the client."""

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        may_be_billed: bool = False,
        is_too_many: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds to wait as requested by the provider."""
        self.is_too_many = is_too_many
        """Whether it was refused because of too many concurrent requests."""
        self.may_be_billed = may_be_billed
        """Whether the model may have processed it, as after a broken connection."""


class RequestRefusedError(MemoryPipelineError):
    """The model does not answer this request (too long, filtered, malformed); it may answer others."""

    def __init__(self, message: str, *, may_be_billed: bool = False) -> None:
        super().__init__(message)
        self.may_be_billed = may_be_billed
        """Whether the model may have processed it, as when its answer was filtered."""


class ModelUnavailableError(TryAgainLaterError):
    """The model did not answer any attempt: it counts as dead until the next run."""


class SetAsideError(ModelUnavailableError):
    """This request was not answered by any attempt, while the model may still answer others: only its part waits for
    the next run."""


class ModelMisconfiguredError(CannotGoOnError):
    """No request can succeed: the key is missing or wrong, or the model or the command does not exist."""


class BudgetReachedError(MemoryPipelineError):
    """The next call might exceed the day's budget, so it is not made."""


def quotable(text: str) -> str:
    """External text for use in a message: one short line, without keys from the environment or from URLs."""
    for name, value in os.environ.items():
        if _NAMES_A_SECRET.search(name) and len(value.strip()) >= _MIN_SECRET:
            text = text.replace(value.strip(), "***")
    text = " ".join(re.sub(r"//[^/\s@]*@", "//", text).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
