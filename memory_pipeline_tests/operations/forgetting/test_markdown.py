"""Lines of Markdown files: ours go, a user's only with consent, and nothing else changes by a byte."""

from __future__ import annotations

from typing import Any

from memory_pipeline.markdown.blocks import body_of, put_block
from memory_pipeline.operations.forgetting.markdown import cut_log, cut_memory, cut_review
from memory_pipeline.operations.forgetting.request import TEXT, ForgetRequest
from memory_pipeline.redaction.forgotten import SESSION

MEMORY = """# Memory

## User
- (2026-03-02) i feed the zebra at noon
  and at six <!-- p-20260302-001 -->
- (2026-03-02) small commits <!-- p-20260302-002 -->
- my zebra, by hand
* another of mine

A zebra paragraph
over two lines.
"""


def request(**more: Any) -> ForgetRequest:
    return ForgetRequest(TEXT, "zebra", phrases=["zebra"], **more)


def test_our_lines_go_and_a_users_stay() -> None:
    cut = cut_memory(MEMORY, request())
    assert cut.text == MEMORY.replace(
        "- (2026-03-02) i feed the zebra at noon\n  and at six <!-- p-20260302-001 -->\n", ""
    )
    assert cut.left == ["- my zebra, by hand", "A zebra paragraph\nover two lines."]


def test_with_consent_they_go_too() -> None:
    cut = cut_memory(MEMORY, request(by_hand=True))
    assert "zebra" not in cut.text
    assert cut.left == []
    assert "* another of mine\n" in cut.text
    assert cut_memory(cut.text, request(by_hand=True)).text == cut.text


def test_a_line_goes_by_its_id_however_it_was_reworded() -> None:
    reworded = MEMORY.replace("i feed the zebra at noon", "i feed it")
    cut = cut_memory(reworded, ForgetRequest(SESSION, "s", rows={"proposals": {"p-20260302-001"}}))
    assert "i feed it" not in cut.text
    assert "my zebra, by hand" in cut.text


def test_a_block_of_ours_loses_lines_and_stays_ours() -> None:
    log = put_block("# day\n\nmy zebra note\n", "observations:abc", "title\n* the zebra\n* other").text
    cut = cut_log(log, request())
    assert body_of(cut.text, "observations:abc") == "title\n* other"
    assert cut.left == ["my zebra note"]
    assert "my zebra note" not in cut_log(log, request(by_hand=True)).text


def test_a_block_that_a_user_edited_is_theirs() -> None:
    log = put_block("", "observations:abc", "* the zebra").text.replace("* the", "* my own")
    cut = cut_log(log, request())
    assert cut.text == log
    assert cut.left == ["* my own zebra"]


def test_the_block_of_a_session_goes_as_a_whole() -> None:
    log = put_block("before\n", "observations:abcdefabcdef", "* one\n* two").text
    cut = cut_log(log, ForgetRequest(SESSION, "s", sessions={"s"}, windows={"abcdefabcdef0123"}))
    assert cut.text == "before\n"
    assert cut.taken == ["* one", "* two"]


def test_a_proposal_goes_with_its_evidence() -> None:
    review = (
        "# Review\n\n## Proposed for: User\n- [ ] `p-20260302-001` gone\n  _evidence of it_\n"
        "- [ ] `p-20260302-002` stays\n  _you in “zebra talk”_\n"
    )
    cut = cut_review(review, request(rows={"proposals": {"p-20260302-001"}}))
    assert cut.text == (
        "# Review\n\n## Proposed for: User\n- [ ] `p-20260302-002` stays\n  _you in “[forgotten] talk”_\n"
    )


def test_what_a_reflection_quotes_of_a_session_goes_too() -> None:
    log = put_block("", "reflection", "title\n\nNew: “the kiln must stay below cone six”\n* other").text
    cut = cut_log(log, ForgetRequest(SESSION, "s", sessions={"s"}, told=["the kiln must stay below cone six today"]))
    assert body_of(cut.text, "reflection") == "title\n\n* other"


def test_what_a_user_wrote_beside_a_proposal_is_theirs() -> None:
    item = "- [ ] `p-20260302-001` feed the zebra\n"
    notes = "  my note on the zebra\n  _you in “zebra talk”_\n"
    stays = cut_review(f"{item}{notes}", request())
    assert stays.text == (
        "- [ ] `p-20260302-001` feed the [forgotten]\n  my note on the zebra\n  _you in “[forgotten] talk”_\n"
    )
    assert stays.left == ["my note on the zebra"]
    goes = cut_review(f"{item}{notes}mine, not indented\n", request(rows={"proposals": {"p-20260302-001"}}))
    assert goes.text == "mine, not indented\n"


def test_a_rule_below_a_line_of_ours_stays() -> None:
    memory = "- (2026-03-02) the zebra <!-- p-20260302-001 -->\n---\n<!--\nmy comment\n-->\n"
    assert cut_memory(memory, request()).text == "---\n<!--\nmy comment\n-->\n"
