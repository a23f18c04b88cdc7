"""A person's three weeks with the pipeline: a directory of sessions that grows, a clock, and the jobs in their time.

::

    with three_weeks(tmp_path, monkeypatch) as weeks:
        weeks.says("Never deploy on a Friday.")
        weeks.night_passes()  # to six in the morning, when the day is reflected on
        weeks.reviews(approves=["Never deploy on a Friday."])  # REVIEW.md is edited and saved; its sensor sees it

After each run all that must always hold is looked at (`three_weeks_kept`), by the tables and files alone. Only the
encoder is not the real one, which takes longer to load than the three weeks take to pass.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import memory_pipeline
from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline_tests.conftest import SHARED, Entry, assistant, conversation, user, write_session
from memory_pipeline_tests.loaded import defs, reflect_at_six, review_sensor, session_sensor
from memory_pipeline_tests.rows import WordEncoder, use_encoder
from memory_pipeline_tests.three_weeks_kept import SHOWN_AT_ONCE, Kept

FIRST_DAY, DAYS = date(2025, 3, 3), 21
"""A Monday, and three weeks."""
EXAMPLES, FIXTURES = Path(memory_pipeline.__file__).parent / "examples", SHARED / "fixtures"
CLOCKS = (
    *("days", "planning", "defs.sensors", "sessions.stage"),
    *("defs.proposals", "proposals.review"),
)
"""Modules that ask what time it is."""
_STAMP = re.compile(rb'(?<=")(?P<day>\d{4}-\d\d-\d\d)(?P<clock>T\d\d:\d\d:\d\d(?:\.\d+)?Z)(?=")')
_MILLISECONDS = re.compile(rb'(?<="timestamp":)\d{13}\b')
_ITEM = re.compile(r"- \[ \] `(?P<id>p-\d{8}-\d{3})` (?P<text>.*)")
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class ThreeWeeks:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance) -> None:
        self.sessions = folder / "sessions"
        self.sessions.mkdir()
        monkeypatch.setenv("MEMORY_SESSION_DIRS", str(self.sessions))
        monkeypatch.setenv("MEMORY_PENDING_LIMIT", f"{SHOWN_AT_ONCE}")
        # what a line says of its project is tested elsewhere
        monkeypatch.setattr("memory_pipeline.proposals.memory_file.with_note", lambda text, projects: text)
        self.settings: Settings = load_settings()
        self.lake = Lake(self.settings.lake_dir)
        self.instance = instance
        self.now = datetime.combine(FIRST_DAY, time(8), UTC)
        self.kept = Kept(self.settings, self.lake)
        use_encoder(monkeypatch, WordEncoder())
        monkeypatch.setattr("memory_pipeline.defs.placement.load_settings", lambda folder: self.settings)
        self._said: dict[Path, list[Entry]] = {}
        clock = type("Clock", (datetime,), {"now": lambda zone=None: self.now})
        for module in CLOCKS:
            monkeypatch.setattr(f"memory_pipeline.{module}.datetime", clock)

    @property
    def today(self) -> date:
        return self.now.date()

    # what the person does

    def says(self, *texts: str, clock: str = "16:00") -> Path:
        """A session of today in which the person lays these things down, beside talk that holds nothing."""
        at = datetime.combine(self.today, time.fromisoformat(clock), UTC)
        entries = conversation(at, users=5, topic=f"ticket {self.today:%j}")
        for number, text in enumerate(texts):
            moment = at + timedelta(minutes=20 + 2 * number)
            entries += [user(moment, text), assistant(moment + timedelta(minutes=1), "All right.")]
        path = self.sessions / f"said-{self.today}.jsonl"
        self._said[path] = entries
        return write_session(path, *entries)

    def goes_on(self, path: Path, text: str) -> None:
        """The session is taken up again today."""
        self._said[path].append(user(datetime.combine(self.today, time(9), UTC), text))
        write_session(path, *self._said[path])

    def works(self, session: str) -> None:
        """A bundled example (`pi/…`), told as of today; a name is as long as it must be to be the only one."""
        (path,) = (p for p in EXAMPLES.rglob("*.jsonl") if session in f"{p.relative_to(EXAMPLES)}")
        self._told_today(path)

    def really_works(self, session: str) -> None:
        """A recorded session, told as of today; nothing where these are not there."""
        if FIXTURES.is_dir():
            (path,) = (p for p in FIXTURES.rglob("*.jsonl") if session in f"{p.relative_to(FIXTURES)}")
            self._told_today(path)

    def writes_into(self, path: Path, old: str, new: str) -> None:
        """By hand, in an editor."""
        text = path.read_text("utf-8")
        assert text.count(old) == 1, f"{path.name} has {old!r} {text.count(old)} times, so the person would be lost"
        path.write_text(text.replace(old, new), "utf-8")
        self.kept.by_hand()

    def reviews(
        self,
        *,
        approves: Sequence[str] = (),
        edits: Mapping[str, str] | None = None,
        rejects: Sequence[str] = (),
        deletes: Sequence[str] = (),
    ) -> None:
        """The person finds lines by their words in REVIEW.md, saves it, and the sensor has it read."""
        text = self.settings.review_file.read_text("utf-8")
        for words in [*approves, *(edits or {}), *rejects, *deletes]:
            line = self.line_of(words)
            new = line.replace("[ ]", "[-]" if words in rejects else "[x]", 1)
            for old, edited in (edits or {}).items():
                new = new.replace(old, edited) if words == old else new
            text = text.replace(f"{line}\n", "" if words in deletes else f"{new}\n")
        self.saves_review(text)

    def saves_review(self, text: str) -> None:
        self.settings.review_file.write_text(text, "utf-8")
        minute_ago = datetime.now(UTC).timestamp() - 60
        os.utime(self.settings.review_file, (minute_ago, minute_ago))
        asked = self._asked(review_sensor)
        assert len(asked) == 1, f"{self.today}: REVIEW.md was saved and nobody would read what the person decided"
        self._run("review_job", tags=dict(asked[0].tags))
        os.utime(self.settings.review_file, (minute_ago, minute_ago))
        assert not self._asked(review_sensor), f"{self.today}: REVIEW.md would be read again and again"

    # what happens by itself

    def night_passes(self) -> None:
        """At six the schedule asks for the day that ended; at half past eight the person is there."""
        ended = self.today
        self.now = datetime.combine(ended + timedelta(days=1), time(6), UTC)
        request = reflect_at_six(dg.build_schedule_context(scheduled_execution_time=self.now))
        assert isinstance(request, dg.RunRequest) and request.partition_key == f"{ended}", (
            f"at six on {self.today} the day that ended, {ended}, would not be reflected on"
        )
        self._run("reflect_job", partition_key=f"{ended}")
        self.now += timedelta(hours=2, minutes=30)

    def the_sensor_looks(self) -> list[date]:
        """At the session files: the days that it asks for, run."""
        asked = self._asked(session_sensor)
        for request in asked:
            self._run("day_job", partition_key=request.partition_key, tags=dict(request.tags))
        return [date.fromisoformat(f"{request.partition_key}") for request in asked]

    def runs_all_days_again(self) -> None:
        span = {"dagster/asset_partition_range_start": f"{FIRST_DAY}"}
        span["dagster/asset_partition_range_end"] = f"{FIRST_DAY + timedelta(days=DAYS - 1)}"
        self._run("reflect_job", tags=span)
        self._run("review_job")

    # what can be seen

    def line_of(self, words: str) -> str:
        """The line of REVIEW.md with just this text."""
        found = [line for line in self.offered() if line.partition("` ")[2] == words]
        assert len(found) == 1, f"{self.today}: {words!r} is in REVIEW.md {len(found)} times; a person could not decide"
        return found[0]

    def offered(self) -> list[str]:
        text = self.settings.review_file.read_text("utf-8")
        return [line for line in text.splitlines() if _ITEM.match(line)]

    def offers(self, words: str) -> bool:
        return any(line.partition("` ")[2] == words for line in self.offered())

    def id_of(self, words: str) -> str:
        """The proposal that was made with this text."""
        found: list[str] = self.lake.read("proposals").filter(text=words)["proposal_id"].to_list()
        assert len(found) == 1, f"{words!r} was proposed {len(found)} times; a person should be asked once"
        return found[0]

    def end_of(self, words: str) -> str:
        """History; "pending" when nothing has yet."""
        return self.kept.ends.get(self.id_of(words), "pending")

    def remembered(self) -> str:
        path = self.settings.memory_file
        return path.read_text("utf-8") if path.exists() else ""

    def log_of(self, day: date) -> str:
        path = self.settings.daily_log(day)
        return path.read_text("utf-8") if path.exists() else ""

    def _told_today(self, path: Path) -> None:
        (self.sessions / path.name).write_bytes(redated(path.read_bytes(), self.today))

    def _asked(self, sensor: dg.SensorDefinition) -> list[dg.RunRequest]:
        with dg.build_sensor_context(self.instance, resources={"workspace": WorkspaceResource()}) as context:
            answer = sensor(context)
        return list(answer.run_requests or []) if isinstance(answer, dg.SensorResult) else []

    def _run(self, job: str, **options: Any) -> None:
        """Run it to the end; all of its checks must pass, and all that must always hold must hold after it."""
        result = defs.resolve_job_def(job).execute_in_process(
            instance=self.instance, run_config=_QUIET, raise_on_error=True, **options
        )
        red = [check.check_name for check in result.get_asset_check_evaluations() if not check.passed]
        assert not red, f"{self.now:%Y-%m-%d %H:%M}: {job} told a person that something is wrong: {red}"
        self.kept.look(self.now)


def redated(session: bytes, day: date) -> bytes:
    """The session as it would have been recorded had it begun on the day, at the same times."""
    first = _STAMP.search(session)
    assert first, "a session without times cannot be told as of another day"
    moved = day - date.fromisoformat(first["day"].decode())
    told = _STAMP.sub(
        lambda m: f"{date.fromisoformat(m['day'].decode()) + moved}".encode() + m["clock"],
        session,
    )
    return _MILLISECONDS.sub(lambda m: f"{int(m[0]) + round(moved.total_seconds() * 1000)}".encode(), told)


@contextmanager
def three_weeks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreeWeeks]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield ThreeWeeks(folder, monkeypatch, instance)
