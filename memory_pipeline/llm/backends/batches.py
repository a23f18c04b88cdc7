"""Batches at a provider: many requests sent together and answered within a day at half the price.

OpenAI, Anthropic and Gemini offer them on their own servers, and pydantic-ai supports all three. This module adds that
a batch with a lost id is found by the keys of its requests, and that files at the provider are deleted once the answers
are stored.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from memory_pipeline.llm.backends.opening import Reply, quotable
from memory_pipeline.llm.backends.provider import ProviderBackend, message_of, parameters_of, settings_of
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import ModelMisconfiguredError, RequestRefusedError, TransientError
from memory_pipeline.llm.request import Request

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.models.batch import Batch, BatchResult, EncodedBatchRequest

NotReplied = TransientError | RequestRefusedError | ModelMisconfiguredError


_WITHOUT_RESULTS = ("JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED")
"""States in which a batch of Gemini may have no results."""


@dataclass(frozen=True)
class Parcel:
    """The requests of a batch, possibly fewer than given if the batch is full."""

    group: str
    requests: Sequence[EncodedBatchRequest]


class BatchBackend(ProviderBackend):
    """Batches of a model `provider:model`. Handles are plain data that other processes can use."""

    def __init__(self, config: ModelConfig) -> None:
        if config.is_command:
            raise ModelMisconfiguredError(f"{config.role}_MODEL is a command, and {_NO_BATCHES}")
        super().__init__(config)

    def max_requests(self) -> int:
        """Maximum number of requests in a batch. Raises `ModelMisconfiguredError` if the model has no batches."""
        most = self._model().batch_max_requests
        if most is None:
            raise self._misconfigured(f"is asked where there are no batches, and {_NO_BATCHES.rstrip('.')}")
        return most

    def encode(self, requests: Sequence[Request]) -> Parcel:
        """The first of these requests that fit into one batch, at least one."""
        most = self.max_requests()

        async def encoded(model: Model) -> Parcel:
            found: list[EncodedBatchRequest] = []
            left = math.inf if model.batch_max_bytes is None else model.batch_max_bytes
            for request in requests[:most]:
                one = await _encode(model, request)
                left -= model.batch_request_size(one)
                if found and (left < 0 or found[0].group != one.group):
                    break
                found.append(one)
            return Parcel(found[0].group, found)

        return self._run(encoded, lambda parcel: parcel)

    def submit(self, parcel: Parcel) -> dict[str, Any]:
        """The handle of the batch. After a `TransientError` it is unknown whether the batch exists."""
        return self._run(lambda model: model.batch_create(parcel.requests), _dumped)

    def look(self, handle: dict[str, Any]) -> dict[str, Any]:
        """The current handle; its `status` is "ended" when the answers are available."""
        return self._run(lambda model: model.batch_status(_loaded(handle)), _dumped)

    def cancel(self, handle: dict[str, Any]) -> None:
        self._run(lambda model: model.batch_cancel(_loaded(handle)), _dumped)

    def replies(self, handle: dict[str, Any]) -> dict[str, Reply | NotReplied] | str:
        """The replies of an ended batch by request key, or the reason why it failed as a whole."""
        from pydantic_ai.exceptions import AgentRunError

        details = handle.get("provider_details") or {}
        if details.get("status") == "failed":  # OpenAI rejected the batch
            said = "; ".join(str(error.get("message")) for error in details.get("errors") or ())
            return quotable(said) or "no reason is given"

        async def read(model: Model) -> dict[str, Reply | NotReplied] | str:
            try:
                results = await model.batch_results(_loaded(handle))
            except AgentRunError as error:
                if details.get("state") in _WITHOUT_RESULTS:
                    return quotable(str(error))
                raise
            return {result.custom_id: self._decoded(model, result) for result in results}

        return self._run(read, lambda replies: replies)

    def find(self, group: str, since: datetime, keys: Collection[str]) -> tuple[dict[str, Any] | None, list[str]]:
        """The batch created since then that contains one of these keys, else the ids of batches that may contain one,
        which is known only when they have ended."""

        async def found(model: Model) -> tuple[dict[str, Any] | None, list[str]]:
            unclear = []
            async for name, made in _list_batches(model, self.provider):
                if made < since:
                    continue
                batch = await model.batch_status(_handle(model, name, group, made))
                known = await _keys_of_batch(model, batch)
                if known is None:
                    unclear.append(name)
                elif known & set(keys):
                    return _dumped(batch), []
            return None, unclear

        return self._run(found, lambda pair: pair)

    def clear(self, handle: dict[str, Any]) -> None:
        """Delete the batch's files at the provider, if it allows that; it would keep them for weeks."""
        details = handle.get("provider_details") or {}

        async def cleared(model: Model) -> None:
            client: Any = cast(Any, model).client
            if self.provider == "anthropic":
                await client.messages.batches.delete(handle["id"])
            elif self.provider.startswith("google"):
                await client.aio.batches.delete(name=handle["id"])
                await client.aio.files.delete(name=details["input_file"])
            else:
                for name in ("input_file_id", "output_file_id", "error_file_id"):
                    if file := details.get(name):
                        await client.files.delete(file)

        with suppress(TransientError, RequestRefusedError, ModelMisconfiguredError):
            self._run(cleared, lambda nothing: nothing)

    def _decoded(self, model: Model, result: BatchResult) -> Reply | NotReplied:
        from pydantic_ai.exceptions import AgentRunError
        from pydantic_ai.models.batch import BatchRequest

        if result.status in ("expired", "canceled"):
            return TransientError(self._failed(f"the batch {result.status} before it came to this request"))
        try:
            return self._reply(model.batch_decode(result, BatchRequest(custom_id=result.custom_id, messages=[])))
        except (TransientError, RequestRefusedError, ModelMisconfiguredError) as error:
            return error
        except AgentRunError as error:
            return self._translate_error(error)
        except Exception as error:  # an answer in a form that the library does not know
            reason = f"its answer cannot be read ({type(error).__name__}: {error})"
            return TransientError(self._failed(reason), may_be_billed=True)


