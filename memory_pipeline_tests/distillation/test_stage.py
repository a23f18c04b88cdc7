"""Days, weeks and months come down to fewer lines, lose no high, and lead back to what was said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.defs.distillation import judge_lines, judge_recall
from memory_pipeline.distillation import stage as stage_module
from memory_pipeline.distillation.lines import count_words, facts_of
from memory_pipeline.distillation.periods import DAY, LEVELS, MONTH, WEEK, Period
from memory_pipeline.distillation.stage import (
    DistillationStage,
    RecallLostError,
    due_periods,
    recall,
    rows_in,
    stages_of,
    state_of,
    traced,
)
from memory_pipeline.stages import INCOMPLETE, bring_up_to_date, is_current
from memory_pipeline.verdict import Verdict
from memory_pipeline_tests.cases import each, nightly
from memory_pipeline_tests.rows import (
    Opened,
    at,
    bytes_of,
    observation,
    observation_id,
    put,
    say,
    window_key,
    workspace,
)

MONDAY, SUNDAY = date(2025, 3, 3), date(2025, 3, 9)
RULES = [
    "Never use npm here, always use pnpm.",
    "The depot in Leipzig is asked at most once a minute.",
    "Postgres LISTEN/NOTIFY instead of Redis for the parcel events.",
    "Timestamps of the API are UTC in ISO 8601.",
    "A webhook without a valid HMAC signature is answered with 401.",
    "Migrations are numbered and never edited once they are merged.",
    "Retries stop after five attempts with exponential backoff.",
]
ASIDE = "The tests of the notifier took four minutes because of a sleep in the fixture."


@dataclass
class Work(Opened):
    now: date = date(2025, 6, 1)
    spoken: dict[date, list[str]] = field(default_factory=dict)

    @property
    def stages(self) -> list[DistillationStage]:
        return stages_of(self.workspace, self.now)

    def stage(self, level: int) -> DistillationStage:
        return DistillationStage(self.workspace, level, self.now)

    def observe(self, day: date, *rules: str, aside: str = ASIDE, **other: Any) -> None:
        """A session with these rules, something of less weight, and one segment."""
        session = f"s{day:%m%d}-{len(self.spoken.setdefault(day, []))}"
        self.spoken[day].append(session)
        said = [*rules, aside]
        say(self.lake, session, *(f"user: {text}" for text in said), day=day)
        place: dict[str, Any] = {"session": session, "day": day, "segment_id": f"seg-{session}"}
        put(
            self.lake,
            "segments",
            {
                "day": day,
                "segment_id": f"seg-{session}",
                "dedupe_key": window_key(session, day),
                "session_id": session,
                "position": 0,
                "narrative": f"Asked: {said[0]} Ended with: it was written down and the branch was pushed.",
                "first_message_id": f"{session}-{day:%d}-09:00-0",
                "last_message_id": f"{session}-{day:%d}-09:00-{len(said) - 1}",
            },
        )
        for number, text in enumerate(rules):
            span = {"message_id": f"{session}-{day:%d}-09:00-{number}", "start": 0, "end": len(text)}
            put(
                self.lake, "observations", observation(text, **place, clock=f"09:{number:02}", evidence=[span], **other)
            )
        span = {"message_id": f"{session}-{day:%d}-09:00-{len(rules)}", "start": 0, "end": len(aside)}
        put(self.lake, "observations", observation(aside, **place, priority="medium", evidence=[span]))

    def run(self, *days: date) -> list[Period]:
        """Each day, and the week and the month that end with it; returns what was built."""
        periods = [Period.containing(day, level) for day in days for level in LEVELS]
        return self._run(dict.fromkeys(sorted((p for p in periods if p.last in days), key=lambda p: (p.last, p.level))))

    def run_all(self) -> list[Period]:
        return self._run(self.due())

    def _run(self, periods: Iterable[Period]) -> list[Period]:
        return [p for p in periods if bring_up_to_date(self.stage(p.level), self.lake, p.last)]

    def due(self) -> list[Period]:
        return [period for stage in self.stages for period in due_periods(stage)]

    def judge(self, level: int, day: date) -> Verdict:
        return judge_recall(self.stage(level), day)

    def rows(self, table: str, *days: date) -> list[dict[str, Any]]:
        return self.lake.read(f"{table}_distillations", days or None).to_dicts()


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(*workspace(tmp_path))


def week_of(work: Work, monday: date = MONDAY) -> list[date]:
    days = [monday + timedelta(days=n) for n in range(7)]
    for day, rule in zip(days, RULES, strict=True):
        work.observe(day, rule, f"{rule.split()[-1]} was decided on {day}, see ticket {day:%j}.")
    return days


# --- a day ---


def test_a_day_is_its_highs_and_what_else_there_is_room_for(work: Work) -> None:
    work.observe(MONDAY, RULES[0])
    work.run(MONDAY)
    high, medium = sorted(work.rows("day"), key=lambda row: row["priority"])
    assert (high["text"], high["kind"], high["priority"], high["level"]) == (RULES[0], "rule", "high", 1)
    assert high["sources"] == [observation_id(RULES[0], MONDAY, "s0303-0")]
    assert (high["first_seen"], high["last_seen"]) == (at("09:00", MONDAY), at("09:00", MONDAY))
    assert (medium["text"], medium["priority"]) == (ASIDE, "medium")  # whole, and then no narrative has room
    assert medium["sources"] == [observation_id(ASIDE, MONDAY, "s0303-0")]


def test_a_narrative_begins_with_the_first_fact_of_its_segment(work: Work) -> None:
    work.observe(MONDAY, *RULES, priority="medium", kind="statement")
    work.run(MONDAY)
    (told,) = [row for row in work.rows("day") if row["kind"] == "narrative"]
    assert (told["priority"], told["sources"]) == ("low", ["seg-s0303-0"])
    assert told["first_seen"] == at("09:00", MONDAY)


@pytest.mark.parametrize("flag", ["ended", "ungrounded", "ungrounded_specifics", "unparsed"])
def test_what_does_not_hold_is_not_kept(work: Work, flag: str) -> None:
    work.observe(MONDAY, RULES[0], flags=[flag])
    work.run(MONDAY)
    assert [row["text"] for row in work.rows("day")] == [ASIDE]
    assert work.judge(DAY, MONDAY).numbers["highs"] == 0


@pytest.mark.parametrize(("age", "distilled"), [(2, False), (3, True)])
def test_a_day_is_distilled_when_it_is_old_enough(work: Work, age: int, distilled: bool) -> None:
    work.observe(MONDAY, RULES[0])
    work.now = MONDAY + timedelta(days=age)
    work.run(MONDAY)
    assert bool(work.rows("day")) is distilled
    assert work.judge(DAY, MONDAY).passed
    work.now = MONDAY + timedelta(days=9)
    assert work.run(MONDAY) == ([] if distilled else [Period(DAY, MONDAY)])


# --- a week ---


def test_a_week_has_fewer_words_than_its_days_and_all_of_their_highs(work: Work) -> None:
    days = week_of(work)
    work.run_all()
    rows = work.rows("week", SUNDAY)
    whole = facts_of(work.lake, days).words
    assert sum(count_words(row["text"]) for row in rows) <= 0.55 * whole
    assert {row["day"] for row in rows} == {SUNDAY} and {row["level"] for row in rows} == {WEEK}
    assert work.judge(WEEK, SUNDAY).numbers == {"highs": 14, "highs_kept": 14, "recall_loss": 0.0}
    assert len(rows) < len(work.rows("day", *days))


def test_every_line_is_word_for_word_what_was_observed(work: Work) -> None:
    """Once a month said "always never install" of a rule to use uv and never pip."""
    rule = "In parcel-tracker always use uv, never pip install, because the docker image has no compiler."
    for monday in (MONDAY, MONDAY + timedelta(days=7)):
        week_of(work, monday)
        work.observe(monday, rule)
    work.run_all()
    observed = {row["text"] for row in work.lake.read("observations").to_dicts()}
    observed |= {row["narrative"] for row in work.lake.read("segments").to_dicts()}
    for level, name in ((DAY, "day"), (WEEK, "week"), (MONTH, "month")):
        rows = work.rows(name)
        assert {row["text"] for row in rows} <= observed and rule in {row["text"] for row in rows}
        for last in {row["day"] for row in rows}:
            verdict = judge_lines(work.stage(level), last)
            assert verdict.passed and verdict.numbers["lines"] > 0


DESTROYED = {
    "frequent and short words dropped": lambda text: " ".join(w for w in text.split() if len(w) > 5),
    "negation dropped": lambda text: text.replace("Never ", "").replace("never ", "").replace("without a ", "with a "),
    "a piece of it": lambda text: " ".join(text.split()[2:-1]),
    "highs dropped": lambda text: None,
}


@pytest.mark.parametrize("level", [MONTH, *nightly(DAY, WEEK)])
@pytest.mark.parametrize("how", DESTROYED)
def test_the_checks_are_red_when_the_content_is_destroyed(work: Work, level: int, how: str) -> None:
    week_of(work)
    work.observe(SUNDAY, RULES[0])
    work.run_all()
    period = Period.containing(SUNDAY, level)
    stage, rows = work.stage(level), work.lake.read(period.table, [period.last])
    assert work.judge(level, period.last).passed and judge_lines(stage, period.last).passed
    destroy = DESTROYED[how]
    changed = [
        row | {"text": destroy(row["text"]) if row["priority"] == "high" else row["text"]} for row in rows.to_dicts()
    ]
    left = [row for row in changed if row["text"] is not None]
    work.lake.replace(period.table, type(rows)(left, schema=rows.schema), [period.last])
    verdict = judge_lines(stage, period.last)
    if how == "highs dropped":
        assert verdict.passed
    else:
        assert not verdict.passed and verdict.offenders[0].startswith(f"{left[0]['distillation_id'][0]}-")
    lost = work.judge(level, period.last)
    assert float(lost.numbers["recall_loss"]) > 0.1 and not lost.passed


def test_every_line_leads_back_to_words_that_were_said(work: Work) -> None:
    for monday in (MONDAY, MONDAY + timedelta(days=7), MONDAY + timedelta(days=21)):
        week_of(work, monday)
    work.run_all()
    messages = {row["message_id"]: row["text"] for row in work.lake.read("messages").to_dicts()}
    observed = {row["observation_id"]: row for row in work.lake.read("observations").to_dicts()}
    segments = {row["segment_id"]: row for row in work.lake.read("segments").to_dicts()}
    below = set(observed) | set(segments)
    for table in ("day", "week", "month"):
        rows = work.rows(table)
        assert rows and all(row["sources"] for row in rows)
        assert {source for row in rows for source in row["sources"]} <= below
        below = {row["distillation_id"] for row in rows}
        assert len(below) == len(rows)
    month = Period(MONTH, date(2025, 3, 31))
    for _, leaves in traced(work.lake, month, rows_in(work.lake, month)):
        assert leaves <= set(observed) | set(segments) and leaves
        for leaf in leaves & set(observed):
            for span in observed[leaf]["evidence"]:
                assert messages[span["message_id"]][span["start"] : span["end"]] == observed[leaf]["text"]
        for leaf in leaves & set(segments):
            assert {segments[leaf]["first_message_id"], segments[leaf]["last_message_id"]} <= set(messages)


def test_the_raw_rows_stay(work: Work, tmp_path: Path) -> None:
    week_of(work)
    before = bytes_of(tmp_path / "lake")
    work.run_all()
    after = bytes_of(tmp_path / "lake")
    assert {path: after[path] for path in before} == before


def test_a_week_brings_its_days_up_to_date(work: Work) -> None:
    """These were run when they were too young, and nobody came back to them."""
    days = week_of(work)
    work.now = SUNDAY - timedelta(days=2)
    work.run(*days[3:])
    assert work.rows("day") == []
    work.now = SUNDAY + timedelta(days=3)
    assert bring_up_to_date(work.stage(WEEK), work.lake, SUNDAY)
    assert {row["day"] for row in work.rows("day")} == set(days)
    assert {row["first_seen"].date() for row in work.rows("week")} == set(days)
    assert work.run(*days) == []


def test_what_is_said_again_in_a_week_is_one_line(work: Work) -> None:
    for day in (MONDAY, SUNDAY):
        work.observe(day, RULES[2], aside="")
    work.run_all()
    (high,) = [row for row in work.rows("week") if row["priority"] == "high"]
    assert len(high["sources"]) == 2
    assert (high["first_seen"].date(), high["last_seen"].date()) == (MONDAY, SUNDAY)


# --- a month ---


def test_a_week_over_the_end_of_a_month_belongs_to_the_month_in_which_it_ends(work: Work) -> None:
    last = date(2025, 3, 31)  # a Monday
    work.observe(last, RULES[0])
    work.observe(date(2025, 3, 30), RULES[1])  # the Sunday before it
    work.run_all()
    month = {row["day"]: row["text"] for row in work.rows("month") if row["priority"] == "high"}
    assert set(month) == {last, date(2025, 4, 30)}
    assert "Leipzig" in month[last] and "npm" not in month[last]
    assert "npm" in month[date(2025, 4, 30)]
    assert {row["day"] for row in work.rows("week")} == {date(2025, 3, 30), date(2025, 4, 6)}


def test_a_day_that_ends_a_week_and_a_month_makes_all_three(work: Work) -> None:
    day = date(2025, 8, 31)
    work.now = date(2025, 9, 30)
    work.observe(day, *RULES)
    assert work.run(day) == [Period(level, day) for level in LEVELS]
    assert all(work.rows(table, day) for table in ("day", "week", "month"))


# --- again ---


def test_running_again_changes_no_byte(work: Work, tmp_path: Path) -> None:
    week_of(work)
    assert work.run_all()
    before = bytes_of(tmp_path / "lake")
    assert work.run_all() == []
    for period in (Period(DAY, MONDAY), Period(DAY, SUNDAY), Period(WEEK, SUNDAY), Period(MONTH, date(2025, 3, 31))):
        stage, day = work.stage(period.level), period.last
        for table, frame in stage.build(day).frames.items():
            work.lake.replace(table, frame, [day], {day: stage.fingerprint(day)})
    assert bytes_of(tmp_path / "lake") == before


def test_an_old_day_that_grows_is_distilled_again_with_all_that_is_made_of_it(work: Work) -> None:
    week_of(work)
    week_of(work, MONDAY + timedelta(days=7))
    work.run_all()
    before = {row["distillation_id"] for row in work.rows("week", SUNDAY) if row["priority"] == "high"}
    wednesday = MONDAY + timedelta(days=2)
    work.observe(wednesday, "Grafana dashboards live in the folder observability.")
    due = [Period(DAY, wednesday), Period(WEEK, SUNDAY), Period(MONTH, date(2025, 3, 31))]
    assert work.due() == due
    assert work.run_all() == due
    for table in ("day", "week", "month"):
        assert any("observability" in row["text"] for row in work.rows(table))
    assert before <= {row["distillation_id"] for row in work.rows("week", SUNDAY)}  # ids stay
    assert work.due() == []


def test_days_become_due_as_they_get_old(work: Work) -> None:
    week_of(work)
    work.now = SUNDAY
    assert work.due() == [Period(DAY, MONDAY + timedelta(days=n)) for n in range(4)]
    work.run_all()
    work.now = SUNDAY + timedelta(days=1)
    assert work.due() == [Period(DAY, MONDAY + timedelta(days=4))]
    work.now = SUNDAY + timedelta(days=30)
    days = [Period(DAY, MONDAY + timedelta(days=n)) for n in (4, 5, 6)]
    assert work.due() == [*days, Period(WEEK, SUNDAY), Period(MONTH, date(2025, 3, 31))]


# --- the gate ---


def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weeks and months lose their highs, as a fault in the choice would have it."""
    made = stage_module.rows_of

    def without_highs(lake: Any, period: Period, facts: Any) -> Any:
        rows = made(lake, period, facts)
        return rows if period.level == DAY else [row for row in rows if row["priority"] != "high"]

    monkeypatch.setattr(stage_module, "rows_of", without_highs)


