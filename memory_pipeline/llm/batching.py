"""Batches of a workspace's observer, one at a time. Nothing blocks: each call does what is possible now.

Answers are cached like those of single calls, so the next run finds them at no cost. A killed process pays for nothing
twice: see `batch_file.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import reduce

from memory_pipeline.llm.backends.batches import BatchBackend, NotReplied, Parcel
from memory_pipeline.llm.backends.opening import Reply
from memory_pipeline.llm.batch_file import BatchFile, OpenBatch, SentRequest, read_batch_file, write_batch_file
from memory_pipeline.llm.client import Client, tokens_of
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import ModelMisconfiguredError, RequestRefusedError, TransientError
from memory_pipeline.llm.ledger import Usage, cost_of
from memory_pipeline.llm.request import Request
from memory_pipeline.workspace.workspace import Workspace

STAGE = "observations"
CLOCKS = timedelta(minutes=10)
"""Maximum delay of the provider's clock relative to ours."""
NOTHING = Usage(0, 0, 0.0)


@dataclass(frozen=True)
class Asked:
    """A request with its day."""

    request: Request
    for_day: date
    answer: int = 0
    """Expected tokens of its answer."""


@dataclass(frozen=True)
class Chosen:
    """The requests for a batch."""

    asked: list[Asked]
    at_most: Usage
    is_all: bool = True
    """Whether nothing is left for later."""


@dataclass(frozen=True)
class StillOut:
    """A batch whose answers are not available yet."""

    batch: OpenBatch
    unclear: list[str] = field(default_factory=list)
    """Ids of batches at the provider, one of which may be this one, whose id was lost."""


@dataclass(frozen=True)
class TakenIn:
    """The result of a batch."""

    batch: OpenBatch
    answered: int = 0
    cost: Usage = NOTHING
    later: Counter[str] = field(default_factory=Counter)
    """Reasons of requests that the next batch repeats."""
    refused: Counter[str] = field(default_factory=Counter)
    """Reasons of requests that are left to the ordinary run."""
    failed: str = ""
    """The reason why the provider answered no request."""


