"""Questions to the reflector's model about numbered remarks of users, and the groups in its answers: JSON, with a
schema if the model takes one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, ValidationError

from memory_pipeline.llm.answers.cleaning import cleaned, without_thinking
from memory_pipeline.llm.answers.structured import (
    Form,
    Number,
    Numbers,
    json_values,
    only_valid,
    schema_for,
)
from memory_pipeline.llm.config import reflector_model
from memory_pipeline.llm.errors import (
    BudgetReachedError,
    ModelMisconfiguredError,
    ModelUnavailableError,
    RequestRefusedError,
)
from memory_pipeline.workspace.workspace import Workspace

# the schema has the names of these classes and the order of their fields, and is a part of a request's cache key


class GroupForm(Form):
    what: Annotated[Literal["again", "broken", "over"], BeforeValidator(lambda value: str(value).lower())]
    line: Number
    remarks: Numbers


class GroupsForm(Form):
    groups: Annotated[list[GroupForm], BeforeValidator(only_valid(GroupForm))]


@dataclass(frozen=True)
class Question:
    """A question: the names of its prompts, and the schema of its answer."""

    system: str
    turn: str
    format: str
    """The prompt with the format of the answer."""
    form: type[Form]

    @property
    def schema(self) -> str:
        """The JSON schema of the answer, as text."""
        return schema_for(self.form)


GROUPS = Question("friction_groups", "friction_groups_turn", "friction_groups_json", GroupsForm)


class Group(NamedTuple):
    """The numbers of the remarks in a group, and the number of a rule; 0 if they are not about one."""

    what: str
    line: int
    remarks: list[int]


def read_groups(answer: str) -> list[Group] | None:
    """The groups of an answer; None if it has none without saying so."""
    text, _ = without_thinking(cleaned(answer))
    for value, is_damaged in json_values(text):
        try:
            form = GroupsForm.model_validate(value)
        except ValidationError:
            continue
        found = [Group(each.what, each.line, sorted(each.remarks)) for each in form.groups]
        return found if found or not is_damaged else None
    return None


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
