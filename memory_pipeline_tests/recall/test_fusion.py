"""The order of hits where a later session amends what an earlier one settled."""

from memory_pipeline.recall.fusion import Place, amended_order, amending
from memory_pipeline.text.terms import query_terms

ASKED = query_terms("what is the cap of the retry backoff")


def hit(session: str, score: float, text: str = "", at: str = "2026-03-02T09:00", role: str = "user") -> Place:
    return Place(session, score, at, role, text or "the retry backoff is capped at 60 seconds")


OLD = hit("old", 1.0)
NEW = hit("new", 0.7, "An amendment to the retry policy: cap the backoff at 30.", "2026-04-02T09:00")


def order(*hits: Place) -> list[str]:
    return [hits[number].session_id for number in amended_order(hits, amending(hits, ASKED))]


def test_the_amendment_comes_before_what_it_amends() -> None:
    assert order(OLD, NEW, hit("other", 0.5)) == ["new", "old", "other"]


def test_without_an_announcement_by_the_user_the_better_hit_stays_first() -> None:
    assert order(OLD, hit("new", 0.9, "the cap is 30", NEW.said_at)) == ["old", "new"]
    assert order(OLD, hit("new", 0.9, NEW.text, NEW.said_at, role="assistant")) == ["old", "new"]


def test_a_far_worse_hit_and_one_about_something_else_stay_behind() -> None:
    assert order(OLD, hit("new", 0.4, NEW.text, NEW.said_at)) == ["old", "new"]
    about_colours = "A change to the palette we agreed on: blue buttons."
    assert order(OLD, hit("new", 0.9, about_colours, NEW.said_at)) == ["old", "new"]


def test_an_amendment_that_was_itself_followed_by_a_newer_session_stays_behind_it() -> None:
    assert order(hit("newest", 1.0, at="2026-05-02T09:00"), NEW, OLD) == ["newest", "new", "old"]
