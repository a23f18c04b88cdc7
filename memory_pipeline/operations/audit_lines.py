"""What is wrong with the lines of a file by themselves: what stands there twice, contradicts another line, or is no
line for a memory. In doubt nothing is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_pipeline.lake.rows import distinct
from memory_pipeline.operations.audit_file import Line
from memory_pipeline.operations.audit_sources import USER, Said
from memory_pipeline.proposals.score import HYPOTHETICAL, QUESTION, why_left_out
from memory_pipeline.scope import are_apart
from memory_pipeline.text.hidden import without_hidden
from memory_pipeline.text.kinds import kind_of_model, kind_of_user
from memory_pipeline.text.lines import is_self_contained, orders, reports_success, supposes
from memory_pipeline.text.relation import EQUAL, differs, gives_up, replaces, statement, stem
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import content_words, content_words_in_order, overlap
from memory_pipeline.text.specifics import differ_in_numbers, specifics

SECRET, CONTRADICTING, STALE, DUPLICATE, JUNK, UNSOURCED = (
    *("secret", "contradicting", "stale"),
    *("duplicate", "junk", "unsourced"),
)
KINDS = (SECRET, CONTRADICTING, STALE, DUPLICATE, JUNK, UNSOURCED)
"""What an audit finds, the worst first."""
MIN_REPEATED = 6
"""Words of content of a line that says the same under another heading: a shorter one may well hold for both."""
MIN_NUANCED = 8
"""Words of content from which one word more says nothing else."""
MAX_QUOTED = 90
_ORDERED = re.compile(r"\b(?:before|after|then|than|from|to|into|over)\b", re.I)
"""Says that it matters which of two things is named first."""
_WHOLE_QUESTION = re.compile(r"[^:：\"“”'‘«»?？]+[?？][)*_` ]*")
"""Not one that a rule quotes: 'ask "Is it simple?"'."""
_PLACE = re.compile(r"\blines? \d|\([^)]*\d[^)]*\)", re.I)
_NUMBERED = re.compile(r"\d")
_POLAR = content_words("never always only must should avoid without stop don't isn't can't cannot won't doesn't")
"""Words that say whether, and not what."""


@dataclass(frozen=True)
class Finding:
    """What is wrong with a line, and why that is said."""

    number: int
    kind: str
    reason: str


def of_pairs(lines: Sequence[Line]) -> Iterator[Finding]:
    """Lines that say what another says, or break with it; the later one is named."""
    stems = [frozenset(map(stem, content_words(line.text))) for line in lines]
    # what has none of these contradicts nothing by itself; looked for once, since there are many pairs
    breaking = [bool(gives_up(t) or statement(t).denied or _NUMBERED.search(t)) for t in (n.text for n in lines)]
    for j, later in enumerate(lines):
        for i in range(j):
            earlier = lines[i]
            if not stems[i] & stems[j] or are_apart(distinct([earlier.project]), distinct([later.project])):
                continue
            related = _is_above(earlier, later) or _is_above(later, earlier)
            if related and (breaking[i] or breaking[j]) and _contradict(earlier.text, later.text):
                yield Finding(later.number, CONTRADICTING, f"line {earlier.number} says “{_quoted(earlier)}”")
            elif not (earlier.is_alone and later.is_alone):
                continue  # a sentence that all items of a list end with is how they are told
            elif (related or len(stems[j]) >= MIN_REPEATED) and _same(earlier.text, later.text, stems[i], stems[j]):
                yield Finding(later.number, DUPLICATE, f"of line {earlier.number}, “{_quoted(earlier)}”")
                break


def of_one(line: Line, neighbours: Sequence[Line], said: Sequence[Said]) -> Iterator[Finding]:
    """What makes a line none for a memory; ``neighbours`` are those before and after it."""
    hidden = without_hidden(line.text)[1]
    if hidden:
        yield Finding(line.number, JUNK, f"it has {hidden} characters that nobody sees, but a model reads")
    elif reason := _why_junk(line, neighbours, said):
        yield Finding(line.number, JUNK, reason)


def _why_junk(line: Line, neighbours: Sequence[Line], said: Sequence[Said]) -> str | None:
    if not line.is_item:
        return None  # a sentence of a paragraph leans on the others
    left_out = why_left_out(line.text, ())
    # a list of what to ask oneself is a rule; a question that was asked is none
    if left_out == QUESTION and (said or line.proposal_id) and _WHOLE_QUESTION.fullmatch(line.text):
        in_list = any(other.text.rstrip("*_ ").endswith(("?", "？", ":", "：")) for other in neighbours)
        return None if in_list else "it asks and tells nothing"
    if left_out == HYPOTHETICAL and _supposes_first(line.text):
        return "it weighs what could be"
    return _of_a_moment(line.text, next((s for s in said if s.is_verbatim), None))


def _of_a_moment(text: str, quoted: Said | None) -> str | None:
    """Why words that were said for a moment only are none for later; only of quotations it is known what they were."""
    if quoted is None or orders(text):
        return None
    if quoted.role == USER and not is_self_contained(text, kind_of_user(text)):
        return f"you said it on {quoted.day} of what was before you then; alone it does not say of what"
    if quoted.role != USER and reports_success(text) and kind_of_model(text) == "progress":
        return f"it is an agent's news of {quoted.day}"
    return None


def _supposes_first(text: str) -> bool:
    """Whether it begins with "maybe" or "what if": within a rule these words say less."""
    words = text.split()
    if not words or words[0].lower() in ("if", "in"):
        return False
    one, two, second = " ".join(words[:1]), " ".join(words[:2]), " ".join(words[1:2])
    return supposes(one) or (supposes(two) and not supposes(second))


def _is_above(one: Line, other: Line) -> bool:
    """Whether what the one stands under holds for the other too."""
    return other.headings[: len(one.headings)] == one.headings


def _same(one: str, other: str, mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether one of them says no more than the other: no other name, number, word or order."""
    is_short = min(len(mine), len(theirs)) < MIN_NUANCED
    if not (mine <= theirs or theirs <= mine) or (is_short and mine != theirs) or overlap(mine, theirs) < EQUAL.overlap:
        return False
    if set(specifics(one)) != set(specifics(other)) or differ_in_numbers(one, other) or _opposed(one, other):
        return False
    is_ordered = _ORDERED.search(one) or _ORDERED.search(other)
    return not is_ordered or _in_order(one, mine & theirs) == _in_order(other, mine & theirs)


