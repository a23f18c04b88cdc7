"""Three weeks of a person and the pipeline, told day by day: what was said, what was offered, what became memory.

The bundled examples, a few recorded sessions and some lines of the person's own lie on 21 days in a row; the real jobs
run when their schedule and sensors ask for them. What must hold after every single run is in `three_weeks_kept`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from memory_pipeline.cli.show import why
from memory_pipeline_tests.rows import bytes_of
from memory_pipeline_tests.three_weeks import DAYS, FIRST_DAY, FIXTURES, ThreeWeeks, three_weeks
from memory_pipeline_tests.three_weeks_kept import SHOWN_AT_ONCE

YARN, PNPM = "Always use yarn for frontend packages.", "From now on use pnpm instead of yarn for frontend packages."
JENKINS, BUILDKITE = "Always use Jenkins for releases.", "Use Buildkite instead of Jenkins for releases."
FRIDAY, AFTER_NOON = "Never deploy on a Friday.", "Never deploy on a Friday after noon."
PRIVATE = "Never call the Zanzibar bank before ten."
TIMEOUT = "Every endpoint must have a timeout of 30 seconds."
NOTE = "Never restart the label printer on market days."
POLLING = (
    "the listener must survive a database restart: reconnect, then replay everything after the last handled event id. "
    "no status mail may get lost"
)
NO_PIP = "no, don't run pip install, use uv add"
SMALL_COMMITS = "i prefer small commits, and the message says why the change was made, not only what changed"
NOT_403 = "the parcels API must return 404, not 403, for foreign parcels, so that ids can't be probed"
NOTIFY = (
    "decision: we use Postgres LISTEN/NOTIFY for status events, not Redis, because at 40 changes a minute it is one "
    "service less to run"
)
POLLING_SESSION = "status events: LISTEN/NOTIFY instead of polling"
BRANCHES = (
    "convention from now on: branches are named type/short-topic like fix/double-mails, "
    "the types are feat, fix and chore"
)
BY_HAND = f"# Memory\n\nMy own words,  \nwith two spaces above.\n\n* {NOT_403}\n"


@pytest.fixture
def weeks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreeWeeks]:
    with three_weeks(tmp_path, monkeypatch) as made:
        yield made


@pytest.mark.slow
def test_three_weeks(weeks: ThreeWeeks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monday_is_the_first_day(weeks)
    private = tuesday_four_lines_are_decided_on(weeks)
    wednesday_two_lines_may_not_enter_any_more(weeks, private)
    thursday_a_note_by_hand_is_offered(weeks)
    friday_an_editor_empties_the_review(weeks)
    saturday_and_sunday(weeks)
    second_monday_something_else_is_used_for_releases(weeks)
    second_tuesday_what_nobody_decided_on_expires(weeks)
    second_wednesday_something_else_is_used_for_packages(weeks)
    second_thursday_the_old_line_still_holds(weeks)
    second_friday_the_person_agrees_to_lose_it(weeks)
    a_week_without_a_review(weeks)
    third_sunday_has_passed(weeks)
    a_line_leads_to_the_words_that_were_said(weeks, capsys)
    all_days_again_change_nothing(weeks, "that are done")
    monkeypatch.setattr("memory_pipeline.stages._is_stored", lambda *_: False)
    all_days_again_change_nothing(weeks, "that are made anew, as by a newer version")


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="../shared/fixtures is not there: three weeks of examples alone")
def test_the_three_weeks_have_recorded_sessions_in_them() -> None:
    assert list(FIXTURES.rglob("*.jsonl")), "the three weeks would be told without a recorded session, and not say so"


def monday_is_the_first_day(weeks: ThreeWeeks) -> None:
    weeks.works("pi/2026-03-02")
    weeks.says(YARN, FRIDAY)
    weeks.night_passes()
    for words in (YARN, FRIDAY, POLLING, NO_PIP, SMALL_COMMITS, NOTIFY):
        assert weeks.offers(words), f"{words!r} was said on monday and nobody is asked about it"
    review = weeks.settings.review_file.read_text("utf-8")
    assert review.endswith(
        f"## Proposed for: User\n{offered(weeks, SMALL_COMMITS, '03-03 10:20', POLLING_SESSION)}\n"
        f"## Proposed for: System Architecture\n{offered(weeks, NOTIFY, '03-03 09:27', POLLING_SESSION)}\n"
        "_Last updated: 2025-03-04T06:00:00Z | 7 proposals pending_\n"
    ), "REVIEW.md does not say what is proposed for which section, by whose words and when"
    assert not weeks.remembered(), "MEMORY.md says something that nobody approved"


def tuesday_four_lines_are_decided_on(weeks: ThreeWeeks) -> Path:
    """Returns a session that holds something private."""
    weeks.reviews(approves=[YARN], edits={FRIDAY: AFTER_NOON}, rejects=[POLLING], deletes=[NO_PIP])
    expects(weeks, approved=[YARN, FRIDAY], rejected=[POLLING, NO_PIP], pending=[SMALL_COMMITS, NOTIFY])
    assert weeks.remembered() == (
        "# Memory\n\n## User\n\n## Hard Rules\n"
        f"{line(weeks, YARN)}{line(weeks, FRIDAY, AFTER_NOON)}\n## System Architecture\n\n## Patterns\n"
    ), "what the person approved, with their edits and nothing else, is not what agents will read"
    assert sorted(decisions_in(weeks, weeks.today)) == sorted(
        f"* 08:30 {end} `{weeks.id_of(words)}` {AFTER_NOON if words == FRIDAY else words}"
        for words, end in {YARN: "approved", FRIDAY: "approved", POLLING: "rejected", NO_PIP: "rejected"}.items()
    ), "the log of tuesday does not tell what was decided"
    weeks.works("claude/aa99")
    private = weeks.says(PRIVATE)
    weeks.night_passes()
    return private


def wednesday_two_lines_may_not_enter_any_more(weeks: ThreeWeeks, private: Path) -> None:
    monday, tuesday = FIRST_DAY, FIRST_DAY + timedelta(days=1)
    weeks.writes_into(weeks.settings.memory_file, "# Memory\n", BY_HAND)
    weeks.goes_on(private, "Please, DO NOT INDEX what we talked about.")
    assert weeks.the_sensor_looks() == [monday, tuesday], "what a person made private stays in the tables"
    assert "Zanzibar" not in weeks.log_of(tuesday), "what a person made private stays in the log"
    weeks.reviews(approves=[NOT_403, PRIVATE])
    expects(weeks, invalid=[NOT_403, PRIVATE])
    assert "Zanzibar" not in weeks.remembered(), "what was made private became memory"
    assert weeks.remembered().count(NOT_403) == 1, "MEMORY.md says twice what the person had written themselves"
    told = "\n".join(decisions_in(weeks, weeks.today))
    for reason in ("(MEMORY.md already says this, in line 6)", "(its source was withdrawn, made private or deleted)"):
        assert reason in told, "the person approved a line, does not find it in MEMORY.md and is not told why"
    weeks.settings.daily_log(weeks.today).write_text(f"{weeks.log_of(weeks.today)}\n{NOTE}\n", "utf-8")
    weeks.works("claude/af1ffe0d")
    weeks.night_passes()


def thursday_a_note_by_hand_is_offered(weeks: ThreeWeeks) -> None:
    assert weeks.offers(NOTE), "what the person wrote into the log of wednesday is reflected on by nobody"
    weeks.really_works("raquezha-pi.dev__full-2026-04-23-71c480")
    weeks.night_passes()


def friday_an_editor_empties_the_review(weeks: ThreeWeeks) -> None:
    offered, ends = weeks.offered(), dict(weeks.kept.ends)
    weeks.saves_review("")
    assert sorted(weeks.offered()) == sorted(offered), "an empty REVIEW.md cost the person lines to decide on"
    assert weeks.kept.ends == ends, "an empty REVIEW.md was taken for a decision"
    weeks.says(JENKINS, TIMEOUT)
    weeks.night_passes()


def saturday_and_sunday(weeks: ThreeWeeks) -> None:
    assert weeks.offers(JENKINS) and weeks.offers(TIMEOUT), "what was said on friday is not asked about on saturday"
    told = weeks.log_of(date(2025, 3, 7))
    for block in (
        f"#### {JENKINS}\n*Asked: {JENKINS}*\n\n* 🔴 (16:20) {JENKINS}\n* 🔴 (16:22) {TIMEOUT}\n",
        "**Proposed**: 2\n" + "".join(sorted(f"* `{weeks.id_of(words)}` {words}\n" for words in (JENKINS, TIMEOUT))),
    ):
        assert block in told, f"the log of friday does not tell what was laid down and proposed: {block}"
    weeks.works("codex/rollout-2026-03-03")
    weeks.night_passes()
    before = dict(weeks.kept.proposals)
    weeks.night_passes()
    assert weeks.kept.proposals == before, "a day on which nobody worked made proposals"


def second_monday_something_else_is_used_for_releases(weeks: ThreeWeeks) -> None:
    review = weeks.settings.review_file.read_text("utf-8")
    evidence = review.partition(NOTIFY)[2].splitlines()[1]
    assert evidence.endswith(" · expires on 2025-03-11_"), "a line is about to expire and the person is not warned"
    weeks.says(BUILDKITE)
    weeks.night_passes()


def second_tuesday_what_nobody_decided_on_expires(weeks: ThreeWeeks) -> None:
    expects(weeks, expired=[SMALL_COMMITS, NOTIFY], superseded=[JENKINS], pending=[BUILDKITE, TIMEOUT])
    told = weeks.log_of(weeks.today)
    assert "### Memory proposals that ended without a decision" in told, "lines ended and no log tells it"
    reason = f"({weeks.id_of(BUILDKITE)} says what holds now: {BUILDKITE})"
    for ended in (
        f"* 06:00 expired `{weeks.id_of(NOTIFY)}` {NOTIFY} (shown on 7 days without a decision)",
        f"* 06:00 superseded `{weeks.id_of(JENKINS)}` {JENKINS} {reason}",
    ):
        assert f"{ended}\n" in told, f"nobody is told that {ended!r}"
    weeks.works("claude/6abd685a")  # until after midnight
    weeks.night_passes()


def second_wednesday_something_else_is_used_for_packages(weeks: ThreeWeeks) -> None:
    weeks.says(PNPM)
    weeks.night_passes()


def second_thursday_the_old_line_still_holds(weeks: ThreeWeeks) -> None:
    evidence = weeks.settings.review_file.read_text("utf-8").partition(PNPM)[2].splitlines()[1]
    assert evidence.endswith(f" · replaces: “{YARN}”_"), "the person is not told what they would lose"
    assert line(weeks, YARN) in weeks.remembered(), "a line of MEMORY.md was struck before anybody agreed"
    weeks.really_works("neurodata-conversion__rollout-2025-09-26T17-01-04")
    weeks.night_passes()


def second_friday_the_person_agrees_to_lose_it(weeks: ThreeWeeks) -> None:
    weeks.reviews(approves=[PNPM, BUILDKITE])
    expects(weeks, approved=[YARN, PNPM, BUILDKITE], expired=[NOTE])
    weeks.works("claude/bc69f265")
    weeks.night_passes()


def a_week_without_a_review(weeks: ThreeWeeks) -> None:
    """From saturday to the third sunday; the kept promises are looked at each morning."""
    sessions = {
        15: "pi/2026-03-04",
        16: "codex/rollout-2026-03-04",
        18: "pi/2026-03-05",
        19: "claude/c439f34a",
        21: "codex/rollout-2026-03-05",
    }
    while weeks.today < FIRST_DAY + timedelta(days=DAYS):
        if weeks.today.day in sessions:
            weeks.works(sessions[weeks.today.day])
        if weeks.today.day == 20:
            weeks.really_works("JohnnyLai92-pi-mono__2026-04-22T03-39-57")
        weeks.night_passes()


def third_sunday_has_passed(weeks: ThreeWeeks) -> None:
    struck = f"- ~~(2025-03-03) {YARN}~~ (superseded by {weeks.id_of(PNPM)}, 2025-03-14) <!-- {weeks.id_of(YARN)} -->\n"
    assert weeks.remembered() == (
        f"{BY_HAND}\n## User\n{line(weeks, BUILDKITE)}\n## Hard Rules\n{struck}{line(weeks, FRIDAY, AFTER_NOON)}"
        f"{line(weeks, PNPM)}\n## System Architecture\n\n## Patterns\n"
    ), "MEMORY.md is not what three weeks of decisions and the person's own hand made it"
    log = weeks.log_of(date(2025, 3, 5))
    own = re.sub(r"<!-- memory:.*?<!-- /memory:.*? -->\n", "", log, flags=re.DOTALL)
    assert own.split() == ["#", "2025-03-05", *NOTE.split()], "what the person wrote into a log is not as they wrote it"
    last = offered(weeks, BRANCHES, "03-19 14:26", "should we maybe move to kubernetes at some point?")
    assert last in weeks.settings.review_file.read_text("utf-8"), "the last working day's best line waits nowhere"
    asked = [row["text"] for row in weeks.kept.proposals.values() if "kubernetes" in row["text"]]
    assert not asked, f"a question was offered as if it had been decided: {asked}"
    ends = {*weeks.kept.ends.values(), *(["pending"] if weeks.kept.pending else [])}
    assert ends == {"pending", "approved", "rejected", "expired", "invalid", "superseded"}, f"only {ends} were seen"
    assert weeks.kept.most_waiting > SHOWN_AT_ONCE, (
        "nobody was in danger of being buried, so nothing shows they are not"
    )
    late = [p for p, seen in weeks.kept.first_seen.items() if seen.date() > day_of(p) + timedelta(days=1)]
    assert late, "no proposal ever waited its turn, so nothing shows that its week begins when it is shown"


def a_line_leads_to_the_words_that_were_said(weeks: ThreeWeeks, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    why(weeks.id_of(PNPM), True)
    (said,) = json.loads(capsys.readouterr().out)["said"]
    path, number = said["source"].rsplit(":", 1)
    assert (said["quote"], said["role"]) == (PNPM, "user"), "a line of MEMORY.md cannot be traced to who said it"
    there = Path(path).read_text("utf-8").splitlines()[int(number) - 1]
    assert PNPM in there, "the file and line at which a person would look do not have the words"


def all_days_again_change_nothing(weeks: ThreeWeeks, which: str) -> None:
    before = bytes_of(weeks.settings.workspace)
    weeks.runs_all_days_again()
    after = bytes_of(weeks.settings.workspace)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    assert not changed, f"a run over days {which} changed {changed}, so nothing that was reviewed is safe"


def expects(weeks: ThreeWeeks, **ends: list[str]) -> None:
    for end, texts in ends.items():
        for words in texts:
            found = weeks.end_of(words)
            assert found == end, f"{weeks.today}: {words!r} is {found}, and by what the person did it should be {end}"


def line(weeks: ThreeWeeks, words: str, text: str | None = None) -> str:
    """As it stands in MEMORY.md; `text` where the person edited it."""
    proposal_id = weeks.id_of(words)
    return f"- ({day_of(proposal_id)}) {text or words} <!-- {proposal_id} -->\n"


def offered(weeks: ThreeWeeks, words: str, said_at: str, session: str) -> str:
    """As it stands in REVIEW.md, with its evidence."""
    return f"- [ ] `{weeks.id_of(words)}` {words}\n  _2025-{said_at} · you in “{session}” · project: parcel-tracker_\n"


def decisions_in(weeks: ThreeWeeks, day: date) -> list[str]:
    block = weeks.log_of(day).partition("### Decisions on memory proposals\n\n")[2].partition("<!--")[0]
    return block.splitlines()


def day_of(proposal_id: str) -> date:
    return date.fromisoformat(proposal_id[2:10])
