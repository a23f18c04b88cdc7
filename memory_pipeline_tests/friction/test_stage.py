"""A day's friction: patterns that span sessions and that this day added to, or that have ended."""

import os
import time
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.days import lookback
from memory_pipeline.friction.active import active_patterns, points_in
from memory_pipeline.friction.stage import MAX_PER_DAY, FrictionStage
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.stages import Built, bring_up_to_date, is_current
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import (
    DAY,
    Opened,
    Row,
    at,
    bytes_of,
    changed,
    day_after,
    observation,
    pattern,
    put,
    read_from,
    rule_pattern,
    say,
    workspace,
)

UV = ("No, use uv, not pip.", "Again: use uv, not pip.", "uv, not pip! Use it.")
"""Nearly the same words."""
IN_USE = "Error: listen EADDRINUSE: address already in use :::{port} of {path}"


@dataclass
class Work(Opened):
    def correct(self, *texts: str, until: date = DAY, **other: Any) -> None:
        """Each text is a correction in a session of its own: the last on that day, the others on the days before."""
        for i, text in enumerate(texts):
            day = date.fromordinal(until.toordinal() + 1 + i - len(texts))
            fields = {"kind": "correction", "session": f"{other.get('kind', 'c')}{i}-{until:%d}"} | other
            self.observe(observation(text, day=day, **fields))

    def observe(self, *rows: Row) -> None:
        """What was observed, and the message that says it."""
        for row in rows:
            turn = f"{row['trust']}: {row['text']}"
            say(self.lake, row["session_id"], turn, day=row["day"], clock=f"{row['observed_at']:%H:%M}")
        put(self.lake, "observations", *rows)

    def fail(self, *texts: str, mark: str = "tool!", day: date = DAY, name: str = "f") -> None:
        """Each text is what a tool said in a session of its own."""
        for i, text in enumerate(texts):
            say(self.lake, f"{name}{i}", f"{mark}: {text}", day=day, clock=f"1{i}:00")

    def stage(self) -> FrictionStage:
        return FrictionStage(self.workspace)

    def run(self, day: date = DAY) -> list[Row]:
        bring_up_to_date(self.stage(), self.lake, day)
        return self.lake.read("friction_clusters", [day]).to_dicts()

    def build(self, day: date = DAY) -> Built:
        return self.stage().build(day)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    settings, lake = workspace(tmp_path)
    return Work(changed(settings, friction_min_points=0), lake)


def test_the_same_correction_in_three_sessions_is_one_pattern_with_its_evidence(work: Work) -> None:
    work.correct(*UV)
    (row,) = work.run()
    assert row["pattern_id"] == "f-20250305-001"
    assert (row["kind"], row["target_file"], row["section"]) == ("repeated_correction", "MEMORY.md", "Hard Rules")
    assert (row["sessions"], row["occurrences"]) == (3, 3)
    assert 0.5 < row["confidence"] <= 2 / 3  # at most that, of three sessions
    assert [e["message_id"] for e in row["evidence"]] == ["c0-05-03-09:00-0", "c1-05-04-09:00-0", "c2-05-05-09:00-0"]
    assert row["evidence"][2]["end"] == len(UV[2])
    assert (row["first_day"], row["last_day"], row["ended_on"]) == (day_after(-2), DAY, None)
    assert row["adds"] in row["change"]


@pytest.mark.parametrize(
    "texts",
    [
        ("No, use uv, not pip.", "Again: use uv, not pip."),
        ("Nein, nimm uv statt pip.", "Schon wieder pip! Nimm uv statt pip."),
        ("No, usa uv en vez de pip.", "Otra vez: usa uv en vez de pip."),
        ("不对，用 uv，不要用 pip。", "不对！用 uv，不要用 pip。"),
    ],
)
def test_what_was_said_twice_in_messages_is_one_pattern_in_any_language(work: Work, texts: tuple[str, str]) -> None:
    for i, text in enumerate(texts):
        task = ("user: Write the script that packs the logs.", "assistant: Done.", f"user: {text}")
        say(work.lake, f"s{i}", *task, day=day_after(i - 1))
    (row,) = work.run()
    assert (row["kind"], row["sessions"]) == ("repeated_correction", 2)
    said = {m["message_id"]: m["text"] for m in work.lake.read("messages").to_dicts()}
    assert all("uv" in said[e["message_id"]][e["start"] : e["end"]] for e in row["evidence"])


def test_one_session_is_no_pattern(work: Work) -> None:
    work.correct(*UV, session="the only one")
    for day in (-1, 0):
        say(work.lake, "failing", *["tool!: permission denied"] * 5, day=day_after(day))
    assert work.run() == []


