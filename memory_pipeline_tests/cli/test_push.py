"""`memory admin push`: what was said on a laptop comes to a lake in a bucket, redacted and whole; nothing else does."""

from __future__ import annotations

import signal
import time
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from itertools import count
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.lake.object_storage import ObjectStorage
from memory_pipeline.lake.store import Lake
from memory_pipeline.redaction.forgotten import WORDS, words_digest, words_in
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.pushing import Pushed, prepare, push_days
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import keep_timezone, load_settings, workspace_salt
from memory_pipeline.stages import Built, bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cli.command import Command, memory, memory_json
from memory_pipeline_tests.conftest import conversation, tool, user, write_session
from memory_pipeline_tests.examples import stride
from memory_pipeline_tests.lake.object_server import BUCKET, ObjectServer
from memory_pipeline_tests.lake.workers import frame, push_from, started
from memory_pipeline_tests.rows import at, workspace

NUMBERS = count()
DAYS = [date(2025, 3, 5) + timedelta(days=number) for number in range(3)]
TOKEN = "ghp_" + "A1b2C3d4E5" * 3 + "F6g7H8"


@pytest.fixture
def url(server: ObjectServer) -> str:
    return f"s3://{BUCKET}/person-{next(NUMBERS)}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sessions of three days."""
    for number in range(3):
        grown(tmp_path / "sessions", number, users=5)
    return tmp_path / "sessions"


def grown(folder: Path, number: int, users: int) -> None:
    """The session of a day, with so many words of its user."""
    talk = conversation(f"{DAYS[number]}T09:00:00", users, f"part {number}")
    write_session(folder / f"s{number}.jsonl", *talk)


def stored(url: str) -> dict[str, bytes]:
    """Every object of the lake."""
    storage = ObjectStorage(url)
    return {file.key: storage.read(file) for file in storage._listed("")}


def said(url: str) -> dict[date, int]:
    """How many messages the lake has of each day."""
    return dict(Lake(ObjectStorage(url)).read("messages").group_by("day").len().iter_rows())


