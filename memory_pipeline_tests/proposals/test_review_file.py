"""REVIEW.md: what a person's marks mean, and that updating the file touches nothing of theirs."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipeline.proposals.quoted_change import Change
from memory_pipeline.proposals.review_file import Proposal, last_updated_in, read_decisions, update_review
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import times

DAY = date(2026, 3, 5)
NOW = datetime(2026, 3, 5, 18, 0, tzinfo=UTC)
LATER = NOW + timedelta(days=2, hours=3)

UV = Proposal("p-20260305-001", "Hard Rules", "Use **uv** for Python", "2026-03-05 · setup · “uv, please”")
PAST = Proposal("p-20260305-002", "Hard Rules", "Events are past tense", "2026-03-05 · events · “renamed”")
TIERS = Proposal("p-20260305-003", "System Architecture", "Memory has three tiers", "2026-03-04 · memory · “tiers”")
ALL = [UV, PAST, TIERS]
UV_FIX = Proposal(
    *("f-20260305-001", "Hard Rules", "Use uv", "2026-03-05 · you · “uv, please”"),
    change=Change("**pip is used** — 3 times. Target: MEMORY.md, Hard Rules.", ("- Use pip", "+ Use uv"), "line"),
)
SLOW_FIX = Proposal(
    *("f-20260305-002", "AGENTS.md", "--- a\n+## Tests\n+    pytest -x", "2026-03-05 · you · “too slow”"),
    change=Change("**Slow tests** — twice. Target: AGENTS.md.", ("--- a", "+## Tests", "+    pytest -x"), "all"),
)

FRESH = """\
# Pending Memory Proposals

_Offered on 2026-03-05. A line enters MEMORY.md only when you approve it; `memory why ID` tells where it comes from._
_[x] approves it as it stands, with your edits; [-] rejects it, and so does deleting it; [ ] leaves it for later._

## Proposed for: Hard Rules
- [ ] `p-20260305-001` Use **uv** for Python
  _2026-03-05 · setup · “uv, please”_
- [ ] `p-20260305-002` Events are past tense
  _2026-03-05 · events · “renamed”_

## Proposed for: System Architecture
- [ ] `p-20260305-003` Memory has three tiers
  _2026-03-04 · memory · “tiers”_

_Last updated: 2026-03-05T18:00:00Z | 3 proposals pending_
"""


def by_id(*proposals: Proposal) -> Mapping[str, Proposal]:
    return {proposal.proposal_id: proposal for proposal in proposals}


def fresh(*proposals: Proposal) -> str:
    return update_review(None, proposals, [], day=DAY, now=NOW)


def update(current: str, pending: list[Proposal], decided: list[Proposal]) -> str:
    """Two days later."""
    return update_review(current, pending, list(by_id(*decided)), day=LATER.date(), now=LATER)


def read(old: str, new: str, shown: list[Proposal] = ALL) -> tuple[dict[str, str], list[str], list[str]]:
    """What is decided once a person has replaced ``old`` by ``new`` in the fresh file, by the ids' last digit."""
    text = fresh(*ALL)
    assert old in text
    reading = read_decisions(text.replace(old, new), by_id(*shown))
    assert reading.damaged is None
    return (
        {key[-1]: value for key, value in reading.approved.items()},
        [key[-1] for key in reading.rejected],
        [key[-1] for key in reading.ignored],
    )


def test_a_fresh_file() -> None:
    assert fresh(*ALL) == FRESH


def test_a_file_that_nobody_touched_decides_nothing() -> None:
    assert read("", "") == ({}, [], [])


UV_LINE = "- [ ] `p-20260305-001` Use **uv** for Python\n"
UV_ITEM = UV_LINE + "  _2026-03-05 · setup · “uv, please”_\n"


