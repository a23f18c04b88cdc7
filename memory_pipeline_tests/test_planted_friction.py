"""Weeks with planted friction: the same for the same seed, read by every harness, true; and the score of a week."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks.friction import IN_MEMORY
from benchmarks.planted_friction.bank import (
    BANKS,
    LANGUAGES,
    REPORTING,
    TUNING,
    bank_of,
)
from benchmarks.planted_friction.growth import Respelling, fill
from benchmarks.planted_friction.model import (
    CLAUDE_CODE,
    CONFIGURATION_DRIFT,
    HARNESSES,
    KINDS,
    MISSING_SKILL,
    RECURRING_FAILURE,
    REPEATED_CORRECTION,
    RULE_VIOLATED,
    STALE_MEMORY,
    TOOL_MISUSE,
    Occurrence,
    Place,
    Plant,
    Week,
)
from benchmarks.planted_friction.running import Ran, run
from benchmarks.planted_friction.scoring import (
    MISSED,
    MIXED,
    ORDINARY,
    Found,
    Scored,
    Tally,
    confusion,
    interval,
    score,
    wrongly_taken,
)
from benchmarks.planted_friction.weeks import DAYS, WRITTEN, make_week
from memory_pipeline.friction.active import points_in
from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.reading import parse_file

SEEDS = (1,)
SECTIONS = {"Hard Rules", "System Architecture"}
"""Of every MEMORY.md."""
Read = dict[Path, ParsedSession]


@pytest.fixture(scope="module", params=[(b, s) for b in BANKS for s in SEEDS], ids=lambda p: f"{p[0]}-{p[1]}")
def week(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Week:
    bank, seed = request.param
    return make_week(seed, bank_of(bank), tmp_path_factory.mktemp(f"{bank}-{seed}"))


@pytest.fixture(scope="module")
def read(week: Week) -> Read:
    return {path: parse_file(path) for path in week.files}


def contents(folder: Path) -> dict[str, tuple[str, float]]:
    """Every file with its time, wherever the folder is."""
    names = {f"{folder}".strip("/").replace("/", "-"), re.sub(r"\W|_", "-", f"{folder}".strip("/"))}
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_text("utf-8").replace(f"{folder}", "FOLDER")
            own = re.sub("|".join(names), "FOLDER", f"{path.relative_to(folder)}")
            found[own] = text, path.stat().st_mtime
    return found


@pytest.mark.parametrize("bank", BANKS)
def test_a_seed_gives_the_same_week_again(bank: str, tmp_path: Path) -> None:
    one, same, other = (tmp_path / name for name in ("1", "2", "3"))
    weeks = [make_week(seed, bank_of(bank), folder) for seed, folder in ((7, one), (7, same), (8, other))]
    assert contents(one) == contents(same)
    assert contents(one) != contents(other)
    told = [[(p.name, p.kind, p.why, [o.texts for o in p.occurrences]) for p in week.plants] for week in weeks]
    assert told[0] == told[1] != told[2]


def test_every_harness_reads_its_files_without_a_problem(week: Week, read: Read) -> None:
    assert {session.harness for session in read.values()} == set(HARNESSES)
    for path, session in read.items():
        assert session.problems == (), path
        assert session.unknown_records == {}, path
        assert session.excluded is None
        assert f"{path}".find(session.session_id) > 0
        assert Path(session.cwd).is_dir()


def test_a_week_is_large_enough(week: Week, read: Read) -> None:
    assert 20 <= len(read) <= 40
    messages = [message for session in read.values() for message in session.messages]
    assert {message.said_at.date() for message in messages} >= set(DAYS)
    assert sum(message.role == "user" for message in messages) >= 100
    assert len({session.cwd for session in read.values()}) > 1


def test_the_truth_lies_in_the_messages(week: Week, read: Read) -> None:
    """Each text that tells of an occurrence is in a message of its session, at one of its places."""
    for plant in week.plants:
        for occurrence in plant.occurrences:
            path, session = next((p, s) for p, s in read.items() if s.session_id == occurrence.session_id)
            there = [m for m in session.messages if (f"{path}", m.line) in occurrence.places]
            for text in occurrence.texts:
                assert any(text in message.text for message in there), (plant.name, text)
            assert {message.said_at.date() for message in there} >= {occurrence.day}


def test_what_fails_or_is_refused_is_so_in_every_harness(week: Week, read: Read) -> None:
    for plant in week.friction:
        for path, session in read.items():
            own = [m for m in session.messages if (f"{path}", m.line) in plant.places]
            said = [m.text for m in own if m.role == "user"]
            if plant.kind in (RECURRING_FAILURE, CONFIGURATION_DRIFT) and own:
                assert any(m.is_error for m in own), plant.name
                assert not said
            elif plant.kind == TOOL_MISUSE and own:
                # refused with words, or failed
                assert bool(said) != any(m.is_error for m in own), plant.name
            elif own:
                assert said, plant.name


def test_nothing_is_planted_in_the_same_place_twice(week: Week) -> None:
    places = Counter(place for plant in week.plants for place in plant.places)
    assert set(places.values()) == {1}
    names = Counter(plant.name for plant in week.plants)
    assert set(names.values()) == {1}
    subjects = Counter(plant.name.partition("/")[2] for plant in week.plants)
    assert set(subjects.values()) == {1}, "a topic is friction and decoy in one week"


def test_friction_spans_sessions_and_a_repetition_within_one_is_a_decoy(week: Week) -> None:
    for plant in week.friction:
        assert len(plant.sessions) >= (3 if plant.kind == MISSING_SKILL else 2), plant.name
    for plant in week.decoys:
        assert plant.why
        assert plant.occurrences
        if plant.sort == "one session":
            assert len(plant.sessions) == 1


def test_what_the_rules_say_was_written_before(week: Week, read: Read) -> None:
    """A rule that is broken, or a line that holds no longer, is in a file that its sessions see."""
    files = [week.workspace / "MEMORY.md", *(week.workspace.parent / "projects").rglob("*.md")]
    assert {path.stat().st_mtime for path in files} == {WRITTEN.timestamp()}
    for plant in (p for p in week.friction if p.kind in (RULE_VIOLATED, STALE_MEMORY)):
        lines = [line for topic in _topics(plant) for line in topic["line"].values()]
        where = [path for path in files if any(line in path.read_text("utf-8") for line in lines)]
        assert len(where) == 1, plant.name
        for session in (s for s in read.values() if s.session_id in plant.sessions):
            assert where[0].name == "MEMORY.md" or f"{where[0].parent}" == session.cwd
            assert where[0].name != "CLAUDE.md" or session.harness == CLAUDE_CODE


def _topics(plant: Plant) -> list[dict[str, dict[str, str]]]:
    name = plant.name.partition("/")[2]
    return [dict(t) for bank in BANKS for t in bank_of(bank).topics(plant.kind) if t["name"] == name]


@pytest.mark.parametrize("bank", BANKS)
def test_a_bank_has_every_kind_in_every_language(bank: str) -> None:
    for kind in KINDS:
        topics = bank_of(bank).topics(kind)
        assert len({topic["name"] for topic in topics}) == len(topics) >= 12
        for topic in topics:
            said = topic.get("says") or topic.get("refusals")
            for language in LANGUAGES if said else ():
                assert len(set(said[language])) == len(said[language]) >= 2, (kind, topic["name"], language)


def near(some: set[str], others: set[str]) -> list[tuple[str, str]]:
    """Those that are said with few words changed."""
    both = [sorted(texts) for texts in (some, others)]
    counting = CountVectorizer(token_pattern=r"\w+", binary=True).fit(itertools.chain(*both))
    one, other = (counting.transform(texts).astype(np.int32) for texts in both)
    shared = (one @ other.T).toarray()
    size = one.sum(axis=1).A1
    union = size[:, None] + other.sum(axis=1).A1[None, :] - shared
    alike = (size[:, None] > 3) & (shared >= 0.67 * union)
    return [(both[0][i], both[1][j]) for i, j in np.argwhere(alike)]


def test_the_banks_share_no_topic_and_no_wording() -> None:
    """Neither as it stands, nor with few words changed."""
    banks = [bank_of(name) for name in (TUNING, REPORTING)]
    names = [{topic["name"] for kind in KINDS for topic in bank.topics(kind)} for bank in banks]
    assert not names[0] & names[1]
    texts = [set(bank.phrases()) for bank in banks]
    assert near(*texts) == []
    commands = [{text for text in of_bank if " " in text} - SECTIONS for of_bank in texts]
    assert not commands[0] & commands[1]


@pytest.mark.parametrize("bank", BANKS)
def test_every_kind_and_every_sort_of_decoy_comes(bank: str, tmp_path: Path) -> None:
    weeks = [make_week(seed, bank_of(bank), tmp_path / f"{seed}") for seed in range(1, 21)]
    kinds = Counter(plant.kind for week in weeks for plant in week.friction)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 10
    assert {plant.sort for week in weeks for plant in week.decoys} == {
        *(
            "same topic",
            "one session",
            "politeness",
            "similar errors",
            "rule obeyed",
            "quoted",
            "changed mind",
            "habit",
        ),
        *("tdd", "grep", "approval", "different refusals", "once each"),
    }


# the score


def places(session: str, *lines: int) -> frozenset[Place]:
    return frozenset((session, line) for line in lines)


def plant(name: str, kind: str, *sessions: str, sort: str = "") -> Plant:
    """It happens in these sessions, in their lines 1 to 3."""
    occurrences = [Occurrence(session, date(2026, 3, 2), places(session, 1, 2, 3), ()) for session in sessions]
    return Plant(name, kind, sort or kind, "" if kind else "for a reason", occurrences)


UV = plant("uv", "repeated_correction", "a", "b")
LOCK = plant("lock", "recurring_failure", "c", "d")
THANKS = plant("thanks", "", "e", "f", sort="politeness")
PLANTS = (UV, LOCK, THANKS)


def found(kind: str, *lies: frozenset[Place]) -> Found:
    return Found(f"f-{kind}-{len(lies)}", kind, frozenset().union(*lies))


def counts(scored: Scored, kind: str) -> tuple[int, int, int, int]:
    tally = scored.count(kind)
    return tally.planted, tally.recalled, tally.found, tally.right


def test_all_found_is_perfect() -> None:
    scored = score(
        [
            found("repeated_correction", places("a", 2), places("b", 1, 2)),
            found("recurring_failure", places("c", 1), places("d", 1)),
        ],
        PLANTS,
    )
    assert counts(scored, "repeated_correction") == (1, 1, 1, 1)
    assert counts(scored, "recurring_failure") == (1, 1, 1, 1)
    tally = scored.count("recurring_failure")
    assert (tally.recall, tally.precision) == (1.0, 1.0)
    assert confusion([scored]) == {(kind, kind): 1 for kind in ("repeated_correction", "recurring_failure")}
    assert wrongly_taken([scored]) == {}


def test_nothing_found_is_missed_and_has_no_precision() -> None:
    scored = score([], PLANTS)
    assert counts(scored, "repeated_correction") == (1, 0, 0, 0)
    tally = scored.count("repeated_correction")
    assert (tally.recall, tally.precision) == (0.0, None)
    assert scored.count("missing_skill").recall is None
    assert confusion([scored]) == {(kind, MISSED): 1 for kind in ("repeated_correction", "recurring_failure")}


def test_a_wrong_kind_is_no_recall_and_no_precision() -> None:
    scored = score([found("tool_misuse", places("c", 1), places("d", 1))], PLANTS)
    assert counts(scored, "recurring_failure") == (1, 0, 0, 0)
    assert counts(scored, "tool_misuse") == (0, 0, 1, 0)
    assert confusion([scored])["recurring_failure", "tool_misuse"] == 1
    assert wrongly_taken([scored]) == {"really recurring_failure": Counter(tool_misuse=1)}


def test_a_decoy_that_is_taken_costs_precision_and_is_named() -> None:
    scored = score([found("repeated_correction", places("e", 1), places("f", 1))], PLANTS)
    assert counts(scored, "repeated_correction") == (1, 0, 1, 0)
    assert wrongly_taken([scored]) == {"politeness": Counter(repeated_correction=1)}


@pytest.mark.parametrize(
    ("lies", "what"),
    [
        (places("z", 1, 2), ORDINARY),
        (places("a", 1) | places("e", 1), MIXED),
        (places("a", 1, 2), "one session of repeated_correction"),
        (places("a", 1) | places("b", 1) | places("z", 1, 2, 3, 4), ORDINARY),
        (frozenset(), "no evidence"),
    ],
)
def test_what_is_not_most_of_a_plant_over_two_sessions_is_wrong(lies: frozenset[Place], what: str) -> None:
    scored = score([found("repeated_correction", lies)], PLANTS)
    assert counts(scored, "repeated_correction") == (1, 0, 1, 0)
    assert wrongly_taken([scored]) == {what: Counter(repeated_correction=1)}


def test_a_second_pattern_of_one_plant_is_not_right_again() -> None:
    one = found("repeated_correction", places("a", 1), places("b", 1))
    scored = score([one, found("repeated_correction", places("a", 2), places("b", 2))], PLANTS)
    assert counts(scored, "repeated_correction") == (1, 1, 2, 1)
    assert scored.count("repeated_correction").again == 1
    assert wrongly_taken([scored]) == {"found before": Counter(repeated_correction=1)}


def test_an_interval_is_around_its_value_and_is_a_point_where_weeks_agree() -> None:
    differ = interval([Tally(2, 2), Tally(2, 0), Tally(2, 1)], lambda tally: tally.recall)
    assert differ.value == 0.5
    assert differ.low is not None
    assert differ.high is not None
    assert 0 <= differ.low < 0.5 < differ.high <= 1
    assert f"{interval([Tally(1, 1)] * 3, lambda tally: tally.recall)}" == "1.00 [1.00, 1.00]"
    assert f"{interval([Tally()], lambda tally: tally.recall)}" == "–"


# the pipeline over a week, and its copies


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Path]:
    """A folder where the index is opened within milliseconds, where there is one."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def ran(in_memory: Path) -> tuple[Week, Ran]:
    week = make_week(1, bank_of(TUNING), in_memory)
    return week, run(week)


