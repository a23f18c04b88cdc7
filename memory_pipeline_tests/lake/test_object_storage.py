"""The lake in a bucket: the same bytes as in a folder, whole days whatever happens, one sentence when it is down."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from io import BytesIO
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from memory_pipeline.lake import object_storage as module
from memory_pipeline.lake.object_storage import LakeRefusedError, LakeUnavailableError, ObjectStorage
from memory_pipeline.lake.queries import ask
from memory_pipeline.lake.storage import VERSIONS_KEPT, ReplacedMeanwhileError
from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import SettingError, Settings, load_settings
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.cli.test_examples import demo  # noqa: F401 - a fixture
from memory_pipeline_tests.examples import stride
from memory_pipeline_tests.lake.object_server import BUCKET, ObjectServer
from memory_pipeline_tests.lake.workers import a_run, frame, spend, started, write_days
from memory_pipeline_tests.prepared import copied
from memory_pipeline_tests.rows import DAY, day_after, decision, observation, put

NUMBERS = count()


@pytest.fixture
def url(server: ObjectServer) -> str:
    return f"s3://{BUCKET}/lake-{next(NUMBERS)}"


def fresh(url: str, kept: Path | None = None) -> Lake:
    return Lake(ObjectStorage(url, kept))


def stored(url: str) -> dict[str, bytes]:
    """Every object of the lake but versions and marks."""
    storage = ObjectStorage(url)
    return {f.key: storage.read(f) for f in storage._listed("") if not f.key.startswith(("backups/", "marks/"))}


def ids(lake: Lake) -> list[str]:
    return lake.read("events")["proposal_id"].sort().to_list()


# --- as in a folder ---


def test_bytes_are_those_of_a_folder(url: str, tmp_path: Path) -> None:
    folder, far = Lake(tmp_path / "lake"), fresh(url)
    for lake in (folder, far):
        put(lake, "observations", observation("Never use npm."), observation("Use uv.", day=day_after(3)))
        put(lake, "events", decision("p-20250305-001"))
        lake.replace_all("files", pl.DataFrame({"path": ["/b", "/a"]}))
    local = {str(p.relative_to(tmp_path / "lake")): p.read_bytes() for p in (tmp_path / "lake").glob("*/*.parquet")}
    assert stored(url) == local
    days = [DAY, day_after(1), day_after(3), day_after(4)]
    assert far.digest("observations", days) == folder.digest("observations", days)
    assert far.days("observations") == folder.days("observations")
    assert far.fingerprint("observations", DAY) == folder.fingerprint("observations", DAY)
    for read in (None, days, [DAY]):
        assert_frame_equal(far.read("observations", read), folder.read("observations", read))


def test_sql_reads_the_objects_and_no_others(url: str, tmp_path: Path) -> None:
    lake = fresh(url, tmp_path / "kept")
    put(lake, "observations", observation("Never use npm."), observation("Use uv.", day=day_after(3)))
    put(lake, "events", decision("p-20250305-001"))
    query = "select day, o.text from observations o order by 1"
    assert ask(lake, query).rows == [(DAY, "Never use npm."), (day_after(3), "Use uv.")]
    assert ask(lake, "select count(*) from observations, decisions, messages").rows == [(0,)]
    assert ask(lake, "with t as (select * from decisions) select proposal_id from t").rows == [("p-20250305-001",)]
    with pytest.raises(Exception, match=r"(?i)permission|disabled"):
        ask(lake, f"select * from read_parquet('{lake.place('sessions', DAY)}')")


def test_what_was_read_is_kept_for_its_owner_alone_and_read_again_when_replaced(
    url: str, server: ObjectServer, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    put(fresh(url), "observations", *(observation(f"Rule {n}.", day=day_after(n)) for n in range(5)))
    reader = fresh(url, kept)
    first = reader.read("observations")
    server.counts.clear()
    assert_frame_equal(fresh(url, kept).read("observations"), first)
    assert server.counts == {"LIST": 2}  # whether the bucket is there, and the table
    assert {path.stat().st_mode & 0o077 for path in kept.rglob("*")} == {0}
    put(fresh(url), "observations", observation("Another rule."))
    assert "Another rule." in set(reader.read("observations")["text"])
    (kept / "observations" / f"{DAY}.parquet").write_bytes(b"half")
    assert "Another rule." in set(reader.read("observations")["text"])


def test_what_is_lost_or_damaged_is_put_back_from_its_versions(url: str) -> None:
    for number in range(5):
        put(fresh(url), "events", decision(f"p-20250305-00{number}"))
    storage, key = ObjectStorage(url), f"events/{DAY}.parquet"
    assert len(storage.backups.files("events", suffix=".parquet.")) == VERSIONS_KEPT
    storage.remove([key])
    assert len(ids(fresh(url))) == 5
    whole = stored(url)[key]
    storage.write(key, whole[:20] + b"\xff" * (len(whole) - 60) + whole[-40:])
    assert len(ids(fresh(url))) == 5
    assert stored(url)[key] == whole
    assert [aside.startswith("broken/events/") for aside in storage.put_aside()] == [True]


# --- several writers ---


@pytest.mark.slow
def test_of_two_writers_of_a_day_each_reader_sees_one_whole(url: str, server: ObjectServer) -> None:
    write_days(url, 0, 1)
    writers = [started(server.env, write_days, url, number, 15) for number in (1, 2)]
    seen = set()
    while any(writer.is_alive() for writer in writers):
        found = fresh(url).read("observations", [DAY])["text"].to_list()
        assert len(found) == 40
        seen |= {(of := {text.partition(",")[0] for text in found}).pop()}
        assert not of
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert seen & {"Writer 1", "Writer 2"}


def test_an_update_is_made_again_on_what_another_worker_wrote(url: str) -> None:
    put(fresh(url), "events", decision("p-20250305-001"))
    lake, tries = fresh(url), []

    def with_second(rows: pl.DataFrame) -> pl.DataFrame:
        tries.append(rows.height)
        if len(tries) == 1:  # meanwhile
            put(fresh(url), "events", decision("p-20250305-002"))
        return pl.concat([rows, frame("events", decision("p-20250305-003"))])

    lake.update("events", with_second, DAY)
    assert ids(fresh(url)) == ["p-20250305-001", "p-20250305-002", "p-20250305-003"]
    assert tries == [1, 2]


def test_a_write_of_a_version_that_is_gone_is_refused_and_its_own_is_none(url: str) -> None:
    storage = ObjectStorage(url)
    first = storage.write("a/1.parquet", b"one", None)
    storage.write("a/1.parquet", b"one", None)  # sent again, as its answer was lost
    storage.write("a/1.parquet", b"two", first.version)
    for expected in (None, first.version):
        with pytest.raises(ReplacedMeanwhileError):
            storage.write("a/1.parquet", b"three", expected)


@pytest.mark.slow
def test_eight_workers_of_own_workspaces_spend_one_budget(url: str, server: ObjectServer, tmp_path: Path) -> None:
    workers = [started(server.env, spend, url, tmp_path / f"w{number}") for number in range(8)]
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * 8
    rows = fresh(url).read("ledger")
    assert int((rows["input_tokens"] + rows["output_tokens"]).sum()) == 1000
    assert rows["call_id"].n_unique() == rows.height == 20


# --- when something fails ---


def broken_off(server: ObjectServer, url: str, requests: int) -> bool:
    """A run that is killed once so many of its requests were answered; False where it was over before."""
    process = started(server.env, a_run, url)
    server.kill_after(process.pid or 0, requests)
    process.join(60)
    server.kill_after(0, 0)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


@pytest.mark.slow
def test_a_client_that_is_killed_between_any_two_requests_leaves_what_the_next_run_completes(
    server: ObjectServer, url: str
) -> None:
    a_run(f"{url}/whole")
    whole = stored(f"{url}/whole")
    for requests in count(step=stride(3)):
        place = f"{url}/{requests}"
        was_killed = broken_off(server, place, requests)
        left = stored(place)
        assert left.items() <= whole.items(), f"after {requests} requests"
        a_run(place)
        assert stored(place) == whole, f"after {requests} requests"
        if not was_killed:
            break
    assert requests > 8


def test_an_object_that_was_sent_in_part_is_sent_again(server: ObjectServer, url: str) -> None:
    lake = fresh(url)
    put(lake, "observations", observation("Never use npm."))
    server.cut = 2
    put(lake, "observations", observation("Use uv."))
    assert set(fresh(url).read("observations")["text"]) == {"Never use npm.", "Use uv."}


@pytest.mark.parametrize("status", [429, 503, 500])
def test_throttling_for_a_while_is_waited_out(server: ObjectServer, url: str, status: int) -> None:
    lake = fresh(url)
    put(lake, "events", decision("p-20250305-001"))
    server.answer_with(status, times=2)
    assert ids(fresh(url)) == ["p-20250305-001"]
    server.answer_with(status, times=2)
    put(lake, "events", decision("p-20250305-002"))
    assert len(ids(fresh(url))) == 2


def test_what_stays_down_is_one_sentence_and_the_next_run_does_the_work(
    server: ObjectServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 1)
    lake = fresh(url)
    put(lake, "observations", observation("Never use npm."))
    server.answer_with(503)
    with pytest.raises(LakeUnavailableError) as caught:
        put(lake, "observations", observation("Use uv."))
    assert f"{url} did not respond within 1 seconds (503 Service Unavailable)" in f"{caught.value}"
    assert f"{caught.value}".count("\n") == 0 and "s3cret" not in f"{caught.value}"
    server.calm()
    assert fresh(url).read("observations")["text"].to_list() == ["Never use npm."]
    put(lake, "observations", observation("Use uv."))
    assert set(fresh(url).read("observations")["text"]) == {"Never use npm.", "Use uv."}


@pytest.mark.parametrize("status", [401, 403])
def test_no_permission_is_one_sentence(server: ObjectServer, url: str, status: int) -> None:
    server.answer_with(status)
    with pytest.raises(LakeRefusedError, match=rf"^{url} refused \({status} .*\): expected credentials that may list"):
        fresh(url).read("observations")


def test_a_missing_bucket_is_one_sentence(server: ObjectServer) -> None:
    for ask_of in (lambda lake: lake.read("observations", [DAY]), lambda lake: lake.days("observations")):
        with pytest.raises(LakeRefusedError, match=r"^The bucket of s3://no-such-bucket/lake does not exist"):
            ask_of(fresh("s3://no-such-bucket/lake"))


@pytest.mark.parametrize("args", [["sql", "select 1"], ["status"], ["run"]], ids=lambda args: args[0])
def test_a_command_says_it_in_a_sentence(server: ObjectServer, tmp_path: Path, args: list[str]) -> None:
    result = memory(tmp_path, *args, env=server.env | {"MEMORY_LAKE": "s3://no-such-bucket/lake"})
    assert result.returncode != 0
    assert "The bucket of s3://no-such-bucket/lake does not exist" in result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr


@each("url", ["bucket/prefix", "s3://", "http://host/x", "s3://key@bucket", "file://here"])
def test_a_place_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("MEMORY_LAKE", url)
    with pytest.raises(SettingError, match="MEMORY_LAKE"):
        load_settings()


def test_another_folder_is_a_place_too(tmp_path: Path) -> None:
    lake = Lake.from_settings(Settings(lake=f"file://{tmp_path}/a%20lake"))
    put(lake, "observations", observation("Never use npm."))
    assert (tmp_path / "a lake" / "observations" / f"{DAY}.parquet").is_file()


# --- what it costs ---


def requests_of_a_day(server: ObjectServer, url: str, days: int, kept: Path) -> Counter[str]:
    """Of a plan over all days and a day's work, with so many days of history that were read before."""
    history, storage = [day_after(-n) for n in range(days)], ObjectStorage(url)
    for table in ("messages", "observations", "ledger"):
        Lake(storage).replace(table, frame(table), [DAY], {DAY: "f"})
        data = storage.read(storage.files(table)[0])
        for day in history[1:]:
            storage.write(f"{table}/{day}.parquet", data)
        fresh(url, kept).read(table)
    server.counts.clear()
    plan = Lake(ObjectStorage(url, kept), for_planning=True)
    assert {plan.fingerprint("observations", day) for day in history} == {"f"}
    lake = fresh(url, kept)
    lake.digest("messages", [day_after(-n) for n in range(7)])
    assert lake.read("messages", [day_after(-n) for n in range(7)]).is_empty()
    lake.replace("observations", frame("observations", observation("Use uv.")), [DAY], {DAY: "g"})
    lake.update("ledger", lambda rows: rows, DAY)
    lake.read("observations")
    return Counter(server.counts)


