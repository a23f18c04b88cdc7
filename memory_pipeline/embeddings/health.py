"""Problems of a workspace's vectors, in sentences: the model, the index, and missing points."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path

import polars as pl

from memory_pipeline.embeddings.index import MESSAGES, IndexBusyError, IndexUnavailableError, batches, is_sound
from memory_pipeline.embeddings.opening import open_index
from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import Settings
from memory_pipeline.stages import INCOMPLETE
from memory_pipeline.text.encoder import EncoderUnavailableError, encoder_of, missing_model
from memory_pipeline.workspace.workspace import Workspace

LOOK_SECONDS = 2.0
"""Seconds that a check waits for an index in use by another process: busy does not mean broken."""


def is_made_elsewhere(workspace: Workspace) -> bool:
    """Whether the tables are in object storage and this workspace has no index: another machine builds the memory."""
    settings = workspace.settings
    return workspace.lake.storage.is_far and not settings.qdrant.url and not settings.index_dir.is_dir()


def vector_problems(workspace: Workspace, *, before_a_run: bool = False) -> list[str]:
    """Current problems, one sentence each with what to do; empty if there are none.

    The index is opened as by a stage: a damaged one is quarantined (see `set_aside_files`), and days with missing, zero
    or non-finite vectors become out of date. With a lake in object storage, whose vectors may be on another machine,
    that only happens `before_a_run` that builds them here. As opening takes long, an embedded index is not opened while
    its files and those of its tables are the same as when no problem was found.
    """
    settings, is_far = workspace.settings, workspace.lake.storage.is_far
    if is_made_elsewhere(workspace):
        return []
    if by_words := lexical_only(settings):
        return [by_words]
    sound = None if settings.qdrant.url or is_far else settings.index_dir / "sound.txt"
    with suppress(OSError):
        if sound and sound.read_text("utf-8") == _files(workspace, sound):
            return []
    found: list[str] = []
    try:
        for problem in _problems(workspace, marks=before_a_run or not is_far):
            found.append(problem)
    except IndexBusyError:  # not everything was checked
        return found
    if sound and not found and settings.index_dir.is_dir():
        with suppress(OSError):
            sound.write_text(_files(workspace, sound), "utf-8")  # as opening has changed files
    return found


def _problems(workspace: Workspace, *, marks: bool) -> Iterator[str]:
    """See `vector_problems`. Raises `IndexBusyError`."""
    settings = workspace.settings
    rows = workspace.lake.read("embeddings", columns=["day", "point_id", "model", "dimension"])
    known = rows.filter(rows["model"] == settings.embedding_model)
    if known.height or settings.qdrant.url:
        try:
            size = known["dimension"][-1] if known.height else encoder_of(settings.embedding_model).dimension
            with open_index(settings, size, wait=LOOK_SECONDS) as index:
                there, unsound = set[str](), list[str]()
                for batch in batches(known["point_id"].to_list()):  # a year's vectors would take half a gigabyte
                    found = index.vectors(batch)
                    there |= found.keys()
                    unsound += [p for p, vector in found.items() if not is_sound(vector, size)]
                if unsound:
                    index.delete(unsound)  # otherwise a rebuilt day would reuse them as vectors
                lost = set(known["point_id"]) - there | set(unsound)
        except IndexBusyError:
            raise
        except (IndexUnavailableError, EncoderUnavailableError) as error:
            yield f"There are no vectors, so lines are compared by their words: {error}"
            return
        if lost:
            if marks:
                _mark(workspace.lake, "embeddings", known.filter(pl.col("point_id").is_in(list(lost))))
            message = f"{len(lost)} of {known.height} vectors are not in the index"
            if unsound:
                message += f", {len(unsound)} of them because they were zero or not numbers"
            yield f"{message}; `memory run --all` rebuilds them."
    yield from _lost_message_vectors(workspace, marks)


def _files(workspace: Workspace, but: Path) -> str:
    """A hash of the names, sizes and times of the files on which a check of the vectors depends."""
    settings, storage = workspace.settings, workspace.lake.storage
    found = [f"{file}" for table in ("embeddings", "message_embeddings") for file in storage.files(table)]
    for path in sorted(settings.index_dir.rglob("*")):
        if path != but and path.suffix != ".lock":
            status = path.stat()
            found.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join([settings.embedding_model, *found]).encode("utf-8", "replace")).hexdigest()


def _mark(lake: Lake, table: str, lost: pl.DataFrame) -> None:
    """Mark the days of these rows as out of date."""
    for day in lost["day"].unique():
        lake.replace(table, lake.read(table, [day]), [day], {day: INCOMPLETE})


def _lost_message_vectors(workspace: Workspace, marks: bool) -> Iterator[str]:
    """The same for messages, which are first only counted, as there are many."""
    settings, table = workspace.settings, "message_embeddings"
    rows = workspace.lake.read(table, columns=["day", "point_id", "dimension"])
    sizes = rows.filter(rows["dimension"] > 0)["dimension"]
    if sizes.is_empty():
        return
    try:
        with open_index(settings, sizes[-1], MESSAGES, wait=LOOK_SECONDS) as index:
            lost = set() if index.count() >= rows.height else set(rows["point_id"]) - index.ids()
    except IndexBusyError:
        raise
    except IndexUnavailableError as error:
        yield f"Messages can only be searched by keywords in the tables: {error}"
        return
    if not lost:
        return
    if marks:
        _mark(workspace.lake, table, rows.filter(pl.col("point_id").is_in(list(lost))))
    yield f"{len(lost)} of {rows.height} passages are not in the index; `memory run --all` rebuilds them."


def lexical_only(settings: Settings) -> str | None:
    """The message that there is no usable embedding model, with advice; None if there is one. Everything else works
    without it."""
    missing = missing_model(settings.embedding_model)
    return missing and f"There are no new vectors, so lines are compared by their words: {missing}"


def days_by_words(workspace: Workspace, days: Iterable[date]) -> list[date]:
    """The days that wait for their vectors; later stages were built without embeddings."""
    return [day for day in days if workspace.lake.fingerprint("embeddings", day) == INCOMPLETE]


def set_aside_files(workspace: Workspace) -> list[Path | str]:
    """Quarantined files and indexes that still exist."""
    storage = workspace.lake.storage
    of_lake = [storage.place_of(key) for key in storage.put_aside()]
    return [
        *sorted(workspace.settings.index_dir.glob("*.broken-*")),
        *(of_lake if storage.is_far else map(Path, of_lake)),
    ]
