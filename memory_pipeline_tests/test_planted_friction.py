"""Weeks with planted friction: the same for the same seed, read by every harness, true; and the score of a week."""

from __future__ import annotations

import itertools
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks.fit_errors import outputs
from benchmarks.fit_objections import examples
from benchmarks.fit_stale_lines import FILES, bank_with, told
from benchmarks.friction import IN_MEMORY
from benchmarks.planted_friction.bank import (
    AFRESH,
    BANKS,
    EVERYDAY,
    HELD_OUT,
    KEPT_ASIDE,
    LANGUAGES,
    REPORTING,
    TEAMS,
    TUNING,
    UNHEARD,
    UNSEEN,
    Bank,
    bank_of,
)
from benchmarks.planted_friction.baselines import Points, clusters
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
from benchmarks.planted_friction.running import POINTS, Ran, Remembering, run
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
from memory_pipeline.friction.environment import end_of
from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.reading import parse_file

SEEDS = (1, 2, 3)
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


def said_in(bank: Bank) -> Iterator[str]:
    for topic in bank.topics(REPEATED_CORRECTION):
        for phrases in (topic["says"], topic["about"]):
            yield from (text for texts in phrases.values() for text in texts)


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


def test_the_weights_saw_nothing_that_figures_are_reported_of() -> None:
    reported = {text for bank in (REPORTING, KEPT_ASIDE, HELD_OUT, EVERYDAY, UNSEEN) for text in said_in(bank_of(bank))}
    fitted = {example.text for example in examples()}
    assert len(fitted) > 10_000
    assert near(fitted, reported) == []
    assert not fitted & reported


@pytest.mark.parametrize(
    "two",
    [
        (TUNING, REPORTING),
        (UNHEARD, REPORTING),
        *itertools.product((TUNING, UNHEARD), (KEPT_ASIDE, HELD_OUT)),
        (TEAMS, HELD_OUT),
        *itertools.product((TUNING, UNHEARD, REPORTING, KEPT_ASIDE, TEAMS), (EVERYDAY, UNSEEN)),
    ],
    ids=" ".join,
)
def test_the_banks_share_no_topic_and_no_wording(two: tuple[str, str]) -> None:
    """Neither as it stands, nor with few words changed; of the banks that have a rest what people say is compared."""
    banks = [bank_of(name) for name in two]
    whole = two == (TUNING, REPORTING)
    kinds = KINDS if whole else (REPEATED_CORRECTION,)
    names = [{topic["name"] for kind in kinds for topic in bank.topics(kind)} for bank in banks]
    assert not names[0] & names[1]
    texts = [set(bank.phrases() if whole else said_in(bank)) for bank in banks]
    assert near(*texts) == []
    commands = [{text for text in of_bank if " " in text} - SECTIONS for of_bank in texts]
    assert not commands[0] & commands[1]


@pytest.mark.parametrize(("bank", "other"), [*itertools.product((AFRESH, UNSEEN), (TUNING, REPORTING, TEAMS))])
def test_what_is_told_afresh_is_in_no_other_bank(bank: str, other: str) -> None:
    own, others = bank_of(bank), bank_of(other)
    for kind in (RECURRING_FAILURE, TOOL_MISUSE, STALE_MEMORY):
        assert not {topic["name"] for topic in own.topics(kind)} & {topic["name"] for topic in others.topics(kind)}
    texts = [set(bank.phrases()) for bank in (own, others)]
    assert near(*texts) == []
    commands = [{text for text in of_bank if " " in text} - SECTIONS for of_bank in texts]
    assert not commands[0] & commands[1]


def test_lines_that_weights_are_fitted_on_are_told_apart_and_in_no_bank_that_figures_are_reported_of() -> None:
    files = {path.stem: told(path) for path in FILES.glob("*.toml")}
    topics = [topic for of_file in files.values() for topic in of_file]
    assert len(topics) > 100
    assert len({topic["line"]["en"] for topic in topics}) == len(topics)
    says = {part: {t for topic in topics for of in topic[part].values() for t in of} for part in ("over", "holds")}
    assert not says["over"] & says["holds"]
    fitted = {*says["over"], *says["holds"], *(text for topic in topics for text in topic["line"].values())}
    assert near(fitted, {*bank_of(AFRESH).phrases(), *bank_of(UNSEEN).phrases()}) == []


def test_outputs_that_weights_are_fitted_on_are_in_no_bank_that_figures_are_reported_of() -> None:
    fitted = {output.text for output in outputs() if output.source not in (TUNING, REPORTING)}
    assert len(fitted) > 2_000
    assert near(fitted, {end_of(text) for bank in (AFRESH, UNSEEN) for text in bank_of(bank).phrases()}) == []


def test_of_lines_that_hold_others_are_talked_of_in_a_week(tmp_path: Path) -> None:
    (path, *_) = sorted(FILES.glob("*.toml"))
    topics = {topic["name"]: topic for topic in told(path)}
    week = make_week(7, bank_with(path.stem, list(topics.values()), TUNING), tmp_path)
    held = [plant for plant in week.plants if plant.sort == "line holds"]
    assert len(held) > 2 and not any(plant.kind for plant in held)
    for plant in held:
        topic = topics[plant.name.partition("/")[2]]
        told_there = {text for occurrence in plant.occurrences for text in occurrence.texts}
        assert told_there & {text for of in topic["holds"].values() for text in of}
        assert not told_there & {text for of in topic["over"].values() for text in of}
        assert len({occurrence.session_id for occurrence in plant.occurrences}) > 1
    files = [week.workspace / "MEMORY.md", *(week.sessions_dir.parent / "projects").rglob("*.md")]
    written = "\n".join(file.read_text("utf-8") for file in files)
    assert all(any(line in written for line in topics[p.name.partition("/")[2]]["line"].values()) for p in held)


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
        *(("same task",) if "same_task" in bank_of(bank).decoys else ()),
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


