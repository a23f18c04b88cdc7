"""Checks of a day's reflections; `defs/` registers them as asset checks.

The band of the compression ratio also determines the guidance for a model whose answer is outside it.
"""

from __future__ import annotations

from datetime import date

import polars as pl

from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.rows import IS_CERTAIN
from memory_pipeline.observations.silence import last_failures
from memory_pipeline.observations.types import EXTRACTIVE
from memory_pipeline.stages import INCOMPLETE
from memory_pipeline.text.priorities import HIGH
from memory_pipeline.verdict import Verdict, judge_ratio
from memory_pipeline.workspace.workspace import Workspace

BAND = (0.02, 0.95)
"""Allowed range of tokens of the reflection per token of its observations."""
MIN_INPUT_TOKENS = 500
"""Minimum input tokens; for less, keeping nearly everything is right."""
GUIDANCE = ((0.8, "8/10"), (0.6, "6/10"))
"""Share of the observations' length to request after an answer that was too long, and its wording; each is tried
once."""


def judge(tokens: int, of: int) -> Verdict:
    """The verdict whether the output tokens condense the input tokens."""
    return judge_ratio(tokens, of, BAND, MIN_INPUT_TOKENS)


def most_tokens(of: int, shown: int) -> int:
    """Maximum tokens of the output for this input: within the band, and for a small input at most `shown`, its tokens
    as they were shown."""
    return int(BAND[1] * of) if of >= MIN_INPUT_TOKENS else shown


def is_too_little(tokens: int, of: int) -> bool:
    """Whether the output is empty, or far too short for a large input."""
    return not tokens or (of >= MIN_INPUT_TOKENS and tokens < BAND[0] * of)


def judge_compression(workspace: Workspace, day: date) -> Verdict:
    """The reflection is shorter than its observations, but not by too much.

    Fails when the reflection of observations of 500 tokens or more has less than 2 % or more than 95 % of their length:
    a model keeps one line of many, or nothing on the day could be left out or merged.
    """
    frame = workspace.lake.read("reflections", [day])
    spent = int(frame["input_tokens"].max() or 0)  # type: ignore[arg-type]
    return judge(int(frame["tokens"].sum()), spent)


def judge_silent_zero(workspace: Workspace, day: date) -> Verdict:
    """A day with high observations has reflections, and they come from the configured reflector.

    Fails when a model's lines are unusable or unsupported by observations, so that extractive ones are used instead,
    or the day waits for the model or its budget.
    """
    observed = workspace.lake.read("observations", [day], ["priority", "kind", "flags"])
    highs = observed.filter(IS_CERTAIN, pl.col("priority") == HIGH, pl.col("kind") != "question").height
    reflectors = workspace.lake.read("reflections", [day], ["reflector"])["reflector"].to_list()
    offenders = [] if reflectors or not highs else [f"{highs} high observations led to no line"]
    stand_in = sum(name.startswith(EXTRACTIVE) for name in reflectors)
    if is_waiting(workspace.lake, day):
        instead = f"{len(reflectors)} earlier or extractive lines are used instead."
        offenders.append(f"The lines of the model are missing. {why_waiting(workspace.lake, day)} {instead}")
    elif workspace.settings.reflector.model and stand_in:
        offenders.append(
            f"{stand_in} lines are the extractive reflector's: the model's answer could not be used, or was never "
            f"requested. With another REFLECTOR_MODEL or changed prompts/ the day is reflected on again."
        )
    numbers: dict[str, float | int | str] = {"highs": highs, "lines": len(reflectors), "stand_in": stand_in}
    return Verdict(not offenders, numbers, offenders, f"{highs} high observations led to {len(reflectors)} lines")


def is_waiting(lake: Lake, day: date) -> bool:
    """Whether the model's lines of the day are still missing."""
    return lake.fingerprint("reflections", day) == INCOMPLETE


def why_waiting(lake: Lake, day: date) -> str:
    """Why the model gave no lines, from its last call for the day, and what to do."""
    if failure := last_failures(lake, "reflections").get(day):
        return f"The last call failed: {failure}. `memory run --from {day} --to {day}` asks again."
    return (
        "MEMORY_DAILY_BUDGET_USD or MEMORY_DAILY_BUDGET_TOKENS did not allow the next call, or the model could not be "
        f"asked at all. `memory run --from {day} --to {day}` asks again with tomorrow's budget or a higher one, and "
        f"names other obstacles."
    )
