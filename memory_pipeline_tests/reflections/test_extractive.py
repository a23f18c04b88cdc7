"""The extractive reflector: what says the same is one line, what is old fades, what was asked is nothing."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from memory_pipeline.reflections.extractive import ExtractiveReflector, superseded_by
from memory_pipeline.reflections.types import (
    ARCHITECTURE,
    PATTERNS,
    RULES,
    UNFILED,
    USER,
    Observation,
    ReflectionLine,
)
from memory_pipeline.text.relation import gives_up, stem
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import DAY, FakeEncoder, at, day_after

ENCODER = FakeEncoder("uv", "friday", "tabs", "queue")
UV, UV_AGAIN, FRIDAY = "Use uv for Python.", "uv is what we take, everywhere.", "Never deploy on a friday."


def said(text: str, *, ago: int = 0, session: str = "s1", clock: str = "09:00", **other: Any) -> Observation:
    """A high rule of the person, said so many days ago."""
    day = day_after(-ago)
    fields = {"priority": "high", "kind": "rule", "trust": "user", "tokens": 10} | other
    return Observation(
        observation_id=f"{text}/{ago}/{session}/{clock}",
        day=day,
        session_id=session,
        observed_at=at(clock, day),
        text=text,
        **fields,
    )


def reflect(*observed: Observation, vectors: bool = True) -> list[ReflectionLine]:
    known = {o.observation_id: ENCODER.vector(o.text) for o in observed} if vectors else {}
    return list(ExtractiveReflector().reflect(DAY, observed, known).lines)


def test_what_says_the_same_is_one_line_with_all_its_sources() -> None:
    (line,) = reflect(said(UV, ago=2), said(UV_AGAIN, session="s2"), said(UV, ago=1))
    assert line.text == UV_AGAIN  # the newest words
    assert line.sources == (f"{UV_AGAIN}/0/s2/09:00", f"{UV}/1/s1/09:00", f"{UV}/2/s1/09:00")
    assert line.sessions == 2
    assert (line.first_seen, line.last_seen) == (at(day=day_after(-2)), at(day=DAY))


def test_what_says_something_else_stays_apart() -> None:
    assert {line.text for line in reflect(said(UV), said(FRIDAY))} == {UV, FRIDAY}


CHINESE_RULES = (
    "数据库一律使用Postgres，不要用SQLite",
    "Postgres里的价格一律用整数存储，不要用浮点数",
    "每次提交都要小，一个提交只做一件事",
    "Postgres的备份必须在凌晨两点到四点之间运行",
    "以后所有接口都要写测试",
)


@each("vectors", [True, False])
def test_five_rules_in_chinese_are_five_lines(vectors: bool) -> None:
    """Their vectors, of a model for English, are alike; three share their only Latin word."""
    observed = [said(text, session=f"s{i}") for i, text in enumerate(CHINESE_RULES)]
    alike = {o.observation_id: [1.0, 0.0] for o in observed} if vectors else {}
    lines = ExtractiveReflector().reflect(DAY, observed, alike).lines
    assert sorted(line.text for line in lines) == sorted(CHINESE_RULES)
    assert {line.sessions for line in lines} == {1}


def test_one_rule_said_twice_in_chinese_is_one_line() -> None:
    (line,) = reflect(said("不要用pip，用poetry"), said("请用poetry，不要再用pip了", session="s2"), vectors=False)
    assert line.sessions == 2


def test_without_vectors_words_decide() -> None:
    lines = reflect(said(UV), said("Use uv for all Python.", session="s2"), said(UV_AGAIN), vectors=False)
    assert sorted(len(line.sources) for line in lines) == [1, 2]


@each(
    ("first", "second", "leads"),
    [
        ({"trust": "user", "priority": "medium"}, {"trust": "assistant"}, 0),  # the person before the model
        ({"priority": "high"}, {"priority": "medium", "clock": "11:00"}, 0),  # high before medium
        ({"clock": "09:00"}, {"clock": "11:00"}, 1),  # the newer words
    ],
)
def test_who_gives_a_line_its_words(first: dict[str, Any], second: dict[str, Any], leads: int) -> None:
    texts = [UV, UV_AGAIN]
    (line,) = reflect(said(UV, **first), said(UV_AGAIN, **second))
    assert line.text == texts[leads]
    assert line.priority == "high"  # the highest of all


@each("vectors", [True, False])
def test_the_order_of_observations_does_not_matter(vectors: bool) -> None:
    observed = [said(UV), said(UV_AGAIN, session="s2"), said(FRIDAY, ago=1), said(UV, ago=2), said("tabs", ago=1)]
    assert reflect(*observed, vectors=vectors) == reflect(*reversed(observed), vectors=vectors)


@each(
    ("ago", "priority", "trust", "is_kept"),
    [
        # up to a day old: everything but low
        (0, "high", "user", True),
        (0, "medium", "assistant", True),
        (0, "low", "user", False),
        (1, "medium", "assistant", True),
        (1, "low", "user", False),
        # from the second day on: the person's words, and highs
        (2, "high", "assistant", True),
        (2, "medium", "user", True),
        (2, "medium", "assistant", False),
        # from the third day on: highs only
        (3, "high", "user", True),
        (3, "medium", "user", False),
        (6, "high", "assistant", True),
        (6, "medium", "assistant", False),
    ],
)
def test_what_is_said_once_fades_with_its_age(ago: int, priority: str, trust: str, is_kept: bool) -> None:
    lines = reflect(said(UV, ago=ago, priority=priority, trust=trust))
    assert bool(lines) is is_kept


@each(
    ("ago", "priority", "is_kept"),
    [
        (1, "low", True),  # even a remark, when it comes back
        (2, "low", True),
        (3, "low", False),
        (3, "medium", True),
        (6, "medium", True),
    ],
)
def test_what_is_said_in_two_sessions_lasts_longer(ago: int, priority: str, is_kept: bool) -> None:
    twice = [said(UV, ago=ago, priority=priority, session=s) for s in ("s1", "s2")]
    assert bool(reflect(*twice)) is is_kept
    once = [said(UV, ago=ago, priority=priority, session="s1", clock=c) for c in ("09:00", "10:00")]
    if priority == "low" or ago >= 3:  # said twice in one session is said once
        assert not reflect(*once)


def test_the_newest_time_that_it_was_said_decides_its_age() -> None:
    (line,) = reflect(said(UV, ago=6, priority="medium"), said(UV_AGAIN, ago=0, priority="medium"))
    assert len(line.sources) == 2


@each("priority", ["high", "medium", "low"])
def test_a_question_is_never_remembered(priority: str) -> None:
    asked = {"kind": "question", "priority": priority}
    assert reflect(said("Should we use uv?", **asked), said("Shall we use uv?", session="s2", **asked)) == []


def test_a_question_gives_no_support_to_what_it_asks_about() -> None:
    (line,) = reflect(said(UV), said("Should we use uv?", kind="question", session="s2"))
    assert (len(line.sources), line.sessions) == (1, 1)


@each(
    ("kind", "trust", "is_kept"),
    [
        ("progress", "assistant", False),  # matters for the day's log
        ("statement", "assistant", False),
        ("root_cause", "assistant", True),
        ("progress", "user", True),
        ("statement", "user", True),
    ],
)
def test_passing_words_of_the_model_are_left_to_the_log(kind: str, trust: str, is_kept: bool) -> None:
    assert bool(reflect(said(UV, kind=kind, trust=trust, priority="medium"))) is is_kept


@each(
    ("kind", "sessions", "section"),
    [
        ("preference", ["s1"], USER),
        ("rule", ["s1"], RULES),
        ("decision", ["s1"], ARCHITECTURE),
        ("state_change", ["s1"], ARCHITECTURE),
        ("root_cause", ["s1"], PATTERNS),
        ("convention", ["s1"], PATTERNS),
        ("statement", ["s1"], UNFILED),
        ("progress", ["s1"], UNFILED),
        ("correction", ["s1"], PATTERNS),
        ("correction", ["s1", "s2"], RULES),  # what has to be corrected again is a rule
    ],
)
def test_the_section_of_a_line(kind: str, sessions: list[str], section: int) -> None:
    (line,) = reflect(*(said(UV, kind=kind, session=s) for s in sessions))
    assert line.section == section
    assert line.kind == ("rule" if section == RULES else kind)


# --- what is doubted ---


@each("flag", ["ended", "ungrounded", "ungrounded_specifics", "unparsed"])
def test_what_is_doubted_gives_no_line_its_words(flag: str) -> None:
    assert reflect(said(UV, flags=(flag,))) == []
    (line,) = reflect(said(UV, flags=(flag,)), said(UV_AGAIN, ago=1, trust="assistant", priority="medium"))
    assert line.text == UV_AGAIN  # though the other one is the person's, newer and high
    assert line.priority == "medium"
    assert len(line.sources) == 2


def test_the_trust_of_a_line_is_that_of_its_best_source() -> None:
    (line,) = reflect(said(UV, trust="assistant"), said(UV_AGAIN, trust="user", clock="07:00"))
    assert line.trust == "user"
    (line,) = reflect(said(UV, trust="tool"))
    assert line.trust == "tool"


# --- newer state ---

OLD, NEW = "shop-api installs its packages with pip.", "In shop-api we install packages with uv instead of pip."


def state(text: str, **other: Any) -> Observation:
    return said(text, **{"kind": "state_change"} | other)


def test_newer_state_replaces_older_and_says_so() -> None:
    older, newer = state(OLD, ago=2), state(NEW)
    (line,) = reflect(older, newer, vectors=False)
    assert (line.text, line.superseded) == (NEW, (older.observation_id,))
    assert older.observation_id not in line.sources


def test_of_a_chain_only_the_newest_stays_and_names_all() -> None:
    chain = [state(OLD, ago=4), state(NEW, ago=2), state("In shop-api packages are installed with pixi instead of uv.")]
    (line,) = reflect(*chain, vectors=False)
    assert line.text == chain[2].text
    assert set(line.superseded) == {chain[0].observation_id, chain[1].observation_id}


@each("vectors", [True, False])
def test_a_state_that_ended_leads_no_group_even_where_it_is_high(vectors: bool) -> None:
    """With vectors both would be one group, and the person's words would lead it."""
    older = state("We use pip and no uv here: install packages with pip.", ago=1, kind="decision", trust="assistant")
    newer = state("We use uv instead of pip to install packages.", trust="user", priority="medium")
    assert [line.text for line in reflect(older, newer, vectors=vectors)] == [newer.text]


