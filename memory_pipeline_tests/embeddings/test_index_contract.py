"""Both vector indexes keep one contract; the folder survives crashes and is never shared; the server fails politely."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar, cast
from unittest.mock import patch

import pytest
from filelock import FileLock

from memory_pipeline.embeddings import server
from memory_pipeline.embeddings.edge import EdgeIndex
from memory_pipeline.embeddings.index import (
    BATCH,
    COLLECTION,
    DAY_NUMBER,
    DENSE,
    KEYWORDS,
    SPARSE,
    WORDS,
    Filters,
    IndexUnavailableError,
    Point,
    VectorIndex,
    weigh,
    weigh_query,
)
from memory_pipeline.embeddings.server import ServerIndex
from memory_pipeline_tests.cases import each

# The in-memory client of the tests says on each collection that it ignores payload indexes.
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

DIMENSION = 4
NEW_YEAR = date(2025, 1, 1)


def point(number: int, vector: list[float], day: date = NEW_YEAR, priority: str = "high", **more: Any) -> Point:
    payload = {"date": day.isoformat(), "priority": priority, **more}
    return Point(str(uuid.UUID(int=number)), vector, payload)


def name(number: int) -> str:
    return str(uuid.UUID(int=number))


def in_memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The client of one server in this process, which every `ServerIndex` uses from now on."""
    client = server.QdrantClient(":memory:")
    monkeypatch.setattr(client, "close", lambda: None)
    monkeypatch.setattr(server, "QdrantClient", lambda **_: client)
    return client


@pytest.fixture(params=["edge", "server"])
def index(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VectorIndex]:
    made: VectorIndex
    if request.param == "edge":
        made = EdgeIndex(tmp_path / "index", DIMENSION)
    else:
        in_memory(monkeypatch)
        made = ServerIndex("http://in-memory", DIMENSION)
    yield made
    made.close()


# --- the contract of both ---


def test_an_empty_index_answers_every_question(index: VectorIndex) -> None:
    assert index.ids() == set()
    assert index.ids(NEW_YEAR) == set()
    assert index.vectors([name(1)]) == {}
    assert index.search([1, 0, 0, 0], 5, filters=Filters(NEW_YEAR, NEW_YEAR, {"priority": ["high"]})) == []
    index.upsert([])
    index.delete([])
    index.delete([name(1)])
    assert index.ids() == set()


def test_upsert_twice_is_idempotent(index: VectorIndex) -> None:
    points = [point(1, [1, 0, 0, 0]), point(2, [0, 1, 0, 0])]
    index.upsert(points)
    before = index.search([1, 0, 0, 0], 10)
    index.upsert(points)
    assert index.ids() == {name(1), name(2)}
    assert index.search([1, 0, 0, 0], 10) == before


def test_a_known_id_is_replaced_payload_and_vector(index: VectorIndex) -> None:
    index.upsert([point(1, [1, 0, 0, 0], text="old", gone="yes")])
    index.upsert([point(1, [0, 0, 0, 3], date(2025, 2, 2), "low", text="new")])
    [hit] = index.search([0, 0, 0, 1], 10)
    assert hit.payload == {"date": "2025-02-02", "priority": "low", "text": "new"}
    assert hit.score == pytest.approx(1.0, abs=1e-5)
    assert index.ids(NEW_YEAR) == set()
    assert index.ids(date(2025, 2, 2)) == {name(1)}
    assert index.search([1, 0, 0, 0], 10, filters=Filters(equals={"priority": ["high"]})) == []


def test_delete_removes_only_the_named(index: VectorIndex) -> None:
    index.upsert([point(number, [1, number, 0, 0]) for number in range(1, 5)])
    index.delete({name(2), name(4), name(99)})
    assert index.ids() == {name(1), name(3)}
    assert {hit.point_id for hit in index.search([1, 2, 0, 0], 10)} == {name(1), name(3)}
    assert index.vectors([name(2)]) == {}


def test_ids_by_day(index: VectorIndex) -> None:
    days = [NEW_YEAR + timedelta(days=offset) for offset in (0, 0, 1, 31)]
    index.upsert([point(number, [1, 0, 0, number], day) for number, day in enumerate(days)])
    assert index.ids(NEW_YEAR) == {name(0), name(1)}
    assert index.ids(date(2025, 1, 2)) == {name(2)}
    assert index.ids(date(2024, 12, 31)) == set()
    assert index.ids() == {name(number) for number in range(4)}


