"""One conversation with each real harness, held once; the tests look at what it left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from memory_pipeline.harnesses.model import Message, ParsedSession
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.reading import parse
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.real_agents.drivers import HARNESSES, PROGRAMS, Harness
from memory_pipeline_tests.real_agents.model_server import Fail, ModelServer, Say

SUMMARY = "What the script says was said so far."
BEFORE_COMPACTION = [
    ("user", "Please say the colour of parcels."),
    ("assistant", "I will run a command for it."),
    ("assistant", "Parcels are blue."),
    ("user", "And now a command that fails, please."),
    ("assistant", "It failed, with 3."),
    ("user", "This prompt is never answered."),
    ("user", "This prompt is answered, but only after a retry."),
    ("assistant", "Here is the answer after a retry."),
]
AFTER_COMPACTION = [
    ("user", "What is left of the conversation?"),
    ("assistant", "What I summarised of it."),
]
REFUSAL, BREAKDOWN = "The script refuses this.", "The script is broken for a moment."


@dataclass(frozen=True)
class Conversation:
    harness: Harness
    requests: list[dict[str, Any]]
    """What the model was asked, the last one after the compaction."""
    began: datetime
    ended: datetime

    def session(self) -> ParsedSession:
        """What the pipeline reads of it, found where the harness keeps sessions."""
        (session,) = read_sessions()
        return session


def read_sessions() -> list[ParsedSession]:
    """All sessions in the default places of this HOME."""
    return [parse(source) for source in find_sources(roots(load_settings()))]


def spoken(session: ParsedSession) -> list[Message]:
    """What was said; of a program's session also the prompts, among what else is injected."""
    prompts = {text for role, text in BEFORE_COMPACTION + AFTER_COMPACTION if role == "user"}
    return [m for m in session.messages if m.role in ("user", "assistant") or m.text in prompts]


def needs(kind: type[Harness]) -> None:
    """Skip without the program; in CI that is a failure."""
    if not (PROGRAMS / kind.name).exists():
        reason = f"{kind.name} is not installed in {PROGRAMS}; `make harnesses` installs it where npm is there"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


@pytest.fixture(scope="module", params=HARNESSES, ids=lambda harness: harness.name)
def conversation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    kind: type[Harness] = request.param
    needs(kind)
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    with ModelServer() as model:
        harness = kind(home, project, model)
        harness.configure()
        began = datetime.now(UTC)
        _talk(harness)
        yield Conversation(harness, model.requests, began, datetime.now(UTC))


@pytest.fixture
def at_home(conversation: Conversation, environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sessions are looked for where the harness keeps them by default."""
    monkeypatch.setenv("HOME", str(conversation.harness.home))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("MEMORY_DEFAULT_SESSION_DIRS", "true")
    monkeypatch.setenv("MEMORY_IDLE_MINUTES", "0")


def _talk(harness: Harness) -> None:
    """Say what stands in BEFORE_COMPACTION and AFTER_COMPACTION."""
    model, texts = harness.model, iter([text for _, text in BEFORE_COMPACTION + AFTER_COMPACTION])

    prompt = next(texts)
    model.script(harness.shell("echo blue parcels", next(texts)), Say(next(texts), thought="The command said so."))
    _prompt(harness, prompt, again=False)

    prompt = next(texts)
    model.script(harness.shell("echo broken parcels; exit 3"), Say(next(texts)))
    _prompt(harness, prompt)

    model.script(Fail(400, REFUSAL))
    _prompt(harness, next(texts))

    prompt = next(texts)
    model.script(Fail(500, BREAKDOWN), Say(next(texts)))
    _prompt(harness, prompt)

    model.script(Say(SUMMARY))
    harness.compact()
    prompt = next(texts)
    model.script(Say(next(texts)))
    _prompt(harness, prompt)
    assert next(texts, None) is None


def _prompt(harness: Harness, text: str, *, again: bool = True) -> None:
    output = harness.prompt(text, again=again)
    assert not harness.model.turns, f"{harness.name} did not ask the model as the script expects:\n{output}"