class Machine:
    """A laptop, or a server that reads no sessions, in this process: its workspace over the lake."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, workspace: Path, url: str, sessions: Path | None = None
    ) -> None:
        monkeypatch.setenv("MEMORY_WORKSPACE", f"{workspace}")
        monkeypatch.setenv("MEMORY_LAKE", url)
        monkeypatch.setenv("MEMORY_SESSION_DIRS", f"{sessions or ''}")
        self.settings = load_settings()
        prepare(self.settings)
        self.catalogue = Catalogue(Lake.from_settings(self.settings), self.settings)

    def look(self) -> None:
        self.catalogue.refresh(find_sources(roots(self.settings)), is_stored=False)

    def push(self) -> list[Pushed]:
        self.look()
        return list(push_days(self.catalogue))

    @property
    def stage(self) -> SessionsStage:
        return SessionsStage(Workspace(self.settings, self.catalogue.lake), self.catalogue, datetime.now(UTC))

    def run(self) -> list[Built]:
        """The first stage, as `memory run` does it; the days that it made anew."""
        built = [bring_up_to_date(self.stage, self.catalogue.lake, day) for day in self.catalogue.days()]
        return [day for day in built if day]


# --- what is sent ---


def test_only_what_was_said_is_sent_and_only_once(server: ObjectServer, url: str, folder: Path, tmp_path: Path) -> None:
    first = memory(tmp_path, "admin", "push", url, "--sessions", f"{folder}", env=server.env)
    assert first.returncode == 0, first.stderr
    assert first.stdout == f"Sent to {url}: 3 of 3 days, with 30 messages.\n"
    assert said(url) == dict.fromkeys(DAYS, 10)
    assert {key.partition("/")[0] for key in stored(url)} == {"sessions", "messages", "windows", "files", "marks"}

    server.counts.clear()
    again = memory(tmp_path, "admin", "push", url, "--sessions", f"{folder}", env=server.env)
    assert again.stdout == f"{url} is up to date: nothing was sent.\n"
    assert not server.counts["PUT"] and not server.counts["DELETE"]
    assert not list((tmp_path / ".memory-pipeline").glob("lake/*/*.parquet"))


def test_of_a_session_that_has_grown_its_day_is_sent(
    server: ObjectServer, url: str, folder: Path, tmp_path: Path
) -> None:
    memory(tmp_path, "admin", "push", url, "--sessions", f"{folder}", env=server.env)
    before = stored(url)
    grown(folder, 1, users=7)
    days = memory_json(tmp_path, "admin", "push", url, "--sessions", f"{folder}", env=server.env)["days"]
    assert [day["is_sent"] for day in days] == [False, True, False] and days[1]["messages"] == 14
    after = stored(url)
    assert before.keys() == after.keys()
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {
        "files/all.parquet",
        *(f"{table}/{DAYS[1]}.parquet" for table in ("sessions", "messages", "windows")),
    }


def test_a_request_a_day_is_not_needed_to_find_that_nothing_is_new(
    url: str, server: ObjectServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Machine(monkeypatch, tmp_path / "laptop", url, folder).push()
    server.counts.clear()
    assert not any(day.is_sent for day in Machine(monkeypatch, tmp_path / "laptop", url, folder).push())
    few = server.counts.total()
    for number in range(20):
        write_session(folder / f"early-{number}.jsonl", *conversation(f"2025-01-{number + 5:02}T09:00:00"))
    Machine(monkeypatch, tmp_path / "laptop", url, folder).push()
    server.counts.clear()
    assert not any(day.is_sent for day in Machine(monkeypatch, tmp_path / "laptop", url, folder).push())
    assert server.counts.total() == few


def test_what_only_the_tables_of_the_laptop_have_can_be_copied_before_and_stays(
    url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, lake = workspace(tmp_path / "laptop", session_dirs=(folder,))
    keep_timezone(settings)
    catalogue = Catalogue(lake, settings)
    catalogue.refresh(find_sources(roots(settings)))
    for day in catalogue.days():
        bring_up_to_date(SessionsStage(Workspace(settings, lake), catalogue, datetime.now(UTC)), lake, day)
    (folder / "s1.jsonl").unlink()  # by its harness
    storage = ObjectStorage(url)
    for path in lake.root.glob("*/*.parquet"):
        storage.write(f"{path.relative_to(lake.root)}", path.read_bytes())
    assert not any(day.is_sent for day in Machine(monkeypatch, tmp_path / "laptop", url, folder).push())
    assert said(url) == dict.fromkeys(DAYS, 10)


def test_a_secret_reaches_no_object(server: ObjectServer, url: str, tmp_path: Path) -> None:
    said_at = f"{DAYS[0]}T09:00:00"
    talk = [user(said_at, f"Use {TOKEN} for the API."), tool(said_at, f"Authorization: Bearer {TOKEN}")]
    write_session(tmp_path / "sessions" / "s.jsonl", *talk, cwd=f"/src/{TOKEN}")
    done = memory(tmp_path, "admin", "push", url, "--sessions", f"{tmp_path / 'sessions'}", env=server.env)
    assert done.returncode == 0, done.stderr
    texts = {}
    for key, data in stored(url).items():
        assert TOKEN.encode() not in data, key
        if key.endswith(".parquet"):
            texts[key] = pl.read_parquet(BytesIO(data)).write_json()
    assert "[redacted:github-token:" in texts[f"messages/{DAYS[0]}.parquet"]
    assert not [key for key, text in texts.items() if TOKEN in text or TOKEN[4:30] in text]


# --- stopped, and several machines ---


@pytest.mark.slow
def test_killed_between_any_two_requests_and_called_again_nothing_is_lost_or_there_twice(
    server: ObjectServer, url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a server makes memory of what is there in between."""
    (folder / "s2.jsonl").unlink()
    laptop = tmp_path / "laptop"
    (laptop / "lake").mkdir(parents=True)
    (laptop / "lake" / "salt").write_bytes(b"0123456789abcdef")
    push_from(laptop, f"{url}/whole", folder)
    whole = stored(f"{url}/whole")
    for requests in count(step=stride(5)):
        place = f"{url}/{requests}"
        process = started(server.env, push_from, laptop, place, folder)
        server.kill_after(process.pid or 0, requests)
        process.join(60)
        server.kill_after(0, 0)
        assert process.exitcode in (0, -signal.SIGKILL)
        Machine(monkeypatch, tmp_path / f"server-{requests}", place).run()
        push_from(laptop, place, folder)
        assert stored(place) == whole, f"after {requests} requests"
        server.counts.clear()
        Machine(monkeypatch, tmp_path / f"server-{requests}", place).run()
        assert not server.counts["PUT"]
        if process.exitcode == 0:
            break
    assert requests > 30


