"""The cost of a day and of the backlog with a model, before its first request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memory_pipeline.cli.choosing import RECENT_DAYS, read_catalogue
from memory_pipeline.cli.console import MISUSED, one_sentence
from memory_pipeline.cli.estimate import OBSERVING, days_needed, duration, estimate_costs, money
from memory_pipeline.defs.runs import only_run
from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.llm.config import observer_model
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.observations.estimate import Estimate
from memory_pipeline.observations.examination import result_of
from memory_pipeline.planning import Stages
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.settings import ObserverSettings, SettingError, Settings
from memory_pipeline.settings.loading import is_installed

NOBODY = "nobody {prompt}"
"""A model that is never called, for counting the tokens that any model would take."""


@dataclass(frozen=True)
class Outlook:
    """The tokens of observing, with any model."""

    day: Estimate
    """The mean of the days considered."""
    looked_at: int
    days: int
    """Days with sessions."""

    @property
    def backlog(self) -> Estimate:
        return _times(self.day, self.days)

    def tokens(self) -> str:
        """One sentence on the tokens of a day and of the backlog."""
        day, backlog = self.day, self.backlog
        exact = "" if self.looked_at == self.days else f", by the last {self.looked_at} of them"
        return (
            f"{self.days} days have sessions. One takes about {day.input_tokens:,} tokens in and {day.output_tokens:,} "
            f"out, all of them {backlog.input_tokens:,} and {backlog.output_tokens:,}{exact}."
        )

    def time(self, tokens_per_second: float) -> str:
        """The time that a model of this speed takes for a day and for the backlog, with sequential requests."""
        day, backlog = (
            duration((found.input_tokens + found.output_tokens) / tokens_per_second)
            for found in (self.day, self.backlog)
        )
        return f"at this speed a day takes about {day}, all days {backlog}"

    def cost(self, settings: Settings) -> str:
        """The cost of a day and of the backlog with the model of these settings, and their time if it was examined."""
        parts = []
        for name, found in (("a day", self.day), ("all days", self.backlog)):
            usd = _priced(settings, found).cost_usd
            parts.append(f"{name}: {'price not known' if usd is None else _usd(usd)}")
        needed = days_needed(settings, _priced(settings, self.backlog))
        if needed is None:
            parts.append("never within the daily budget")
        elif needed > 1:
            parts.append(f"within the daily budget over {needed} days")
        result = result_of(settings)
        if result and result.tokens_per_second:
            parts.append(self.time(result.tokens_per_second))
        return "; ".join(parts)


def estimate_outlook(settings: Settings) -> Outlook | str:
    """The outlook, or a sentence why there is none. Messages are stored, so the next run need not read them again."""
    with one_sentence(SettingError, code=MISUSED):
        sources = list(find_sources(roots(settings)))
    if not sources:
        return "No session of a coding agent was found yet, so the cost of observing is unknown."
    try:
        with only_run(settings):
            catalogue = read_catalogue(settings, sources)
            days = catalogue.days()
            if not days:
                return "No session is on a day that is kept, so the cost of observing is unknown."
            probe = catalogue.settings.model_copy(update={"observer": ObserverSettings(model=NOBODY)})
            recent = days[-RECENT_DAYS:]
            observed = estimate_costs(Stages.from_settings(probe, catalogue, datetime.now(UTC)), recent).stages[
                OBSERVING
            ]
    except TryAgainLaterError as busy:
        return f"The cost of observing is unknown now: {busy}"
    return Outlook(_times(observed, 1 / len(recent)), len(recent), len(days))


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
