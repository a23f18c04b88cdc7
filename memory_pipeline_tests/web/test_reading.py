"""What the screens Search and Session are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline.recall.search import Found
from memory_pipeline.web.reading import MESSAGES_SHOWN, Hit, PageNotFoundError, session_screen
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import day_after, observation, put, say, workspace


@each(
    ("found", "told", "is_line"),
    [
        (Found("passage", "m1", 1.0, "Never use npm.", role="user"), "you", False),
        (Found("passage", "m2", 1.0, "Done.", role="assistant"), "assistant", False),
        (Found("observation", "o-0123456789ab", 1.0, "Never.", kind="rule"), "observation rule", True),
        (Found("segment", "s-0123456789ab", 1.0, "Asked: never."), "segment", True),
        (Found("memory_line", "p-20250305-001", 1.0, "Never.", kind="Hard Rules"), "MEMORY.md, Hard Rules", True),
        (Found("memory_line", "MEMORY.md:12", 1.0, "By hand.", kind="Mine"), "MEMORY.md, Mine", False),
    ],
)
def test_a_hit_says_what_it_is_and_leads_where_it_comes_from(found: Found, told: str, is_line: bool) -> None:
    hit = Hit(found, None)
    assert (hit.speaker, hit.is_line) == (told, is_line)


def test_a_session_of_two_days_is_read_in_order_with_what_was_observed(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    first = say(lake, "s1", *(f"user: line {n}" for n in range(MESSAGES_SHOWN - 1)), "tool: ignored")
    second = say(lake, "s1", "user: the next day", "assistant: ", "assistant: the end", day=day_after(1))
    say(lake, "s2", "user: another session")
    put(lake, "observations", observation("line 0"))
    shown = session_screen(settings, {"id": "s1"})
    assert [m["text"] for m in shown["messages"][-2:]] == [f"line {MESSAGES_SHOWN - 2}", "the next day"]
    assert (shown["start"], shown["total"], list(shown["days"])) == (
        0,
        MESSAGES_SHOWN + 1,
        [day_after(0), day_after(1)],
    )
    assert [o["text"] for o in shown["observations"][first[0]["message_id"]]] == ["line 0"]
    last = session_screen(settings, {"id": "s1", "at": second[-1]["message_id"]})
    assert [m["text"] for m in last["messages"]] == ["the end"]
    assert last["start"] == MESSAGES_SHOWN
    with pytest.raises(PageNotFoundError):
        session_screen(settings, {"id": "s3"})