def test_what_is_known_of_a_file_is_sent_after_what_was_said_in_it(
    url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a server would take the day for one that has nothing, and the laptop would take it for sent."""
    laptop = Machine(monkeypatch, tmp_path / "laptop", url, folder)
    laptop.look()
    pushing = push_days(laptop.catalogue)
    next(pushing)  # and killed
    server = Machine(monkeypatch, tmp_path / "server", url)
    assert not server.catalogue.rows and said(url) == {DAYS[0]: 10}
    assert [day.is_sent for day in Machine(monkeypatch, tmp_path / "laptop", url, folder).push()] == [False, True, True]
    assert said(url) == dict.fromkeys(DAYS, 10)


def test_two_laptops_of_one_person_agree_on_zone_and_salt_and_keep_each_others_words(
    server: ObjectServer, url: str, folder: Path, tmp_path: Path
) -> None:
    secret = user(f"{DAYS[0]}T23:30:00", f"Use {TOKEN} for the API.")
    write_session(folder / "late.jsonl", secret)
    write_session(tmp_path / "others" / "late-too.jsonl", secret, session_id="late-too")
    one, two = tmp_path / "one", tmp_path / "two"
    assert memory(one, "admin", "push", url, "--sessions", f"{folder}", env=server.env).returncode == 0
    travelling = server.env | {"TZ": "Asia/Tokyo"}  # where it is the next day already
    done = memory(two, "admin", "push", url, "--sessions", f"{tmp_path / 'others'}", env=travelling)
    assert done.returncode == 0, done.stderr
    assert said(url) == {DAYS[0]: 12, DAYS[1]: 10, DAYS[2]: 10}
    marks = Lake(ObjectStorage(url)).read("messages").filter(pl.col("text").str.contains("redacted"))["text"]
    assert len(marks) == 2 and marks.n_unique() == 1
    assert [path.read_text() for path in sorted(tmp_path.glob("*/.memory-pipeline/lake/timezone"))] == ["UTC\n"] * 2
    for home, sessions in ((one, folder), (two, tmp_path / "others")):
        # the first has to learn that a day has another session, and then both know
        memory(home, "admin", "push", url, "--sessions", f"{sessions}", env=server.env)
    server.counts.clear()
    for home, sessions in ((one, folder), (two, tmp_path / "others")):
        assert (
            "nothing was sent" in memory(home, "admin", "push", url, "--sessions", f"{sessions}", env=server.env).stdout
        )
    assert not server.counts["PUT"] and said(url) == {DAYS[0]: 12, DAYS[1]: 10, DAYS[2]: 10}


def test_of_two_machines_that_write_a_day_at_once_neither_loses_its_words(
    url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(tmp_path / "others" / "other.jsonl", *conversation(f"{DAYS[0]}T12:00:00", topic="another"))
    two = Machine(monkeypatch, tmp_path / "two", url, tmp_path / "others")
    two.look()
    build, tries = SessionsStage.build, []

    def meanwhile(stage: SessionsStage, day: date) -> Built:
        built = build(stage, day)
        tries.append(day)
        if len(tries) == 1:  # the first has read the day, and not yet written it
            list(push_days(two.catalogue))
        return built

    one = Machine(monkeypatch, tmp_path / "one", url, folder)
    monkeypatch.setattr(SessionsStage, "build", meanwhile)
    one.push()
    assert tries == [DAYS[0], DAYS[0], DAYS[0], DAYS[1], DAYS[2]]
    assert said(url) == {DAYS[0]: 20, DAYS[1]: 10, DAYS[2]: 10}


def test_a_server_leaves_what_was_sent_as_it_is_and_opens_no_file_that_it_names(
    url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, another person's session may lie at the same path."""
    Machine(monkeypatch, tmp_path / "laptop", url, folder).push()
    sent = stored(url)
    for number in range(3):
        grown(folder, number, users=7)
    monkeypatch.setattr(Catalogue, "_reader", "of a later version")
    server = Machine(monkeypatch, tmp_path / "server", url)
    assert len(server.catalogue.rows) == 3 and not server.run() and stored(url) == sent
    assert [server.catalogue.session(key) for key in server.catalogue.rows] == [None] * 3
    server.catalogue.refresh([])
    assert stored(url) == sent


def test_a_look_at_the_state_of_a_laptop_sends_nothing(
    server: ObjectServer, url: str, folder: Path, tmp_path: Path
) -> None:
    """Nor does it have the server take a day for one that was sent."""
    assert memory(tmp_path, "admin", "push", url, "--sessions", f"{folder}", env=server.env).returncode == 0
    grown(folder, 2, users=7)
    server.counts.clear()
    env = server.env | {"MEMORY_LAKE": url, "MEMORY_SESSION_DIRS": f"{folder}"}
    told = memory(tmp_path, "status", env=env).stdout
    assert f"days to be sent         1 (last {DAYS[2]}); `memory admin push`" in told and "problem" not in told
    assert "none here: another machine processes" in memory(tmp_path, "doctor", env=env).stdout
    assert not server.counts["PUT"]
    memory(tmp_path, "admin", "push", env=env)
    assert said(url) == {DAYS[0]: 10, DAYS[1]: 10, DAYS[2]: 14}


# --- what is forgotten ---


def test_what_one_machine_was_told_to_forget_no_other_brings_back(
    server: ObjectServer, url: str, folder: Path, tmp_path: Path
) -> None:
    words = "I looked at part 1, part 3."
    settings, lake = workspace(tmp_path / "one" / ".memory-pipeline")
    sequence = [word.text for word in words_in(words)]
    digest = words_digest(workspace_salt(settings), sequence)
    row = {"kind": WORDS, "digest": digest, "words": len(sequence), "forgotten_at": at()}
    lake.replace_all("forgotten", frame("forgotten", row))  # by `memory forget`, when the tables were on the laptop
    assert memory(tmp_path / "one", "admin", "push", url, "--sessions", f"{folder}", env=server.env).returncode == 0
    texts = Lake(ObjectStorage(url)).read("messages")["text"]
    assert len(texts) == 30 and words not in set(texts)
    # the same words on another laptop of theirs
    write_session(tmp_path / "others" / "other.jsonl", *conversation(f"{DAYS[1]}T12:00:00", topic="part 1"))
    done = memory(tmp_path / "two", "admin", "push", url, "--sessions", f"{tmp_path / 'others'}", env=server.env)
    assert done.returncode == 0, done.stderr
    texts = Lake(ObjectStorage(url)).read("messages")["text"]
    assert len(texts) == 40 and words not in set(texts)


@pytest.mark.slow
def test_what_is_forgotten_over_the_lake_the_laptop_sends_no_more(
    server: ObjectServer, url: str, folder: Path, tmp_path: Path
) -> None:
    words, call = "I looked at part 1, part 3.", ("admin", "push", url, "--sessions", f"{folder}")
    assert memory(tmp_path / "laptop", *call, env=server.env).returncode == 0
    assert words in set(Lake(ObjectStorage(url)).read("messages")["text"])
    env = server.env | {"MEMORY_LAKE": url, "MEMORY_DEFAULT_SESSION_DIRS": "false"}
    done = memory(tmp_path / "server", "forget", words, "--yes", env=env)
    assert done.returncode == 0, done.stderr
    for users in (5, 7):  # the day is read again, and later its session grows
        grown(folder, 1, users)
        told = memory(tmp_path / "laptop", *call, env=server.env).stdout
        assert f"Sent to {url}: 1 of 3 days, with {2 * users} messages." in told
        texts = set(Lake(ObjectStorage(url)).read("messages", [DAYS[1]])["text"])
        assert words not in texts and "I looked at part 1, part 4." in texts


# --- what is refused ---


def refused(home: Path, *args: str, env: dict[str, str], code: int) -> str:
    result = memory(home, *args, env=env)
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


def test_another_zone_than_the_lakes_is_refused(server: ObjectServer, url: str, folder: Path, tmp_path: Path) -> None:
    call = ("admin", "push", url, "--sessions", f"{folder}")
    assert memory(tmp_path / "one", *call, env=server.env).returncode == 0
    before = stored(url)
    env = server.env | {"MEMORY_TIMEZONE": "Asia/Tokyo"}
    told = refused(tmp_path / "two", *call, env=env, code=2)
    assert "MEMORY_TIMEZONE='Asia/Tokyo'" in told and "was made with UTC; keep that zone" in told
    # a workspace that has had its own for long
    marks = tmp_path / "three" / ".memory-pipeline" / "lake"
    marks.mkdir(parents=True)
    (marks / "timezone").write_text("Asia/Tokyo\n")
    told = refused(tmp_path / "three", *call, env=server.env, code=1)
    assert (
        f"The lake {url} has another time zone than the workspace" in told and "Name another MEMORY_WORKSPACE" in told
    )
    (marks / "timezone").write_text("UTC\n")
    (marks / "salt").write_bytes(b"another salt of 16 bytes")
    assert f"The lake {url} has another salt" in refused(tmp_path / "three", *call, env=server.env, code=1)
    assert stored(url) == before


def test_what_cannot_be_pushed_is_one_sentence(server: ObjectServer, url: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    sessions = ("--sessions", f"{folder}")
    nowhere = "There is no bucket to push to: give one such as s3://bucket/prefix"
    env = server.env
    assert nowhere in refused(tmp_path, "admin", "push", *sessions, env=env, code=2)
    assert nowhere in refused(tmp_path, "admin", "push", f"file://{tmp_path}/lake", *sessions, env=env, code=2)
    assert "No session was found in" in refused(
        tmp_path, "admin", "push", url, "--sessions", f"{tmp_path / 'empty'}", env=env, code=1
    )
    assert "no directory to look in" in refused(
        tmp_path, "admin", "push", url, env=env | {"MEMORY_DEFAULT_SESSION_DIRS": "false"}, code=1
    )
    plain = env | {"MEMORY_REDACT": "false"}
    assert "would send secrets to the bucket" in refused(tmp_path, "admin", "push", url, *sessions, env=plain, code=2)
    missing = refused(tmp_path / "m", "admin", "push", "s3://no-such-bucket/ana", *sessions, env=env, code=1)
    assert "The bucket of s3://no-such-bucket/ana does not exist" in missing
    assert not stored(url)


def test_no_permission_is_one_sentence_and_throttling_is_waited_out(
    server: ObjectServer, url: str, folder: Path, tmp_path: Path
) -> None:
    call = ("admin", "push", url, "--sessions", f"{folder}")
    assert "credentials that may list, read, write" in refused(
        tmp_path, *call, env=server.may_only("of-another", "another/"), code=1
    )
    server.answer_with(503, times=5)
    assert memory(tmp_path, *call, env=server.env).returncode == 0
    assert said(url) == dict.fromkeys(DAYS, 10)


def test_days_before_the_lakes_first_are_said_and_not_sent(
    server: ObjectServer, url: str, folder: Path, tmp_path: Path
) -> None:
    assert memory(tmp_path / "one", "admin", "push", url, "--sessions", f"{folder}", env=server.env).returncode == 0
    write_session(tmp_path / "others" / "old.jsonl", *conversation("2025-01-10T09:00:00"))
    call = ("admin", "push", url, "--sessions", f"{tmp_path / 'others'}")
    assert (
        f"1 days before {DAYS[0]} or in the future are left out"
        in memory(tmp_path / "two", *call, env=server.env).stdout
    )
    env = server.env | {"MEMORY_START_DATE": "2025-01-01"}
    assert memory(tmp_path / "two", *call, env=env).returncode == 0
    assert date(2025, 1, 10) in said(url)


def test_a_server_without_sessions_waits_for_a_push_and_shows_no_examples(
    server: ObjectServer, url: str, tmp_path: Path
) -> None:
    told = refused(tmp_path, "run", "--no-review", env=server.env | {"MEMORY_LAKE": url}, code=1)
    assert f"nothing was pushed to {url}: run `memory admin push` on the machine with the sessions" in told
    assert not stored(url)


def test_a_day_that_fails_stops_no_other_and_is_sent_by_the_next_push(
    url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = SessionsStage.build

    def fails(stage: SessionsStage, day: date) -> Built:
        if day == DAYS[1]:
            raise ValueError("a mistake in the code")
        return build(stage, day)

    monkeypatch.setattr(SessionsStage, "build", fails)
    done = Machine(monkeypatch, tmp_path / "laptop", url, folder).push()
    assert [day.failure for day in done] == ["", "ValueError: a mistake in the code", ""]
    # the server must not take the day for one that was sent
    assert not Lake(ObjectStorage(url)).read("files")["path"].str.ends_with("s1.jsonl").any()
    monkeypatch.setattr(SessionsStage, "build", build)
    Machine(monkeypatch, tmp_path / "server", url).run()
    assert [d.is_sent for d in Machine(monkeypatch, tmp_path / "laptop", url, folder).push()] == [False, True, False]
    assert said(url) == dict.fromkeys(DAYS, 10)


def test_a_push_that_a_user_stops_says_so(server: ObjectServer, url: str, folder: Path, tmp_path: Path) -> None:
    assert memory(tmp_path, "admin", "push", url, "--sessions", f"{folder}", env=server.env).returncode == 0
    grown(folder, 1, users=7)
    server.counts.clear()
    server.answer_with(503)
    command = Command(tmp_path, "admin", "push", url, "--sessions", f"{folder}", env=server.env)
    while not server.counts:
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    stopped = command.result()
    assert stopped.returncode == 130, stopped.stderr
    assert "The push was stopped. The next one sends the rest." in stopped.stderr and "Traceback" not in stopped.stderr