@each(
    ("older", "newer"),
    [
        # the other way round in time
        (state(OLD), state(NEW, ago=1)),
        # another subject
        (state("The mock needs pip for its wheels."), state("The frontend uses pnpm instead of pip.", clock="11:00")),
        # it does without the same thing itself
        (said("Never install packages with pip."), state(NEW, clock="11:00")),
        (state("Removed the pip packages - uv installs them."), state(NEW, clock="11:00")),
        # it says more than what has ended
        (
            state("Packages come from pip. The queue is drained nightly by worker-7. Logs are JSON, one a line."),
            state(NEW, clock="11:00"),
        ),
        # a cause stays what it was
        (state("The cause was that pip installed packages twice.", kind="root_cause"), state(NEW, clock="11:00")),
        # the person's rule is not ended by the model
        (said("Install packages with pip.", trust="user"), state(NEW, trust="assistant", clock="11:00")),
        # nor by what a tool printed, or what nobody said
        (state(OLD), state(NEW, trust="tool", clock="11:00")),
        (state(OLD), state(NEW, flags=("ungrounded",), clock="11:00")),
        # names nothing that is given up
        (state(OLD), state("In shop-api packages are installed with uv.", clock="11:00")),
    ],
)  # fmt: skip
def test_what_is_not_replaced(older: Observation, newer: Observation) -> None:
    assert superseded_by([older, newer]) == {}