def test_vectors_come_back_with_unit_length_and_their_direction(index: VectorIndex) -> None:
    index.upsert([point(1, [3, 0, 4, 0]), point(2, [0, -5, 0, 0])])
    found = index.vectors([name(1), name(2), name(3)])
    assert found.keys() == {name(1), name(2)}
    assert found[name(1)] == pytest.approx([0.6, 0, 0.8, 0], abs=1e-6)
    assert found[name(2)] == pytest.approx([0, -1, 0, 0], abs=1e-6)


def test_search_puts_the_nearest_first_and_scores_by_cosine(index: VectorIndex) -> None:
    index.upsert([point(1, [-1, 0, 0, 0]), point(2, [1, 1, 0, 0]), point(3, [7, 0, 0, 0]), point(4, [0, 0, 2, 0])])
    hits = index.search([2, 0, 0, 0], 10)
    assert [hit.point_id for hit in hits] == [name(3), name(2), name(4), name(1)]
    assert [hit.score for hit in hits] == pytest.approx([1, math.sqrt(0.5), 0, -1], abs=1e-5)
    assert [hit.point_id for hit in index.search([2, 0, 0, 0], 2)] == [name(3), name(2)]
    assert index.search([2, 0, 0, 0], 0) == []


def test_hits_have_the_fields_that_are_asked_for(index: VectorIndex) -> None:
    index.upsert([point(1, [1, 0, 0, 0], text="all that was said")])
    assert index.search([1, 0, 0, 0], 1)[0].payload["text"] == "all that was said"
    assert index.search([1, 0, 0, 0], 1, fields=["priority", "kind"])[0].payload == {"priority": "high"}
    assert index.search([1, 0, 0, 0], 1, fields=())[0].payload == {}


def test_the_terms_of_a_point_can_be_asked_for(index: VectorIndex) -> None:
    said = Point(name(1), None, {"date": "2025-01-01"}, {WORDS: weigh(["redi", "ttl"], WORDS)})
    index.upsert([said, point(2, [1, 0, 0, 0])])
    found = index.term_numbers([name(1), name(2), name(3)], WORDS)
    assert found == {name(1): {*weigh_query(["redi", "ttl"]).indices}, name(2): set()}


def test_a_settled_index_answers_the_same_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_pipeline.embeddings.edge._SETTLED_FROM_KB", 1)
    points = [
        Point(name(n), [1, n / 100, 0, 0], {"date": "2025-01-01"}, {WORDS: weigh(["redi", f"t{n % 7}"], WORDS)})
        for n in range(300)
    ]
    index = EdgeIndex(tmp_path / "index", DIMENSION)
    index.upsert(points)
    asked: list[tuple[Any, str]] = [([1, 0.4, 0, 0], "dense"), (weigh_query(["t3"]), WORDS)]

    def found() -> list[list[tuple[str, float]]]:
        return [
            [(hit.point_id, round(hit.score, 5)) for hit in index.search(vector, 20, using=using)]
            for vector, using in asked
        ]

    segments = {path.name for path in (tmp_path / "index/segments").iterdir()}
    before = found()
    index.settle()
    assert found()[0] == before[0] and sorted(s for _, s in found()[1]) == sorted(s for _, s in before[1])
    index.close()
    assert segments.isdisjoint(path.name for path in (tmp_path / "index/segments").iterdir())
    index = EdgeIndex(tmp_path / "index", DIMENSION)
    assert found()[0] == before[0] and index.set_aside is None
    index.delete([name(40)])
    index.upsert([point(41, [0, 0, 1, 0])])
    assert index.count() == 299
    assert {name(40), name(41)}.isdisjoint(point_id for point_id, _ in found()[0])
    index.close()


def test_search_within_days_includes_both_ends(index: VectorIndex) -> None:
    days = [date(2024, 12, 30) + timedelta(days=offset) for offset in range(6)]
    index.upsert([point(number, [1, 0, 0, 0], day) for number, day in enumerate(days)])

    def found(first_day: date | None, last_day: date | None) -> set[str]:
        hits = index.search([1, 0, 0, 0], 50, filters=Filters(first_day, last_day))
        return {hit.payload["date"] for hit in hits}

    assert found(date(2024, 12, 31), date(2025, 1, 2)) == {"2024-12-31", "2025-01-01", "2025-01-02"}
    assert found(NEW_YEAR, NEW_YEAR) == {"2025-01-01"}
    assert found(date(2025, 1, 3), None) == {"2025-01-03", "2025-01-04"}
    assert found(None, date(2024, 12, 30)) == {"2024-12-30"}
    assert found(date(2025, 1, 2), NEW_YEAR) == set()
    assert len(found(None, None)) == 6


