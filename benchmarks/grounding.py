"""How well facts told in other words are found where they were said, and how well invented ones are told.

    python -m benchmarks.grounding [GOLD_DIR] [FIXTURES_DIR]

GOLD_DIR (default ../shared/gold) holds `reader.jsonl`: a careful reader's observations, with verbatim evidence. They
are held against their own session and, as what must not pass, against the others. In altered ones a number, the last
part of a path or a version is another. The baseline is the plain overlap of words with the best sentence, at the
threshold that passes as many true facts. The thresholds of `alignment.py` were set with these figures in view.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.common import FIXTURES, GOLD, parser
from benchmarks.observing import Session, sessions
from memory_pipeline.observations.model.alignment import GROUNDED, NAMED, Alignment
from memory_pipeline.text.sentences import sentences, squeeze
from memory_pipeline.text.similarity import content_words, overlap
from memory_pipeline.text.specifics import Words, missing_specifics, specifics

QUANTILES = (0, 0.02, 0.05, 0.1, 0.5, 0.9, 0.95, 1)
SORTS = ("number", "path", "version")


@dataclass(frozen=True)
class ReadSession:
    """A session with what the reader tells of it."""

    session: Session
    facts: tuple[tuple[str, frozenset[int]], ...]
    """Text, and positions of the messages that hold its evidence."""

    @cached_property
    def alignment(self) -> Alignment:
        return Alignment(self.session.said)

    @cached_property
    def words(self) -> Words:
        return Words([*(m.text for m in self.session.said), *(m.tool_name or "" for m in self.session.said)])

    @cached_property
    def sentences(self) -> list[frozenset[str]]:
        texts = [m.text for m in self.session.said]
        return [content_words(text[s.start : s.end]) for text in texts for s in sentences(text)]

    def coverage(self, text: str) -> float:
        return self.alignment.align(text, range(len(self.session.said))).coverage

    def jaccard(self, text: str) -> float:
        words = content_words(text)
        return max((overlap(words, sentence) for sentence in self.sentences), default=0.0)


def read_sessions(gold: Path, fixtures: Path) -> Iterator[ReadSession]:
    rows = [json.loads(line) for line in (gold / "reader.jsonl").read_text("utf-8").splitlines()]
    for session in sessions(gold / "labels", fixtures):
        facts = [row for row in rows if row["file"] == session.file and "text" in row]
        if facts:
            yield ReadSession(session, tuple((row["text"], places(session, row["evidence"])) for row in facts))


def places(session: Session, evidence: Sequence[str]) -> frozenset[int]:
    """Positions of the messages that hold one of the quotes."""
    quotes = [squeeze(quote) for quote in evidence]
    return frozenset(i for i, m in enumerate(session.said) if any(quote in squeeze(m.text) for quote in quotes))


def altered(text: str) -> Iterator[tuple[str, str]]:
    """The text with one of its specifics changed, each in turn, with the sort of change."""
    for specific in specifics(text):
        if re.fullmatch(r"\d+", specific):
            sort, other = "number", f"{int(specific) + 1}"
        elif found := re.fullmatch(r"(v?\d+(?:\.\d+)*\.)(\d+)", specific):
            sort, other = "version", f"{found[1]}{int(found[2]) + 1}"
        elif found := re.fullmatch(r"(\S*/)([\w.@-]+)", specific):
            sort, other = "path", f"{found[1]}other_{found[2]}"
        else:
            continue
        yield sort, re.sub(rf"(?<!\w){re.escape(specific)}(?!\w)", other, text)


def quantiles(values: Sequence[float]) -> str:
    ordered = sorted(values)
    return "".join(f"{ordered[round(q * (len(ordered) - 1))]:8.3f}" for q in QUANTILES)


def share(passed: Sequence[bool]) -> str:
    return f"{sum(passed) / len(passed):.1%} of {len(passed)}"


def line(name: str, *cells: str) -> None:
    print(f"{name:46}" + "".join(f"{cell:>18}" for cell in cells))


def main() -> None:
    options = parser("grounding", __doc__)
    options.add_argument("gold", type=Path, nargs="?", default=GOLD, metavar="GOLD_DIR")
    options.add_argument("fixtures", type=Path, nargs="?", default=FIXTURES, metavar="FIXTURES_DIR")
    asked = options.parse_args()
    gold, fixtures = asked.gold, asked.fixtures
    if not (gold / "reader.jsonl").exists():
        sys.exit(f"There is no reader.jsonl in {gold}; name its directory.")
    read = list(read_sessions(gold, fixtures))
    own = [(t, text, at) for t in read for text, at in t.facts]
    foreign = [(t, text) for t in read for other in read if other is not t for text, _ in other.facts]
    print(f"{len(own)} facts of {len(read)} sessions")

    found, found_elsewhere = [t.coverage(text) for t, text, _ in own], [t.coverage(text) for t, text in foreign]
    plain, plain_elsewhere = [t.jaccard(text) for t, text, _ in own], [t.jaccard(text) for t, text in foreign]
    print(f"\n{'quantiles':26}" + "".join(f"{q:8}" for q in QUANTILES))
    print(f"{'coverage, own session':26}{quantiles(found)}")
    print(f"{'coverage, other sessions':26}{quantiles(found_elsewhere)}")
    print(f"{'Jaccard, own session':26}{quantiles(plain)}")
    print(f"{'Jaccard, other sessions':26}{quantiles(plain_elsewhere)}\n")

    least = sorted(plain, reverse=True)[sum(value >= GROUNDED for value in found) - 1]
    line("", f"coverage >= {GROUNDED}", f"Jaccard >= {least:.3f}")
    line("true facts that pass", share([v >= GROUNDED for v in found]), share([v >= least for v in plain]))
    line(
        "facts of other sessions that pass",
        share([v >= GROUNDED for v in found_elsewhere]),
        share([v >= least for v in plain_elsewhere]),
    )
    best = [(t.alignment.align(text, range(len(t.session.said))).positions[:1], at) for t, text, at in own if at]
    line("true facts whose best span is in the evidence", share([at.issuperset(p) and bool(p) for p, at in best]))

    named = [t.alignment.coverage(text, at) for t, text, at in own if at]
    wrong = [t.alignment.coverage(text, at) for t, text in foreign for _, at in t.facts if at]
    line("\nwith the messages of the evidence named", f"coverage >= {NAMED}")
    line("true facts that pass", share([v >= NAMED for v in named]))
    line("facts of other sessions that pass", share([v >= NAMED for v in wrong]))

    line("\naltered facts that are caught", "names not said", f"Jaccard < {least:.3f}")
    changed = [(sort, t, text) for t, fact, _ in own for sort, text in altered(fact)]
    for sort in SORTS:
        of = [(t, text) for kind, t, text in changed if kind == sort]
        caught = [bool(missing_specifics(text, t.words)) for t, text in of]
        line(sort, share(caught), share([t.jaccard(text) < least for t, text in of]))
    false = [bool(missing_specifics(text, t.words)) for t, text, _ in own]
    line("true ones, falsely", share(false), share([v < least for v in plain]))


if __name__ == "__main__":
    main()