def _in_order(text: str, shared: frozenset[str]) -> list[str]:
    return [word for word in map(stem, content_words_in_order(text)) if word in shared]


def _contradict(one: str, other: str) -> bool:
    return _replaces(one, other) or _replaces(other, one) or _opposed(one, other) or _other_number(one, other)


def _replaces(one: str, other: str) -> bool:
    """Whether an order says "instead of" or "no longer" of what the other orders; "…, not X" says less."""
    if not (gives_up(one) and orders(one) and orders(other) and replaces(one, other)):
        return False
    return set(specifics(other)) <= set(specifics(one))


def _opposed(one: str, other: str) -> bool:
    """Whether they differ in nothing but that one refuses what the other does."""
    if bool(statement(one).denied) == bool(statement(other).denied):
        return False
    mine, theirs = _without_polar(one), _without_polar(other)
    return bool(mine) and mine == theirs and differs(one, other, cautious=True)


def _without_polar(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text) - _POLAR)


def _other_number(one: str, other: str) -> bool:
    """Whether both order the same, each with another number."""
    if not (differ_in_numbers(one, other) and orders(one) and orders(other)):
        return False
    if _NUMBERED.search(f"{one.split()[:2]} {other.split()[:2]}") or _PLACE.search(one) or _PLACE.search(other):
        return False  # steps, phases and places have numbers that are meant to differ
    mine, theirs = (frozenset(w for w in content_words(t) if not _NUMBERED.search(w)) for t in (one, other))
    return len(mine) > 1 and mine == theirs


def _quoted(line: Line) -> str:
    return clip(line.text, MAX_QUOTED)