def test_search_by_priority_alone_and_with_days(index: VectorIndex) -> None:
    index.upsert(
        [
            point(1, [1, 0, 0, 0], NEW_YEAR, "high"),
            point(2, [1, 0, 0, 0], NEW_YEAR, "low"),
            point(3, [1, 0, 0, 0], date(2025, 1, 9), "low"),
        ]
    )
    low = index.search([1, 0, 0, 0], 9, filters=Filters(equals={"priority": ["low"]}))
    assert {hit.point_id for hit in low} == {name(2), name(3)}
    both = index.search([1, 0, 0, 0], 9, filters=Filters(None, NEW_YEAR, {"priority": ["low"]}))
    assert [hit.point_id for hit in both] == [name(2)]
    assert index.search([1, 0, 0, 0], 9, filters=Filters(equals={"priority": ["medium"]})) == []


def test_payloads_come_back_as_they_were_given(index: VectorIndex) -> None:
    more: dict[str, Any] = {
        "text": "naïve 🔴 „Zitat“ 日本語\n\ttab \u202e",
        "tokens": 12,
        "trust": 0.5,
        "flag": True,
        "none": None,
    }
    given = point(1, [1, 0, 0, 0], **more)
    index.upsert([given])
    assert index.search([1, 0, 0, 0], 1)[0].payload == given.payload
    assert given.payload.keys() == {"date", "priority", *more}, "the caller's payload must stay as it was"


def test_2500_points_are_all_listed(index: VectorIndex) -> None:
    points = [point(n, [1, n, n % 7, 1], NEW_YEAR + timedelta(days=n % 2)) for n in range(2500)]
    index.upsert(points)
    assert index.ids() == {one.point_id for one in points}
    assert index.ids(NEW_YEAR) == {one.point_id for one in points[::2]}
    assert len(index.vectors([one.point_id for one in points])) == 2500
    index.delete([one.point_id for one in points[1:]])
    assert index.ids() == {name(0)}


@pytest.mark.parametrize(
    "bad",
    [
        Point(name(2), [1, 0, 0], {"date": "2025-01-01", "priority": "high"}),
        Point(name(2), [1, 0, 0, math.nan], {"date": "2025-01-01", "priority": "high"}),
    ],
    ids=["dimension", "not-a-number"],
)
def test_a_bad_point_is_refused_before_anything_is_stored(index: VectorIndex, bad: Point) -> None:
    with pytest.raises(ValueError, match="vector"):
        index.upsert([point(1, [1, 0, 0, 0]), bad])
    assert index.ids() == set()


def test_a_query_of_another_dimension_is_refused(index: VectorIndex) -> None:
    with pytest.raises(ValueError, match="3 numbers"):
        index.search([1, 0, 0], 5)


def test_close_twice_then_every_use_says_closed(index: VectorIndex) -> None:
    index.close()
    index.close()
    uses: list[Callable[[], object]] = [
        index.ids,
        lambda: index.upsert([point(1, [1, 0, 0, 0])]),
        lambda: index.delete([name(1)]),
        lambda: index.vectors([name(1)]),
        lambda: index.search([1, 0, 0, 0], 1),
    ]
    for use in uses:
        with pytest.raises(IndexUnavailableError, match="closed"):
            use()


def test_written_anew_it_holds_the_same_points(index: VectorIndex) -> None:
    words = {WORDS: weigh(["alpha", "beta"], WORDS)}
    one = point(1, [1, 0, 0, 0], text="kept words")
    index.upsert([Point(one.point_id, one.vector, one.payload, words), point(2, [0, 1, 0, 0], text="quillwort")])
    index.delete([name(2)])
    before = (index.payloads([name(1)]), index.vectors([name(1)]), index.term_numbers([name(1)], WORDS))
    index.rewrite()
    assert index.ids() == {name(1)}
    assert (index.payloads([name(1)]), index.vectors([name(1)]), index.term_numbers([name(1)], WORDS)) == before
    index.upsert([point(3, [0, 0, 1, 0])])
    assert index.count() == 2


