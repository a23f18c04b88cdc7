"""`memory why`: from any line that was condensed, through all of its levels, down to the words that were said."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.cli.show import why
from memory_pipeline.distillation.stage import stages_of
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.proposals.history import history
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import (
    at,
    observation,
    observation_id,
    proposal,
    put,
    record_showings,
    reflection,
    say,
    window_key,
)

MONDAY, TUESDAY, SUNDAY, MONTH_END = date(2025, 3, 3), date(2025, 3, 4), date(2025, 3, 9), date(2025, 3, 31)
RULE = "The depot in Leipzig is asked at most once a minute, because it blocks us for a day otherwise."
DONE = "Done: the depot's client waits a minute between two requests, and its tests pass."


@pytest.fixture
def lake() -> Lake:
    """A day with a rule, and what it was distilled and reflected to."""
    settings = load_settings()
    lake = Lake(settings.lake_dir)
    said = say(lake, "s1", f"user: {RULE}", "tool: exit 0", f"assistant: {DONE}", day=MONDAY)
    narrative = {"narrative": f"Asked: {RULE} Ended with: {DONE}", "position": 0, "segment_id": "s-s1"}
    bounds = {"first_message_id": said[0]["message_id"], "last_message_id": said[-1]["message_id"]}
    place = {"day": MONDAY, "dedupe_key": window_key("s1", MONDAY), "session_id": "s1"}
    put(lake, "segments", place | narrative | bounds)
    put(lake, "observations", observation(RULE, day=MONDAY))
    stages = stages_of(Workspace(settings, lake), date(2025, 5, 1))
    for stage, day in zip(stages, (MONDAY, SUNDAY, MONTH_END), strict=True):
        bring_up_to_date(stage, lake, day)
    return lake


def told(identifier: str, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    why(identifier, as_json)
    return capsys.readouterr().out


def pooled(lake: Lake, **other: Any) -> None:
    row = reflection(RULE, day=MONDAY)
    put(lake, "reflections", row)
    seen = {"first_seen": at(day=MONDAY), "last_seen": at(day=MONDAY), "reflected_at": at(day=SUNDAY)}
    made = lake.read("pool_reflections").to_dicts()
    line = {"pool_id": "g-1", "text": RULE, "sources": [row["reflection_id"]], "section": "Hard Rules"}
    made.append(seen | line | other)
    lake.replace_all("pool_reflections", pl.DataFrame(made, schema=TABLES["pool_reflections"].columns))


@pytest.mark.parametrize("table", ["day_distillations", "week_distillations", "month_distillations"])
def test_every_line_of_every_level_leads_to_words_and_their_file(
    lake: Lake, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = lake.read(table).to_dicts()
    assert rows
    for row in rows:
        out = told(row["distillation_id"], capsys)
        assert f"“{RULE}”" in out and "/sessions/s1.jsonl:1" in out
        assert "No message supports it" not in out
        assert (f"“{DONE}”" in out and "/sessions/s1.jsonl:3" in out) is (row["kind"] == "narrative")


@pytest.mark.parametrize("left", [0, 100])
def test_a_damaged_file_of_another_table_is_set_aside(
    lake: Lake, left: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (day,) = lake.read("day_distillations")["distillation_id"].to_list()[:1]
    (file,) = lake.files("month_distillations")
    content = Path(file).read_bytes()
    Path(file).write_bytes(content[:left] + bytes(len(content) - left))
    assert f"“{RULE}”" in told(day, capsys)
    assert not lake.files("month_distillations") and Path(f"{file}.broken-1").exists()


def test_a_pool_reflection_leads_to_words_also_when_its_reflections_were_made_anew(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    pooled(lake)
    assert f"“{RULE}”" in told("g-1", capsys)
    pooled(lake, pool_id="g-2", observations=[observation_id(RULE, MONDAY)], sources=["r-of-before"])
    assert f"“{RULE}”" in told("g-2", capsys)


def test_a_proposal_without_evidence_of_its_own_goes_through_its_reflection(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    put(lake, "reflections", row := reflection(RULE, day=MONDAY))
    line = {"day": MONDAY, "proposal_id": "p-20250303-001", "text": RULE, "sources": [row["reflection_id"]]}
    put(lake, "proposals", line | {"section": "Hard Rules", "priority": "high", "support": 1})
    assert told("p-20250303-001", capsys).count(f"“{RULE}”") == 1


OTHER_WORDS = "The depot blocks us when it is asked more than once a minute.", "One request a minute to the depot."
P1, P2 = "p-20250303-001", "p-20250304-001"


@pytest.fixture
def often(lake: Lake) -> Lake:
    """The rule as a proposal, and said again in two sessions of the next day."""
    line = {"day": MONDAY, "proposal_id": P1, "text": RULE, "sources": ["r-1", observation_id(RULE, MONDAY)]}
    evidence = observation(RULE, day=MONDAY)["evidence"]
    more = {"section": "Hard Rules", "priority": "high", "support": 1, "evidence": evidence, "session_ids": ["s1"]}
    put(lake, "proposals", line | more)
    for session, text in zip(("s2", "s3"), OTHER_WORDS, strict=True):
        say(lake, session, f"user: {text}", day=TUESDAY)
        put(lake, "observations", observation(text, day=TUESDAY, session=session))
        again = {"reflection_id": f"r-{session}", "session_ids": [session], "said_at": at("10:00", TUESDAY)}
        sources = {"sources": [observation_id(text, TUESDAY, session)]}
        put(lake, "supports", {"day": TUESDAY, "proposal_id": P1} | again | sources)
    return lake


def test_what_was_said_three_times_shows_three_places(often: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(P1, capsys)
    places = [out.index(f"“{text}”") for text in (RULE, *OTHER_WORDS)]
    assert places == sorted(places)
    assert [f"/sessions/s{n}.jsonl:1" in out for n in (1, 2, 3)] == [True] * 3


def events(lake: Lake) -> list[tuple[str, str]]:
    return [(e["event"], e["detail"]) for e in history(Workspace(load_settings(), lake), P1)]


def test_all_that_became_of_a_line_is_told_in_order(often: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Offered, said again, shown, approved with other words, in MEMORY.md, then struck through for a newer one."""
    settings = load_settings()
    record_showings(Workspace(settings, often), {P1: None}, at("12:00", TUESDAY), surface="REVIEW.md")
    decide(Workspace(settings, often), {P1: "approved"}, at("13:00", TUESDAY), texts={P1: f"{RULE} Always."})
    reconcile(Workspace(settings, often), at("14:00", TUESDAY))
    begin = [("offered", "Hard Rules"), ("said again", "once"), ("said again", "once"), ("shown", "REVIEW.md")]
    begin += [("approved", "command, edited"), ("in MEMORY.md", "Hard Rules")]
    assert events(often) == begin

    put(often, "proposals", proposal(1, "The depot is asked every second.", day=TUESDAY, supersedes=[P1], evidence=[]))
    assert events(often) == [*begin, ("may be replaced", f"{P2} is pending")]
    decide(Workspace(settings, often), {P2: "approved"}, at("15:00", TUESDAY))
    reconcile(Workspace(settings, often), at("16:00", TUESDAY))
    assert events(often) == [*begin, ("struck through", f"superseded by {P2}")]
    lines = [line for line in told(P1, capsys).splitlines() if line.startswith("2025-03-0") and "(" in line]
    assert lines[0] == f"{MONDAY}        offered (Hard Rules)"
    assert (
        lines[-1]
        == f"{at('16:00', TUESDAY).astimezone(settings.zone):%Y-%m-%d %H:%M}  struck through (superseded by {P2})"
    )
    assert history(Workspace(settings, often), P2)[0]["detail"] == f"Hard Rules, in the place of {P1}"


@pytest.mark.parametrize(
    ("old", "new", "event"),
    [
        (RULE, f"~~{RULE}~~", "removed"),
        (f"- (2025-03-03) {RULE} <!-- {P1} -->\n", "", "removed"),
        ("once a minute", "twice a minute", "reworded by hand"),
        ("# Memory", "# Mine", "in MEMORY.md"),
    ],
)
def test_what_a_person_did_to_the_line_since_is_told(often: Lake, old: str, new: str, event: str) -> None:
    settings = load_settings()
    decide(Workspace(settings, often), {P1: "approved"}, at("13:00", TUESDAY))
    reconcile(Workspace(settings, often), at("14:00", TUESDAY))
    text = settings.memory_file.read_text("utf-8")
    assert old in text
    settings.memory_file.write_text(text.replace(old, new), "utf-8")
    assert events(often)[-1][0] == event


def test_a_segment_shows_what_was_asked_and_answered(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    out = told("s-s1", capsys)
    assert f"“{RULE}”" in out and f"“{DONE}”" in out and "exit 0" not in out


def test_words_that_are_gone_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(load_settings().lake_dir)
    pooled(lake)
    assert "No message supports it" in told("g-1", capsys)