class Batching:
    """The batches of a workspace's observer. Callers hold the run lock."""

    def __init__(self, workspace: Workspace, config: ModelConfig, redact: Callable[[str], str]) -> None:
        self._workspace, self._settings, self._redact = workspace, workspace.settings, redact
        self.config = replace(config, in_batch=True)

    def take_in(self) -> TakenIn | StillOut | None:
        """Store the answers of the pending batch; returns None if there is no batch. It changes nothing if a backend
        raises."""
        if not (batch := read_batch_file(self._settings).open):
            return None
        backend = self._backend(batch.model)
        if batch.handle is None:
            keys = {sent.key for sent in batch.requests}
            batch.handle, unclear = backend.find(batch.group, batch.sent_at - CLOCKS, keys)
            if unclear:
                return StillOut(batch, unclear)
            if batch.handle is None:
                self._settle_unbilled(batch, "it was never sent")
                return None
            self._save(batch)
        handle = batch.handle = backend.look(batch.handle)
        if handle["status"] != "ended":
            return StillOut(batch)
        replies = backend.replies(handle)
        if isinstance(replies, str):
            self._settle_unbilled(batch, replies)
            return TakenIn(batch, failed=self._redact(replies))
        taken = self._store_replies(batch, replies)
        self._save(None)
        backend.clear(handle)
        return taken

    def choose(self, asked: Iterable[Asked]) -> Chosen:
        """As many of these requests as fit into today's budget and one batch.

        Raises `BudgetReachedError` if the first does not fit, `ModelMisconfiguredError` if the model has no batches.
        """
        most, client = self._backend(self.config.model).max_requests(), self._client(self.config.model)
        spent = client.ledger.spent()
        found, total = list[Asked](), NOTHING
        for one in asked:
            worst = client.at_most(one.request)
            with_it = _sum(total, worst)
            if not found:
                client.ledger.require_room(worst)
            elif len(found) >= most or not self._has_room(_sum(spent, with_it)):
                return Chosen(found, total, is_all=False)
            found.append(one)
            total = with_it
        return Chosen(found, total)

    def expected(self, asked: Sequence[Asked]) -> Usage:
        """The expected usage of these requests."""
        each = [(tokens_of(one.request), one.answer) for one in asked]
        return reduce(_sum, (Usage(*tokens, cost_of(self.config, *tokens)) for tokens in each), NOTHING)

    def send(self, asked: Sequence[Asked]) -> OpenBatch:
        """Send these requests, or the first ones that fit.

        Raises `BudgetReachedError`, `RequestRefusedError` and `ModelMisconfiguredError` if nothing was sent. After a
        `TransientError` that is unknown, and `take_in` finds out.
        """
        backend, client = self._backend(self.config.model), self._client(self.config.model)
        parcel = backend.encode([one.request for one in asked])
        calls = [(one.for_day, one.request.key, client.at_most(one.request)) for one in asked[: len(parcel.requests)]]
        places = client.ledger.reserve_all(STAGE, client.model, calls)
        batch = OpenBatch(
            model=self.config.model,
            sent_at=datetime.now(UTC),
            group=parcel.group,
            requests=[
                SentRequest(
                    key=one.request.key,
                    for_day=one.for_day,
                    ledger_day=place.day,
                    call_id=place.call_id,
                    input_tokens=tokens_of(one.request),
                )
                for one, place in zip(asked, places, strict=False)
            ],
        )
        self._save(batch)
        try:
            batch.handle = backend.submit(Parcel(parcel.group, parcel.requests[: len(places)]))
        except (RequestRefusedError, ModelMisconfiguredError) as error:
            self._settle_unbilled(batch, str(error))
            raise
        except TransientError as error:
            raise TransientError(
                f"{str(error).rstrip('.')}. It is unknown whether the batch was accepted; `memory admin batch` looks "
                f"for it before sending another."
            ) from None
        self._save(batch)
        return batch

    def cancel(self) -> OpenBatch | None:
        """Ask the provider to end the pending batch; requests answered by then can still be stored."""
        batch = read_batch_file(self._settings).open
        if batch and batch.handle:
            self._backend(batch.model).cancel(batch.handle)
        return batch

    def _has_room(self, total: Usage) -> bool:
        budget = self._settings
        return total.tokens <= budget.daily_budget_tokens and (total.cost_usd or 0.0) <= budget.daily_budget_usd

    def _save(self, batch: OpenBatch | None, refused: Mapping[str, str] | None = None) -> None:
        content = read_batch_file(self._settings)
        write_batch_file(self._settings, BatchFile(open=batch, refused=content.refused | dict(refused or {})))

    def _store_replies(self, batch: OpenBatch, replies: dict[str, Reply | NotReplied]) -> TakenIn:
        client = self._client(batch.model)
        taken, settled, total = TakenIn(batch), [], NOTHING
        refused: dict[str, str] = {}
        for sent in batch.requests:
            reply = replies.get(sent.key) or TransientError("the batch ended without a result for this request")
            if isinstance(reply, Reply):
                if reply.input_tokens is None:
                    reply = replace(reply, input_tokens=sent.input_tokens)
                answer = client.answer(Request(batch.model, "", ""), reply, 0.0)
                client.cache.put(sent.key, answer)  # before settling, as with single calls
                usage, error = Usage(answer.input_tokens, answer.output_tokens, answer.cost_usd), None
            else:
                error = self._redact(str(reply))
                billed = not isinstance(reply, ModelMisconfiguredError) and reply.may_be_billed
                tokens = sent.input_tokens if billed else 0
                usage = Usage(tokens, 0, cost_of(client.config, tokens, 0) if tokens else 0.0)
                (taken.later if isinstance(reply, TransientError) else taken.refused)[error] += 1
                if not isinstance(reply, TransientError):
                    refused[sent.key] = error
            settled.append((sent.place, usage, error))
            total = _sum(total, usage)
        self._save(batch, refused)
        client.ledger.settle_all(settled, 0.0)
        answered = len(batch.requests) - taken.later.total() - taken.refused.total()
        return replace(taken, answered=answered, cost=total)

    def _settle_unbilled(self, batch: OpenBatch, why: str) -> None:
        """Settle a batch without any answered or billed request."""
        ledger = self._client(batch.model).ledger
        ledger.settle_all([(sent.place, NOTHING, self._redact(why)) for sent in batch.requests], 0.0)
        self._save(None)

    def _backend(self, model: str) -> BatchBackend:
        return BatchBackend(replace(self.config, model=model))

    def _client(self, model: str) -> Client:
        config = replace(self.config, model=model)
        return Client(config, self._workspace, self._backend(model), self._redact, stage=STAGE)


def _sum(one: Usage, other: Usage) -> Usage:
    cost = None if one.cost_usd is None or other.cost_usd is None else one.cost_usd + other.cost_usd
    return Usage(one.input_tokens + other.input_tokens, one.output_tokens + other.output_tokens, cost)
