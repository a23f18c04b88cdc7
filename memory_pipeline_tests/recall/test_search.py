"""Everything that was said is found: by its words, by its meaning, and by words alone where there is no index."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from memory_pipeline.embeddings.edge import EdgeIndex
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, Hit, IndexUnavailableError, Point
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage
from memory_pipeline.embeddings.opening import index_folder, open_index, searched_collection
from memory_pipeline.embeddings.stage import EmbeddingsStage, SummaryEmbeddingsStage, switch_when_complete
from memory_pipeline.recall import search as searching
from memory_pipeline.recall.fusion import Filters
from memory_pipeline.recall.search import search
from memory_pipeline.stages import bring_up_to_date, is_current
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import (
    DAY,
    FakeEncoder,
    MissingEncoder,
    changed,
    day_after,
    observation,
    put,
    reflection,
    say,
    use_encoder,
)
from memory_pipeline_tests.rows import workspace as new_workspace

TTL = "Redis keys of the cart expire after 45 minutes, because guests come back from the payment page."
PORT = "The admin panel listens on 127.0.0.1:8443 and reads its settings from config/admin.toml."
GERMAN = "Die Prüfungen laufen vor jedem Commit, sonst bricht der Build."
CHINESE = "运行测试之前不要提交代码"
CHATTER = "Sounds good, thank you very much for the explanation of all this."


def fake_encoder() -> FakeEncoder:
    return FakeEncoder("cart", "panel", "weather", name="all-MiniLM-L6-v2", dimension=384)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> FakeEncoder:
    made = fake_encoder()
    use_encoder(monkeypatch, made)
    return made


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three sessions of two days, the last of them short and in other languages; made once by each worker."""
    settings, lake = new_workspace(tmp_path_factory.mktemp("indexed"))
    say(lake, "s1", f"user: {TTL}", "tool: redis-cli TTL cart:1", "assistant: Done, the cart keeps them so long.")
    say(lake, "s2", f"user: {PORT}", f"assistant: {CHATTER}", clock="12:00")
    say(lake, "s3", f"user: {GERMAN}", f"user: {CHINESE}", day=day_after(1), observed=False)
    put(lake, "observations", observation(TTL, priority="high"))
    index(Workspace(settings, lake), fake_encoder())
    yield settings.workspace
    shutil.rmtree(settings.workspace)


@pytest.fixture
def opened(tmp_path: Path, encoder: FakeEncoder, indexed: Path) -> Workspace:
    """A copy of those sessions."""
    subprocess.run(["cp", "-a", f"{indexed}/.", tmp_path], check=True)
    return Workspace(*new_workspace(tmp_path))


def index(opened: Workspace, encoder: FakeEncoder) -> MessageEmbeddingsStage:
    stage = MessageEmbeddingsStage(opened, encoder)  # type: ignore[arg-type]
    for day in (DAY, day_after(1)):
        bring_up_to_date(EmbeddingsStage(opened, encoder), opened.lake, day)  # type: ignore[arg-type]
        bring_up_to_date(stage, opened.lake, day)
    switch_when_complete(opened)
    return stage


def texts(opened: Workspace, query: str, filters: Filters = Filters()) -> list[str]:  # noqa: B008
    return [hit.text for hit in search(opened.settings, query, filters).hits]


@each(
    ("query", "wanted"),
    [
        ("when do redis keys expire?", TTL),
        ("config/admin.toml", PORT),
        ("admin.toml", PORT),
        ("8443", PORT),
        ("Wann läuft die Prüfung?", GERMAN),
        ("提交代码", CHINESE),
        ("what is it about the panel", PORT),
    ],
)
def test_what_was_said_is_found_first(opened: Workspace, query: str, wanted: str) -> None:
    assert texts(opened, query)[0] == wanted