WANTED, UNWANTED = "I'd prefer weekly reports of the depot.", "ok, no weekly reports of the depot then"


@each(
    ("older", "newer", "is_over"),
    [
        (WANTED, UNWANTED, True),
        ("I don't want weekly reports.", "Let's have weekly reports after all.", True),
        ("Immer Wochenberichte schreiben.", "Ich will keine Wochenberichte schreiben.", True),
        (WANTED, "No weekly reports of the office then.", False),
        (WANTED, "I'd prefer weekly reports of the depot, please.", False),
    ],
)
@each("ago", [0, 3])
def test_what_a_person_wants_no_more_is_over_in_that_and_later_sessions(
    older: str, newer: str, is_over: bool, ago: int
) -> None:
    before = said(older, kind="preference", ago=ago, session="s1" if ago else "s2")
    after = said(newer, kind="correction", clock="11:00", session="s2")
    assert superseded_by([before, after]) == ({before.observation_id: after.observation_id} if is_over else {})
    first = replace(after, observed_at=before.observed_at - timedelta(days=9))
    assert superseded_by([first, before]) == ({after.observation_id: before.observation_id} if is_over else {})


@each("change", [{"trust": "assistant"}, {"trust": "paste"}, {"projects": ("other",)}])
def test_only_the_person_takes_back_what_they_want_and_only_in_its_project(change: dict[str, Any]) -> None:
    before = said(WANTED, kind="preference", projects=("depot",), ago=1)
    after = said(UNWANTED, kind="correction", **({"projects": ("depot",)} | change))
    assert superseded_by([before, after]) == {}


@each(
    ("text", "gone"),
    [
        ("We use uv instead of pip.", {"pip"}),
        ("Replaced `celery` with arq in the worker.", {"celery"}),
        ("celery was replaced by arq.", {"celery"}),
        ("Moved from src/old to src/new.", {"src/old"}),
        ("We no longer use the Redis cache.", {"redis", "cache"}),
        ("Stop using requests, httpx it is.", {"requests"}),
        ("Drop Jest for Vitest.", {"jest"}),
        ("It replaces the legacy client.", {"legacy", "client"}),
        ("It was replaced by hand.", set()),
        ("Nothing was given up.", set()),
    ],
)
def test_what_a_text_gives_up(text: str, gone: set[str]) -> None:
    assert set().union(*gives_up(text)) == {stem(word) for word in gone}
