"""What a person writes into a day's log is reflected on with the day, and leads back to its file and line."""

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.days import today
from memory_pipeline.defs.jobs import ARCHIVE_JOB
from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.cards import evidence_lines
from memory_pipeline.proposals.events import APPROVED, ProposalLog
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.reflections.extractive import ExtractiveReflector
from memory_pipeline.reflections.stage import ReflectionsStage, why_not_reflected
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import INCOMPLETE, bring_up_to_date, is_current
from memory_pipeline.workspace.daily_log.archive import archive_logs
from memory_pipeline.workspace.daily_log.notes import days_with_notes, notes_fingerprint, written_notes
from memory_pipeline.workspace.daily_log.render import write_log_blocks
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.conftest import conversation, write_session
from memory_pipeline_tests.loaded import defs
from memory_pipeline_tests.rows import DAY, FakeEncoder, Opened, at, bytes_of, day_after, observation, put, workspace

FRIDAY, UV = "Never deploy on a Friday.", "Always use uv for Python."
LOG = f"# Log\n\n{FRIDAY}\n\nThe build was slow today, it seems.\n"


@dataclass
class Work(Opened):
    def write(self, text: str, day: date = DAY) -> Path:
        path = self.settings.daily_log(day)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def stage(self) -> ReflectionsStage:
        return ReflectionsStage(self.workspace, ExtractiveReflector(), FakeEncoder("uv"))

    def run(self, day: date = DAY) -> bool:
        return bring_up_to_date(self.stage(), self.lake, day)

    def propose(self, day: date = DAY) -> dict[str, str]:
        self.run(day)
        bring_up_to_date(ProposalsStage(self.workspace), self.lake, day)
        return dict(self.lake.read("proposals", [day]).select("text", "proposal_id").iter_rows())

    def lines(self, day: date = DAY) -> list[str]:
        return sorted(self.lake.read("reflections", [day])["text"])

    def notes(self) -> list[str]:
        return self.lake.read("notes")["text"].to_list()


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(*workspace(tmp_path / "workspace"))


def test_the_row_of_a_note(work: Work) -> None:
    path = work.write(LOG)
    work.run()
    rule, told = work.lake.read("notes").to_dicts()
    assert rule.pop("note_id").startswith("n-20250305-")
    place = {"day": DAY, "source_file": str(path)}
    assert rule == place | {"line": 3, "text": FRIDAY, "kind": "rule", "priority": "high"}
    assert (told["line"], told["kind"], told["priority"]) == (5, "statement", "medium")


def test_a_day_with_notes_alone_has_something_to_say(work: Work) -> None:
    work.write(LOG)
    work.run()
    row = next(r for r in work.lake.read("reflections").to_dicts() if r["text"] == FRIDAY)
    assert (row["section"], row["priority"], row["trust"], row["sessions"]) == ("Hard Rules", "high", "user", 1)
    assert row["sources"] == [work.lake.read("notes")["note_id"][0]]
    assert row["last_seen"] == at("12:00")


def test_notes_stand_beside_what_was_observed_also_of_the_days_before(work: Work) -> None:
    work.write(FRIDAY, day_after(-6))
    work.write("Never deploy anything at night.", day_after(-7))  # too long ago
    put(work.lake, "observations", observation(UV), observation(FRIDAY, session="s2"))
    work.run()
    row = next(r for r in work.lake.read("reflections").to_dicts() if r["text"] == FRIDAY)
    assert (row["support"], row["sessions"]) == (2, 2)
    assert work.lines() == [UV, FRIDAY]


@pytest.mark.parametrize("log", [None, "", "# 2025-03-05\n", "# 2025-03-05\n\n- [ ] buy milk\n"])
def test_a_log_without_a_note_changes_no_byte(work: Work, log: str | None, tmp_path: Path) -> None:
    other = Work(*workspace(tmp_path / "other"))
    for each in (work, other):
        put(each.lake, "observations", observation(UV))
    if log is not None:
        work.write(log)
        write_log_blocks(work.settings.daily_log(DAY), DAY, {"reflection": FRIDAY}, backups=work.settings.backups)
    work.run(), other.run()
    assert bytes_of(work.settings.lake_dir) == bytes_of(other.settings.lake_dir)