def test_tool_output_is_not_indexed_and_what_is_found_says_where_it_was_said(opened: Workspace) -> None:
    hit = search(opened.settings, "redis-cli TTL").hits[0]
    assert (hit.session_id, hit.role, hit.day) == ("s1", "user", f"{DAY}")
    assert not any("redis-cli" in text for text in texts(opened, "redis-cli"))


@each(
    ("filters", "found"),
    [
        (Filters(first_day=day_after(1)), {GERMAN, CHINESE}),
        (Filters(last_day=DAY - timedelta(days=1)), set()),
        (Filters(first_day=day_after(400)), set()),
        (Filters(equals={"session_id": ["s2"]}), {PORT, CHATTER}),
        (Filters(equals={"priority": ["high"]}), {TTL}),
        (Filters(equals={"project": ["no-such-project"]}), set()),
    ],
)
def test_filters_hold(opened: Workspace, filters: Filters, found: set[str]) -> None:
    assert set(texts(opened, "redis panel Prüfungen 提交代码 explanation", filters)) == found


def test_a_line_of_memory_md_is_found_as_the_file_is_now(opened: Workspace) -> None:
    opened.settings.memory_file.write_text(
        "# Memory\n\n## Hard Rules\n\n- Never deploy on Friday <!-- p-20250305-001 -->\n"
    )
    first = search(opened.settings, "deploy on friday").hits[0]
    assert (first.record, first.source_id) == ("memory_line", "p-20250305-001")
    opened.settings.memory_file.write_text("# Memory\n\n## Hard Rules\n\n- ~~Never deploy on Friday~~\n")
    assert not any("deploy" in text for text in texts(opened, "deploy on friday"))


def test_an_approved_line_is_found_by_its_meaning_and_only_in_its_project(opened: Workspace) -> None:
    opened.settings.memory_file.write_text(
        "## Hard Rules\n- (2025-03-05) Ask before you empty the cart (project: shop)\n"
    )
    assert search(opened.settings, "may the agent clear that cart without asking me").hits[0].record == "memory_line"
    for project, is_there in (("shop", True), ("depot", False)):
        hits = search(opened.settings, "empty the cart", Filters(equals={"project": [project]})).hits
        assert any(hit.record == "memory_line" for hit in hits) is is_there
    assert not any(hit.record == "memory_line" for hit in search(opened.settings, "config/admin.toml").hits)


def test_an_observation_and_its_passage_are_one_hit_whichever_is_better(opened: Workspace) -> None:
    put(opened.lake, "observations", observation("reads its settings from config/admin.toml", session="s2"))
    index(opened, searching.encoder_of(""))  # type: ignore[arg-type]
    found = [text for text in texts(opened, "reads its settings from config/admin.toml") if "admin.toml" in text]
    assert len(found) == 1


def test_of_a_message_and_what_was_made_of_it_the_message_is_shown(opened: Workspace, encoder: FakeEncoder) -> None:
    put(opened.lake, "reflections", reflection(TTL.lower().rstrip(".")))
    bring_up_to_date(SummaryEmbeddingsStage(opened, encoder), opened.lake, DAY)  # type: ignore[arg-type]
    found = [hit for hit in search(opened.settings, TTL).hits if "guests come back" in hit.text]
    assert [(hit.record, hit.session_id) for hit in found] == [("message", "s1")]


@each("query", ["redis " * 20_000, "redis \udce4\x00 keys", "redis" + "é" * 5_000, "redis\n\n> keys"])
def test_odd_queries_are_answered(opened: Workspace, query: str) -> None:
    assert TTL in texts(opened, query)


def test_what_nobody_spoke_of_is_unlikely(opened: Workspace) -> None:
    assert not search(opened.settings, "quarterly weather declaration of the bakery").is_likely
    assert search(opened.settings, "when do redis keys of the cart expire").is_likely