@pytest.mark.parametrize("texts", [("Thanks, great work!", "Perfect, thank you!"), ("ok", "ok"), ("Yes please.",) * 2])
def test_politeness_is_no_pattern(work: Work, texts: tuple[str, ...]) -> None:
    for i, text in enumerate(texts):
        say(work.lake, f"s{i}", "user: Build it.", "assistant: Built.", f"user: {text}")
    assert work.run() == []


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        ({"kind": "correction"}, True),
        ({"kind": "rule"}, True),  # a correction that lays down a rule is one
        ({"kind": "preference"}, True),
        ({"trust": "assistant"}, False),  # the model corrects nobody
    ],
)
def test_whose_words_are_a_sign(work: Work, other: dict[str, str], counts: bool) -> None:
    work.correct(*UV, **other)
    assert bool(work.run()) is counts


OTHER_THINGS = (
    ("No, use uv, not pip.", "No, use pip, not uv."),
    ("No, add a test for the importer.", "No, add a test for the mailer."),
    ("Use uv here.", "Use uv here."),  # nobody is corrected
    ("does uv find its lock file?", "does uv find its lock file?"),
    ("commit and push", "commit and push"),
    ("you left the test file out of the module", "the test file is missing in the module"),  # only a model tells
)


def test_without_a_model_only_corrections_in_nearly_the_same_words_are_one(work: Work) -> None:
    for n, texts in enumerate(OTHER_THINGS):
        for i, text in enumerate(texts):
            task = (f"user: Write script {n}.", "assistant: Done.", f"user: {text}", "assistant: You are right.")
            say(work.lake, f"s{n}-{i}", *task, day=day_after(i - 1))
    assert work.run() == []


@pytest.mark.parametrize("field", ["quoted", "voided"])
def test_words_that_a_user_quoted_or_took_back_do_not_count(work: Work, field: str) -> None:
    for session in ("s1", "s2"):
        say(work.lake, session, "user: Write the script.", f"user: {UV[1]}")
    messages = work.lake.read("messages")
    assert len(work.run()) == 1
    if field == "quoted":
        quoted = [[{"start": 0, "end": len(text)}] for text in messages["text"]]
        messages = messages.with_columns(pl.Series("quoted", quoted, dtype=messages.schema["quoted"]))
    else:
        messages = messages.with_columns(pl.lit(True).alias("voided"))
    work.lake.replace("messages", messages, [DAY])
    assert work.run() == []


@pytest.mark.parametrize(
    ("other", "patterns"),
    [
        ({}, 0),
        ({"kind": "correction"}, 0),
        ({"trust": "assistant"}, 1),  # the model revokes nothing
    ],
)
def test_a_rule_that_was_revoked_is_not_offered(work: Work, other: dict[str, str], patterns: int) -> None:
    today = [observation("No, use pnpm for the frontend.", kind="rule", session=s) for s in ("s1", "s2")]
    change = {"kind": "decision", "session": "s3", "clock": "12:00"} | other
    work.observe(*today, observation("We go with npm instead of pnpm.", **change))
    assert len(work.run()) == patterns


@pytest.mark.parametrize(("project", "sessions"), [("cli", ["c0-05", "c1-05", "c2-05"]), ("kiln", [])])
def test_a_mind_that_changed_in_another_project_ends_nothing(work: Work, project: str, sessions: list[str]) -> None:
    pip = ("No, use pip for packages.", "Again: use pip for the packages.", "Again: use pip for packages!")
    work.correct(*pip, project="kiln")
    change = {"kind": "decision", "clock": "10:00", "project": project}
    work.observe(observation("We use uv instead of pip for packages.", **change))
    found = {session for row in work.run() for session in row["session_ids"]}
    assert sorted(found - {"s1"}) == sessions


def test_failures_with_other_numbers_and_paths_are_one_pattern(work: Work) -> None:
    first = IN_USE.format(port=3000, path="/srv/app.py")
    work.fail(f"starting\n{first}\nbye", IN_USE.format(port=3000, path="/home/ann/x.py"))
    (row,) = work.run()
    assert (row["kind"], row["target_file"]) == ("configuration_drift", "AGENTS.md")
    assert (row["sessions"], row["occurrences"]) == (2, 2)
    one, other = row["evidence"]
    assert (one["start"], one["end"]) == (len("starting\n"), len("starting\n") + len(first))
    assert other["start"] == 0


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("The user doesn't want to proceed with this tool use.", "tool!"),  # refused
        ("[Request interrupted by user]", "tool!"),
        ("Error: port 8080 in use", "tool"),  # it tells of an error and did not fail
        ("Error: port 8080 in use", "assistant"),
        ("", "tool!"),
        ("\x00\x1b[31m‮", "tool!"),
    ],
)
def test_what_is_no_failure(work: Work, text: str, mark: str) -> None:
    work.fail(text, text, text, mark=mark)
    assert work.run() == []


