"""What a model wrote of what was said is what memory says: no character is lost or changed on the way to MEMORY.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from html import escape
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipeline.lake.rows import WindowRow
from memory_pipeline.observations.model.answer import parse_answer
from memory_pipeline.observations.model.fact_check import FactCheck
from memory_pipeline.observations.rows import rows_of
from memory_pipeline.observations.types import Segment
from memory_pipeline.proposals.memory_file import Promotion, add_lines, lines_of
from memory_pipeline.proposals.review_file import Proposal, read_decisions, update_review
from memory_pipeline.workspace.daily_log.render import LogFact, LogSegment, LogWindow, render_observations
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import times
from memory_pipeline_tests.observations.talking import LONDON, talk

DAY, NOW = date(2025, 3, 5), datetime(2025, 3, 5, 12, tzinfo=UTC)
NAMED = "p-20250305-001"

MARKS = {"priority": "high", "kind": "rule", "places": [1]}
WAYS: dict[str, Callable[[str], str]] = {
    "flat": lambda text: f"<observations>\n* 🔴 rule [#1] {text}\n</observations>",
    "segments": lambda text: (
        '<observations>\n<segment from="#1" to="#1">\n<title>What holds</title>\n<narrative>It was said.</narrative>\n'
        f"<facts>\n* 🔴 rule (09:00) [#1] {text}\n</facts>\n</segment>\n</observations>"
    ),
    "lines": lambda text: f"* 🔴 rule [#1] {text}",
    "JSON": lambda text: json.dumps({"observations": [MARKS | {"text": text}]}),
    "JSON with segments": lambda text: json.dumps(
        {"segments": [{"from": 1, "to": 1, "facts": [MARKS | {"text": text}]}]}
    ),
}

PIECES = st.sampled_from(
    [
        *(
            "<hash>",
            "Vec<u8>",
            "<T extends K>",
            "</system>",
            "<b>",
            "<title>",
            "<|endoftext|>",
            "a<b",
            "x>y",
            "<",
            ">",
            "<>",
        ),
        *("&lt;", "&gt;", "&amp;", "&amp;lt;", "R&D", "&", "&nbsp;", "&#39;", "&quot;"),
        *("\\", "C:\\temp\\new", "\\n", "\\|", "a\\b", "\\[x\\]", "\\`"),
        *("|", "a|b", "||", "| x |"),
        *("`x`", "`a\tb`", "`\tindented`", "`if  x:  y`", "`a | b`", "`<hash>`", "`&lt;`", "`$HOME`", "`"),
        *("$", "$HOME", "${x}", "$1", "'$(pwd)'", '"quoted"', "~", "#12", "_", "a_b_c", "*.py", "^", "%s", "{}", "[0]"),
    ]
)


def _is_clear(pieces: list[str]) -> bool:
    """Whether code begins and ends where it seems to: a backtick that stands alone pairs with the next one."""
    is_spaced = any("\t" in piece or "  " in piece for piece in pieces)
    return not (is_spaced and {"`", "\\`"} & set(pieces))


# each piece once: the same words again and again are a loop of the model, of which one turn is kept
TEXTS = (
    st.lists(PIECES, min_size=1, max_size=8, unique=True)
    .filter(_is_clear)
    .map(lambda pieces: f"Always keep {' '.join(pieces)} as it is written")
)


def stored(answer: str, said: str) -> str:
    """The text of the one fact of the answer, as it goes into `observations`."""
    messages = talk(f"user: {said}", "assistant: All right.")
    check = FactCheck(messages, LONDON)
    ((segment,),) = [parse_answer(answer).segments]
    (fact,) = (check.check(parsed, range(len(messages))) for parsed in segment.facts)
    window = cast("WindowRow", {"day": DAY, "dedupe_key": "w1", "session_id": "s1"})
    rows = rows_of(window, [Segment("It was said.", "m1", "m2", (fact,))], "openai:gpt", LONDON)
    (row,) = rows.observations
    return row["text"]


@pytest.mark.parametrize("way", WAYS)
@given(text=TEXTS)
@settings(max_examples=times(1))
def test_what_was_said_is_stored_as_it_was_written(way: str, text: str) -> None:
    assert stored(WAYS[way](text), text) == text


@given(text=TEXTS, way=st.sampled_from(["flat", "segments"]))
@settings(max_examples=times(1))
def test_the_escapes_of_a_whole_answer_are_undone_once(text: str, way: str) -> None:
    assert stored(escape(WAYS[way](text), quote=False), text) == text


@each(
    ("written", "said", "text"),
    [
        ("git says unable to read &lt;hash&gt;", "git says unable to read <hash>", "git says unable to read <hash>"),
        ("R&amp;D owns the parcels", "R&D owns the parcels", "R&D owns the parcels"),
        ("write &lt; for a bracket", "write &lt; for a bracket", "write &lt; for a bracket"),
        ("write &amp;lt; for a bracket", "write &lt; for a bracket", "write &lt; for a bracket"),
        ("<b>Never</b> push to main", "Never push to main", "Never push to main"),
        ("never write <b> in the pages", "never write <b> in the pages", "never write <b> in the pages"),
        ("git is unable to read <hash>", "git is unable to read 3f2a11c", "git is unable to read <hash>"),
        ("`Vec&lt;u8&gt;` holds the bytes", "`Vec<u8>` holds the bytes", "`Vec<u8>` holds the bytes"),
    ],
)
@each("way", WAYS)
def test_what_only_the_format_added_goes(way: str, written: str, said: str, text: str) -> None:
    assert stored(WAYS[way](written), said) == text


@given(text=TEXTS)
@settings(max_examples=times(3))
def test_the_log_review_and_memory_have_the_same_words(text: str) -> None:
    segments = [LogSegment("What holds", text, [LogFact("high", "09:00", text)])]
    log = render_observations(LogWindow("w1", "session", "09:00", "shutdown", 0, 0, segments, text), DAY)
    assert f"* 🔴 (09:00) {text}" in log and f"*{text}*" in log and f"**Current task**: {text}" in log
    shown = {NAMED: Proposal(NAMED, "Hard Rules", text, f"2025-03-05 09:00 · you: “{text}”")}
    review = update_review(None, list(shown.values()), (), day=DAY, now=NOW)
    assert f"- [ ] `{NAMED}` {text}\n" in review
    assert read_decisions(review, shown).approved == {}
    approved = read_decisions(review.replace("- [ ] `p-", "- [x] `p-"), shown).approved
    assert approved == {NAMED: text}
    edited = read_decisions(review.replace(f"- [ ] `{NAMED}` ", f"- [x] `{NAMED}` Here "), shown).approved
    assert edited == {NAMED: f"Here {text}"}
    promotions = [Promotion(NAMED, "Hard Rules", approved[NAMED], DAY)]
    memory = add_lines(None, promotions, ["Hard Rules"]).data
    assert f"- (2025-03-05) {text} <!-- {NAMED} -->" in memory.decode()
    assert [line.text for line in lines_of(memory)] == [text]
    assert add_lines(memory, promotions, ["Hard Rules"]).data == memory
