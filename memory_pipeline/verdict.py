"""Results of checks. This module does not import Dagster, so that judging can be tested without it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Verdict:
    """A check's finding on one day. `numbers` are stored with it; the first offenders are shown."""

    passed: bool
    numbers: dict[str, float | int | str] = field(default_factory=dict)
    offenders: list[str] = field(default_factory=list)
    judged: str = ""
    """The input of the check as the beginning of a sentence: "23 observations"."""
    also: str = ""
    """A sentence on what was not checked, with a space before it."""

    @property
    def sentence(self) -> str:
        """A sentence with what was checked and, if anything, what is wrong."""
        if self.passed:
            return f"{self.judged}: no problems.{self.also}" if self.judged else f"No problems.{self.also}"
        worst, *others = self.offenders or ["failed for an unknown reason"]
        more = f" And {len(others)} more." if others else ""
        return f"{f'{self.judged}: ' if self.judged else ''}{worst.rstrip('.')}.{more}{self.also}"


def judge_ratio(tokens: int, of: int, band: tuple[float, float], least: int) -> Verdict:
    """Judge whether `tokens` condense their source within the band; a source below `least` passes."""
    numbers: dict[str, float | int | str] = {"tokens": tokens, "of_tokens": of, "band": f"{band[0]} to {band[1]}"}
    if of < least:
        judged = f"{of:,} tokens are too few to judge (fewer than {least})"
        return Verdict(True, numbers | {"judged": f"not below {least} tokens"}, judged=judged)
    ratio = tokens / of
    passed = band[0] <= ratio <= band[1]
    offenders = [] if passed else [_why(tokens, of, band)]
    judged = f"{tokens:,} tokens of {of:,} ({ratio:.1%}; {band[0]:.1%} to {band[1]:.1%} is right)"
    return Verdict(passed, numbers | {"ratio": round(ratio, 4)}, offenders, judged)


def _why(tokens: int, of: int, band: tuple[float, float]) -> str:
    ratio = tokens / of
    way = (
        f"less than {band[0]:.1%}: too much is lost"
        if ratio < band[0]
        else (f"more than {band[1]:.1%}: hardly condensed")
    )
    return f"{tokens} tokens of {of} is {ratio:.1%}, {way}"