def test_segments_and_reflections_are_found_too(opened: Workspace, encoder: FakeEncoder) -> None:
    told = {"narrative": "The courier app got an offline map.", "position": 0, "segment_id": "s-1", "title": "Maps"}
    place = {"day": DAY, "dedupe_key": "k", "session_id": "s1", "first_message_id": "m", "last_message_id": "m"}
    put(opened.lake, "segments", told | place)
    put(opened.lake, "reflections", reflection("Parcels over 30 kg go to the pallet depot."))
    stage = SummaryEmbeddingsStage(opened, encoder)  # type: ignore[arg-type]
    bring_up_to_date(stage, opened.lake, DAY)
    first = search(opened.settings, "offline map of the courier app").hits[0]
    assert (first.record, first.source_id) == ("segment", "s-1")
    assert search(opened.settings, "pallet depot parcels").hits[0].record == "reflection"
    opened.lake.replace("segments", opened.lake.read("segments", [DAY]).clear(), [DAY])
    bring_up_to_date(stage, opened.lake, DAY)
    assert not any(hit.record == "segment" for hit in search(opened.settings, "offline map courier").hits)
    assert TTL in texts(opened, "redis keys")


# --- without an index ---


def test_without_an_index_the_tables_answer(opened: Workspace) -> None:
    shutil.rmtree(index_folder(opened.settings, 384, MESSAGES))
    results = search(opened.settings, "redis keys expire")
    assert results.hits[0].text == TTL and results.hits[0].session_id == "s1"
    assert "is gone from index/; `memory run --all`" in results.notes[0]
    assert not index_folder(opened.settings, 384, MESSAGES).exists()  # a search makes none


def test_words_of_every_language_are_found_in_the_tables(opened: Workspace) -> None:
    say(opened.lake, "s5", "user: Replies of empty parties go to the repository.", day=day_after(2))
    shutil.rmtree(opened.settings.index_dir)
    for query, wanted in {
        "is a reply to an empty party stored in repositories?": "Replies of empty parties go to the repository.",
        "Läuft eine Prüfung vor dem Commit?": GERMAN,
        "提交代码": CHINESE,
        "config/admin.toml": PORT,
    }.items():
        results = search(opened.settings, query)
        assert results.hits[0].text == wanted and results.is_likely
        assert "there is no index; `memory run --all` rebuilds it." in results.notes[0]


def test_what_hardly_fits_in_words_is_unlikely(opened: Workspace) -> None:
    shutil.rmtree(opened.settings.index_dir)
    results = search(opened.settings, "which bakery bakes the cart of the quarterly declaration")
    assert results.hits and not results.is_likely


def test_with_filters_on_observations_the_tables_answer_too(opened: Workspace) -> None:
    shutil.rmtree(opened.settings.index_dir)
    found = {"priority": {"high": 1, "low": 0}, "session_id": {"s1": 1, "s2": 0}, "kind": {"nothing": 0}}
    for name, values in found.items():
        for value, hits in values.items():
            results = search(opened.settings, "redis keys expire", Filters(equals={name: [value]}))
            assert len([hit for hit in results.hits if hit.text == TTL]) == hits, (name, value)


def test_a_damaged_index_is_set_aside_and_told_with_its_path(opened: Workspace, encoder: FakeEncoder) -> None:
    stage = index(opened, encoder)
    folder = index_folder(opened.settings, 384, MESSAGES)
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(b"broken")
    results = search(opened.settings, "redis keys expire")
    assert results.hits[0].text == TTL
    assert f"{folder}.broken-1" in results.notes[0]
    after = search(opened.settings, "redis keys expire")  # what took its place is empty
    assert after.hits[0].text == TTL
    assert after.notes == ("Answered by keywords from the tables: there is no index; `memory run --all` rebuilds it.",)
    assert not is_current(stage, opened.lake, DAY)
    index(opened, encoder)
    again = search(opened.settings, "redis keys expire")
    assert again.hits[0].text == TTL and again.notes == ()