@each(
    ("points", "told"),
    [
        (9, "not enough yet: 9 of 100 indexed texts in 7 days"),
        (99, "not enough yet: 99 of 100 indexed texts in 7 days"),
        (100, None),
    ],
)
def test_too_few_points_are_said_to_be_too_few(tmp_path: Path, points: int, told: str | None) -> None:
    work = Work(*workspace(tmp_path))
    work.correct(*UV[: min(points, len(UV))])
    say(work.lake, "long ago", *(f"user: Line {i} of the old list." for i in range(3)), day=day_after(-7))
    missing = points - points_in(work.lake, lookback(DAY, 7))
    assert missing > 0
    say(work.lake, "talk", *(f"user: Line {i} of the list." for i in range(missing)), clock="00:01")
    assert len(work.run()) == (told is None)
    built = work.build()
    assert (built.notes["points"], built.notes.get("nothing_found")) == (points, told)
    assert work.lake.days("friction_clusters") == [DAY]


def test_a_pattern_belongs_to_the_days_that_add_to_it(work: Work) -> None:
    work.correct(*UV)
    assert len(work.run()) == 1
    assert work.run(day_after(1)) == []  # nothing new
    assert len(work.run(day_after(-1))) == 1  # two sessions by then
    assert work.run(day_after(-2)) == []  # only one


def test_what_is_older_than_the_lookback_does_not_count(work: Work) -> None:
    work.observe(observation(UV[0], kind="correction", day=day_after(-7), session="old"))
    work.correct(UV[1])
    assert work.run() == []
    work.observe(observation(UV[0], kind="correction", day=day_after(-6), session="newer"))
    assert len(work.run()) == 1


def test_a_pattern_that_goes_on_keeps_its_id_and_its_first_day(work: Work) -> None:
    work.correct(*UV)
    (first,) = work.run()
    work.correct("Again: use uv, not pip!", until=day_after(5), session="later")
    work.run(day_after(5))
    work.correct("Again: use uv, not pip!!", until=day_after(7), session="even later")
    (later,) = work.run(day_after(7))
    assert later["pattern_id"] == first["pattern_id"] == "f-20250305-001"
    assert (later["first_day"], later["last_day"]) == (day_after(-2), day_after(7))
    assert (later["sessions"], later["ended_on"]) == (2, None)  # in the last seven days


def test_weeks_that_are_no_longer_looked_at_are_known_from_the_row_before(work: Work) -> None:
    work.correct(*UV)
    (first,) = work.run()
    assert first["by_week"] == [{"week": date(2025, 3, 3), "occurrences": 3}]
    work.correct("Use uv, not pip, again.", "Again: use uv, not pip!", until=day_after(6))
    work.run(day_after(5))
    (later,) = work.run(day_after(6))
    assert later["by_week"] == [
        {"week": date(2025, 3, 3), "occurrences": 3},
        {"week": date(2025, 3, 10), "occurrences": 2},
    ]


def test_a_pattern_of_which_nothing_happened_for_a_week_is_closed_with_the_day(work: Work) -> None:
    work.correct(*UV)
    (first,) = work.run()
    for day in range(1, 7):
        assert work.run(day_after(day)) == []
    (closed,) = work.run(day_after(7))
    assert closed == {**first, "day": day_after(7), "ended_on": day_after(7)}
    assert work.build(day_after(7)).notes["ended"] == 1
    assert work.run(day_after(8)) == []  # it is closed once


def test_what_comes_back_after_it_was_closed_is_a_new_pattern(work: Work) -> None:
    work.correct(*UV)
    work.run()
    work.run(day_after(7))
    work.correct(*UV, until=day_after(20))
    (again,) = work.run(day_after(20))
    assert (again["pattern_id"], again["first_day"]) == ("f-20250325-001", day_after(18))


def test_a_day_that_is_made_again_keeps_its_ids(work: Work) -> None:
    work.fail("permission denied: /srv/a", "permission denied: /srv/b")
    work.correct(*UV)
    before = {row["kind"]: row["pattern_id"] for row in work.run()}
    assert sorted(before.values()) == ["f-20250305-001", "f-20250305-002"]
    work.fail(*["bash: jq: command not found"] * 9, name="worse")  # by its severity it comes first
    after = {row["kind"] + row["title"][:0]: row["pattern_id"] for row in work.run() if "jq" not in row["title"]}
    assert after == before
    assert {row["pattern_id"] for row in work.run()} == {*before.values(), "f-20250305-003"}