@pytest.mark.slow
def test_a_days_work_asks_no_more_with_a_longer_history(server: ObjectServer, url: str, tmp_path: Path) -> None:
    few = requests_of_a_day(server, f"{url}/few", 10, tmp_path / "few")
    many = requests_of_a_day(server, f"{url}/many", 400, tmp_path / "many")
    pages = many.pop("LIST") - few.pop("LIST")
    assert many == few
    assert 0 <= pages <= 2  # of the ledger's versions


def test_what_is_seen_once_costs_a_listing_and_knows_what_this_lake_writes(server: ObjectServer, url: str) -> None:
    mine, others = Lake(ObjectStorage(url)), Lake(ObjectStorage(url))
    days = [day_after(number) for number in range(5)]
    rows = frame("observations", *(observation(f"Line of {day}.", day=day) for day in days))
    mine.replace("observations", rows, days, dict.fromkeys(days, "before"))
    server.counts.clear()
    with mine.seen_once():
        assert [mine.fingerprint("observations", day) for day in days] == ["before"] * 5
        assert not any(mine.is_retired("observations", day) for day in days)
        assert mine.digest("observations", days) == others.digest("observations", days)
        assert server.counts["HEAD"] == 0 and server.counts["LIST"] == 3  # of the other: of its bucket and its table
        mine.replace("observations", frame("observations"), [days[0]], {days[0]: "mine"})
        others.replace("observations", frame("observations"), [days[1]], {days[1]: "others"})
        told = [mine.fingerprint("observations", day) for day in days[:2]]
        assert told == ["mine", "before"]  # the next run finds the other one
        assert mine.read("observations", [days[1]]).is_empty()
        assert mine.version("observations", days[1]) == others.version("observations", days[1])
    assert mine.fingerprint("observations", days[1]) == "others"