def test_the_kind_may_be_given() -> None:
    scored = score([found("repeated_correction", places("c", 1), places("d", 1))], PLANTS, any_kind=True)
    assert counts(scored, "recurring_failure") == (1, 1, 1, 1)
    assert counts(scored, "repeated_correction") == (1, 0, 0, 0)


def test_an_interval_is_around_its_value_and_is_a_point_where_weeks_agree() -> None:
    differ = interval([Tally(2, 2), Tally(2, 0), Tally(2, 1)], lambda tally: tally.recall)
    assert differ.value == 0.5
    assert differ.low is not None
    assert differ.high is not None
    assert 0 <= differ.low < 0.5 < differ.high <= 1
    assert f"{interval([Tally(1, 1)] * 3, lambda tally: tally.recall)}" == "1.00 [1.00, 1.00]"
    assert f"{interval([Tally()], lambda tally: tally.recall)}" == "–"


def test_a_baseline_puts_together_what_is_near_and_spans_sessions() -> None:
    near = np.eye(4)
    for a, b in ((0, 1), (1, 2)):
        near[a, b] = near[b, a] = 0.8
    at = [("f", line) for line in range(4)]
    points = Points(at, ["a", "a", "b", "c"], [True, True, False, False], near, near)
    (one,) = clusters(points, near, 0.8)
    assert (one.kind, one.places) == ("recurring_failure", frozenset(at[:3]))
    assert clusters(points, near, 0.9) == []
    assert datetime(2026, 3, 2, tzinfo=UTC) > WRITTEN


# the pipeline over a week, and its copies


class ByWords(Remembering):
    """A place of the vector for each word, since loading the model takes longer than the week."""

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        for text in texts:
            vector = np.full(self.dimension, 1e-3)
            for word in text.lower().split():
                vector[zlib.crc32(word.encode()) % self.dimension] += 1
            self.known[text] = (vector / np.linalg.norm(vector)).tolist()
        return [self.known[text] for text in texts]


@pytest.fixture(scope="module")
def encoder() -> ByWords:
    return ByWords("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Path]:
    """A folder where the index is opened within milliseconds, where there is one."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def ran(encoder: ByWords, in_memory: Path) -> tuple[Week, Ran]:
    week = make_week(1, bank_of(TUNING), in_memory)
    return week, run(week, encoder)


def test_the_pipeline_runs_over_a_week_and_its_evidence_has_places(ran: tuple[Week, Ran]) -> None:
    week, came = ran
    assert came.points >= 100
    assert set(came.observations["day"]) == set(DAYS)
    assert {row["kind"] for row in came.rows} <= set(KINDS)
    assert [pattern.name for pattern in came.patterns] == [row["pattern_id"] for row in came.rows]
    files = {f"{path}" for path in week.files}
    assert all(pattern.places and {file for file, _ in pattern.places} <= files for pattern in came.patterns)


def test_copies_of_a_week_are_strangers_that_keep_their_evidence(
    ran: tuple[Week, Ran], encoder: ByWords, in_memory: Path
) -> None:
    came, respelling = ran[1], Respelling.of(bank_of(TUNING))
    vectors = fill(in_memory / "copies", [came], respelling, encoder, 2 * came.points)
    lake = Lake(in_memory / "copies/lake")
    assert sum(lake.read(table, DAYS).height for table in POINTS) == 2 * came.points
    messages = lake.read("messages", DAYS)
    assert messages["message_id"].n_unique() == messages.height == 2 * came.messages.height
    texts = dict(messages.select("message_id", "text").iter_rows())
    told = {o["observation_id"]: o for o in came.observations.to_dicts()}
    moved = 0
    for row in lake.read("observations", DAYS).to_dicts():
        original = told[row["observation_id"].removesuffix("~1")]
        copy = int(row["observation_id"].endswith("~1"))
        moved += row["text"] != original["text"]
        for span, old in zip(row["evidence"], original["evidence"], strict=True):
            assert (span["start"], span["end"]) == (old["start"], old["end"])
            old_text = dict(came.messages.select("message_id", "text").iter_rows())[old["message_id"]]
            assert texts[span["message_id"]] == respelling.spelled(old_text, copy)
    assert moved
    one, other = (text for text in list(came.observations["text"])[:2])
    near = [np.dot(vectors[respelling.spelled(one, c)], vectors[respelling.spelled(other, c)]) for c in (0, 1)]
    assert near[0] == pytest.approx(near[1], abs=1e-3)


def test_a_topic_is_spelled_otherwise_and_as_long_as_before() -> None:
    respelling = Respelling.of(bank_of(TUNING))
    text = "please use Zulip, not Slack"
    assert respelling.spelled(text, 0) == text
    assert respelling.spelled(text, 1) == "please use Avmjq, not Tmbdl"
    assert len({respelling.spelled(text, copy) for copy in range(20)}) == 20
