"""REVIEW.md: the file in which a user decides what becomes part of the memory.

A proposal is one list item with its evidence below it::

    - [ ] `p-20260305-001` text
      _2026-03-05 · session name · “quote”_

Friction fixes follow under their own heading, with their change quoted between item and evidence; see `quoted_change`.
`read_decisions` returns the user's decisions, `touched_in` the proposals that they edited, and `update_review` the next
version of the text. None of them touches a file. They work by lines; a line that does not have exactly our format
belongs to the user.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from memory_pipeline.markdown.blocks import insert_lines, newline_of, one_line, split_lines
from memory_pipeline.proposals.quoted_change import (
    Change,
    is_block,
    is_quoted,
    quoted,
    shown_lines,
    text_as_edited,
    unboxed,
    unquoted,
)
from memory_pipeline.text.regex import deferred

_TITLE = deferred(r"\ufeff?#[ \t]+\S")
_COUNT = deferred(r"_Last updated: (?P<stamp>\S+) \| (?P<count>\d+)(?P<of> shown of \d+)? proposals? pending_\s*$")
_DAY_LINE = deferred(r"_Offered on (?P<day>\d{4}-\d{2}-\d{2})\.")
_HEADING = deferred(r" {0,3}#{1,6}(?:[ \t]|\r?\n?$)")
_GROUP = deferred(r"##[ \t]+Proposed for:[ \t]*(?P<section>.*?)\s*$", re.IGNORECASE)
FIXES = "Friction Fixes"
_FIXES = deferred(rf"##[ \t]+{FIXES}\b.*$", re.IGNORECASE)
_ITEM = deferred(r"\s*[-*+][ \t]+\[(?P<mark>[^\[\]]*)\][ \t]*`?(?P<id>[pf]-\d{8}-\d{3,})(?!\d)`?(?P<text>.*)")
_FIX_ID = deferred(r"\bf-\d{8}-\d{3,}")
_EVIDENCE = deferred(r"  _\d{4}-\d{2}-\d{2}\b.*_\r?\n?")
_EXPIRES = deferred(r" · expires on \d{4}-\d{2}-\d{2}_$")
_LIST = deferred(r"\s*[-*+][ \t]")
_INDENTED_TEXT = deferred(r"[ \t]+(?![-*+][ \t]|\d+[.)][ \t]|_|#)\S")
_ALL = "`memory review` goes through all, and `memory review --list` lists them."
_NOTICE = re.compile(
    r"_(?:Approved automatically|Promoted automatically|Fixed automatically|Withdrawn, for it has stopped"
    r"|Nothing is sure enough to be offered|The best \d+ of \d+ pending proposals are shown here"
    r"|\d+ more are pending)[:;][^\r\n]*_\s*$"
)
"""A notice of this or of an earlier version."""
_OURS = (_ITEM, _HEADING, _COUNT, _NOTICE)

_HEADER = """\
# Pending Memory Proposals

_Offered on {day}. A line enters MEMORY.md only when you approve it; `memory why ID` tells where it comes from._
_[x] approves it as it stands, with your edits; [-] rejects it, and so does deleting it; [ ] leaves it for later._

