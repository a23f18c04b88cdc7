"""Requests to the reflector's model about numbered remarks of users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from memory_pipeline.friction.answers import Question
from memory_pipeline.llm.config import reflector_model
from memory_pipeline.llm.errors import (
    BudgetReachedError,
    ModelMisconfiguredError,
    ModelUnavailableError,
    RequestRefusedError,
)
from memory_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    from memory_pipeline.llm.client import Client


@dataclass
class Asking:
    """A connection to the model, opened at the first question; a permanent failure is not retried."""

    workspace: Workspace
    stage: str = "friction"
    """The stage to which the ledger books the calls."""
    _client: Client | None = None
    refused: Counter[str] = field(default_factory=Counter)
    """The reasons why the model was not used, each with its number."""

    @property
    def model(self) -> str | None:
        """The name of the model; None if none is set."""
        return self._opened().model if reflector_model(self.workspace.settings) else None

    def answer(self, question: Question, values: Mapping[str, str], max_tokens: int, day: date) -> str | None:
        """The answer to the question with these values; None if there is none, with the reason in `refused`."""
        from memory_pipeline.llm.backends.provider import takes_schema
        from memory_pipeline.llm.prompts import filled, text_of
        from memory_pipeline.llm.request import Request

        client = self._opened()
        has_schema = takes_schema(client.config)
        system = filled(question.system, {"format": text_of(question.format).strip()})
        request = Request(
            client.model,
            system,
            filled(question.turn, values),
            max_output_tokens=max_tokens,
            schema=question.schema if has_schema else "",
            plain_system=system if has_schema else "",
        )
        try:
            return client.complete(request, day).text
        except (BudgetReachedError, ModelMisconfiguredError, ModelUnavailableError, RequestRefusedError) as error:
            self.refused[f"{error}"] += 1
            return None

    def _opened(self) -> Client:
        if self._client is None:
            from memory_pipeline.llm.client import client_of
            from memory_pipeline.redaction.redactor import redactor_of

            settings, config = self.workspace.settings, reflector_model(self.workspace.settings)
            assert config is not None
            redact = redactor_of(settings).redact
            self._client = client_of(config, settings.reflector, self.workspace, redact, self.stage)
        return self._client