_NO_BATCHES = (
    "only openai:, anthropic: and google: have batches, at their own servers. Use one of them, or `memory run`, "
    "which works with any model."
)


async def _encode(model: Model, request: Request) -> EncodedBatchRequest:
    """The request in the form in which it is sent alone."""
    from pydantic_ai.messages import InstructionPart
    from pydantic_ai.models.batch import BatchRequest

    instructions = [InstructionPart(content=request.system)] if request.system else None
    parameters = replace(parameters_of(model, request), instruction_parts=instructions)
    messages = model.prepare_messages([message_of(request)], parameters)
    return await model.batch_encode(
        BatchRequest(
            custom_id=request.key,
            messages=messages,
            model_settings=settings_of(model, request),
            model_request_parameters=parameters,
        )
    )


async def _list_batches(model: Model, provider: str) -> AsyncIterator[tuple[str, datetime]]:
    """The ids of the account's batches, with the times of their creation."""
    client: Any = cast(Any, model).client
    if provider == "anthropic":
        async for batch in client.messages.batches.list():
            yield batch.id, batch.created_at
    elif provider.startswith("google"):
        async for batch in await client.aio.batches.list():
            yield batch.name, batch.create_time
    else:
        async for batch in client.batches.list():
            yield batch.id, datetime.fromtimestamp(batch.created_at, UTC)


async def _keys_of_batch(model: Model, batch: Batch) -> set[str] | None:
    """The keys of a batch's requests; None if they are unknown so far."""
    from pydantic_ai.exceptions import AgentRunError

    if file := (batch.provider_details or {}).get("input_file_id"):
        from openai import NotFoundError

        try:
            content = await cast(Any, model).client.files.content(file)
        except NotFoundError:  # deleted, as ours are once the answers are stored
            return set()
        return {key for line in content.text.splitlines() if (key := _custom_id(line))}
    if batch.status != "ended":
        return None
    try:
        return {result.custom_id for result in await model.batch_results(batch)}
    except AgentRunError:  # it ended without results, so nothing was billed
        return set()


def _custom_id(line: str) -> str | None:
    with suppress(ValueError):
        found = json.loads(line)
        return found.get("custom_id") if isinstance(found, dict) else None
    return None


def _handle(model: Model, name: str, group: str, made: datetime) -> Batch:
    from pydantic_ai.models.batch import Batch

    return Batch(
        id=name,
        model_name=model.model_name,
        provider_name=model.system,
        group=group,
        status="in_progress",
        created_at=made,
        request_count=0,
    )


def _dumped(batch: Batch) -> dict[str, Any]:
    from pydantic import TypeAdapter
    from pydantic_ai.models.batch import Batch

    return cast(dict[str, Any], TypeAdapter(Batch).dump_python(batch, mode="json"))


def _loaded(handle: dict[str, Any]) -> Batch:
    from pydantic import TypeAdapter
    from pydantic_ai.models.batch import Batch

    return TypeAdapter(Batch).validate_python(handle)
