"""What a model puts together of what users said, beside what likeness does: recall and precision, on the same weeks.

    python -m benchmarks.friction_groups [--bank BANK] [--weeks N] [--first N] --write DIR
    python -m benchmarks.friction_groups [--bank BANK] [--weeks N] [--first N] --answers DIR

The weeks of planted friction of `benchmarks.friction`, each looked at once, on its last day: repeated corrections,
broken rules and lines that are over. `--write` puts there what a model would be asked for each week, whole
(`NUMBER.txt`), for any model that somebody has; `--answers` reads beside it what it answered (`NUMBER.answer`) and
prints what the product makes of it (`memory_pipeline/friction/grouping.py`), and of the same weeks without a model.

Right is what mostly lies in planted friction of its kind, in two sessions of it or more, is of its line where it is of
one, and was not found before. The characters of all questions and answers are printed, by which it is paid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.common import parser
from benchmarks.fit_corrections import Window, planted_windows
from benchmarks.planted_friction.bank import BANKS, UNSEEN, Bank, bank_of
from benchmarks.planted_friction.model import REPEATED_CORRECTION, RULE_VIOLATED, STALE_MEMORY, TOOL_MISUSE
from memory_pipeline.friction.corrections import Grouped, by_likeness
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.grouping import PROMPTS, asked, groups_in, lines_for, remarks_for
from memory_pipeline.friction.patterns import MIN_SESSIONS
from memory_pipeline.llm.prompts import filled

KINDS = (REPEATED_CORRECTION, RULE_VIOLATED, STALE_MEMORY)


class Week:
    """A window, with what the product makes of it."""

    def __init__(self, window: Window, bank: Bank) -> None:
        self.window = window
        self.judge, self.about = window.heard.weighed()
        self.remarks = remarks_for(self.judge, self.about)
        self.lines = lines_for(self.about, self.remarks)
        lines = {topic["name"]: set(topic["line"].values()) for kind in KINDS[1:] for topic in bank.topics(kind)}
        self.lines_of = {name: lines.get(name.partition("/")[2], set()) for name in window.plants}

    def prompt(self) -> str:
        system, turn = (
            filled(name, told) for name, told in zip(PROMPTS, ({}, asked(self.remarks, self.lines)), strict=True)
        )
        return f"{system}\n\n{turn}"

    def planted(self) -> Counter[str]:
        return Counter(plant.kind for plant in self.window.plants.values() if plant.kind in KINDS)

    def found(self, grouped: Grouped) -> tuple[Counter[str], Counter[str]]:
        """How many there are of each kind, and how many are right."""
        found, right, seen = Counter[str](), Counter[str](), set[str]()
        for kind, members, line in _each(grouped):
            name, own = self._mostly(members)
            if self.window.kind(name) == TOOL_MISUSE:
                continue  # what was said on refusing a call is told as that
            found[kind] += 1
            is_of_line = line is None or line in self.lines_of.get(name, ())
            if self.window.kind(name) == kind and own >= MIN_SESSIONS and is_of_line and name not in seen:
                seen.add(name)
                right[kind] += 1
        return found, right

    def _mostly(self, members: Sequence[FrictionEvent]) -> tuple[str, int]:
        """The plant that more than half are of, and in how many of its sessions."""
        of = {m.event_id: self.window.of.get(m.event_id, "") for m in members}
        name, times = Counter(of.values()).most_common(1)[0]
        own = {m.session_id for m in members if of[m.event_id] == name}
        return (name, len(own)) if 2 * times > len(members) else ("", 0)


def _each(grouped: Grouped) -> Iterator[tuple[str, Sequence[FrictionEvent], str | None]]:
    yield from ((REPEATED_CORRECTION, members, None) for members in grouped.again)
    yield from ((RULE_VIOLATED, members, rule.text) for rule, members in grouped.broken.items())
    yield from ((STALE_MEMORY, members, rule.text) for rule, members in grouped.over.items())


def shares(planted: Mapping[str, int], found: Mapping[str, int], right: Mapping[str, int]) -> str:
    def one(kind: str) -> str:
        recall, precision = right[kind] / max(1, planted[kind]), right[kind] / max(1, found[kind])
        return f"{kind} {recall:.2f} of {planted[kind]}, {precision:.2f} of {found[kind]}"

    return "   ".join(map(one, KINDS))


def main() -> None:
    options = parser("friction_groups", __doc__)
    options.add_argument("--bank", choices=BANKS, default=UNSEEN)
    options.add_argument("--weeks", type=int, default=12)
    options.add_argument("--first", type=int, default=2_000, help="the first seed")
    options.add_argument("--write", type=Path, metavar="DIR", help="put what a model would be asked there")
    options.add_argument("--answers", type=Path, metavar="DIR", help="where its answers are")
    chosen = options.parse_args()
    bank = bank_of(chosen.bank)
    planted, asked_for, answered = Counter[str](), 0, 0
    tallies = {name: (Counter[str](), Counter[str]()) for name in ("by likeness", "by the model")}
    for seed in range(chosen.first, chosen.first + chosen.weeks):
        (window,) = planted_windows(bank, [seed])
        week = Week(window, bank)
        prompt = week.prompt()
        asked_for += len(prompt)
        if chosen.write:
            chosen.write.mkdir(parents=True, exist_ok=True)
            (chosen.write / f"{seed}.txt").write_text(prompt, "utf-8")
        planted += week.planted()
        made = {"by likeness": by_likeness(week.judge, week.about, window.heard.vectors)}
        if chosen.answers:
            if (chosen.answers / f"{seed}.txt").read_text("utf-8") != prompt:
                raise SystemExit(f"{chosen.answers / f'{seed}.txt'} is not what is asked now: write it anew.")
            answer = (chosen.answers / f"{seed}.answer").read_text("utf-8")
            answered += len(answer)
            by_model = groups_in(answer, week.remarks, week.lines)
            if by_model is None:
                print(f"{seed}: the answer names no group, nor NONE: by likeness")
            made["by the model"] = by_model or made["by likeness"]
        for name, grouped in made.items():
            for tally, counts in zip(tallies[name], week.found(grouped), strict=True):
                tally.update(counts)
    print(f"{chosen.bank}: {chosen.weeks} weeks, {asked_for // chosen.weeks} characters asked of each")
    print(f"by likeness   {shares(planted, *tallies['by likeness'])}")
    if chosen.answers:
        print(
            f"by the model  {shares(planted, *tallies['by the model'])}; {answered // chosen.weeks} characters answered"
        )


if __name__ == "__main__":
    main()