def test_a_week_that_would_lose_too_much_is_not_made(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    days = week_of(work)
    work.run(*days[:-1])
    forgetful(monkeypatch)
    with pytest.raises(
        RecallLostError, match=("the week that ends on 2025-03-09: 0 of 14 high observations are still contained")
    ):
        work.run(SUNDAY)
    assert work.rows("week") == []
    assert work.rows("day", SUNDAY)  # the day itself loses nothing
    assert work.lake.fingerprint("week_distillations", SUNDAY) == INCOMPLETE
    assert not is_current(work.stage(WEEK), work.lake, SUNDAY)
    assert not work.judge(WEEK, SUNDAY).passed


def test_the_gate_keeps_the_level_that_was_there(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    week_of(work)
    work.run_all()
    before = work.rows("week")
    forgetful(monkeypatch)
    work.observe(SUNDAY, "Grafana dashboards live in the folder observability.")
    with pytest.raises(RecallLostError):
        work.run(SUNDAY)
    assert work.rows("week") == before
    assert any("observability" in row["text"] for row in work.rows("day", SUNDAY))
    monkeypatch.undo()
    assert work.run(SUNDAY) == [Period(WEEK, SUNDAY)]
    assert work.rows("week") != before


def test_what_is_lost_is_measured_against_one_limit(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    days = week_of(work)
    forgetful(monkeypatch)
    for place in ("distillation.stage", "defs.distillation"):
        monkeypatch.setattr(f"memory_pipeline.{place}.MAX_RECALL_LOSS", 1.0)
    assert work.run(*days) == [*(Period(DAY, day) for day in days), Period(WEEK, SUNDAY)]
    assert work.judge(WEEK, SUNDAY).passed


def test_the_same_run_is_not_asked_for_twice(work: Work) -> None:
    """What the gate refuses stays due, and would be refused again."""
    week_of(work)

    def states() -> list[str]:
        return [state_of(stage, due_periods(stage)) for stage in work.stages]

    asked = states()
    work.now += timedelta(days=1)
    assert states() == asked
    work.observe(SUNDAY, "Grafana dashboards live in the folder observability.")
    assert set(states()).isdisjoint(asked)


FACTS = {
    "uv": "Always use uv, never pip install.",
    "leipzig": "The depot in Leipzig must not be asked more than twice a minute.",
    "queue": "The queue overflowed since retries had no limit.",
}


def as_they_are(*left_out: str) -> list[tuple[str, list[str]]]:
    return [(text, [i]) for i, text in FACTS.items() if i not in left_out]


def test_the_facts_themselves_lose_nothing() -> None:
    found = recall(FACTS, FACTS, as_they_are())
    assert (found.highs, found.kept, found.loss) == (3, 3, 0.0)


def test_a_high_that_no_line_was_made_from_is_lost() -> None:
    found = recall(FACTS, FACTS, as_they_are("leipzig"))
    assert round(found.loss, 3) == round(1 / 3, 3)
    assert f"{found}" == "2 of 3 high observations are still contained"


@each(
    "destroyed",
    [
        pytest.param(lambda text: " ".join(w for w in text.split() if len(w) > 4), id="short words dropped"),
        pytest.param(lambda text: text.replace("never ", "").replace("not ", "").replace("no ", ""), id="negation"),
        pytest.param(lambda text: text.replace("uv, ", "").replace("Leipzig ", "").replace("queue", ""), id="object"),
        pytest.param(lambda text: text.split(",")[0][:30], id="cut off"),
        pytest.param(lambda text: text.split(",")[-1].strip().rsplit(" ", 1)[0], id="a piece of it, word for word"),
        pytest.param(lambda text: text.lower(), id="another letter"),
        pytest.param(lambda text: "something else", id="other words"),
    ],
)
def test_a_line_that_lost_anything_says_nothing(destroyed: Callable[[str], str]) -> None:
    """As it once was: the rare words stay and are found, and the rule says its opposite."""
    lines = [(destroyed(text), [i]) for i, text in FACTS.items()]
    assert recall(FACTS, FACTS, lines).loss == 1.0


def test_a_line_may_say_several_highs_that_are_the_same() -> None:
    facts = {"old": "Use uv, never pip.", "new": "Here we use uv, never pip."}
    assert recall(facts, facts, [(facts["new"], ["new", "old"])]).loss == 0.0
    assert recall(facts, facts, [(facts["old"], ["new", "old"])]).loss == 0.5  # "here" is lost
    assert recall(facts, facts, [(facts["new"], ["new"])]).loss == 0.5  # nothing leads back to the old one


def test_what_is_whole_but_said_of_another_fact_does_not_count() -> None:
    assert recall(FACTS, ["uv"], [(FACTS["queue"], ["uv"]), (FACTS["uv"], ["queue"])]).loss == 1.0


def test_without_highs_there_is_nothing_to_lose() -> None:
    assert recall(FACTS, [], []).loss == 0.0
    assert recall({}, [], []).highs == 0
