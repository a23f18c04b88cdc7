"""One real request to a model, about a bundled example, beside what quoting makes of the same session."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.cache import AnswerCache
from memory_pipeline.llm.ledger import Usage
from memory_pipeline.observations.flags import UNGROUNDED
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.observations.observing import Job, jobs_of, observe_session
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.stage import observer_of
from memory_pipeline.observations.types import Fact, Segment
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.text.priorities import PRIORITIES
from memory_pipeline.workspace.workspace import Workspace

EXAMPLE = "claude/aa99e079-8775-4d4c-a850-1e2c44dcda6a.jsonl"
"""Ten prompts in which rules are laid down, one replaced, and something is put off; one window, one request."""
DAY = date(2026, 3, 2)


@dataclass(frozen=True)
class Trial:
    """The facts of a model and of quoting for the example."""

    quotes: Sequence[Fact]
    facts: Sequence[Fact]
    failure: str = ""
    """The reason why it cannot be used; empty where it can."""
    seconds: float = 0.0
    used: Usage | None = None


def try_model(settings: Settings) -> Trial:
    """Ask the observer's model of these settings; what it costs goes into their ledger, nothing else is kept."""
    with tempfile.TemporaryDirectory(prefix="memory-setup-") as folder:
        place = Path(folder)
        (place / "sessions").mkdir()
        shutil.copy(EXAMPLES / EXAMPLE, place / "sessions")
        job = _example(settings, place)
        (quoted,) = observe_session([job], ExtractiveObserver(settings.observation_budget))
        quotes = _facts(quoted.segments)
        alone = settings.observer.model_copy(update={"fallback_model": None})  # it would answer instead
        once = settings.model_copy(update={"model_retries": 0, "observer": alone})
        observer = observer_of(Workspace(once, Lake.from_settings(once)))
        assert isinstance(observer, LanguageModelObserver)
        observer.client.cache = AnswerCache(place / "answers")  # what was answered before would prove nothing
        (outcome,) = observe_session([job], observer)
        if outcome.left:
            return Trial(quotes, (), str(outcome.left))
        keys = {segment.answer for segment in outcome.segments if segment.answer}
        answers = [answer for key in keys if (answer := observer.client.cache.get(key))]
    costs = [answer.cost_usd for answer in answers]
    used = Usage(
        sum(answer.input_tokens for answer in answers),
        sum(answer.output_tokens for answer in answers),
        None if None in costs else sum(cost or 0.0 for cost in costs),
    )
    seconds = sum(answer.seconds for answer in answers)
    return Trial(quotes, _facts(outcome.segments), _useless(outcome.segments), seconds, used)


def _example(settings: Settings, place: Path) -> Job:
    """The example's window, in a workspace of its own."""
    places = {"workspace": place / "workspace", "session_dirs": (place / "sessions",), "default_session_dirs": False}
    example = {"timezone": "UTC", "start_date": DAY, "redact": True, "min_user_messages": 1}
    stage = SessionsStage.from_workspace(Workspace.open(settings.model_copy(update=places | example)))
    stage.look()
    bring_up_to_date(stage, stage.lake, DAY)
    ((job,),) = jobs_of(stage.lake, DAY)
    return job


def _facts(segments: Iterable[Segment]) -> list[Fact]:
    """The facts by priority, otherwise in their order."""
    return sorted((f for s in segments for f in s.facts), key=lambda fact: PRIORITIES.index(fact.priority))


def _useless(segments: Sequence[Segment]) -> str:
    """The reason why an answer is of no use; empty where it is."""
    if problem := next((segment.problem for segment in segments if not segment.parsed), None):
        return f"It answered, but not so that it can be used: {problem}"
    if not any(segment.facts for segment in segments):
        return "It answered, but kept nothing of a session in which rules and decisions were laid down."
    if all(UNGROUNDED in fact.flags for segment in segments for fact in segment.facts):
        return "It answered, but nothing that was said carries any line of it."
    return ""