def test_written_anew_a_folder_holds_nothing_of_what_was_deleted(tmp_path: Path) -> None:
    def holds(word: bytes) -> bool:
        return any(word in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    index = EdgeIndex(tmp_path / "index", DIMENSION)
    index.upsert([point(1, [1, 0, 0, 0], text="kept words"), point(2, [0, 1, 0, 0], text="quillwort")])
    index.delete([name(2)])
    assert holds(b"quillwort")  # the engine leaves it there
    index.rewrite()
    index.close()
    assert not holds(b"quillwort")
    assert holds(b"kept words")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["index"]


# --- the folder ---


def run_python(code: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, **more)


def filled(folder: Path, count: int = 20) -> set[str]:
    """Make an index with some points in the folder and close it."""
    made = EdgeIndex(folder, DIMENSION)
    made.upsert([point(n, [1, n, 0, 0]) for n in range(count)])
    made.close()
    return {name(n) for n in range(count)}


def test_points_are_there_after_reopening(tmp_path: Path) -> None:
    stored = filled(tmp_path / "deep" / "index")
    again = EdgeIndex(tmp_path / "deep" / "index", DIMENSION)
    assert again.set_aside is None
    assert again.ids() == stored
    assert again.ids(NEW_YEAR) == stored
    again.delete([name(0)])
    again.close()
    third = EdgeIndex(tmp_path / "deep" / "index", DIMENSION)
    assert third.ids() == stored - {name(0)}
    third.close()


def test_points_are_there_when_the_process_dies_right_after_upsert(tmp_path: Path) -> None:
    code = """
import os, sys, uuid
from pathlib import Path
from memory_pipeline.embeddings import server
from memory_pipeline.embeddings.edge import EdgeIndex
from memory_pipeline.embeddings.index import Point
index = EdgeIndex(Path(sys.argv[1]), 4)
payload = {"date": "2025-01-01", "priority": "high"}
index.upsert([Point(str(uuid.UUID(int=n)), [1, n, 0, 0], payload) for n in range(600)])
os._exit(9)
"""
    done = run_python(code, str(tmp_path / "index"))
    assert done.returncode == 9, done.stderr
    index = EdgeIndex(tmp_path / "index", DIMENSION, lock_timeout=0)  # the lock of a dead process is not waited for
    assert index.set_aside is None
    assert index.ids() == {name(n) for n in range(600)}
    assert len(index.search([1, 0, 0, 0], 600, filters=Filters(NEW_YEAR, None, {"priority": ["high"]}))) == 600
    index.close()


OPEN_AND_COUNT = """
import sys, time
from pathlib import Path
from memory_pipeline.embeddings import server
from memory_pipeline.embeddings.edge import EdgeIndex
from memory_pipeline.embeddings.index import IndexUnavailableError
import qdrant_edge
print("ready", flush=True)
started = time.monotonic()
try:
    index = EdgeIndex(Path(sys.argv[1]), 4, lock_timeout=float(sys.argv[2]))
except IndexUnavailableError as error:
    print(f"unavailable after {time.monotonic() - started:.1f}", error)
else:
    print("opened", len(index.ids()), index.set_aside)
    index.close()
"""


def test_a_second_process_waits_and_then_says_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    filled(folder)
    holder = EdgeIndex(folder, DIMENSION)
    done = run_python(OPEN_AND_COUNT, str(folder), "0.7")
    waited = re.search(r"unavailable after (\S+)", done.stdout)
    assert waited, done.stdout + done.stderr
    assert float(waited[1]) >= 0.7
    assert str(folder) in done.stdout
    assert "wait for the other run to end" in done.stdout
    with pytest.raises(IndexUnavailableError, match="in use"):
        EdgeIndex(folder, DIMENSION, lock_timeout=0.1)  # a second handle of the same process, too
    assert len(holder.ids()) == 20, "the holder goes on undisturbed"
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["index"], "nothing may be set aside"
    holder.close()


def test_a_second_process_gets_the_folder_once_it_is_free(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    filled(folder)
    holder = EdgeIndex(folder, DIMENSION)
    command = [sys.executable, "-c", OPEN_AND_COUNT, str(folder), "500"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "ready\n"
        time.sleep(0.5)
        assert waiting.poll() is None
        holder.close()
        assert waiting.communicate(timeout=500)[0] == "opened 20 None\n"


def test_a_folder_held_without_our_lock_is_waited_for_and_never_set_aside(tmp_path: Path) -> None:
    import qdrant_edge

    folder = tmp_path / "index"
    stored = filled(folder)
    stranger = qdrant_edge.EdgeShard.load(str(folder))
    with pytest.raises(IndexUnavailableError, match="in use"):
        EdgeIndex(folder, DIMENSION, lock_timeout=0.3)
    assert not (tmp_path / "index.broken-1").exists()
    stranger.close()
    index = EdgeIndex(folder, DIMENSION)
    assert index.ids() == stored
    index.close()


def test_a_broken_folder_is_not_touched_while_another_process_opens_it(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    filled(folder)
    break_settings(folder)
    with FileLock(f"{folder}.lock"), pytest.raises(IndexUnavailableError, match="in use"):
        EdgeIndex(folder, DIMENSION, lock_timeout=0.2)
    assert not (tmp_path / "index.broken-1").exists()


def test_upsert_and_delete_end_with_a_flush(tmp_path: Path) -> None:
    """Points outlive a killed process without it; only a flush makes the engine call fsync, which a power cut needs."""
    calls: list[str] = []

    class Recorder:
        def __getattr__(self, method: str) -> Any:
            calls.append(method)
            return getattr(shard, method)

    index = EdgeIndex(tmp_path / "index", DIMENSION)
    shard, index._shard = index._shard, cast("Any", Recorder())
    index.upsert([point(n, [1, 0, 0, 0]) for n in range(BATCH + 1)])
    assert calls == ["update", "update", "flush"]
    index.delete([name(1)])
    assert calls[3:] == ["update", "flush"]
    index.close()


def break_settings(folder: Path) -> None:
    (folder / "edge_config.json").write_text("{ this is no JSON")


def break_segment(folder: Path) -> None:
    for file in folder.glob("segments/*/segment.json"):
        file.write_bytes(b"\x00" * 100)


def break_with_panic(folder: Path) -> None:
    """The engine answers this truncation with a panic, not with an error."""
    for file in folder.glob("segments/*/vector_storage-dense/deleted/status.dat"):
        os.truncate(file, 0)


def replace_by_file(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.write_text("not a folder")


@each("damage", [break_settings, break_segment, break_with_panic, replace_by_file])
def test_a_corrupt_folder_is_set_aside_and_a_fresh_one_usable(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    folder = tmp_path / "index"
    for n in (1, 2):
        filled(folder)
        damage(folder)
        index = EdgeIndex(folder, DIMENSION)
        assert index.set_aside == tmp_path / f"index.broken-{n}"
        assert index.set_aside.exists()
        assert index.ids() == set()
        index.upsert([point(5, [1, 0, 0, 0])])
        index.close()
        again = EdgeIndex(folder, DIMENSION)
        assert (again.ids(), again.set_aside) == ({name(5)}, None)
        again.close()
        if (tmp_path / "elsewhere").exists():
            (tmp_path / "elsewhere").rename(tmp_path / f"elsewhere-{n}")


def test_a_folder_of_another_dimension_is_set_aside_whole(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    stored = filled(folder)
    wider = EdgeIndex(folder, 6)
    assert wider.set_aside == tmp_path / "index.broken-1"
    wider.upsert([Point(name(1), [1, 0, 0, 0, 0, 1], {"date": "2025-01-01", "priority": "low"})])
    assert wider.ids() == {name(1)}
    wider.close()
    old = EdgeIndex(wider.set_aside, DIMENSION)
    assert (old.ids(), old.set_aside) == (stored, None)
    old.close()


def test_a_folder_is_put_back_when_no_fresh_one_can_be_made_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    stored = filled(folder)

    class FullDisk:
        @staticmethod
        def load(path: str, config: object) -> None:
            raise Exception("No space left on device")

        @staticmethod
        def create(path: str, config: object) -> None:
            Path(path).mkdir()
            raise Exception("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("memory_pipeline.embeddings.edge.EdgeShard", FullDisk)
        with pytest.raises(IndexUnavailableError, match="No space left"):
            EdgeIndex(folder, DIMENSION)
    assert not (tmp_path / "index.broken-1").exists()
    index = EdgeIndex(folder, DIMENSION)
    assert (index.ids(), index.set_aside) == (stored, None)
    index.close()


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(IndexUnavailableError, match="cannot be opened"):
        EdgeIndex(tmp_path / "file" / "index", DIMENSION)


def test_importing_the_protocol_loads_no_engine() -> None:
    code = """
import sys
import memory_pipeline.embeddings.index
print(sorted({"qdrant_edge", "qdrant_client", "numpy", "grpc"} & sys.modules.keys()))
"""
    done = run_python(code)
    assert done.stdout == "[]\n", done.stderr


# --- the server ---


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.lower(), raising=False)


class Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def refusing_url(no_proxy: None) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
@pytest.mark.usefixtures("no_proxy")
def test_an_unreachable_server_is_named_at_once_and_the_key_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it waits to try again"))
    with pytest.raises(IndexUnavailableError) as caught:
        ServerIndex("http://someone:pass-word@127.0.0.1:1", DIMENSION, api_key="very-secret")
    assert "http://127.0.0.1:1" in str(caught.value)
    assert "QDRANT_URL" in str(caught.value)
    shown = "".join(traceback.format_exception(caught.value))
    assert "very-secret" not in shown.replace('api_key="very-secret"', "")
    assert "pass-word" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
@pytest.mark.parametrize("key", ["very-secret", "very-secret\n", "very\nsecret"])
def test_a_refused_or_malformed_key_is_not_repeated(refusing_url: str, key: str) -> None:
    with pytest.raises(IndexUnavailableError) as caught:
        ServerIndex(refusing_url, DIMENSION, api_key=key)
    assert refusing_url in str(caught.value)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    if "\n" not in key.strip():
        assert "QDRANT_API_KEY" in str(caught.value)


@each("url", ["http://127.0.0.1:port", "ftp://127.0.0.1"])
def test_a_url_that_is_none_is_named(url: str) -> None:
    with pytest.raises(IndexUnavailableError, match=url):
        ServerIndex(url, DIMENSION)


def test_a_collection_of_another_dimension_is_refused_naming_both(monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory(monkeypatch)
    first = ServerIndex("http://in-memory", DIMENSION)
    first.upsert([point(1, [1, 0, 0, 0])])
    first.close()
    with pytest.raises(IndexUnavailableError, match=rf"{COLLECTION}.* 4 .* 768 .*Delete the collection"):
        ServerIndex("http://in-memory", 768)
    again = ServerIndex("http://in-memory", DIMENSION)
    assert again.ids() == {name(1)}, "the refused attempt changed nothing, and the client is still open"
    other = ServerIndex("http://in-memory", 768, collection="another")
    assert other.ids() == set()


class Answering(BaseHTTPRequestHandler):
    """A Qdrant server that is busy now and then: it answers with the codes of its list first, then as it should."""

    codes: ClassVar[list[int]] = []
    asked: ClassVar[list[str]] = []

    def do_PUT(self) -> None:
        path = self.path.partition("?")[0]
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_write = path.endswith("/points")
        if is_write:
            self.asked.append(path)
        self._answer(self.codes.pop(0) if is_write and self.codes else 200, {"operation_id": 1, "status": "completed"})

    def do_GET(self) -> None:
        params = {
            "vectors": {DENSE: {"size": DIMENSION, "distance": "Cosine"}},
            "sparse_vectors": {name: {} for name in SPARSE},
        }
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
        optimizer = {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0}
        config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizer | {"flush_interval_sec": 5}}
        fields = {name: {"data_type": "keyword", "points": 0} for name in (DAY_NUMBER, *KEYWORDS)}
        info = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "config": config}
        self._answer(200, {"exists": True} if self.path.endswith("/exists") else info | {"payload_schema": fields})

    def _answer(self, code: int, result: dict[str, Any]) -> None:
        body = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", f"{len(body)}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.usefixtures("no_proxy")
@each(
    ("codes", "writes", "is_stored"),
    [([503, 429], 3, True), ([500] * 9, 4, False), ([400], 1, False), ([], 1, True)],
)
def test_a_write_is_tried_again_where_the_server_was_busy(
    codes: list[int], writes: int, is_stored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    monkeypatch.setattr(Answering, "codes", codes)
    monkeypatch.setattr(Answering, "asked", [])
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        index = ServerIndex(f"http://127.0.0.1:{server.server_port}", DIMENSION)
        with nullcontext() if is_stored else pytest.raises(IndexUnavailableError, match="does not answer correctly"):
            index.upsert([point(1, [1, 0, 0, 0])])
        index.close()
        server.shutdown()
    assert len(Answering.asked) == writes


def test_what_filters_use_has_a_payload_index(monkeypatch: pytest.MonkeyPatch) -> None:
    client = in_memory(monkeypatch)
    with patch.object(client, "create_payload_index", wraps=client.create_payload_index) as created:
        ServerIndex("http://in-memory", DIMENSION)
    assert {call.args[1] for call in created.call_args_list} == {DAY_NUMBER, *KEYWORDS}