def test_what_we_write_into_the_log_makes_no_day_stale(work: Work) -> None:
    path = work.write(LOG)
    assert work.run() and not work.run()
    before = bytes_of(work.settings.lake_dir)
    write_log_blocks(path, DAY, {"observations:1": "Something else.", "reflection": UV}, backups=work.settings.backups)
    assert not work.run()
    assert bytes_of(work.settings.lake_dir) == before


@pytest.mark.parametrize(("offset", "stale"), [(0, True), (-6, True), (-7, False), (1, False)])
def test_a_note_makes_the_days_stale_that_look_at_it(work: Work, offset: int, stale: bool) -> None:
    put(work.lake, "observations", observation(UV))
    work.run()
    work.write(LOG, day_after(offset))
    assert is_current(work.stage(), work.lake, DAY) is not stale


def test_a_note_that_is_taken_out_is_gone_and_one_that_moves_is_not_new(work: Work) -> None:
    work.write(LOG)
    work.run()
    work.write(f"# Log\n\nThe build was slow today, it seems.\n\n\n{FRIDAY}\n")
    assert not work.run()
    work.write("# Log\n\nThe build was slow today, it seems.\n")
    assert work.run()
    assert work.notes() == ["The build was slow today, it seems."]
    work.write("# Log\n")
    assert work.run() and not work.run()
    assert (work.notes(), work.lines()) == ([], [])


def test_of_a_log_that_is_gone_the_notes_stay(work: Work) -> None:
    work.write(LOG).unlink()
    assert notes_fingerprint(Workspace(work.settings, work.lake), [DAY]) == ""
    path = work.write(LOG)
    work.run()
    path.unlink()
    assert not work.run()
    assert FRIDAY in work.notes()


def test_a_log_that_cannot_be_read_is_an_error_of_the_run_and_not_of_the_plan(work: Work) -> None:
    path = work.write(LOG)
    work.run()
    path.unlink()
    path.mkdir()
    assert not is_current(work.stage(), work.lake, DAY)
    with pytest.raises(IsADirectoryError):
        work.run()
    assert FRIDAY in work.notes()


def test_secrets_and_what_is_private_are_not_stored(work: Work) -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nabcdef0123456789\n-----END RSA PRIVATE KEY-----"
    work.write(
        f"Never commit ghp_012345678901234567890123456789abcdef anywhere.\n\n<private>\nMy own matter.\n\nOf mine.\n"
        f"</private>\n\n{key}\n\nAlways mind line fourteen.\n"
    )
    work.run()
    lines = dict(work.lake.read("notes").select("line", "text").iter_rows())
    assert lines[14] == "Always mind line fourteen."
    assert lines[1].startswith("Never commit [redacted:github-token:")
    stored = b"".join(bytes_of(work.settings.lake_dir).values())
    assert not any(secret in stored for secret in (b"ghp_0123", b"own matter", b"MIIEpAIB"))


def test_bytes_that_are_no_utf8_and_hidden_characters_do_no_harm(work: Work) -> None:
    work.settings.log_dir.mkdir(parents=True)
    work.settings.daily_log(DAY).write_bytes(
        b"\xef\xbb\xbfNever trust \xff bytes.\r\n\r\nNever\xe2\x80\x8b hide it.\r\n"
    )
    work.run()
    assert work.notes() == ["Never trust \ufffd bytes.", "Never hide it."]


def test_a_rule_that_was_written_down_is_offered_with_where_it_stands(work: Work) -> None:
    work.write(f"{LOG}\nShould we use uv?\n")
    ids = work.propose()
    assert list(ids) == [FRIDAY]
    (proposal,) = work.lake.read("proposals").to_dicts()
    line = evidence_lines(work.workspace, ProposalLog(work.lake), [proposal])[ids[FRIDAY]]
    assert line == "2025-03-05 · you, by hand in the day's log"
    path = work.settings.daily_log(DAY)
    assert "**Proposed**: 1" in path.read_text("utf-8")
    assert work.propose() == ids and is_current(work.stage(), work.lake, DAY)

    now = at("18:00", day_after(1))
    assert decide(Workspace(work.settings, work.lake), {ids[FRIDAY]: APPROVED}, now) == {}
    assert reconcile(Workspace(work.settings, work.lake), now).promoted == [ids[FRIDAY]]


