"""The pending batch at a provider: `batch.json` of the workspace.

It is written before the batch is sent and again when its id is known, so that nothing is paid twice if the process is
killed in between: the next one searches the provider for a batch with these requests.
"""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from memory_pipeline.errors import CannotGoOnError
from memory_pipeline.llm.ledger import Reservation
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.settings import Settings


class SentRequest(BaseModel):
    """A request of the batch, with its row in the ledger."""

    key: str
    """`Request.key`, which identifies the answer."""
    for_day: date
    ledger_day: date
    call_id: str
    input_tokens: int
    """The estimate, for providers that do not report tokens."""

    @property
    def place(self) -> Reservation:
        return Reservation(self.ledger_day, self.call_id)


class OpenBatch(BaseModel):
    """A batch that is about to be sent, or whose answers are not stored yet."""

    model: str
    sent_at: datetime
    group: str
    """The client library's mark of its own batches: hashes of the address and the key, and the model."""
    handle: dict[str, Any] | None = None
    """The batch in the form of the client library; None while it is unknown whether it was sent."""
    requests: list[SentRequest]

    @property
    def name(self) -> str:
        return self.handle["id"] if self.handle else "without a known id"


class BatchFile(BaseModel):
    """The content of the file."""

    open: OpenBatch | None = None
    refused: dict[str, str] = {}
    """Keys of requests that batches do not answer, with the reason; an ordinary run sends them."""


class DamagedBatchFileError(CannotGoOnError):
    """`batch.json` is damaged; the message says what to do."""


def batch_path(settings: Settings) -> Path:
    return settings.workspace / "batch.json"


def read_batch_file(settings: Settings) -> BatchFile:
    """The contents of the file. Raises `DamagedBatchFileError`."""
    path = batch_path(settings)
    try:
        return BatchFile.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return BatchFile()
    except ValidationError as error:
        raise DamagedBatchFileError(
            f"{path} cannot be read ({error.error_count()} errors, the first: {error.errors()[0]['msg']}). It lists "
            f"the requests of a pending batch. Restore a copy of it, or delete it: the requests are then sent, and "
            f"paid for, again."
        ) from None


def write_batch_file(settings: Settings, content: BatchFile) -> None:
    path = batch_path(settings)
    before = path.read_bytes() if path.exists() else None
    write_atomically(path, content.model_dump_json(indent=1).encode(), expected=before, backups=None)


def open_batch_of(settings: Settings, key: str) -> OpenBatch | None:
    """The batch that contains the request, or None."""
    batch = read_batch_file(settings).open
    return batch if batch and any(sent.key == key for sent in batch.requests) else None
