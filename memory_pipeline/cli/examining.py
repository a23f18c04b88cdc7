"""Examination of a model: real requests about a bundled session, compared with the extractive observer."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from memory_pipeline.cli.console import err, printable
from memory_pipeline.cli.workspace import EXAMPLES, shown_model
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.cache import AnswerCache
from memory_pipeline.llm.config import observer_model
from memory_pipeline.llm.ledger import Usage
from memory_pipeline.llm.request import Answer
from memory_pipeline.observations.examination import Result, examine, fails_alone, keep, result_of, session
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.stage import Job, jobs_of, observe_session
from memory_pipeline.observations.types import UNGROUNDED, Fact, Segment
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.text.priorities import PRIORITIES
from memory_pipeline.workspace.workspace import Workspace

DAY = date(2026, 3, 2)
WHAT_ELSE = (
    "A larger model, a logged-in agent or a provider's key may pass: `memory setup` lists them. Without a model, "
    "observations are quotes."
)


@dataclass(frozen=True)
class Trial:
    """The requests of an examination and their result."""

    failure: str = ""
    """The reason why the model cannot be used; empty if it can."""
    seconds: float = 0.0
    used: Usage | None = None
    result: Result | None = None
    """None without a readable answer."""
    answers: Sequence[Answer] = ()
    """All answers, in order."""


def examined(settings: Settings) -> Trial:
    """Examine the observer's model of these settings and store the result. Nothing is stored for a model that cannot be
    reached."""
    trial = try_model(settings)
    if trial.result:
        keep(settings, trial.result)
    return trial


def examine_before_a_run(settings: Settings, *, as_json: bool) -> None:
    """At a terminal, examine a manually configured model before its first run, and report one that has failed.

    Other runs are not interactive and do not examine models on their own.
    """
    if not settings.observer.model:
        return
    result, is_watched = result_of(settings), sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    if result is None and is_watched:
        err.print("This model was not examined yet. Asking it about a bundled example first.", style="dim")
        trial = examined(settings)
        result = trial.result
        said = result.sentence if result else trial.failure
        err.print(printable(f"{shown_model(settings, settings.observer.model)}: {said}"), soft_wrap=True)
    if result and result.reason:
        err.print(
            f"The model failed its examination and is not used; observations are quotes. {result.reason} {WHAT_ELSE} "
            "`memory setup --exam MODEL` examines it again.",
            style="yellow",
            soft_wrap=True,
        )


def try_model(settings: Settings) -> Trial:
    """Send the example to the observer's model of these settings. The cost goes into their ledger; nothing else is
    stored."""
    from memory_pipeline.observations.model.observer import LanguageModelObserver  # slow to load

    with tempfile.TemporaryDirectory(prefix="memory-setup-") as folder:
        place = Path(folder)
        (place / "sessions").mkdir()
        shutil.copy(EXAMPLES / session(), place / "sessions")
        job = _example(settings, place)
        (quoted,) = observe_session([job], ExtractiveObserver(settings.observation_budget))
        quotes = _facts(quoted.segments)
        alone = settings.observer.model_copy(update={"fallback_model": None})  # a fallback would answer instead
        once = settings.model_copy(update={"model_retries": 0, "observer": alone})
        config = observer_model(once)
        assert config
        observer = LanguageModelObserver.from_config(config, Workspace(once, Lake.from_settings(once)))
        observer.client.cache = cache = _ExaminationAnswers(place / "answers")  # cached answers would prove nothing
        (outcome,) = observe_session([job], observer)
        if outcome.left:
            return Trial(str(outcome.left))
        keys = {segment.answer for segment in outcome.segments if segment.answer}
        answers = cache.given if cache.is_over else [answer for key in keys if (answer := cache.get(key))]
    costs = [answer.cost_usd for answer in cache.given]
    used = Usage(
        sum(answer.input_tokens for answer in cache.given),
        sum(answer.output_tokens for answer in cache.given),
        None if None in costs else sum(cost or 0.0 for cost in costs),
    )
    seconds, facts = sum(answer.seconds for answer in cache.given), _facts(outcome.segments)
    if not answers:  # the model refused
        return Trial(_unusable_reason(outcome.segments))
    model = shown_model(settings, settings.observer.model) or ""
    result = examine(model, facts, [answer.text for answer in answers], quotes)
    # copying or looping is a better reason than an unusable answer
    reason = result.reason if result.reason.startswith(("It repeats", "It copies")) else ""
    pace = (used.input_tokens + used.output_tokens) / seconds if seconds else None
    update = {"reason": reason or _unusable_reason(outcome.segments) or result.reason, "tokens_per_second": pace}
    result = result.model_copy(update=update)
    return Trial(result.reason, seconds, used, result, cache.given)


class _ExaminationAnswers(AnswerCache):
    """The answers of an examination. One that fails it by itself stands for those of all further requests, which a
    small machine would need minutes for."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.given: list[Answer] = []

    @property
    def is_over(self) -> bool:
        return bool(self.given) and fails_alone(self.given[-1].text)

    def get(self, key: str) -> Answer | None:
        return self.given[-1] if self.is_over else super().get(key)

    def put(self, key: str, answer: Answer) -> None:
        super().put(key, answer)
        self.given.append(answer)


def _example(settings: Settings, place: Path) -> Job:
    """The example's window, in a separate workspace."""
    places = {"workspace": place / "workspace", "session_dirs": (place / "sessions",), "default_session_dirs": False}
    example = {"timezone": "UTC", "start_date": DAY, "redact": True, "min_user_messages": 1}
    stage = SessionsStage.from_workspace(Workspace.open(settings.model_copy(update=places | example)))
    stage.look()
    bring_up_to_date(stage, stage.lake, DAY)
    ((job,),) = jobs_of(stage.lake, DAY)
    return job


def _facts(segments: Iterable[Segment]) -> list[Fact]:
    """The facts by priority, then in their order."""
    return sorted((f for s in segments for f in s.facts), key=lambda fact: PRIORITIES.index(fact.priority))


def _unusable_reason(segments: Sequence[Segment]) -> str:
    """The reason why an answer is unusable; empty if it is usable."""
    if not any(segment.parsed for segment in segments):
        return f"Its answer cannot be used: {segments[0].problem}"
    if not any(segment.facts for segment in segments):
        return "Its answer has no facts, although the session states rules and decisions."
    if all(UNGROUNDED in fact.flags for segment in segments for fact in segment.facts):
        return "Its answer has facts, but the session supports none of them."
    return ""
