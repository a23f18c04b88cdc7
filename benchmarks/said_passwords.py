"""How many passwords that are said in ordinary sentences are redacted, and what is marked by mistake.

    python -m benchmarks.said_passwords

The sentences are in `said_passwords.toml`. What is missed and what is marked without being one is listed.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from benchmarks.common import parser
from memory_pipeline.redaction import Redactor

_GIVEN = re.compile("⟨(.+?)⟩")


def is_redacted(redactor: Redactor, sentence: str) -> bool:
    """Whether nothing is left of the password that the sentence gives between its brackets."""
    given = _GIVEN.search(sentence)
    if not given:
        raise ValueError(f"No password between ⟨ and ⟩: {sentence}")
    return given[1] not in redactor.redact(_GIVEN.sub(r"\1", sentence))


def main() -> None:
    """Print the rates of each set by language, then every sentence of it that came out wrong."""
    parser("said_passwords", __doc__).parse_args()
    for name, sentences in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items():
        print(f"{name}:")
        report(sentences["told"], sentences["about"])


def report(told: dict[str, list[str]], about: dict[str, list[str]]) -> None:
    """The rates of one set."""
    redactor = Redactor(b"benchmark")
    missed = {code: [s for s in lines if not is_redacted(redactor, s)] for code, lines in told.items()}
    wrong = {code: [s for s in lines if redactor.redact(s) != s] for code, lines in about.items()}
    for code, lines in told.items():
        marked = f", {len(wrong[code])} of {len(about[code])} marked by mistake" if code in about else ""
        print(f"  {code}: {len(lines) - len(missed[code])} of {len(lines)} redacted{marked}")
    said, found = sum(map(len, told.values())), sum(map(len, missed.values()))
    others, mistakes = sum(map(len, about.values())), sum(map(len, wrong.values()))
    print(f"  all: {said - found} of {said} redacted, {mistakes} of {others} marked by mistake")
    for what, by_language in (("missed", missed), ("by mistake", wrong)):
        for code, lines in by_language.items():
            for line in lines:
                print(f"    {what}, {code}: {line}")


if __name__ == "__main__":
    main()
