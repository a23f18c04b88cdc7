"""A bank of wordings: the topics of every kind, the decoys and the ordinary talk around them.

They were written by language models for this, and say how people may type, not how they do.

Two files lie beside this one, which share no topic, command, error or phrase: by `tuning.toml` thresholds were chosen,
of `reporting.toml` figures are reported.
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

from benchmarks.planted_friction.model import Call

TUNING, REPORTING = "tuning", "reporting"
BANKS = (TUNING, REPORTING)
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
        """Every text of it."""
        yield from _texts(self.data)


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
    return Bank(name, tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8")))