@each(
    ("new", "approved", "rejected"),
    [
        ("- [x] `p-20260305-001` Use **uv** for Python\n", "Use **uv** for Python", False),
        ("- [X] `p-20260305-001`   Use uv, always  \n", "Use uv, always", False),  # edited
        ("* [ x ] p-20260305-001 Use uv\n", "Use uv", False),  # another bullet, no backticks
        ("    - [x] `p-20260305-001` Use uv\n", "Use uv", False),  # indented
        ("- [x] `p-20260305-001` Use uv\n  for Python and\n  more\n", "Use uv for Python and more", False),  # wrapped
        ("- [x] `p-20260305-001` Use uv\n  - a note\n", "Use uv", False),  # a note is no text
        ("- [x] `p-20260305-001` Use uv\n- [x] `p-20260305-001` Use uv\n", "Use uv", False),  # the same twice
        ("- [-] `p-20260305-001` Use **uv** for Python\n", None, True),
        ("- [ - ] `p-20260305-001` no\n", None, True),
        ("", None, True),  # the line is gone, its evidence is not
        ("- [ ] `p-20260305-001` still thinking about it\n", None, False),
        ("- [] `p-20260305-001` Use **uv** for Python\n", None, False),
    ],
)
def test_what_a_mark_means(new: str, approved: str | None, rejected: bool) -> None:
    assert read(UV_LINE, new) == ({} if approved is None else {"1": approved}, ["1"] if rejected else [], [])


def test_deleting_proposals_with_their_evidence_rejects_them() -> None:
    assert read(UV_ITEM, "") == ({}, ["1"], [])
    assert read(FRESH[FRESH.index("## Proposed") : FRESH.index("_Last updated")], "") == ({}, ["1", "2", "3"], [])


@each(
    "new",
    [
        "- [x] `p-20260305-001` Use uv\n- [-] `p-20260305-001` Use uv\n",  # both marks
        "- [x] `p-20260305-001` Use uv\n- [ ] `p-20260305-001` Use uv\n",
        "- [x] `p-20260305-001` Use uv\n- [x] `p-20260305-001` Use pip\n",
        "- [?] `p-20260305-001` Use uv\n",
        "- [x] `p-20260305-001`\n",  # approved, but nothing left to approve
        "- x `p-20260305-001` Use uv\n",  # the box is broken
        "[x] `p-20260305-001` Use uv\n",
        "- [x] Use **uv** for Python\n",  # the id is gone, the text is not
        "- [x] `p-2026035-001` Use **uv** for Python\n",
    ],
)
def test_what_is_not_clear_decides_nothing_and_is_named(new: str) -> None:
    assert read(UV_LINE, new) == ({}, [], ["1"])


def test_an_id_that_we_never_showed_is_ignored_and_named() -> None:
    assert read(UV_LINE, UV_LINE + "- [x] `p-20260305-009` Trust me\n") == ({}, [], ["9"])
    assert read(UV_LINE, UV_LINE.replace("[ ]", "[x]"), [PAST, TIERS]) == ({}, [], ["1"])