@pytest.mark.slow
def test_the_examples_come_out_with_the_same_rows(
    server: ObjectServer,
    url: str,
    demo: tuple[Path, str, str],  # noqa: F811
    tmp_path: Path,
) -> None:
    """With the salt and the copies of the sessions that the run over a folder made: all else is removed."""
    home = copied(demo[0], tmp_path / "home")
    workspace = home / ".memory-pipeline" / "examples"
    local = {f"{p.relative_to(workspace / 'lake')}": rows(p, demo[0]) for p in workspace.glob("lake/*/*.parquet")}
    salt, kept = workspace / "lake" / "salt", (workspace / "sessions", workspace / "lake")
    for path in {*workspace.iterdir(), *(workspace / "lake").iterdir()} - {salt, *kept}:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    env = server.env | {"MEMORY_LAKE": url}
    done = memory(home, "run", env=env)
    assert done.returncode == 0, done.stderr
    far = stored(f"{url}/examples")
    assert far.keys() == local.keys()
    assert not list(workspace.glob("lake/*/*.parquet"))
    for key in local:
        assert_frame_equal(local[key], rows(BytesIO(far[key]), home))
    assert memory_json(home, "sql", "select count(*) as n from messages", env=env)[0]["n"] == 323


def rows(file: Path | BytesIO, home: Path) -> pl.DataFrame:
    """But for what says when and in which home a run was."""
    read = pl.read_parquet(file).drop("happened_at", strict=False)
    return read.with_columns(pl.col(pl.String).str.replace_all(f"{home}", "~", literal=True))
