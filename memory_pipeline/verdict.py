"""What a check finds. No Dagster here: what is judged is tested without it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Verdict:
    """A check's finding on one day. `numbers` are stored with it; the first offenders are shown."""

    passed: bool
    numbers: dict[str, float | int | str] = field(default_factory=dict)
    offenders: list[str] = field(default_factory=list)


def judge_ratio(tokens: int, of: int, band: tuple[float, float], least: int) -> Verdict:
    """Whether `tokens` condense the tokens they came from within the band; with less than `least` it says nothing."""
    numbers: dict[str, float | int | str] = {"tokens": tokens, "of_tokens": of, "band": f"{band[0]} to {band[1]}"}
    if of < least:
        return Verdict(True, numbers | {"judged": f"not below {least} tokens"})
    ratio = tokens / of
    passed = band[0] <= ratio <= band[1]
    offenders = [] if passed else [f"{tokens} tokens of {of} is {ratio:.1%}"]
    return Verdict(passed, numbers | {"ratio": round(ratio, 4)}, offenders)
