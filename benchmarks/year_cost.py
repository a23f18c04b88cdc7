"""What a year with a model costs: 25 sessions a day that are long enough to be observed, observed and reflected on.

    python -m benchmarks.year_cost [DIR…]

Reckoned, not measured; no model is asked. DIRs default to ../shared/fixtures and ../shared/more-sessions. Observing is
what `memory run --estimate` says of their sessions, as the mean of one that is observed, times 25 × 365. Reflecting is
once a day over the observations of seven such days, estimated as for days that are not observed yet. Prices are the
installed genai-prices'. Not in it: what a model thinks (billed as an answer), answers asked for again, what friction
asks (one token in a hundred), and what a provider takes off for prompts that begin alike.
"""

from __future__ import annotations

import math
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

import polars as pl

from benchmarks.common import SESSIONS, SHARED, parser
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.client import tokens_of
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.observations.estimate import Estimate, estimate_day
from memory_pipeline.observations.model.observer import LanguageModelObserver
from memory_pipeline.planning import Stages
from memory_pipeline.reflections.estimate import ANSWERED, expected_tokens
from memory_pipeline.reflections.model.reflector import LanguageModelReflector
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import bring_up_to_date

MODELS = (
    "openai:gpt-6-luna",
    "anthropic:claude-haiku-5-5",
    "openai:gpt-5-mini",
    "google:gemini-3.8-flash",
    "anthropic:claude-sonnet-5-5",
)
SESSIONS_A_DAY, DAYS = 25, 365


def main() -> None:
    options = parser("year_cost", __doc__)
    options.add_argument("directories", nargs="*", type=Path, metavar="DIR")
    known = [path for path in (SESSIONS, SHARED / "more-sessions") if path.is_dir()]
    with tempfile.TemporaryDirectory() as folder:
        observing, sessions, reflecting = measure(options.parse_args().directories or known, Path(folder))
    one = observing.input_tokens // sessions, observing.output_tokens // sessions
    print(f"{sessions} sessions are observed; one takes {one[0]:,} tokens in, {one[1]:,} out,")
    print(f"a day's reflection {reflecting.input_tokens:,} and {reflecting.output_tokens:,}.")
    print(f"USD a year by genai-prices {version('genai-prices')}:\n")
    print("| model | observing | reflecting | together |")
    print("|---|--:|--:|--:|")
    calls_a_year = observing.calls / sessions * SESSIONS_A_DAY * DAYS
    for model in MODELS:
        observations = cost(model, observing, calls_a_year)
        reflections = cost(model, reflecting, reflecting.calls * DAYS)
        sums = (observations, reflections, observations + reflections)
        print(f"| {model} | {' | '.join(f'{usd:,.0f}' for usd in sums)} |")


def measure(directories: list[Path], workspace: Path) -> tuple[Estimate, int, Estimate]:
    """What all observed sessions take and how many they are, and what reflecting takes on a day of the year."""
    place = {"HOME": f"{workspace}", "MEMORY_WORKSPACE": f"{workspace}", "MEMORY_TIMEZONE": "UTC"}
    os.environ |= place | {"OBSERVER_MODEL": MODELS[0], "REFLECTOR_MODEL": MODELS[0]}
    settings = load_settings()
    lake = Lake.from_settings(settings)
    catalogue = Catalogue(lake, settings)
    catalogue.refresh(list(find_sources(directories)))
    stages = Stages.from_settings(catalogue.settings, catalogue)
    observer, reflector = stages.observations.observer, stages.reflections.reflector
    assert isinstance(observer, LanguageModelObserver) and isinstance(reflector, LanguageModelReflector)
    days, total = catalogue.days(), Estimate()
    for day in days:
        bring_up_to_date(stages.sessions, lake, day)
        total += estimate_day(lake, day, observer)
    windows = lake.read("windows", columns=["session_id", "tokens_said", "observed"]).filter(pl.col("observed"))
    sessions = windows["session_id"].n_unique()
    shown = expected_tokens(windows["tokens_said"], settings.observation_budget)
    week = 7 * SESSIONS_A_DAY * shown / sessions
    calls = max(1, math.ceil(week / reflector.batch_tokens))
    asked = calls * tokens_of(reflector.empty_request(days[-1])) + round(week)
    answered = calls * min(round(ANSWERED * week / calls), reflector.client.config.max_output_tokens)
    return total, sessions, Estimate(0, calls, 0, asked, answered)


def cost(model: str, of: Estimate, calls: float) -> float:
    """USD of so many calls, each the mean of these: prices may go by the size of a call."""
    usd = cost_of(ModelConfig(model), of.input_tokens // of.calls, of.output_tokens // of.calls)
    assert usd is not None, f"no price is known for {model}"
    return usd * calls


if __name__ == "__main__":
    main()
