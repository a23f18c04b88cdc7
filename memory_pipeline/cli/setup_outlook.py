"""What a day and the backlog would cost with a model, before it is asked for the first time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memory_pipeline.cli.choosing import RECENT_DAYS, look
from memory_pipeline.cli.console import MISUSED, one_sentence
from memory_pipeline.cli.estimate import OBSERVING, costs_of, days_needed, money
from memory_pipeline.defs.runs import only_run
from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.llm.config import observer_model
from memory_pipeline.llm.found import Choice, Kind
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.observations.estimate import Estimate
from memory_pipeline.planning import Stages
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.settings import ObserverSettings, SettingError, Settings
from memory_pipeline.settings.extras import is_installed

NOBODY = "nobody {prompt}"
"""A model that is never asked: with it, the tokens are counted that any would take."""


@dataclass(frozen=True)
class Speed:
    """How fast a kind of model is taken to be. Assumed, not measured; the try measures."""

    start: float
    """Seconds of each call before the first token."""
    tokens_in: float
    """Tokens a second that it reads."""
    tokens_out: float
    """Tokens a second that it writes."""
    at_once: bool
    """Whether several calls at once are as fast as one."""


PROVIDER = Speed(1.0, 5_000, 60, at_once=True)
SPEEDS: dict[Kind, Speed] = {
    "agent": Speed(6.0, 5_000, 60, at_once=True),
    "key": PROVIDER,
    "server": Speed(0.0, 400, 20, at_once=False),
    "named": PROVIDER,
}


@dataclass(frozen=True)
class Outlook:
    """What observing would take with any model, by its tokens."""

    day: Estimate
    """The mean of the days that were looked at."""
    looked_at: int
    days: int
    """All that have sessions."""

    @property
    def backlog(self) -> Estimate:
        return _times(self.day, self.days)

    def tokens(self) -> str:
        """What is the same whichever model is chosen."""
        day, backlog = self.day, self.backlog
        exact = "" if self.looked_at == self.days else f", by the last {self.looked_at} of them"
        return (
            f"{self.days} days have sessions. One takes about {day.input_tokens:,} tokens in and {day.output_tokens:,} "
            f"out, all of them {backlog.input_tokens:,} and {backlog.output_tokens:,}{exact}."
        )

    def with_model(self, settings: Settings, choice: Choice) -> str:
        """Money and minutes of a day and of the backlog."""
        parts = []
        for name, found in (("a day", self.day), ("all days", self.backlog)):
            priced = _priced(settings, found)
            asked = "price not known" if priced.cost_usd is None else _usd(priced.cost_usd)
            parts.append(f"{name}: {asked}, about {minutes(_seconds(settings, choice, found))}")
        needed = days_needed(settings, _priced(settings, self.backlog))
        if needed is None:
            parts.append("never within the daily budget")
        elif needed > 1:
            parts.append(f"within the daily budget over {needed} days")
        return "; ".join(parts)


def outlook_of(settings: Settings) -> Outlook | str:
    """The outlook, or why there is none. Messages are read on the way, which the next run need not do again."""
    with one_sentence(SettingError, code=MISUSED):
        sources = list(find_sources(roots(settings)))
    if not sources:
        return "There are no sessions of a coding agent yet, so what observing would cost cannot be told."
    try:
        with only_run(settings):
            catalogue = look(settings, sources)
            days = catalogue.days()
            if not days:
                return "No session was said on a day that is kept, so what observing would cost cannot be told."
            probe = catalogue.settings.model_copy(update={"observer": ObserverSettings(model=NOBODY)})
            recent = days[-RECENT_DAYS:]
            observed = costs_of(Stages.from_settings(probe, catalogue, datetime.now(UTC)), recent).stages[OBSERVING]
    except TryAgainLaterError as busy:
        return f"What observing would cost cannot be told now: {busy}"
    return Outlook(_times(observed, 1 / len(recent)), len(recent), len(days))


def minutes(seconds: float) -> str:
    if seconds < 90:
        return "a minute"
    return f"{round(seconds / 60)} minutes" if seconds < 5_400 else f"{seconds / 3_600:.0f} hours"


def _usd(usd: float) -> str:
    return "less than 0.01 USD" if 0 < usd < 0.01 else f"{money(usd)} USD"


def _times(estimate: Estimate, factor: float) -> Estimate:
    counts = ("windows", "calls", "input_tokens", "output_tokens")
    return Estimate(**{name: round(getattr(estimate, name) * factor) for name in counts}, cost_usd=None, most_usd=None)


def _priced(settings: Settings, estimate: Estimate) -> Estimate:
    config = observer_model(settings)
    if config is None or not (config.is_command or config.price or is_installed("models")):
        return estimate
    return replace(estimate, cost_usd=cost_of(config, estimate.input_tokens, estimate.output_tokens))


def _seconds(settings: Settings, choice: Choice, estimate: Estimate) -> float:
    speed = SPEEDS[choice.kind]
    seconds = estimate.calls * speed.start
    seconds += estimate.input_tokens / speed.tokens_in + estimate.output_tokens / speed.tokens_out
    return seconds / settings.model_concurrency if speed.at_once else seconds