@each("end", [0, 5, 30, 150, len(FRESH) // 2, len(FRESH) - 40, len(FRESH) - 20])
def test_a_file_cut_off_anywhere_rejects_nothing(end: int) -> None:
    reading = read_decisions(FRESH[:end].replace("[ ]", "[x]"), by_id(*ALL))
    assert (reading.approved, reading.rejected, reading.ignored) == ({}, [], [])
    assert reading.damaged is not None


@each(
    ("current", "why"),
    [
        (None, "missing"),
        ("", "empty"),
        ("\ufeff \r\n\0\0", "empty"),
        (FRESH.replace("# Pending", "Pending"), "title"),
        (FRESH.replace("_Last", "Last"), "count line"),
    ],
)
def test_a_damaged_file_says_why(current: str | None, why: str) -> None:
    damaged = read_decisions(current, by_id(*ALL)).damaged
    assert damaged is not None and why in damaged and damaged.endswith(".")


def test_an_older_copy_saved_over_ours_rejects_nothing_that_it_never_showed() -> None:
    """A person opens the file, we add TIERS, the person saves what their editor had."""
    older = fresh(UV, PAST).replace(UV_LINE, UV_LINE.replace("[ ]", "[x]"))
    reading = read_decisions(older, by_id(*ALL))
    assert (list(reading.approved), reading.rejected, reading.ignored) == ([UV.proposal_id], [], [TIERS.proposal_id])


def test_an_older_copy_with_as_many_proposals_is_told_by_its_time() -> None:
    older, ours = fresh(UV, PAST), update(fresh(UV, PAST), [UV, TIERS], [PAST])
    reading = read_decisions(older, by_id(UV, TIERS), last_updated=last_updated_in(ours))
    assert reading.rejected == [] and set(reading.ignored) == {PAST.proposal_id, TIERS.proposal_id}


def test_decided_lines_go_with_their_evidence_and_new_ones_come_to_their_group() -> None:
    new = Proposal("p-20260307-001", "hard rules", "No new rule", "2026-03-07 · rules · “none”")
    user = Proposal("p-20260307-002", "User", "Likes tea", "2026-03-07 · tea · “tea”")
    text = update(FRESH, [PAST, new, user], [UV, TIERS])
    assert (
        text
        == """\
# Pending Memory Proposals

_Offered on 2026-03-07. A line enters MEMORY.md only when you approve it; `memory why ID` tells where it comes from._
_[x] approves it as it stands, with your edits; [-] rejects it, and so does deleting it; [ ] leaves it for later._

## Proposed for: Hard Rules
- [ ] `p-20260305-002` Events are past tense
  _2026-03-05 · events · “renamed”_
- [ ] `p-20260307-001` No new rule
  _2026-03-07 · rules · “none”_

## Proposed for: User
- [ ] `p-20260307-002` Likes tea
  _2026-03-07 · tea · “tea”_

_Last updated: 2026-03-07T21:00:00Z | 3 proposals pending_
"""
    )


def test_without_a_change_no_byte_changes() -> None:
    assert update(FRESH, ALL, []) == FRESH


def test_what_a_person_wrote_stays() -> None:
    person = FRESH.replace("## Proposed for: Hard", "Ask Ann about these.\n\n## Proposed for: Hard")
    person = person.replace("[ ] `p-20260305-002` Events", "[x]  `p-20260305-002`  **All** events")
    person = person.replace("“uv, please”_\n", "“uv, please”_\n  - why not pip?\n").replace("\n", "\r\n") + "bye"
    text = update(person, [PAST, TIERS], [UV])
    assert text.replace("\r\n", "\n").split("\n")[5:12] == [
        "Ask Ann about these.",
        "",
        "## Proposed for: Hard Rules",
        "  - why not pip?",
        "- [x]  `p-20260305-002`  **All** events are past tense",
        "  _2026-03-05 · events · “renamed”_",
        "",
    ]
    assert text.endswith("\r\nbye") and text.count("\n") == text.count("\r\n")


def test_evidence_that_a_person_rewrote_is_theirs() -> None:
    person = FRESH.replace("  _2026-03-05 · setup · “uv, please”_", "  _I never said that_")
    assert "  _I never said that_\n" in update(person, [PAST, TIERS], [UV])


def test_the_evidence_of_a_deleted_line_goes_too() -> None:
    person = FRESH.replace(UV_LINE, "")
    assert update(person, [PAST, TIERS], [UV]) == update(FRESH, [PAST, TIERS], [UV])


def test_a_file_in_which_all_is_decided_keeps_title_and_count() -> None:
    text = update(FRESH, [], ALL)
    assert "Proposed for" not in text and "| 0 proposals pending_" in text
    assert read_decisions(text, {}).damaged is None
    assert update(text, [UV], []).count("## Proposed for: Hard Rules\n- [ ]") == 1


def test_a_line_that_a_person_bent_is_not_offered_a_second_time() -> None:
    bent = FRESH.replace("- [ ] `p-20260305-001`", "- x `p-20260305-001`")
    assert update(bent, ALL, []).count("p-20260305-001") == 1


@each(
    "text",
    [
        "one\n- [x] `p-20260305-002` two",
        "one\u2028- [x] `p-20260305-002` two",
        "[x] `p-20260305-002` two",
        "one <!--",
        "one\n\n_Last updated: 2026-03-05T18:00:00Z | 0 proposals pending_",
        "# Pending",
    ],
)
def test_no_text_can_pass_for_another_line(text: str) -> None:
    sly = Proposal("p-20260305-001", text, text, f"2026-03-05 · {text}")
    file = fresh(sly, PAST, TIERS)
    reading = read_decisions(file, by_id(sly, PAST, TIERS))
    assert (reading.approved, reading.rejected, reading.ignored) == ({}, [], [])
    assert file.count("\n- [ ] `p-") == 3 and "[x] `p-" not in file and "<!--" not in file
    assert last_updated_in(file) == "2026-03-05T18:00:00Z"
    assert update_review(file, [sly, PAST, TIERS], [], day=DAY, now=LATER) == file


LINES = st.sampled_from(
    [
        "",
        "  ",
        "Ask Ann.",
        "  indented",
        "\t- note",
        "## Proposed for: Hard Rules",
        "## Mine",
        "# Title",
        "- [x] buy milk",
        "- [x] `p-20260305-001` Use uv",
        "- [-] `p-20260305-002` x",
        "* [ ] `p-20260305-003` y",
        "- [x] `f-20260305-001` **pip is used**",
        "- [-] `f-20260305-002` x",
        "  > + Use poetry",
        "  > mine",
        "## Friction Fixes",
        "`p-20260305-001`",
        "`f-20260305-002`",
        "  _2026-03-05 · s · “q”_",
        "  _mine_",
        "```",
        "<!-- x",
        "_Last updated: 2026-03-01T00:00:00Z | 7 proposals pending_",
    ]
)
PERSONS_LINES = st.lists(
    st.tuples(LINES | st.text(max_size=8).filter(lambda text: "\n" not in text), st.sampled_from(["\n", "\r\n"])),
    max_size=8,
).map(lambda pairs: "".join(line + end for line, end in pairs))
SUBSETS = st.lists(st.sampled_from([*ALL, UV_FIX, SLOW_FIX]), unique=True)


@st.composite
def persons_files(draw: st.DrawFn) -> str:
    """A file of ours into which a person has put lines in three places."""
    text = fresh(*draw(SUBSETS))
    for place in ("\n\n_Offered", "\n- [ ]", "\n\n_Last updated"):
        text = text.replace(place, "\n" + draw(PERSONS_LINES) + place.removeprefix("\n"), 1)
    return text + draw(PERSONS_LINES)


def is_ours(line: str) -> bool:
    ours = (
        "## Proposed for:",
        "_Offered on",
        "_Last updated",
        "- [ ] `p-",
        "  _2026-",
        "- [x] `p-",
        "- [-] `p-",
        "* [ ] `p-",
        "## Friction Fixes",
        "- [ ] `f-",
        "- [x] `f-",
        "- [-] `f-",
    )
    return line.startswith(ours)


@settings(max_examples=times(2))
@given(persons_files(), SUBSETS, SUBSETS)
def test_updating_keeps_foreign_lines_and_happens_once(
    current: str, pending: list[Proposal], decided: list[Proposal]
) -> None:
    updated = update(current, pending, decided)
    foreign = [line for line in current.split("\n") if line.strip() and not is_ours(line)]
    left = iter(updated.split("\n"))
    continued = [line for line in foreign if line.startswith((" ", "\t")) and line.strip()]
    assert all(line in left for line in foreign if line not in continued)
    if not decided:
        assert all(line in updated.split("\n") for line in continued)
    assert update_review(updated, pending, list(by_id(*decided)), day=DAY, now=LATER + timedelta(1)) == updated
    reading = read_decisions(updated, by_id(*pending))
    assert not set(reading.rejected) - {PAST.proposal_id, SLOW_FIX.proposal_id}, "only what a person marked [-]"


@settings(max_examples=times(1.5))
@given(persons_files(), st.data())
def test_a_damaged_file_never_decides(current: str, data: st.DataObject) -> None:
    cut = current[: data.draw(st.integers(0, len(current)))]
    reading = read_decisions(cut, by_id(*ALL, UV_FIX, SLOW_FIX))
    if "proposals pending_" not in cut or "# " not in cut:
        assert reading.damaged is not None
    if reading.damaged is not None:
        assert (reading.approved, reading.rejected, reading.ignored) == ({}, [], [])