def test_patterns_of_the_fitted_weights_keep_their_decisions_and_what_is_found_again_its_id(work: Work) -> None:
    """As 46ebf5e left them: one that nearly the same words still show, and two that only its weights told."""
    work.correct(*UV)
    spans = [{"message_id": f"c{i}-05-0{i + 3}-09:00-0", "start": 0, "end": 4} for i in range(3)]
    again = pattern(3, "Said again in 3 sessions: “Use uv.”", evidence=spans, sessions=3, session_ids=["c0-05"])
    others = [rule_pattern(n, f"Glaze after firing number {n}.") for n in (4, 5)]
    put(work.lake, "friction_clusters", again, *others)
    ids = [row["pattern_id"] for row in (again, *others)]
    decided = dict(zip(ids, ("approved", "rejected", "approved"), strict=True))
    reconcile(work.workspace, at("18:00"))
    decide(work.workspace, decided, at("18:05"))
    reconcile(work.workspace, at("18:05"))
    (row,) = work.run()
    assert row["pattern_id"] == ids[0]
    reconcile(work.workspace, at("19:00"))
    assert {i: ProposalLog(work.lake).status[i] for i in ids} == decided
    assert sorted(work.lake.read("friction_fixes")["proposal_id"]) == ids


def test_at_most_ten_a_day_the_worst_first(work: Work) -> None:
    work.correct(*UV)
    for session in ("s1", "s2"):
        say(work.lake, session, *(f"tool!: the {'x' * n} assertion failed badly" for n in range(1, 13)))
    rows = work.run()
    assert len(rows) == MAX_PER_DAY == 10
    severities = {r["pattern_id"]: r["severity"] for r in rows}
    assert [severities[name] for name in sorted(severities)] == sorted(severities.values(), reverse=True)
    assert sorted(severities) == [f"f-20250305-{n:03d}" for n in range(1, 11)]


def test_what_goes_on_beyond_the_ten_keeps_its_row_and_is_not_closed(work: Work) -> None:
    def mild(day: int) -> None:
        for session in (f"m{day}", f"n{day}"):
            say(work.lake, session, "tool!: the mild assertion failed badly", day=day_after(day))

    mild(0)
    (first,) = work.run()
    for day in range(1, 9):
        for session in (f"s{day}", f"t{day}", f"u{day}"):
            lines = (f"tool!: the {'x' * n} assertion failed badly" for n in range(1, 13))
            say(work.lake, session, *lines, day=day_after(day))
        mild(day)
        rows = {row["pattern_id"]: row for row in work.run(day_after(day))}
        own = rows[first["pattern_id"]]
        assert (own["last_day"], own["ended_on"]) == (day_after(day), None)
        assert len(rows) > MAX_PER_DAY
    assert first["pattern_id"] in {p.row["pattern_id"] for p in active_patterns(work.lake, day_after(8), 7)}


def test_severity_is_sessions_times_the_minutes_of_one_occurrence(work: Work) -> None:
    for session in ("s1", "s2", "s3"):
        say(
            work.lake,
            session,
            "user: Write the script.",
            "tool: ok",
            "assistant: Done.",
            "user: Again: use uv, not pip.",
        )
    (row,) = work.run()
    assert (row["sessions"], row["turns"], row["minutes"]) == (3, 9, 9.0)  # three messages and minutes each
    assert row["severity"] == pytest.approx(3 * 9.0 / 3)


def test_running_again_changes_no_byte(work: Work, tmp_path: Path) -> None:
    work.correct(*UV)
    work.fail(IN_USE.format(port=3000, path="/a/b"), IN_USE.format(port=3000, path="/c/d"))
    work.run()
    before = bytes_of(tmp_path / "lake")
    assert is_current(work.stage(), work.lake, DAY)
    work.lake.replace("friction_clusters", work.lake.read("friction_clusters")[:0], [DAY])
    work.run()
    assert bytes_of(tmp_path / "lake") == before


@pytest.mark.parametrize("table", ["messages", "observations"])
def test_a_day_is_stale_when_its_inputs_changed(work: Work, table: str) -> None:
    work.correct(*UV)
    work.run()
    if table == "messages":
        work.fail("Error: port 8080 in use", day=day_after(-6))
    else:
        put(work.lake, "observations", observation("uv", day=day_after(-6)))
    assert not is_current(work.stage(), work.lake, DAY)


