"""Faults of a day's reflections, which `defs/` reports as checks.

The band of the compression ratio also decides what a model is told when an answer is outside it.
"""

from __future__ import annotations

from datetime import date

import polars as pl

from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.flags import DOUBTED
from memory_pipeline.observations.types import EXTRACTIVE
from memory_pipeline.stages import INCOMPLETE
from memory_pipeline.text.priorities import HIGH
from memory_pipeline.verdict import Verdict, judge_ratio
from memory_pipeline.workspace.workspace import Workspace

BAND = (0.02, 0.95)
"""Tokens of the reflection per token of the observations it came from."""
MIN_INPUT_TOKENS = 500
"""Minimum input tokens; of less, keeping nearly all is right."""
GUIDANCE = ((0.8, "8/10"), (0.6, "6/10"))
"""Share of the observations' length that is asked for, and how it is said, when an answer was too long: one more try
for each."""


def judge(tokens: int, of: int) -> Verdict:
    """Judge whether the output tokens condense the input tokens."""
    return judge_ratio(tokens, of, BAND, MIN_INPUT_TOKENS)


def most_tokens(of: int, shown: int) -> int:
    """Maximum tokens of the output for this input: within the band, and for a small input no more than `shown`, its
    tokens as they were shown."""
    return int(BAND[1] * of) if of >= MIN_INPUT_TOKENS else shown


def is_too_little(tokens: int, of: int) -> bool:
    """Whether the output is empty, or next to nothing of much."""
    return not tokens or (of >= MIN_INPUT_TOKENS and tokens < BAND[0] * of)


NO_FACT = "question"
"""The kind of observation that no line comes from."""


def judge_compression(workspace: Workspace, day: date) -> Verdict:
    """The reflection is smaller than the observations it came from, and not next to nothing.

    Fails when observations of 500 tokens or more come down to less than .02 or stay above .95 of their length: a model
    that keeps a line of many, or a day on which nothing could be left out or merged.
    """
    frame = workspace.lake.read("reflections", [day])
    spent = int(frame["input_tokens"].max() or 0)  # type: ignore[arg-type]
    return judge(int(frame["tokens"].sum()), spent)


def judge_silent_zero(workspace: Workspace, day: date) -> Verdict:
    """A day with something high has reflections, and they are those of the reflector that was asked for.

    Fails when a model's lines cannot be used or are carried by no observation, so that the extractive reflector's stand
    in, and when the day waits for the model or its budget.
    """
    observed = workspace.lake.read("observations", [day], ["priority", "kind", "flags"]).filter(
        pl.col("priority") == HIGH
    )
    doubted = pl.col("flags").list.set_intersection(sorted(DOUBTED)).list.len().fill_null(0) > 0
    highs = observed.filter(~doubted & (pl.col("kind") != NO_FACT)).height
    reflectors = workspace.lake.read("reflections", [day], ["reflector"])["reflector"].to_list()
    offenders = [] if reflectors or not highs else [f"{highs} highs were observed and no line came of them"]
    stand_in = sum(name.startswith(EXTRACTIVE) for name in reflectors)
    if is_waiting(workspace.lake, day):
        offenders.append(
            f"The lines of the model are missing. {why_waiting(workspace.lake, day)} {_meanwhile(len(reflectors))}"
        )
    elif workspace.settings.reflector.model and stand_in:
        offenders.append(
            f"{stand_in} lines are the extractive reflector's: what the model answered could not be used, or was never "
            "asked for. Another REFLECTOR_MODEL or wording in prompts/ has the day reflected on anew."
        )
    numbers: dict[str, float | int | str] = {"highs": highs, "lines": len(reflectors), "stand_in": stand_in}
    return Verdict(
        not offenders, numbers, offenders, f"{highs} highs were observed, {len(reflectors)} lines came of them"
    )


def is_waiting(lake: Lake, day: date) -> bool:
    """Whether the model's lines of the day are still to come."""
    return lake.fingerprint("reflections", day) == INCOMPLETE


def why_waiting(lake: Lake, day: date) -> str:
    """Why the model gave no lines, by its last call for the day, and what to do."""
    calls = lake.read("ledger").filter(
        (pl.col("for_day") == day) & (pl.col("stage") == "reflections") & ~pl.col("cached").fill_null(False)
    )
    last = calls.sort("asked_at").tail(1).to_dicts()
    if last and last[0]["state"] == "failed":
        return f"The last call failed: {last[0]['error']}. `memory run --from {day} --to {day}` asks again."
    return (
        "MEMORY_DAILY_BUDGET_USD or MEMORY_DAILY_BUDGET_TOKENS did not allow the next call, or the model could not be "
        f"asked at all. `memory run --from {day} --to {day}` does it with tomorrow's budget or a higher one, and says "
        "what else is in the way."
    )


def _meanwhile(lines: int) -> str:
    return f"{lines} lines of before, or of the extractive reflector, stand in." if lines else "Nothing stands in."