@pytest.mark.parametrize("base", [MESSAGES, COLLECTION])
def test_a_collection_that_was_emptied_is_told(opened: Workspace, encoder: FakeEncoder, base: str) -> None:
    """As the engine opens one whose list of points is lost."""
    with open_index(opened.settings, encoder.dimension, base) as index:
        index.delete(index.ids())
    results = search(opened.settings, "redis keys expire")
    assert results.hits[0].text == TTL
    (note,) = results.notes
    assert f"by keywords from the tables: {base}-" in note and "is empty" in note


@pytest.mark.parametrize("base", [MESSAGES, COLLECTION])
def test_damage_that_shows_late_is_answered_by_words(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    """The engine opens a collection whose texts or vectors are gone, and fails when it is asked."""
    real = EdgeIndex.search

    def fails(self: EdgeIndex, *args: object, **more: object) -> list[Hit]:
        if self.folder.name.startswith(base):
            raise IndexUnavailableError("The vector index failed (out of bounds).")
        return real(self, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(EdgeIndex, "search", fails)
    results = search(opened.settings, "redis keys expire")
    assert results.hits[0].text == TTL
    (note,) = results.notes
    assert note.endswith("by keywords from the tables: The vector index failed (out of bounds).")


def test_vectors_that_are_noise_are_told(opened: Workspace, encoder: FakeEncoder) -> None:
    """Of a file that was written over."""
    folder = index_folder(opened.settings, 384, MESSAGES)
    for path in folder.rglob("vector_storage-dense/vectors/chunk_*.mmap"):
        whole = path.read_bytes()
        path.write_bytes(struct.pack("<f", 3e8) * 5_000 + whole[20_000:])
    results = search(opened.settings, "redis keys of the cart")
    assert results.hits[0].text == TTL
    assert results.notes == (
        f"Answered by keywords from the tables: The vectors in {folder} are damaged; "
        "`memory admin index rebuild` rebuilds them.",
    )


def test_points_that_are_none_of_ours_are_told(opened: Workspace, encoder: FakeEncoder) -> None:
    with open_index(opened.settings, encoder.dimension, MESSAGES) as index:
        ids = index.ids()
        index.upsert([Point(i, encoder.encode_query("cart"), {"date": f"{DAY}"}) for i in ids])
    results = search(opened.settings, "redis keys of the cart")
    assert results.hits[0].text == TTL
    assert results.notes[0].startswith("Answered by keywords from the tables: ")


@each("mark", ["", "[", "[]", '{"name": 5}', '{"name": "memory_messages-x-384-v3", "model": "x", "dimension": 12}'])
def test_a_mark_that_cannot_be_read_costs_no_index(opened: Workspace, mark: str) -> None:
    (opened.settings.index_dir / f"{MESSAGES}.searched.json").write_text(mark)
    results = search(opened.settings, "redis keys expire")
    assert results.hits[0].text == TTL
    assert results.notes == ("Only some messages are indexed yet; `memory run --all` indexes the rest.",)
    assert not list(opened.settings.index_dir.glob("*.broken-*"))


def test_an_index_that_is_filled_in_part_is_told(opened: Workspace, encoder: FakeEncoder) -> None:
    shutil.rmtree(index_folder(opened.settings, 384, MESSAGES))
    with open_index(opened.settings, encoder.dimension, MESSAGES):
        pass  # as `memory status` looks at it
    stage = MessageEmbeddingsStage(opened, encoder)  # type: ignore[arg-type]
    assert not is_current(stage, opened.lake, DAY)
    bring_up_to_date(stage, opened.lake, DAY)
    switch_when_complete(opened)
    results = search(opened.settings, "redis keys expire")
    assert results.hits[0].text == TTL
    assert results.notes == ("Only some messages are indexed yet; `memory run --all` indexes the rest.",)
    bring_up_to_date(stage, opened.lake, day_after(1))
    switch_when_complete(opened)
    assert search(opened.settings, "redis keys expire").notes == ()


def test_while_a_run_holds_the_index_the_tables_answer(opened: Workspace, encoder: FakeEncoder) -> None:
    with open_index(opened.settings, encoder.dimension, MESSAGES):
        began = time.monotonic()
        results = search(opened.settings, "redis keys expire")
    assert results.hits[0].text == TTL and "in use by another process" in results.notes[0]
    assert time.monotonic() - began < 10 * searching.WAIT_SECONDS


def test_observations_that_a_run_holds_are_found_by_words(opened: Workspace, encoder: FakeEncoder) -> None:
    with open_index(opened.settings, encoder.dimension, COLLECTION):
        results = search(opened.settings, "redis keys expire")
        (high,) = search(opened.settings, "redis keys expire", Filters(equals={"priority": ["high"]})).hits
    assert results.hits[0].text == high.text == TTL
    assert (high.record, high.priority, high.session_id, high.day) == ("observation", "high", "s1", f"{DAY}")
    assert results.notes == (
        "Observations by keywords from the tables: the index is in use by another process; ask again in a moment.",
    )


def test_a_day_that_is_written_is_seen_whole_or_not_at_all(opened: Workspace, encoder: FakeEncoder) -> None:
    """Sixty messages replace one, again and again, while others ask."""
    stage = MessageEmbeddingsStage(opened, encoder)  # type: ignore[arg-type]
    many = [f"user: zebra number {i}" for i in range(60)]
    day, seen, stop = day_after(2), set[int](), threading.Event()

    def write() -> None:
        for turns in [many, many[:1]] * 3:
            for table in ("messages", "sessions", "windows"):
                opened.lake.replace(table, opened.lake.read(table, [day]).clear(), [day])
            say(opened.lake, "s9", *turns, day=day)
            bring_up_to_date(stage, opened.lake, day)
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not stop.is_set():
        with open_index(opened.settings, encoder.dimension, MESSAGES) as found:
            seen.add(len(found.ids(day)))
        time.sleep(0.05)  # a lock is not fair: who asks without a pause keeps it
    writer.join()
    assert seen <= {0, 61, 2}  # the passages and their session


# --- models ---


def test_words_are_found_without_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, lake = new_workspace(tmp_path)
    say(lake, "s1", f"user: {TTL}")
    stage = MessageEmbeddingsStage(Workspace(settings, lake), MissingEncoder())  # type: ignore[arg-type]
    built = stage.build(DAY)
    assert not built.is_complete and "By words only" in built.warnings[0]
    assert search(settings, "redis keys").hits[0].text == TTL


def test_another_model_is_searched_once_it_is_complete(opened: Workspace, encoder: FakeEncoder) -> None:
    """Until then the old one is."""
    other = Workspace(changed(opened.settings, embedding_model="another/model"), opened.lake)
    known = searched_collection(opened.settings, MESSAGES)
    assert known and known.model == "all-MiniLM-L6-v2"
    wider = FakeEncoder("cart", name="another/model", dimension=16)
    stage = MessageEmbeddingsStage(other, wider)  # type: ignore[arg-type]
    bring_up_to_date(stage, other.lake, DAY)
    switch_when_complete(other)
    assert searched_collection(other.settings, MESSAGES) == known
    bring_up_to_date(stage, other.lake, day_after(1))
    switch_when_complete(other)
    now = searched_collection(other.settings, MESSAGES)
    assert now and (now.model, now.dimension) == ("another/model", 16)
    assert searched_collection(other.settings, COLLECTION) == searched_collection(opened.settings, COLLECTION)
    assert index_folder(opened.settings, 384, MESSAGES).exists()


@pytest.fixture(autouse=True)
def no_outage_is_remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("memory_pipeline.embeddings.opening._down", {})
    yield


def test_the_commands_load_no_table_library() -> None:
    """A question is asked at a prompt, and logged redacted: polars alone takes a fifth of a second."""
    heavy = "{'polars', 'duckdb', 'dagster', 'torch', 'py3langid'}"
    modules = "memory_pipeline.cli.search, memory_pipeline.redaction"
    code = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