def test_a_day_without_friction_is_an_empty_day(work: Work) -> None:
    assert work.run() == []
    assert work.lake.days("friction_clusters") == [DAY]
    assert work.build().notes["nothing_found"] == "nothing recurs"


def test_a_pattern_names_its_sessions_and_its_project(work: Work) -> None:
    work.correct(*UV, project="kiln", cwd="/src/kiln")
    (row,) = work.run()
    assert (row["session_ids"], row["projects"]) == (["c0-05", "c1-05", "c2-05"], ["kiln"])
    assert (row["cwds"], row["owner"]) == (["/src/kiln"], "me")
    assert row["change"].startswith("Add to MEMORY.md, Hard Rules: “")
    assert "(project: kiln)" in row["adds"]


def test_failures_of_tools_name_their_projects_too(work: Work) -> None:
    for session in ("a", "b"):
        say(work.lake, session, "user: Run the tests.", "tool!: ModuleNotFoundError: No module named 'yaml'")
    sessions = work.lake.read("sessions")
    projects = pl.when(pl.col("session_id") == "a").then(pl.lit("kiln")).otherwise(pl.lit("cli")).alias("project")
    work.lake.replace("sessions", sessions.with_columns(projects), [DAY])
    (row,) = work.run()
    assert (row["session_ids"], row["projects"], row["cwds"]) == (["a", "b"], ["cli", "kiln"], ["/repo"])


def test_a_promoted_rule_that_is_still_broken_goes_into_the_file_that_is_read_at_every_turn(work: Work) -> None:
    promoted = {"day": day_after(-5), "proposal_id": "p-20250228-001", "kind": "promoted", "text": "Use uv, not pip."}
    put(work.lake, "events", promoted)
    work.settings.memory_file.parent.mkdir(parents=True, exist_ok=True)
    work.settings.memory_file.write_text(
        "# Memory\n\n## Hard Rules\n\n- Use uv, not pip, for packages.\n- Use uv, not pip.\n"
    )
    work.correct("Use uv, not pip!", "Again: use uv, not pip.")
    (row,) = work.run()
    assert (row["kind"], row["target_file"], row["sessions"]) == ("rule_violated", "AGENTS.md", 2)
    assert "Use uv, not pip." in row["change"]


@pytest.mark.parametrize(("ago", "kind"), [(20, "rule_violated"), (-2, "repeated_correction")])
def test_a_rule_of_the_projects_file_is_broken_only_after_it_was_written(
    work: Work, tmp_path: Path, ago: int, kind: str
) -> None:
    project = tmp_path / "kiln"
    project.mkdir()
    rules = project / "AGENTS.md"
    rules.write_text("# Rules\n\n- Install packages with uv, never with pip.\n")
    moment = at(day=day_after(-ago)).timestamp()
    os.utime(rules, (moment, moment))
    read_from(work.lake, "/sessions/x.jsonl", "kiln", str(project))
    texts = ("Again: install packages with uv, never with pip!", "No, install packages with uv, never with pip.")
    work.correct(*texts, cwd=str(project))
    (row,) = work.run()
    assert row["kind"] == kind
    if kind == "rule_violated":
        assert row["title"].startswith("A rule of AGENTS.md is still broken, in 2 sessions since")


def test_a_rule_that_leaves_its_file_makes_no_older_day_stale(work: Work) -> None:
    memory = work.settings.memory_file
    memory.write_text(
        "- (2025-02-16) Install packages with uv, never with pip.\n- (2025-02-16) Indent code with tabs.\n"
    )
    work.correct(*UV)
    work.run()
    memory.write_text("- (2025-02-16) Indent code with tabs.\n")
    assert is_current(work.stage(), work.lake, DAY)
    memory.write_text("- (2025-02-16) Indent code with tabs.\n- (2025-03-04) Never push to main on fridays.\n")
    assert not is_current(work.stage(), work.lake, DAY)  # a rule that was known by then is new


def test_a_thousand_copies_are_one_pattern(work: Work) -> None:
    """Each was said a second after the one before, in a session of its own."""
    (message,) = say(work.lake, "s", f"user: {UV[0]}")
    copies = [
        message | {"session_id": f"s{i}", "message_id": f"m{i}", "said_at": at() + timedelta(seconds=i)}
        for i in range(1_000)
    ]
    work.lake.replace("messages", work.lake.read("messages")[:0], [DAY])
    put(work.lake, "messages", *copies)
    began = time.process_time()
    (row,) = work.run()
    assert (row["sessions"], row["occurrences"]) == (1_000, 1_000)
    assert time.process_time() - began < 20
