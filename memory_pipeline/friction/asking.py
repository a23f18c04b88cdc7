"""The reflector's model, asked about friction: what belongs together of what users said, and how a pattern is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

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
    """Opened at the first question; what the model has failed for good is not asked again."""

    workspace: Workspace
    _client: Client | None = None
    refused: Counter[str] = field(default_factory=Counter)
    """Why something was done without it, and how often."""

    @property
    def model(self) -> str | None:
        """As it is told; None where none is set."""
        return self._opened().model if reflector_model(self.workspace.settings) else None

    def answer(
        self,
        system: str,
        of_system: Mapping[str, str],
        turn: str,
        of_turn: Mapping[str, str],
        max_tokens: int,
        day: date,
    ) -> str | None:
        """To the two prompts of these names, filled; None where there is none, and why is in `refused`."""
        from memory_pipeline.llm.prompts import filled
        from memory_pipeline.llm.request import Request

        client = self._opened()
        told = filled(system, of_system), filled(turn, of_turn)
        try:
            return client.complete(Request(client.model, *told, max_output_tokens=max_tokens), day).text
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
            self._client = client_of(config, settings.reflector, self.workspace, redact, "friction")
        return self._client
