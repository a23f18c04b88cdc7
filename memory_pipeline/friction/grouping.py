"""Grouping of user remarks by the reflector's model: repeated wishes, and the rules that they break or end.

People express the same wish in different words ("one seed isn't a result", "that could be pure noise"). The model is
shown the numbered remarks and the lines of MEMORY.md, AGENTS.md and CLAUDE.md, and answers with numbers only: it can
make wrong groups, which a reviewer sees in the quotes, but it cannot invent anything. Without a model or a valid
answer, only nearly identical remarks are grouped (`corrections.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date

from memory_pipeline.friction.asking import GROUPS, Asking, read_groups
from memory_pipeline.friction.corrections import Grouped
from memory_pipeline.friction.patterns import MIN_SESSIONS, FrictionEvent
from memory_pipeline.friction.rules import Rule
from memory_pipeline.llm.config import SMALL_CONTEXT, reflector_model
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import content_words, overlap

MAX_REMARKS, MAX_REMARK = 240, 300
"""Maximum number of remarks that a model is shown, with corrections and those like a rule first, and maximum characters
of each. With the rules these are 27,000 tokens at most, and about 6,000 in a week of 25 sessions."""
MAX_LINES, MAX_LINE = 80, 200
MAX_TOKENS = 2_000
NOTHING = Grouped([], {}, {})


def by_model(asking: Asking, events: Sequence[FrictionEvent], rules: Sequence[Rule], day: date) -> Grouped | None:
    """The remarks up to the day, grouped by the model, which is asked once, and not for a day without remarks. None
    without a model with enough context, and for an invalid answer."""
    settings = asking.workspace.settings
    if reflector_model(settings) is None or settings.effective_context <= SMALL_CONTEXT:
        return None
    remarks = remarks_for(events, rules)
    if not any(remark.day == day for remark in remarks) or len({r.session_id for r in remarks}) < MIN_SESSIONS:
        return NOTHING
    lines = lines_for(rules, remarks)
    answer = asking.answer(GROUPS, prompt_values(remarks, lines), MAX_TOKENS, day)
    found = groups_in(answer, remarks, lines) if answer is not None else None
    if answer is not None and found is None:
        asking.refused[
            "only nearly the same words are grouped: the answer names no group and does not say that there is none"
        ] += 1
    return found


def remarks_for(events: Sequence[FrictionEvent], rules: Sequence[Rule]) -> list[FrictionEvent]:
    """The remarks to show, oldest first. If there are too many, corrections take precedence, then those most like a
    rule, then the newest."""
    chosen = list(events)
    if len(chosen) > MAX_REMARKS:
        like = _likeness([e.text for e in chosen], [rule.text for rule in rules])
        ranked = sorted(zip(chosen, like, strict=True), key=lambda one: (one[0].is_correction, one[1], one[0].at))
        chosen = [event for event, _ in ranked[-MAX_REMARKS:]]
    return sorted(chosen, key=lambda e: (e.at, e.evidence[0][1], e.event_id))  # in order of time, also within a message


def lines_for(rules: Sequence[Rule], remarks: Sequence[FrictionEvent]) -> list[Rule]:
    """The rules that apply to one of these remarks, at most the most similar ones, in the order of their files."""
    reached = [rule for rule in rules if any(rule.reaches(remark) for remark in remarks)]
    if len(reached) <= MAX_LINES:
        return reached
    like = _likeness([rule.text for rule in reached], [remark.text for remark in remarks])
    likest = sorted(range(len(reached)), key=lambda i: (-like[i], i))[:MAX_LINES]
    return [reached[i] for i in sorted(likest)]


def _likeness(texts: Sequence[str], others: Sequence[str]) -> list[float]:
    """For each text, the largest share of words that it has in common with one of the others."""
    compared = [content_words(other) for other in others]
    return [max((overlap(words, other) for other in compared), default=0.0) for words in map(content_words, texts)]


def prompt_values(remarks: Sequence[FrictionEvent], lines: Sequence[Rule]) -> Mapping[str, str]:
    """The values of the prompt's placeholders."""
    sessions = {session_id: n for n, session_id in enumerate(dict.fromkeys(r.session_id for r in remarks), 1)}
    said = "\n".join(f"#{n} {_format_remark(remark, sessions)}" for n, remark in enumerate(remarks, 1))
    noted = "\n".join(f"L{n} {line.name}: {clip(one_line(line.text), MAX_LINE)}" for n, line in enumerate(lines, 1))
    mark = hashlib.sha256(f"{said}\n{noted}".encode()).hexdigest()[:8]
    return {"fence": f"said-{mark}", "remarks": said, "lines": noted or "(there are none)"}


def _format_remark(remark: FrictionEvent, sessions: Mapping[str, int]) -> str:
    before = f" (after the agent called {', '.join(remark.calls)})" if remark.calls else ""
    where = f" {remark.project}" if remark.project else ""
    return f"session {sessions[remark.session_id]}{where}{before}: {clip(one_line(remark.text), MAX_REMARK)}"


def groups_in(answer: str, remarks: Sequence[FrictionEvent], lines: Sequence[Rule]) -> Grouped | None:
    """The groups in the answer. A remark belongs only to its first group; groups of one session, and groups whose rule
    did not apply at the time, are dropped. None if the answer has no group without saying so."""
    groups = read_groups(answer)
    if groups is None:
        return None
    again, of_lines = list[list[FrictionEvent]](), {"broken": dict[Rule, list[FrictionEvent]](), "over": {}}
    taken = set[int]()
    for what, line, numbers in groups:
        members = [n for n in numbers if 1 <= n <= len(remarks) and n not in taken]
        rule = lines[line - 1] if 1 <= line <= len(lines) else None
        own = [remarks[n - 1] for n in members if rule is None or rule.reaches(remarks[n - 1])]
        if (rule is None) != (what == "again") or len({e.session_id for e in own}) < MIN_SESSIONS:
            continue
        taken.update(members)
        if rule is None:
            again.append(own)
        else:
            of_lines[what].setdefault(rule, own)
    broken = {rule: own for rule, own in of_lines["broken"].items() if rule not in of_lines["over"]}
    return Grouped(again, broken, of_lines["over"])
