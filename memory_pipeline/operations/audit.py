"""Audit of any memory file: the source and date of each line, and its faults.

The file is only read. A line without a source is no fault, as people write such files by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple

import polars as pl

from memory_pipeline.friction.messages import is_claim
from memory_pipeline.friction.rules import memory_lines, promotion_days
from memory_pipeline.lake.rows import distinct
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.safe_write import encode
from memory_pipeline.operations.audit_project import repository_around
from memory_pipeline.operations.audit_sources import USER, Source, Transcripts
from memory_pipeline.operations.memory_text import HiddenSecret, UnreadableMemoryError, read_text, without_secrets
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.proposals.offering import HYPOTHETICAL, QUESTION, why_left_out
from memory_pipeline.recall.folders import place_of_folder, project_of_place
from memory_pipeline.recall.origin import NoSuchLineError, origin
from memory_pipeline.redaction import Redactor
from memory_pipeline.scope import are_apart
from memory_pipeline.settings import Settings, workspace_salt
from memory_pipeline.text.hidden import without_hidden
from memory_pipeline.text.kinds import NORMATIVE, kind_of_model, kind_of_user
from memory_pipeline.text.lines import is_self_contained, orders, reports_success, supposes
from memory_pipeline.text.relation import differs, gives_up, replaces, statement, stem
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import content_words, content_words_in_order
from memory_pipeline.text.specifics import differ_in_numbers, specifics

SECRET, CONTRADICTING, STALE = "secret", "contradicting", "stale"
DUPLICATE, JUNK, UNSOURCED = "duplicate", "junk", "unsourced"
KINDS = (SECRET, CONTRADICTING, STALE, DUPLICATE, JUNK, UNSOURCED)
"""The kinds of findings, worst first."""
NOT_SHOWN = "[left out: it tells a secret]"
MAX_QUOTED = 120
MIN_REPEATED = 6
"""Minimum content words of a duplicate below another heading: a shorter line may apply to both."""
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_WRAPPED = re.compile(r"\n(?=\s*[a-zà-ÿ`(\"“]|\s+\S)")
_PLACE = re.compile(r"\blines? \d|\([^)]*\d[^)]*\)", re.I)
_NUMBERED = re.compile(r"\d")
_WHOLE_QUESTION = re.compile(r"[^:：\"“”'‘«»?？]+[?？][)*_` ]*")
"""A question that is not quoted in a rule, as in 'ask "Is it simple?"'."""
_POLARITY_WORDS = content_words(
    "never always only must should avoid without stop don't isn't can't cannot won't doesn't"
)
"""Words for polarity, without other content."""


class Finding(NamedTuple):
    """A fault of a line, with its reason."""

    kind: str
    reason: str


@dataclass
class AuditedLine:
    """A sentence without bullet, date, project and id, with its sources and its findings."""

    number: int
    """The number of the line in the file, from 1."""
    text: str
    heading: str = ""
    """The nearest heading above it."""
    is_item: bool = False
    """Whether it is the whole of a list item."""
    is_alone: bool = True
    """Whether its item or paragraph has no other sentence."""
    proposal_id: str | None = None
    since: date | None = None
    """The day since which it is in the file, if known."""
    project: str | None = None
    said: list[Source] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def last_said(self) -> date:
        """The last day on which the line is known to have been valid."""
        return max((day for day in (self.since, *(s.day for s in self.said)) if day), default=date.min)


@dataclass(frozen=True)
class Audit:
    """The lines of a file, and the number of messages that were searched; without messages no line counts as
    unsourced."""

    path: Path
    lines: tuple[AuditedLine, ...]
    messages: int
    last_day: date | None

    @property
    def findings(self) -> list[tuple[int, Finding]]:
        """Each finding with the number of its line."""
        return [(line.number, finding) for line in self.lines for finding in line.findings]

    def count(self, kind: str) -> int:
        """The number of lines with a finding of this kind."""
        return len({number for number, finding in self.findings if finding.kind == kind})


def audit(settings: Settings, path: Path) -> Audit:
    """The audit of a file. Raises `UnreadableMemoryError`."""
    lake, redactor = Lake.from_settings(settings), Redactor(workspace_salt(settings))
    text, secrets = without_secrets(read_text(path), redactor)
    lines = list(_lines(text, promotion_days(lake)))
    if not lines and not secrets:
        raise UnreadableMemoryError(f"{path} has no lines to audit: headings, code and tables are skipped.")
    transcripts = Transcripts(lake, redactor)
    for line, said in zip(lines, transcripts.sources([line.text for line in lines]), strict=True):
        line.said = said or _promoted_from(settings, line, redactor)
    _find_pairs(lines)
    _find_replaced(lines, lake, path, redactor)
    _find_deleted_files(lines, path)
    for i, line in enumerate(lines):
        if reason := _junk_reason(line, [*lines[max(0, i - 1) : i], *lines[i + 1 : i + 2]]):
            line.findings.append(Finding(JUNK, reason))
        if transcripts.count and not line.said and not line.proposal_id:
            line.findings.append(Finding(UNSOURCED, "no session says it"))
    lines = _with_secrets(lines, secrets)
    for line in lines:
        line.findings.sort(key=lambda finding: KINDS.index(finding.kind))
    return Audit(path, tuple(lines), transcripts.count, transcripts.last_day)


def _lines(text: str, promoted: Mapping[str, date]) -> Iterator[AuditedLine]:
    """The sentences of the text, including wrapped ones; rows of a paragraph that do not look wrapped are separate."""
    rows = text.split("\n")
    for item in lines_of(encode(text)):
        if item.text.startswith("|"):
            continue
        whole = _WRAPPED.sub(" ", "\n".join(rows[item.line_number - 1 : item.line_number - 1 + item.lines]))
        found = list(memory_lines(whole, promoted))
        is_alone, is_item = len(found) == 1, len(found) == 1 and _ITEM.match(whole) is not None
        for line in found:
            number, since = item.line_number + whole.count("\n", 0, line.start), line.promoted or line.dated
            own = (line.proposal_id, since, line.project)
            yield AuditedLine(number, line.text, item.section, is_item, is_alone, *own)


def _with_secrets(lines: Sequence[AuditedLine], secrets: Sequence[HiddenSecret]) -> list[AuditedLine]:
    """The lines, plus other lines that contain a secret, as in code or a table."""
    shown = list(lines)
    for number, kind in secrets:
        found = [line for line in shown if line.number == number]
        if not found:
            found = [AuditedLine(number, NOT_SHOWN)]
            shown += found
        for line in found:
            line.findings.append(Finding(SECRET, kind))
    return sorted(shown, key=lambda line: line.number)


def _promoted_from(settings: Settings, line: AuditedLine, redactor: Redactor) -> list[Source]:
    """The sources of a line of MEMORY.md with the id of a proposal of this workspace."""
    try:
        told = origin(settings, line.proposal_id)["said"] if line.proposal_id else []
    except NoSuchLineError:
        return []
    found = []
    for said in told:
        if not said.get("missing"):
            moment, words = said["said_at"], clip(redactor.redact(f"{said['quote']}"), MAX_QUOTED)
            day = moment.date() if isinstance(moment, datetime) else moment
            names = (said.get("session_id") or "", said["session"] or "", said["role"], words, said["message_id"])
            found.append(Source(day, *names, said.get("project"), is_verbatim=False))
    return found


def _find_replaced(lines: Sequence[AuditedLine], lake: Lake, path: Path, redactor: Redactor) -> None:
    """Find lines that a later statement of a user in the same project replaces: stale, or contradicting if the date of
    the line is unknown."""
    project = project_of_place(lake, place_of_folder(path.resolve().parent))
    is_ours = any(line.proposal_id for line in lines)
    columns = ("day", "text", "trust", "kind", "project")
    observed = lake.read("observations", columns=columns).filter(
        (pl.col("trust") == USER) & pl.col("kind").is_in([*NORMATIVE, "statement", "state_change"])
    )
    for day, text, _, _, said_in in observed.sort("day", descending=True).iter_rows():
        if not gives_up(text) or not is_claim(text) or not (is_ours or said_in in (None, project)):
            continue
        for line in lines:
            of = line.project or project
            if day > line.last_said and (not of or not said_in or of == said_in) and replaces(text, line.text):
                kind = CONTRADICTING if line.last_said == date.min else STALE
                where = f" in {said_in}" if said_in else ""
                if kind not in {finding.kind for finding in line.findings}:
                    quoted = clip(redactor.redact(text), MAX_QUOTED)
                    line.findings.append(Finding(kind, f"you said on {day}{where}: “{quoted}”"))


def _find_deleted_files(lines: Sequence[AuditedLine], path: Path) -> None:
    """Find lines that name a file that was deleted from the surrounding repository."""
    if (repository := repository_around(path.resolve().parent)) is None:
        return
    for line in lines:
        if reason := repository.deleted(line.text):
            line.findings.append(Finding(STALE, reason))


def _find_pairs(lines: Sequence[AuditedLine]) -> None:
    """Find lines that contradict or repeat an earlier one."""
    for position, later in enumerate(lines):
        for earlier in lines[:position]:
            if kind := _kind_of_pair(earlier, later):
                quoted = f"line {earlier.number} says “{clip(earlier.text, MAX_QUOTED)}”"
                later.findings.append(Finding(kind, quoted))
            if kind == DUPLICATE:
                break


def _kind_of_pair(earlier: AuditedLine, later: AuditedLine) -> str | None:
    stems, others = statement(later.text).stems, statement(earlier.text).stems
    if stems.isdisjoint(others) or are_apart(distinct([earlier.project]), distinct([later.project])):
        return None
    related = earlier.heading == later.heading or not (earlier.heading and later.heading)
    if related and _contradict(earlier.text, later.text):
        return CONTRADICTING
    is_whole = earlier.is_alone and later.is_alone  # all items of a list may end with the same sentence
    is_long = related or len(stems) >= MIN_REPEATED
    return DUPLICATE if is_whole and is_long and _is_repetition(earlier.text, later.text) else None


def _is_repetition(one: str, other: str) -> bool:
    """Whether both have the same content words in the same order, and the same numbers and refusals."""
    mine, theirs = ([stem(word) for word in content_words_in_order(text)] for text in (one, other))
    return mine == theirs and not differ_in_numbers(one, other) and not _only_differ_in_refusal(one, other)


def _contradict(one: str, other: str) -> bool:
    return (
        _replaces(one, other)
        or _replaces(other, one)
        or _only_differ_in_refusal(one, other)
        or _differ_in_number(one, other)
    )


def _replaces(one: str, other: str) -> bool:
    """Whether one instruction says "instead of" or "no longer" about the object of the other; "…, not X" is weaker."""
    if not (gives_up(one) and orders(one) and orders(other) and replaces(one, other)):
        return False
    return set(specifics(other)) <= set(specifics(one))


def _only_differ_in_refusal(one: str, other: str) -> bool:
    """Whether they only differ in that one refuses what the other requires."""
    if bool(statement(one).denied) == bool(statement(other).denied):
        return False
    mine, theirs = ({stem(word) for word in content_words(text) - _POLARITY_WORDS} for text in (one, other))
    return bool(mine) and mine == theirs and differs(one, other, cautious=True)


def _differ_in_number(one: str, other: str) -> bool:
    """Whether both are the same instruction with different numbers; numbers of steps, phases and places may differ."""
    if not (differ_in_numbers(one, other) and orders(one) and orders(other)):
        return False
    if _NUMBERED.search(f"{one.split()[:2]} {other.split()[:2]}") or _PLACE.search(one) or _PLACE.search(other):
        return False
    mine, theirs = ({w for w in content_words(text) if not _NUMBERED.search(w)} for text in (one, other))
    return len(mine) > 1 and mine == theirs


def _junk_reason(line: AuditedLine, neighbours: Sequence[AuditedLine]) -> str:
    """The reason why a line does not belong in a memory; a sentence of a paragraph depends on the others."""
    if hidden := without_hidden(line.text)[1]:
        return f"it has {hidden} invisible characters, which a model reads"
    left_out = why_left_out(line.text, ()) if line.is_item else None
    if left_out == QUESTION and (line.said or line.proposal_id) and _WHOLE_QUESTION.fullmatch(line.text):
        in_list = any(other.text.rstrip("*_ ").endswith(("?", "？", ":", "：")) for other in neighbours)
        return "" if in_list else "it is a question"  # a list of questions to ask oneself is a rule
    if left_out == HYPOTHETICAL and _starts_with_hedge(line.text):
        return "it is hypothetical"
    quoted = next((said for said in line.said if said.is_verbatim), None)
    if not line.is_item or quoted is None or orders(line.text):
        return ""
    if quoted.role == USER and not is_self_contained(line.text, kind_of_user(line.text)):
        return f"you said it on {quoted.day} about something in that session, and it cannot be understood alone"
    if quoted.role != USER and reports_success(line.text) and kind_of_model(line.text) == "progress":
        return f"it is an agent's progress report of {quoted.day}"
    return ""


def _starts_with_hedge(text: str) -> bool:
    """Whether the text begins with "maybe" or "what if"; within a rule these words mean less."""
    first, second = [*text.split()[:2], "", ""][:2]
    if first.lower() in ("if", "in"):
        return False
    return supposes(first) or (supposes(f"{first} {second}") and not supposes(second))
