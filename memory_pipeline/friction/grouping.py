"""What users said, put together by the reflector's model: what they had to say again, and which line of their notes it
breaks or ends.

People say one thing in words that have nothing in common ("one seed isn't a result", "that could be pure noise"), which
no likeness of words or vectors finds. The model is shown what was said, numbered, beside the lines of MEMORY.md,
AGENTS.md and CLAUDE.md, and answers with numbers alone: it can put together what does not belong together, which
whoever reviews sees in the quotes, but it can invent nothing. Without a model, or where none answers, likeness does it
(`corrections.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime

from memory_pipeline.friction.about_rules import AboutRules
from memory_pipeline.friction.asking import Asking
from memory_pipeline.friction.corrections import Grouped
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.judging import Judge
from memory_pipeline.friction.patterns import MIN_SESSIONS
from memory_pipeline.friction.rules import Rule
from memory_pipeline.llm.config import SMALL_CONTEXT, reflector_model
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.text.sentences import clip

PROMPTS = ("friction_groups", "friction_groups_turn")
MAX_REMARKS, MAX_REMARK = 240, 300
"""Sentences of the window that a model is shown, those first that most likely object or speak of a line; characters of
each. With the lines 27,000 tokens at most, and in a week of 25 sessions some 6,000."""
MAX_LINES, MAX_LINE = 80, 200
MAX_DEEDS = 3
MAX_TOKENS = 2_000
NOTHING = Grouped([], {}, {})
_FOUND = re.compile(
    r"^\W*(?P<what>AGAIN|BROKEN|OVER)\s*(?:L(?P<line>\d+))?\s*:[^\w\n]*(?P<numbers>\d[ \d,;#]*)", re.M | re.I
)
_NONE = re.compile(r"^\W*NONE\b", re.M | re.I)


def by_model(asking: Asking, judge: Judge, about: AboutRules, day: date) -> Grouped | None:
    """What was said until the day, put together; asked once, and not on a day on which nothing was said, which can add
    to no group. None without a model that reads as much at once, and where it does not answer as it was asked."""
    settings = asking.workspace.settings
    if reflector_model(settings) is None or settings.effective_context <= SMALL_CONTEXT:
        return None
    remarks = remarks_for(judge, about)
    if not any(remark.day == day for remark in remarks) or len({r.session_id for r in remarks}) < MIN_SESSIONS:
        return NOTHING
    lines = lines_for(about, remarks)
    answer = asking.answer(PROMPTS[0], {}, PROMPTS[1], asked(remarks, lines), MAX_TOKENS, day)
    found = groups_in(answer, remarks, lines) if answer is not None else None
    if answer is not None and found is None:
        asking.refused["what was said is put together by likeness: the answer names no group, nor NONE"] += 1
    return found


def remarks_for(judge: Judge, about: AboutRules) -> list[FrictionEvent]:
    """What was said, oldest first; of too much, what most likely objects, ends something or speaks of a line."""
    import numpy as np

    def place(event: FrictionEvent) -> tuple[datetime, int, str]:
        return event.at, event.evidence[0][1], event.event_id  # as it was said, also within a message

    if len(judge.events) <= MAX_REMARKS:
        return sorted(judge.events, key=place)
    like = np.maximum(about.vectors, about.words).max(axis=1, initial=0.0)
    sure = np.array([judge.sure[e.event_id] + 2.0 * (e.event_id in judge.changes) for e in judge.events])
    ranks = np.minimum(np.argsort(np.argsort(-like)), np.argsort(np.argsort(-sure)))
    return sorted((judge.events[i] for i in np.argsort(ranks, kind="stable")[:MAX_REMARKS]), key=place)


def lines_for(about: AboutRules, remarks: Sequence[FrictionEvent]) -> list[Rule]:
    """The lines that hold where one of these was said, the likest of too many, in the order of their files."""
    import numpy as np

    like = np.maximum(about.vectors, about.words).max(axis=0, initial=0.0)
    reached = [i for i, rule in enumerate(about.rules) if any(rule.reaches(r) for r in remarks)]
    chosen = sorted(reached, key=lambda i: (-like[i], i))[:MAX_LINES]
    return [about.rules[i] for i in sorted(chosen)]


def asked(remarks: Sequence[FrictionEvent], lines: Sequence[Rule]) -> Mapping[str, str]:
    """What fills the prompt."""
    sessions = {session_id: n for n, session_id in enumerate(dict.fromkeys(r.session_id for r in remarks), 1)}
    said = "\n".join(f"#{n} {_told(remark, sessions)}" for n, remark in enumerate(remarks, 1))
    noted = "\n".join(f"L{n} {line.name}: {clip(one_line(line.text), MAX_LINE)}" for n, line in enumerate(lines, 1))
    mark = hashlib.sha256(f"{said}\n{noted}".encode()).hexdigest()[:8]
    return {"fence": f"said-{mark}", "remarks": said, "lines": noted or "(there are none)"}


def _told(remark: FrictionEvent, sessions: Mapping[str, int]) -> str:
    before = f" (after the agent {', '.join(sorted(remark.did)[:MAX_DEEDS])})" if remark.did else ""
    where = f" {remark.project}" if remark.project else ""
    return f"session {sessions[remark.session_id]}{where}{before}: {clip(one_line(remark.text), MAX_REMARK)}"


def groups_in(answer: str, remarks: Sequence[FrictionEvent], lines: Sequence[Rule]) -> Grouped | None:
    """What the answer puts together. A remark is of one group, the first; a group of one session is none, and so is one
    of a line that did not hold there or then. None where the answer has no group and does not say so."""
    if not _FOUND.search(answer):
        return NOTHING if _NONE.search(answer) else None
    again, of_lines = list[list[FrictionEvent]](), {"BROKEN": dict[Rule, list[FrictionEvent]](), "OVER": {}}
    taken = set[int]()
    for what, line, numbers in _found_in(answer):
        members = [n for n in numbers if 1 <= n <= len(remarks) and n not in taken]
        rule = lines[line - 1] if 1 <= line <= len(lines) else None
        own = [remarks[n - 1] for n in members if rule is None or rule.reaches(remarks[n - 1])]
        if (rule is None) != (what == "AGAIN") or len({e.session_id for e in own}) < MIN_SESSIONS:
            continue
        taken.update(members)
        if rule is None:
            again.append(own)
        else:
            of_lines[what].setdefault(rule, own)
    broken = {rule: own for rule, own in of_lines["BROKEN"].items() if rule not in of_lines["OVER"]}
    return Grouped(again, broken, of_lines["OVER"])


def _found_in(answer: str) -> Iterator[tuple[str, int, list[int]]]:
    for found in _FOUND.finditer(answer):
        numbers = sorted({int(n) for n in re.findall(r"\d+", found["numbers"])})
        yield found["what"].upper(), int(found["line"] or 0), numbers