_Last updated: {stamp} | {count} proposals pending_
"""


@dataclass(frozen=True)
class Proposal:
    """A line that is offered for a section of MEMORY.md; ``evidence`` is one short line that begins with its day.

    ``expires_on`` is added to the evidence once that day is near.
    """

    proposal_id: str
    section: str
    text: str
    evidence: str
    expires_on: date | None = None
    change: Change | None = None
    """The change of a friction fix."""

    @property
    def first_line(self) -> str:
        """The text after the id."""
        return self.change.headline if self.change else self.text

    @property
    def evidence_line(self) -> str:
        ending = f" · expires on {self.expires_on.isoformat()}" if self.expires_on else ""
        return f"{self.evidence}{ending}" if self.evidence else ""


@dataclass(frozen=True)
class ReviewReading:
    """The user's decisions in REVIEW.md.

    ``approved``: id to current text. ``ignored``: ids that were never shown, and shown ids whose lines are unclear
    (another mark, contradicting duplicates, a malformed line, an older copy of the file); they stay undecided.
    ``damaged``: one sentence if the file cannot be trusted; then there are no decisions.
    """

    approved: dict[str, str]
    rejected: list[str]
    damaged: str | None
    ignored: list[str]


@dataclass(frozen=True)
class _Item:
    """A proposal's lines in the file, as indices: its own including continuations, and its evidence if unchanged.

    ``section`` is that of the nearest heading above; None if that is not one of our groups.
    """

    proposal_id: str
    section: str | None
    mark: str
    text: str
    lines: list[int]
    evidence: int | None
    quoted: tuple[str, ...] = ()


def read_decisions(
    current: str | None,
    shown: Mapping[str, Proposal],
    *,
    earlier: Mapping[str, Proposal] | None = None,
    last_updated: str | None = None,
) -> ReviewReading:
    """Read the marks; ``shown`` are the proposals that were in the file when it was last written.

    Proposals that were in it ``earlier`` can also be decided by a mark, in a copy that was open meanwhile; their
    absence means nothing.

    A missing line counts as rejected only if the user's copy is the version last written: its count line has the number
    of ``shown``, and the time ``last_updated`` (see `last_updated_in`) if given. An editor that saves an older copy
    over the file never showed the newer lines.
    """
    damaged = _damage(current)
    if current is None or damaged:
        return ReviewReading({}, [], damaged, [])
    lines = split_lines(current)
    approved: dict[str, str] = {}
    rejected: list[str] = []
    ignored: list[str] = []
    items: dict[str, set[tuple[str, str, tuple[str, ...]]]] = {}
    known = {**(earlier or {}), **shown}
    for item in _items(lines):
        items.setdefault(item.proposal_id, set()).add((item.mark, item.text, item.quoted))
    for proposal_id, versions in items.items():
        mark, first_line, read = next(iter(versions))
        proposal = known.get(proposal_id)
        change = proposal.change if proposal else None
        text = text_as_edited(change, proposal.text, read) if proposal and change else first_line
        if proposal is None or len(versions) > 1 or mark not in ("", "x", "-") or (mark == "x" and not text):
            ignored.append(proposal_id)
        elif mark == "x" and text:
            approved[proposal_id] = text
        elif mark == "-":
            rejected.append(proposal_id)
    count = _last_count(lines)
    ours = count is not None and int(count["count"]) == len(shown) and last_updated in (None, count["stamp"])
    for proposal_id in shown:
        if proposal_id not in items:
            gone = ours and not _is_malformed(lines, shown[proposal_id], known)
            (rejected if gone else ignored).append(proposal_id)
    return ReviewReading(approved, rejected, None, ignored)


def last_updated_in(current: str) -> str | None:
    """The time in the count line, which identifies the version for `read_decisions`."""
    count = _last_count(split_lines(current))
    return None if count is None else count["stamp"]


def offered_in(current: str) -> dict[str, str | None]:
    """The proposals that are items of the text, with the section of their group.

    Notes that mention a proposal do not count.
    """
    return {item.proposal_id: item.section for item in _items(split_lines(current))}


def touched_in(current: str, proposals: Mapping[str, Proposal]) -> set[str]:
    """The proposals whose item a user marked, edited or moved, or below which they wrote."""
    lines, found = split_lines(current), set[str]()
    for item in _items(lines):
        if (proposal := proposals.get(item.proposal_id)) is None:
            continue
        change = tuple(shown_lines(proposal.change)) if proposal.change else ()
        as_offered = ("", _plain(proposal.first_line), change)
        is_moved = not proposal.change and not _are_equal(item.section, _plain(proposal.section))
        below = (item.lines[-1] if item.evidence is None else item.evidence) + 1
        has_note = below < len(lines) and lines[below].strip() and not any(p.match(lines[below]) for p in _OURS)
        if (item.mark, item.text, item.quoted) != as_offered or is_moved or has_note:
            found.add(item.proposal_id)
    return found


def update_review(
    current: str | None,
    pending: Sequence[Proposal],
    decided: Collection[str],
    *,
    day: date,
    now: datetime,
    waiting: int = 0,
    notices: Sequence[str] = (),
) -> str:
    """The next text of REVIEW.md: ``decided`` and displaced lines are removed, missing pending ones are added, and
    everything else is kept. Above the count line are ``notices``, and the number of pending proposals that are
    ``waiting``, as they are not shown.

    ``now`` is timezone-aware. None as text creates a new file, also in place of a damaged one. The function is
    idempotent.
    """
    stamp = f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if current is None:
        current = _HEADER.format(day=day.isoformat(), stamp=stamp, count=0)
    newline = newline_of(current)
    before = [line for line in split_lines(current) if not _NOTICE.match(line)]
    lines = _without_decided(before, decided)
    shown = [proposal for proposal in pending if proposal.proposal_id not in decided]
    present, known = {item.proposal_id for item in _items(lines)}, {proposal.proposal_id for proposal in shown}
    for proposal in shown:
        if proposal.proposal_id not in present and not _is_malformed(lines, proposal, known):
            _add(lines, proposal, newline)
    _set_expiry(lines, {proposal.proposal_id: proposal.expires_on for proposal in shown if proposal.expires_on})
    lines = _without_empty_groups(lines)
    count = _last_count(before)
    is_changed = lines != before or count is None or int(count["count"]) != len(shown)
    if is_changed:
        _set_day(lines, day)
    _set_count(lines, len(shown), waiting, stamp if is_changed else None)
    if waiting:
        best = f"The best {len(shown)} of {len(shown) + waiting} pending proposals are shown here"
        notices = [*notices, f"{best}; the other {waiting} wait. {_ALL}"]
    insert_lines(lines, _place_of_count(lines), [f"_{notice}_" for notice in notices], newline)
    return "".join(lines)


def _damage(current: str | None) -> str | None:
    if current is None:
        return "REVIEW.md is missing, so nothing in it counts as decided."
    if not current.strip("\ufeff\0 \t\r\n"):
        return "REVIEW.md is empty, so nothing in it counts as decided."
    lines = split_lines(current)
    if not any(_TITLE.match(line) for line in lines):
        return "REVIEW.md has lost its title line, so nothing in it counts as decided."
    if _last_count(lines) is None:
        return "REVIEW.md has lost its closing count line and may be cut off, so nothing in it counts as decided."
    return None


def _items(lines: Sequence[str]) -> Iterator[_Item]:
    section = None
    for start, line in enumerate(lines):
        section = _section_of(line) if _HEADING.match(line) else section
        found = _ITEM.match(line)
        if found is None:
            continue
        own, quote = [start], list[int]()
        is_fix = found["id"].startswith("f-")
        while own[-1] + 1 < len(lines) and _INDENTED_TEXT.match(line := lines[own[-1] + 1]):
            if is_fix and is_quoted(line):
                break
            own.append(own[-1] + 1)
        text = " ".join([found["text"].strip(), *(lines[index].strip() for index in own[1:])]).strip()
        text = re.sub(r"[\ud800-\udfff]", "\ufffd", text)  # invalid UTF-8 must not reach a table
        while is_fix and (below := [*own, *quote][-1] + 1) < len(lines) and is_quoted(lines[below]):
            quote.append(below)
        own += quote
        change = unquoted([lines[index] for index in quote])
        mark, evidence = found["mark"].strip().lower(), _evidence_after(lines, own[-1])
        yield _Item(found["id"], section, mark, text, own, evidence, change)


def _section_of(heading: str) -> str | None:
    """The section of one of our groups; None for another heading."""
    group = _GROUP.match(heading)
    return group["section"].strip() or None if group else None


def _evidence_after(lines: Sequence[str], index: int) -> int | None:
    """The evidence line of an item: the first one among the indented lines below it, which may include a user's
    notes."""
    for below in range(index + 1, len(lines)):
        if _EVIDENCE.fullmatch(lines[below]):
            return below
        if not lines[below].strip() or not lines[below].startswith((" ", "\t")) or _ITEM.match(lines[below]):
            break
    return None


def _last_count(lines: Sequence[str]) -> re.Match[str] | None:
    return next((found for line in reversed(lines) if (found := _COUNT.match(line))), None)


def _is_malformed(lines: Sequence[str], proposal: Proposal, known: Collection[str]) -> bool:
    """Whether a line that is no known proposal has this one's id, or is a list item with its text."""
    mention = re.compile(rf"{re.escape(proposal.proposal_id)}(?!\d)")
    text = _plain(proposal.first_line)
    for line in lines:
        item = _ITEM.match(line)
        if (item and item["id"] in known) or _EVIDENCE.fullmatch(line) or _GROUP.match(line) or is_quoted(line):
            continue  # a quoted change may contain any id
        if mention.search(line) or (_LIST.match(line) and text and line.strip().endswith(text)):
            return True
    return False