def test_the_line_of_a_note_is_where_it_stands_now(work: Work) -> None:
    path = work.write(LOG)
    work.run()
    (note_id,) = (r["note_id"] for r in work.lake.read("notes").to_dicts() if r["text"] == FRIDAY)
    path.write_text(f"One more line on top.\n\n{LOG}")
    (found,) = written_notes(
        Workspace(work.settings, work.lake), [note_id, "o-123456789abc", "n-20259999-123456789abc"]
    )
    assert (found["line"], found["text"]) == (5, FRIDAY)
    path.unlink()
    assert [row["line"] for row in written_notes(Workspace(work.settings, work.lake), [note_id])] == [3]


def test_why_leads_to_file_and_line(tmp_path: Path) -> None:
    work = Work(*workspace(tmp_path / ".memory-pipeline"))
    path = work.write(LOG)
    ids = work.propose()
    note_id = work.lake.read("notes")["note_id"][0]
    (work.settings.lake_dir / "sessions").mkdir()  # a workspace that has been run
    for identifier in (note_id, ids[FRIDAY], work.lake.read("reflections").filter(text=FRIDAY)["reflection_id"][0]):
        (said,) = memory_json(tmp_path, "why", identifier)["said"]
        assert (said["quote"], said["source"], said["said_at"]) == (FRIDAY, f"{path}:3", "2025-03-05")
    assert f"2025-03-05  user in the daily log\n  “{FRIDAY}”\n  {path}:3" in memory(tmp_path, "why", note_id).stdout


@pytest.mark.slow
def test_a_day_with_notes_and_no_session_can_be_run(tmp_path: Path) -> None:
    work = Work(*workspace(tmp_path / ".memory-pipeline"))
    work.write(LOG)
    write_session(tmp_path / "sessions" / "one.jsonl", *conversation("2025-03-08T09:00:00"))
    env = {"MEMORY_SESSION_DIRS": str(tmp_path / "sessions"), "MEMORY_ARCHIVE_AFTER_DAYS": "7"}
    run = memory_json(tmp_path, "run", "--all", env=env)
    assert (run["days"], run["proposals"]["pending"]) == ([f"{DAY}", "2025-03-08"], 1)
    assert memory_json(tmp_path, "admin", "archive", env=env)["moved"] == [f"{DAY}", "2025-03-08"]
    assert "all up to date" in memory(tmp_path, "run", "--all", env=env).stderr
    assert [p.name for p in work.settings.log_dir.glob("*.md")] in ([], [f"{today(work.settings.zone)}.md"])


# --- what is done with may be archived ---


def archive(work: Work, *, dry_run: bool = False) -> tuple[list[date], dict[date, str]]:
    stage = work.stage()
    done = archive_logs(work.settings, day_after(30), lambda day: why_not_reflected(stage, day), dry_run=dry_run)
    return done.moved, done.waiting


@pytest.fixture
def old(tmp_path: Path) -> Work:
    return Work(*workspace(tmp_path / "workspace", archive_after_days=7))


def test_a_log_waits_until_its_day_is_reflected_on_with_all_that_it_says(old: Work) -> None:
    old.write(LOG)
    again = f"`memory run --from {DAY} --to {DAY}`"
    assert archive(old) == ([], {DAY: f"it was not reflected on; {again}"})
    old.run()
    old.write(f"{LOG}\n{UV}\n")
    assert archive(old) == ([], {DAY: f"it has changed since it was reflected on; {again}"})
    old.run()
    assert archive(old, dry_run=True) == ([DAY], {})
    assert archive(old) == ([DAY], {})
    assert old.settings.archived_log(DAY).exists()


@pytest.mark.parametrize("table", ["observations", "reflections"])
def test_a_day_that_waits_for_a_model_is_not_archived(old: Work, table: str) -> None:
    old.write(LOG)
    old.run()
    old.lake.replace(table, old.lake.read(table, [DAY]), [DAY], {DAY: INCOMPLETE})
    assert "waits for a model" in archive(old)[1][DAY]


