"""The order of hits where a later session amends what an earlier one settled."""

from dataclasses import dataclass

from memory_pipeline.recall.amended import amending, newest_first
from memory_pipeline.text.terms import query_terms

ASKED = query_terms("what is the cap of the retry backoff")


@dataclass(frozen=True)
class Hit:
    session_id: str
    score: float
    text: str = "the retry backoff is capped at 60 seconds"
    timestamp: str = "2026-03-02T09:00"
    role: str = "user"


OLD = Hit("old", 1.0)
NEW = Hit("new", 0.7, "An amendment to the retry policy: cap the backoff at 30.", "2026-04-02T09:00")


def order(*hits: Hit) -> list[str]:
    return [
        hit.session_id
        for hit in newest_first(
            hits, amending(hits, ASKED), lambda h: h.session_id, lambda h: h.score, lambda h: h.timestamp
        )
    ]


def test_the_amendment_comes_before_what_it_amends() -> None:
    assert order(OLD, NEW, Hit("other", 0.5)) == ["new", "old", "other"]


def test_without_an_announcement_by_the_user_the_better_hit_stays_first() -> None:
    assert order(OLD, Hit("new", 0.9, "the cap is 30", NEW.timestamp)) == ["old", "new"]
    assert order(OLD, Hit("new", 0.9, NEW.text, NEW.timestamp, role="assistant")) == ["old", "new"]


def test_a_far_worse_hit_and_one_about_something_else_stay_behind() -> None:
    assert order(OLD, Hit("new", 0.4, NEW.text, NEW.timestamp)) == ["old", "new"]
    about_colours = "A change to the palette we agreed on: blue buttons."
    assert order(OLD, Hit("new", 0.9, about_colours, NEW.timestamp)) == ["old", "new"]


def test_an_amendment_that_was_itself_followed_by_a_newer_session_stays_behind_it() -> None:
    assert order(Hit("newest", 1.0, timestamp="2026-05-02T09:00"), NEW, OLD) == ["newest", "new", "old"]
