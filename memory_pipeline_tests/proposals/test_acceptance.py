"""How far a section may be trusted: counted from what a person did with its lines, and from nothing else."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.automatic import Rate, TrackRecord, track_records
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import at, day_after, proposal, put, without_events, workspace

LONG_AGO = day_after(-60)
ENDS = {"r": "rejected", "x": "expired", "s": "superseded", "i": "invalid"}
SURFACES = {"x": "expiry", "s": "supersession", "A": "auto", "?": "somewhere", "t": "todoist", "c": "command"}


def history(lake: Lake, ends: str, section: str = "Hard Rules", *, start: int = 1, shadow: bool = False) -> list[str]:
    """A proposal per letter, decided in that order long ago; with `shadow` each would have been promoted.

    a approved as offered in REVIEW.md (c at the command line, t in Todoist, ? somewhere, A automatically), e edited,
    m moved to another section, r rejected, x expired, s superseded, i invalid. Approved ones were promoted.
    """
    ids: list[str] = []
    rows: dict[str, list[dict[str, object]]] = {n: [] for n in ("proposals", "events")}
    for number, letter in enumerate(ends, start):
        row = proposal(number, f"Run check{number} before step{number * 7}.", day=LONG_AGO, section=section)
        moment = at("09:00", LONG_AGO) + timedelta(seconds=number)
        own = {"day": LONG_AGO, "proposal_id": row["proposal_id"], "text": row["text"] + ("!" if letter == "e" else "")}
        decision = ENDS.get(letter, "approved")
        ids.append(row["proposal_id"])
        rows["proposals"].append(row)
        rows["events"].append(
            own
            | {
                "kind": "decided",
                "decision": decision,
                "happened_at": moment,
                "surface": SURFACES.get(letter, "REVIEW.md"),
            }
            | {"section": {"m": "Patterns", "a": section.upper()}.get(letter)}
            | {"reason": "shown on 7 days without a decision" if decision == "expired" else None}
        )
        if decision == "approved":
            promoted = {"kind": "promoted", "section": section, "happened_at": moment, "already_there": False}
            rows["events"].append(own | promoted)
    for name, made in rows.items():
        put(lake, name, *made)
    if shadow:
        noted = {"day": LONG_AGO, "kind": "would_promote", "section": section, "happened_at": at("08:00", LONG_AGO)}
        put(lake, "events", *(noted | {"proposal_id": p} for p in ids))
    return ids


@pytest.fixture
def made(tmp_path: Path) -> tuple[Settings, Lake]:
    return workspace(tmp_path)


def record(made: tuple[Settings, Lake], section: str = "Hard Rules") -> TrackRecord:
    return track_records(Workspace(*made), ProposalLog(made[1])).get(section, TrackRecord())


@each(
    ("good", "counted", "lower"),
    [(0, 0, 0), (0, 20, 0), (10, 20, 0.2993), (20, 20, 0.8389), (34, 34, 0.8985), (35, 35, 0.9011), (49, 50, 0.8950)],
)
def test_the_lower_bound_is_wilsons(good: int, counted: int, lower: float) -> None:
    assert Rate(good, counted).lower == pytest.approx(lower, abs=5e-5)


@each(("counted", "is_trusted"), [(19, False), (20, True)])
def test_twenty_decisions_are_needed_whatever_the_bar(
    counted: int, is_trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_pipeline.proposals.automatic.TRUSTED_FROM", 0.5)
    assert Rate(counted, counted).is_trusted is is_trusted


@each(
    ("ends", "good", "counted", "is_trusted"),
    [
        ("r" * 10 + "a" * 50, 50, 50, True),  # of 60 the last 50
        ("a" * 10 + "r" + "a" * 49, 49, 50, False),
        ("aaaar" * 12, 40, 50, False),
        ("r" * 60, 0, 50, False),
        ("a" * 59 + "r", 49, 50, False),  # it loses what it had
        ("a" * 34, 34, 34, False),
        ("a" * 35, 35, 35, True),
        ("act" * 12, 36, 36, True),  # wherever the person decided
    ],
)
def test_a_rate_of_the_last_fifty(tmp_path: Path, ends: str, good: int, counted: int, is_trusted: bool) -> None:
    made = workspace(tmp_path)
    history(made[1], ends)
    rate = record(made).acceptance
    assert (rate.good, rate.counted, rate.is_trusted) == (good, counted, is_trusted)


@each(("letter", "counted"), [("e", 36), ("m", 36), ("r", 36), ("x", 36), ("s", 35), ("i", 35)])
def test_what_is_not_taken_as_it_was_offered_counts_against_the_section(
    tmp_path: Path, letter: str, counted: int
) -> None:
    made = workspace(tmp_path)
    history(made[1], "a" * 35 + letter)
    assert record(made).acceptance == Rate(35, counted)


def test_only_what_a_person_decided_counts(made: tuple[Settings, Lake]) -> None:
    history(made[1], "aaa???")
    assert record(made).acceptance == Rate(3, 3)


def test_each_section_for_itself(made: tuple[Settings, Lake]) -> None:
    history(made[1], "a" * 40)
    history(made[1], "ar" * 20, "Patterns", start=101)
    assert record(made).acceptance == Rate(40, 40)
    assert record(made, "Patterns").acceptance == Rate(20, 40)


def test_what_would_have_been_promoted_meets_what_came_of_it(made: tuple[Settings, Lake]) -> None:
    history(made[1], "a" * 11 + "erx" + "si", shadow=True)
    assert record(made).shadow == Rate(11, 14)


# --- lines that were promoted automatically: MEMORY.md tells what the person thinks of them ---

LINE = "- (2025-01-04) Run check1 before step7. <!-- p-20250104-001 -->"


@each(
    ("edit", "stands"),
    [
        (lambda line: line, True),
        (lambda line: line.replace(" <!-- p-20250104-001 -->", ""), True),
        (lambda line: f"## Elsewhere\n* {line[15:]}", True),  # the person filed it
        (lambda line: "", False),
        (lambda line: f"- ~~{line[2:45]}~~{line[45:]}", False),
        (lambda line: line.replace("before", "after"), False),
    ],
)
def test_a_line_that_the_person_takes_back_is_a_rejection(
    tmp_path: Path, edit: Callable[[str], str], stands: bool
) -> None:
    made = settings, lake = workspace(tmp_path)
    history(lake, "A", shadow=True)
    settings.memory_file.write_text(f"# Memory\n\n## Hard Rules\n\n{edit(LINE)}\n", "utf-8")
    found = record(made)
    assert found.acceptance == Rate(0, 0 if stands else 1)
    assert found.shadow == Rate(0, 0 if stands else 1)


def test_a_line_whose_place_another_took_was_not_taken_back(made: tuple[Settings, Lake]) -> None:
    settings, lake = made
    history(lake, "Aa")
    frame = lake.read("proposals", [LONG_AGO])
    newer = pl.col("proposal_id") == "p-20250104-002"
    olds = pl.when(newer).then(pl.lit(["p-20250104-001"])).otherwise(pl.col("supersedes"))
    lake.replace("proposals", frame.with_columns(olds.alias("supersedes")), [LONG_AGO])
    settings.memory_file.write_text(f"# Memory\n\n## Hard Rules\n- ~~{LINE[2:]}~~\n", "utf-8")
    assert record(made).acceptance == Rate(1, 1)


def test_what_is_on_its_way_to_memory_was_not_taken_back(made: tuple[Settings, Lake]) -> None:
    history(made[1], "A")
    without_events(made[1], pl.col("kind") == "promoted")
    assert record(made).acceptance == Rate(0, 0)