def test_the_pipeline_runs_over_a_week_and_its_evidence_has_places(ran: tuple[Week, Ran]) -> None:
    week, came = ran
    assert came.points >= 100
    assert set(came.observations["day"]) == set(DAYS)
    assert {row["kind"] for row in came.rows} <= set(KINDS)
    assert [pattern.name for pattern in came.patterns] == [row["pattern_id"] for row in came.rows]
    files = {f"{path}" for path in week.files}
    assert all(pattern.places and {file for file, _ in pattern.places} <= files for pattern in came.patterns)


def test_what_tools_did_is_found_and_what_users_said_in_other_words_is_not(ran: tuple[Week, Ran]) -> None:
    week, came = ran
    scored = score(came.patterns, week.plants)
    by_tools = [plant for plant in week.friction if plant.kind in (RECURRING_FAILURE, TOOL_MISUSE, CONFIGURATION_DRIFT)]
    assert by_tools and all(plant.kind in scored.kinds_found[plant.name] for plant in by_tools)
    assert {each.found.kind for each in scored.judged if not each.hit} <= {MISSING_SKILL, STALE_MEMORY}
    assert {row["kind"] for row in came.rows}.isdisjoint({REPEATED_CORRECTION, RULE_VIOLATED})


def test_copies_of_a_week_are_strangers_that_keep_their_evidence(ran: tuple[Week, Ran], in_memory: Path) -> None:
    came, respelling = ran[1], Respelling.of(bank_of(TUNING))
    fill(in_memory / "copies", [came], respelling, 2 * came.points)
    lake = Lake(in_memory / "copies/lake")
    assert points_in(lake, DAYS) == 2 * came.points
    messages = lake.read("messages", DAYS)
    assert messages["message_id"].n_unique() == messages.height == 2 * came.messages.height
    texts = dict(messages.select("message_id", "text").iter_rows())
    before = dict(came.messages.select("message_id", "text").iter_rows())
    told = {o["observation_id"]: o for o in came.observations.to_dicts()}
    moved = 0
    for row in lake.read("observations", DAYS).to_dicts():
        original = told[row["observation_id"].removesuffix("~1")]
        copy = int(row["observation_id"].endswith("~1"))
        moved += row["text"] != original["text"]
        for span, old in zip(row["evidence"], original["evidence"], strict=True):
            assert (span["start"], span["end"]) == (old["start"], old["end"])
            assert texts[span["message_id"]] == respelling.spelled(before[old["message_id"]], copy)
    assert moved


def test_a_topic_is_spelled_otherwise_and_as_long_as_before() -> None:
    respelling = Respelling.of(bank_of(TUNING))
    text = "please use Zulip, not Slack"
    assert respelling.spelled(text, 0) == text
    assert respelling.spelled(text, 1) == "please use Avmjq, not Tmbdl"
    assert len({respelling.spelled(text, copy) for copy in range(20)}) == 20