def _without_decided(lines: Sequence[str], decided: Collection[str]) -> list[str]:
    """The lines without decided proposals, and without the remains of one that a user deleted."""
    items = list(_items(lines))
    owned = {index for item in items for index in (*item.lines, item.evidence)}
    drop = {index for index, line in enumerate(lines) if _EVIDENCE.fullmatch(line) and index not in owned}
    drop |= {index for above in sorted(drop) for index in _orphaned_change(lines, above, owned)}
    for item in items:
        if item.proposal_id in decided:
            drop.update(item.lines)
            drop.update([] if item.evidence is None else [item.evidence])
    return [line for index, line in enumerate(lines) if index not in drop]


def _orphaned_change(lines: Sequence[str], evidence: int, owned: Collection[int | None]) -> Sequence[int]:
    """The quoted change above an evidence line whose fix was deleted; empty after a line that names a fix, which is
    malformed."""
    start = evidence
    while start > 0 and start - 1 not in owned and is_quoted(lines[start - 1]):
        start -= 1
    whole = range(start, evidence)
    bent = start > 0 and _FIX_ID.search(lines[start - 1])
    return whole if not bent and is_block([lines[index] for index in whole]) else ()


def _add(lines: list[str], proposal: Proposal, newline: str) -> None:
    section, new = _plain(proposal.section), _rendered(proposal)
    for index, line in enumerate(lines):
        group = _GROUP.match(line)
        if _FIXES.match(line) if proposal.change else group and _are_equal(group["section"], section):
            end = index + 1
            while end < len(lines) and not (_HEADING.match(lines[end]) or _COUNT.match(lines[end])):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            insert_lines(lines, end, new, newline)
            return
    place = _place_of_count(lines)
    if not proposal.change:  # fixes are at the end
        place = next((index for index, line in enumerate(lines[:place]) if _FIXES.match(line)), place)
    gap = [""] if place and lines[place - 1].strip() else []
    heading = f"## {FIXES}" if proposal.change else f"## Proposed for: {section}"
    insert_lines(lines, place, [*gap, heading, *new, ""], newline)


