"""A bank of wordings: the topics of every kind, the decoys and the ordinary talk around them.

They were written by language models for this, and say how people may type, not how they do.

Nine files lie beside this one. By `tuning.toml`, `unheard.toml`, `reporting.toml` and `kept_aside.toml` thresholds are
chosen and weights fitted, by `teams.toml` what a model is asked was tried, by `held_out.toml` and `everyday.toml`
figures are reported, by `afresh.toml` those of what fails, of tools misused and of lines that are over, and by
`unseen.toml` those of all kinds but what is looked up. They share no topic, command, error or phrase, which a test
holds; but that all but `tuning` and `reporting` have only some kinds of their own, and take the `rest` from the bank
that they name.
"""

from __future__ import annotations

import random
import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.planted_friction.model import REPEATED_CORRECTION, RULE_VIOLATED, Call

TUNING, REPORTING, UNHEARD, KEPT_ASIDE = "tuning", "reporting", "unheard", "kept_aside"
HELD_OUT, EVERYDAY, AFRESH, UNSEEN, TEAMS = "held_out", "everyday", "afresh", "unseen", "teams"
BANKS = (TUNING, REPORTING, UNHEARD, KEPT_ASIDE, HELD_OUT, EVERYDAY, AFRESH, UNSEEN, TEAMS)
LANGUAGES = ("en", "de", "es")
Topic = Mapping[str, Any]
Phrases = Mapping[str, list[str]]
"""By language."""
_SLOT = re.compile(r"<(n|hash|tmp|time|ms|file|feature)>")


@dataclass(frozen=True)
class Bank:
    """What `make_week` draws from."""

    name: str
    data: Mapping[str, Any]

    def topics(self, kind: str) -> list[Topic]:
        return list(self.data[kind])

    @property
    def talk(self) -> Mapping[str, Any]:
        return self.data["talk"]  # type: ignore[no-any-return]

    @property
    def decoys(self) -> Mapping[str, Any]:
        return self.data["decoys"]  # type: ignore[no-any-return]

    def per_week(self, kind: str) -> int | None:
        """How often friction of that kind is planted in a week, where it is not left to chance."""
        return self.data.get("per_week", {}).get(kind)  # type: ignore[no-any-return]

    @property
    def lines_that_hold(self) -> int:
        """How many lines of a week are talked of that are not over."""
        return int(self.data.get("lines_that_hold", 0))

    def one(self, phrases: str, language: str, chance: random.Random) -> str:
        """One of the phrases of ordinary talk of that name."""
        return self.filled(chance.choice(self.talk[phrases][language]), chance)

    def filled(self, text: str, chance: random.Random) -> str:
        """With what differs from time to time in place of `<n>`, `<hash>`, `<tmp>`, `<time>`, `<ms>`, and a file or a
        feature of the bank's projects."""

        def fill(found: re.Match[str]) -> str:
            match found[1]:
                case "n":
                    return f"{chance.randint(11, 4999)}"
                case "hash":
                    return f"{chance.getrandbits(28):07x}"
                case "tmp":
                    return "tmp" + "".join(chance.choices(string.ascii_lowercase + string.digits, k=8))
                case "time":
                    return f"{chance.randint(7, 20):02}:{chance.randint(0, 59):02}:{chance.randint(0, 59):02}"
                case "ms":
                    return f"{chance.uniform(0.2, 90):.2f}"
                case _:
                    return str(chance.choice(self.talk[f"{found[1]}s"]))

        return _SLOT.sub(fill, text)

    def call(self, told: Mapping[str, Any], chance: random.Random, *, refused: bool = False, words: str = "") -> Call:
        """A call as the bank tells it: `tool`, its arguments, `output` and `exit`."""
        given = {name: self.filled(f"{value}", chance) for name, value in told.items()}
        output, code, tool = given.pop("output", ""), int(given.pop("exit", 0)), given.pop("tool", "shell")
        return Call(tool, given, output, code, refused=refused, words=words)

    def shell(self, command: str, output: str, chance: random.Random, exit_code: int = 0) -> Call:
        return self.call({"command": command, "output": output, "exit": exit_code}, chance)

    def phrases(self) -> Iterator[str]:
        """Every text of its own."""
        yield from _texts(_read(self.name))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


@cache
def bank_of(name: str) -> Bank:
    """The bank of that name, one of `BANKS`."""
    own = _read(name)
    if "rest" not in own:
        return Bank(name, own)
    rest = bank_of(own["rest"]).data
    corrections = own.get(REPEATED_CORRECTION, [])
    for topic in corrections:  # who has no words for it in a language says it in English
        topic["says"] = {each: topic["says"].get(each, topic["says"]["en"]) for each in LANGUAGES}
    # a correction that has a line is one of a rule too: a week has either
    rules = {RULE_VIOLATED: [topic for topic in corrections if "line" in topic]} if corrections else {}
    both = {part: {**rest[part], **own.get(part, {})} for part in ("talk", "decoys")}
    return Bank(name, {**rest, **own, **rules, **both})


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))