def test_an_archived_log_makes_nothing_stale_and_goes_on_where_it_is(old: Work) -> None:
    old.write(LOG)
    old.write(LOG, day_after(1))
    old.propose(), old.propose(day_after(1))
    archive(old)
    before = bytes_of(old.settings.lake_dir)
    assert not old.run() and not old.run(day_after(1))
    assert bytes_of(old.settings.lake_dir) == before
    assert days_with_notes(Workspace(old.settings, old.lake)) == [DAY, day_after(1)]
    path = old.settings.archived_log(DAY)
    assert written_notes(Workspace(old.settings, old.lake), old.lake.read("notes")["note_id"])[0]["source_file"] == str(
        path
    )

    path.write_text(path.read_text() + f"\n{UV}\n")  # a person goes on there, and so do we
    assert UV in old.propose()
    assert [p.name for p in old.settings.log_dir.iterdir()] == ["archive"]
    assert "**Proposed**: 2" in path.read_text()


def test_the_command_archives_and_says_what_stays(tmp_path: Path) -> None:
    work = Work(*workspace(tmp_path / ".memory-pipeline"))
    work.write("# 2025-03-05\n")
    work.write(LOG, day_after(1))
    (work.settings.lake_dir / "sessions").mkdir(parents=True)
    off = memory(tmp_path, "admin", "archive")
    assert (off.returncode, "Archiving is off" in off.stderr) == (2, True)
    env = {"MEMORY_ARCHIVE_AFTER_DAYS": "7"}
    dry = memory_json(tmp_path, "admin", "archive", "--dry-run", env=env)
    assert (dry["dry_run"], dry["moved"], list(dry["waiting"])) == (True, ["2025-03-05"], ["2025-03-06"])
    done = memory(tmp_path, "admin", "archive", env=env)
    assert done.returncode == 0
    assert f"2025-03-05 is archived as {work.settings.archived_log(DAY)}" in done.stdout
    assert "2025-03-06 stays: it was not reflected on; `memory run --from 2025-03-06 --to 2025-03-06`" in done.stdout
    assert memory(tmp_path, "log", "2025-03-05", env=env).stdout == "# 2025-03-05\n"
    assert memory(tmp_path, "admin", "archive", env={"MEMORY_ARCHIVE_AFTER_DAYS": "99999"}).stdout.endswith(
        "days old.\n"
    )


def test_the_job_archives_and_is_red_where_something_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> bool:
        return (
            defs.resolve_job_def(ARCHIVE_JOB)
            .execute_in_process(resources={"workspace": WorkspaceResource()}, raise_on_error=False)
            .success
        )

    assert not run()  # it is off
    monkeypatch.setenv("MEMORY_ARCHIVE_AFTER_DAYS", "7")
    settings = load_settings()
    work = Work(settings, Lake(settings.lake_dir))
    day = today(settings.zone) - timedelta(days=7)
    work.write("# Old\n", day)
    work.write("# New\n", day + timedelta(days=1))
    assert run()
    assert settings.archived_log(day).exists() and not settings.archived_log(day + timedelta(days=1)).exists()
    (settings.log_dir / f"{day}.md").write_text("another")
    assert not run()


def test_the_check_on_identity_files_runs_with_a_range_of_days(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It has no partitions, and the job of a day has."""
    from memory_pipeline_tests.loaded import defs

    monkeypatch.setenv("MEMORY_IDENTITY_DIRECTORY", str(tmp_path / "none"))
    span = {"dagster/asset_partition_range_start": f"{DAY}", "dagster/asset_partition_range_end": f"{day_after(1)}"}
    with dg.DagsterInstance.ephemeral() as instance:
        result = defs.resolve_job_def("day_job").execute_in_process(instance=instance, tags=span)
    (found,) = [e for e in result.get_asset_check_evaluations() if e.check_name == "identity_files"]
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "SOUL.md: missing" in found.metadata["first_offenders"].value


@pytest.mark.parametrize("damage", ["gone", "empty", "a folder"])
def test_notes_whose_table_is_lost_are_read_again(work: Work, damage: str) -> None:
    work.write(LOG)
    work.run()
    before, path = work.notes(), work.lake.path("notes", DAY)
    path.unlink()
    if damage != "gone":
        path.mkdir() if damage == "a folder" else path.write_bytes(b"")
    assert work.run() is None  # nothing else is made anew
    assert work.notes() == before and before
