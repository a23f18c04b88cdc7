"""Why there is no answer. Each message is a sentence that says what to do."""

from __future__ import annotations

from memory_pipeline.errors import CannotGoOnError, MemoryPipelineError, TryAgainLaterError


class TransientError(MemoryPipelineError):
    """The model was busy, broken or out of reach this time; worth another try. Never leaves the client."""

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
        """Seconds that the provider asked to wait."""
        self.is_too_many = is_too_many
        """Whether it was refused because too much is asked at once."""
        self.may_be_billed = may_be_billed
        """Whether the model may have worked on it, as when it was cut off."""


class RequestRefusedError(MemoryPipelineError):
    """The model does not answer this one request (too long, filtered, malformed); others may do."""

    def __init__(self, message: str, *, may_be_billed: bool = False) -> None:
        super().__init__(message)
        self.may_be_billed = may_be_billed
        """Whether the model may have worked on it, as when its answer was filtered."""


class ModelUnavailableError(TryAgainLaterError):
    """The model did not answer however often it was asked: it is taken for dead until the next run."""


class SetAsideError(ModelUnavailableError):
    """This one request was not answered however often it was asked, while the model may still answer others: what it is
    about waits for the next run, and nothing else does."""


class ModelMisconfiguredError(CannotGoOnError):
    """No request can succeed: the key is missing or wrong, or the model or the command does not exist."""


class BudgetReachedError(MemoryPipelineError):
    """The next call might pass the day's budget, so it is not made."""


class InBatchError(BudgetReachedError):
    """The request is out in a batch: asked now, it would be paid twice."""