def _rendered(proposal: Proposal) -> list[str]:
    """The lines of the item."""
    lines = [f"- [ ] `{proposal.proposal_id}` {_plain(proposal.first_line)}".rstrip()]
    lines += quoted(proposal.change) if proposal.change else []
    evidence = _plain(proposal.evidence_line)
    return [*lines, f"  _{evidence}_"] if evidence else lines


def _are_equal(one: str | None, other: str) -> bool:
    """Whether both are the same section, ignoring case and spaces."""
    return (one or "").casefold().split() == other.casefold().split()


def _set_expiry(lines: list[str], expiring: Mapping[str, date]) -> None:
    """Set the day of expiry at the end of the evidence lines."""
    for item in list(_items(lines)):
        if item.proposal_id in expiring and item.evidence is not None:
            line = lines[item.evidence]
            body = _EXPIRES.sub("_", line.rstrip()).removesuffix("_")
            dated = f"{body} · expires on {expiring[item.proposal_id].isoformat()}_"
            lines[item.evidence] = dated + line[len(line.rstrip()) :]


def _plain(text: str) -> str:
    return unboxed(one_line(text))


def _without_empty_groups(lines: list[str]) -> list[str]:
    """Remove our group headings without items, each with the blank line below it."""
    kept: list[str] = []
    index = 0
    while index < len(lines):
        below = next((line for line in lines[index + 1 :] if line.strip()), "")
        is_group = _GROUP.match(lines[index]) or _FIXES.match(lines[index])
        if is_group and (not below or _HEADING.match(below) or _COUNT.match(below)):
            index += 1 if index + 1 < len(lines) and lines[index + 1].strip() else 2
        else:
            kept.append(lines[index])
            index += 1
    return kept


def _set_day(lines: list[str], day: date) -> None:
    for index, line in enumerate(lines):
        if found := _DAY_LINE.match(line):
            lines[index] = line[: found.start("day")] + day.isoformat() + line[found.end("day") :]
            return


def _place_of_count(lines: Sequence[str]) -> int:
    return max(index for index, line in enumerate(lines) if _COUNT.match(line))


def _set_count(lines: list[str], shown: int, waiting: int, stamp: str | None) -> None:
    """Update the numbers in the count line, and the time of the last update if there was one."""
    place = _place_of_count(lines)
    total = f" shown of {shown + waiting}" if waiting else ""
    found = _COUNT.match(lines[place])
    if found and (stamp or total != (found["of"] or "")):
        ending = lines[place][len(lines[place].rstrip("\r\n")) :]
        lines[place] = f"_Last updated: {stamp or found['stamp']} | {shown}{total} proposals pending_{ending}"
