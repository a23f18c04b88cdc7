"""Removal from the tables: the rows that contain forgotten text, and the cleaned tables.

Derived rows are removed if they contain it, and the next run rebuilds their days. Offered, decided and promoted lines
are removed with all their events; a proposal with other evidence keeps that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import polars as pl

from memory_pipeline.harnesses.transcript import FORGOTTEN
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.operations.forgetting.changes import Found
from memory_pipeline.operations.forgetting.request import ForgetRequest, refuse_common
from memory_pipeline.redaction.forgotten import MARK, Phrases, Runs, moved, words_in
from memory_pipeline.sessions.quoting import quoted_spans

_OF_PROPOSALS = ("proposals", "remembered", "friction_fixes")
_BY_PROPOSAL = tuple(name for name, table in TABLES.items() if table.id_column == "proposal_id")
_IDENTIFYING_COLUMNS = ("text", "title", "adds", "replaces", "change")
"""Columns for whose words the whole row is removed. In other columns only the words are."""
_SOURCES_BY_TABLE = {  # the columns with the ids of a row's sources, by table, in the order of the stages
    "observations": (),
    "notes": (),
    "reflections": ("sources", "superseded"),
    "day_distillations": ("sources",),
    "week_distillations": ("sources",),
    "month_distillations": ("sources",),
    "pool_reflections": ("observations",),
    "friction_clusters": (),
}
_QUOTING_COLUMNS = ("name", "current_task", "suggested_response", "narrative", "title")
"""Columns of a session, window or segment that quote its messages."""
Spans = Mapping[str, Sequence[tuple[int, int]]]
"""The spans of words to be removed, by message."""


def find_rows(lake: Lake, request: ForgetRequest) -> list[Found]:
    """The rows to be removed, for display. The data for removing them is added to the request. Raises
    `CannotForgetError`."""
    texts, spans = _find_messages(lake, request)
    gone = set(request.messages)
    touched = gone | set(spans)
    _find_derived(lake, request, gone, spans)
    _find_proposals(lake, request, gone, spans, texts)
    _find_points(lake, request, touched)
    return [*(Found("messages", text) for text in texts.values()), *_shown(lake, request)]


def _find_messages(lake: Lake, request: ForgetRequest) -> tuple[dict[str, str], Spans]:
    """The messages to be removed or cleaned: their texts, and the spans of the words in each cleaned one."""
    texts: dict[str, str] = {}
    spans: dict[str, list[tuple[int, int]]] = {}
    total = 0
    for day in lake.days("messages"):
        frame = lake.read("messages", [day])
        total += frame.height
        whole = frame.filter(
            pl.col("session_id").is_in(request.sessions) | pl.col("message_id").is_in(request.messages)
        )
        some = _possible_rows(frame, request.wanted, request.phrases).join(whole, on="message_id", how="anti")
        said = [r for r in some.iter_rows(named=True) if any(map(request.wanted.are_in, _words_of("messages", r)))]
        spans |= {row["message_id"]: request.wanted.spans(row["text"]) for row in said}
        request.messages |= set(whole["message_id"])
        for row in [*whole.iter_rows(named=True), *said]:
            texts[row["message_id"]] = row["text"]
            request.days.add(f"{day}")
            request.files.add(row["source_file"])
            request.windows.add(row["dedupe_key"])
    refuse_common(request, len(spans), total)
    request.told += [texts[name] for name in sorted(request.messages) if name in texts]
    of_session = pl.col("session_id").is_in(request.sessions)
    request.files |= set(lake.read("files", columns=["path", "session_id"]).filter(of_session)["path"])
    own = lake.read("sessions", columns=["day", "session_id", "name"]).filter(of_session)
    request.told += own["name"].drop_nulls().to_list()
    request.days |= set(map(str, own["day"]))
    return texts, spans


def _find_derived(lake: Lake, request: ForgetRequest, gone: Collection[str], spans: Spans) -> None:
    """Rows that contain it, were made from it, or have evidence in these messages, whose spans in a changed text are
    invalid; and a model's answers about their windows."""
    touched, carrying, below = set(gone) | set(spans), set[str](), set[str]()
    for table, columns in _SOURCES_BY_TABLE.items():
        if table == "reflections":  # the first that is made from segments
            below |= _find_segments(lake, request)
        sources = carrying if table == "pool_reflections" else below  # it is never rebuilt
        for row in lake.read(table).iter_rows(named=True):
            row_id, says = row[TABLES[table].id_column], _says(request, row)
            is_named = row_id in request.ids(table) or row.get("session_id") in request.sessions
            is_touched = any(span["message_id"] in touched for span in row.get("evidence") or ())
            if not (says or is_named or is_touched or any(s in sources for name in columns for s in row[name] or ())):
                continue
            request.add(table, [row_id])
            if table == "observations":
                request.windows.add(row["dedupe_key"])
                if says or any(_overlaps(span, gone, spans) for span in row["evidence"] or ()):
                    carrying.add(row_id)
                    request.told.append(row["text"])
            if "evidence" in row:
                request.days.add(f"{row['day']}")
        if table != "pool_reflections":
            below |= request.ids(table)
    request.told += _texts(lake, request, "reflections", "pool_reflections")


def _find_segments(lake: Lake, request: ForgetRequest) -> set[str]:
    """The segments of the windows, whose answers are removed with their texts about the sessions to be removed."""
    found = _segments(lake, request)
    request.answers |= set(found["answer"].drop_nulls())
    own = found.filter(pl.col("session_id").is_in(request.sessions))
    request.told += [text for column in ("narrative", "title", "current_task") for text in own[column].drop_nulls()]
    return set(found["segment_id"])


def _find_proposals(
    lake: Lake, request: ForgetRequest, gone: Collection[str], spans: Spans, texts: Mapping[str, str]
) -> None:
    """Proposals and fixes that contain it or have no other evidence, and the remaining evidence of the others."""
    out = request.ids(*_OF_PROPOSALS)
    for table in ("events", "remembered"):
        out |= {row["proposal_id"] for row in lake.read(table).iter_rows(named=True) if _says(request, row)}
    forgotten = Runs(texts[name] for name in gone if name in texts)
    for table in ("proposals", "friction_fixes"):
        for row in lake.read(table).iter_rows(named=True):
            evidence = row["evidence"] or []
            left = [e for e in evidence if not _overlaps(e, gone, spans)]
            is_quoted = left != evidence and forgotten.are_in(row["text"])  # other evidence may only mean the same
            if (
                _says(request, row)
                or (evidence and not left)
                or (is_quoted and not _has_other_evidence(lake, left, row["text"]))
            ):
                out.add(row["proposal_id"])
            elif any(e["message_id"] in gone or e["message_id"] in spans for e in evidence):
                request.evidence[row["proposal_id"]] = [_moved_span(e, spans) for e in left]
    for table in _BY_PROPOSAL:
        request.add(table, out)
    request.add("friction_clusters", (p for p in out if p.startswith("f-")))
    lines = _texts(lake, request, "proposals", "remembered", "events")
    request.told += lines
    own = {tuple(word.text for word in words_in(line)) for line in lines}
    rules = lake.read("watched_rules").iter_rows(named=True)
    same = (r for r in rules if _says(request, r) or tuple(word.text for word in words_in(r["text"])) in own)
    request.add("watched_rules", (rule["rule_id"] for rule in same))


def _has_other_evidence(lake: Lake, evidence: Sequence[Mapping[str, Any]], text: str) -> bool:
    """Whether the remaining evidence has these words too."""
    ids = [e["message_id"] for e in evidence]
    messages = (lake.read("messages", [day], ["message_id", "text"]) for day in lake.days("messages"))
    said = [t for frame in messages for t in frame.filter(pl.col("message_id").is_in(ids))["text"]]
    return Runs(said).are_in(text)


def _find_points(lake: Lake, request: ForgetRequest, touched: Collection[str]) -> None:
    """The points of all removed and changed rows."""
    ids = {*touched, *request.ids("observations", "reflections"), *_segments(lake, request)["segment_id"]}
    windows = lake.read("windows", columns=["dedupe_key", "session_id"])
    inside = windows.filter(pl.col("dedupe_key").is_in(request.windows))["session_id"].to_list()
    is_named = (pl.col("record") == "session") & pl.col("session_id").is_in(inside)
    is_of_session = pl.col("session_id").is_in(request.sessions) | is_named
    for table in ("embeddings", "summary_embeddings", "message_embeddings"):
        is_gone = pl.col("source_id").is_in(ids)
        found = lake.read(table).filter(is_gone | is_of_session if table == "message_embeddings" else is_gone)
        request.add(table, found["point_id"])
        request.points |= request.ids(table)


def _shown(lake: Lake, request: ForgetRequest) -> Iterator[Found]:
    """The rows to be removed apart from messages, for display."""
    for name in lake.read("sessions").filter(pl.col("session_id").is_in(request.sessions))["name"]:
        yield Found("sessions", name)
    for table in (*_SOURCES_BY_TABLE, *_OF_PROPOSALS, "events"):
        for row in _rows_to_remove(lake, request, table).iter_rows(named=True):
            if said := row.get("text") or row.get("title"):
                yield Found(table, f"{row[TABLES[table].id_column]} {said}")


def _cleaned(table: str, frame: pl.DataFrame, request: ForgetRequest) -> pl.DataFrame:
    """The cleaned rows of a table; the same frame if nothing changes."""
    if ids := request.ids(table):
        frame = frame.filter(~pl.col(TABLES[table].id_column).is_in(ids))
    if "session_id" in frame.columns and request.sessions and table != "files":
        frame = frame.filter(~pl.col("session_id").is_in(request.sessions))
    if table == "messages":
        frame = frame.filter(~pl.col("message_id").is_in(request.messages))
    if "evidence" in frame.columns and request.evidence:
        old = zip(frame[TABLES[table].id_column], frame["evidence"].to_list(), strict=True)
        left = [request.evidence.get(row_id, evidence) for row_id, evidence in old]
        frame = frame.with_columns(pl.Series("evidence", left, frame.schema["evidence"]))
    if "session_ids" in frame.columns and request.sessions:
        frame = frame.with_columns(pl.col("session_ids").list.filter(~pl.element().is_in(request.sessions)))
    return _without_words(table, frame, request)


def clean_tables(lake: Lake, request: ForgetRequest) -> None:
    """Clean the tables one by one, each day's file atomically. Safe to repeat."""
    for table, about in TABLES.items():
        if table == "forgotten":
            continue
        for day in lake.days(table) if about.daily else [None]:
            before = lake.read(table, [day] if day else None)
            if before.is_empty():
                continue
            after = _cleaned(table, before, request)
            if table == "files":
                after = _without_sessions(after, request)
            if table in ("windows", "sessions") and day:
                after = _with_counts(lake, table, after, day, request)
            is_changed = not after.equals(before)
            is_read_again = f"{day}" in request.days and table in ("sessions", "messages", "windows")
            if day and (is_changed or is_read_again):
                lake.replace(table, after, [day])  # without a fingerprint, so the next run rebuilds it
            elif is_changed:
                lake.replace_all(table, after)


def _without_sessions(files: pl.DataFrame, request: ForgetRequest) -> pl.DataFrame:
    """The catalogue without these sessions, in which their files count as changed until they are read again."""
    own, read = pl.col("session_id").is_in(request.sessions), pl.col("path").is_in(request.files)
    unknown = [pl.when(own).then(None).otherwise(pl.col(n)).alias(n) for n in ("cwd", "branch", "repository")]
    return files.with_columns(
        pl.when(own).then(pl.lit(FORGOTTEN)).otherwise(pl.col("excluded")).alias("excluded"),
        pl.when(read).then(pl.lit("")).otherwise(pl.col("reader")).alias("reader"),
        *unknown,
    )


def _with_counts(lake: Lake, table: str, frame: pl.DataFrame, day: date, request: ForgetRequest) -> pl.DataFrame:
    """The rows with updated numbers of messages, without those that have none left."""
    if f"{day}" not in request.days or not request.messages:
        return frame
    said = _cleaned("messages", lake.read("messages", [day]), request)
    key = "dedupe_key" if table == "windows" else "source_file"
    typed = (pl.col("role") == "user") & ~pl.col("voided").fill_null(False)
    counts = said.group_by(key).agg(pl.len().cast(pl.Int64).alias("_all"), typed.sum().cast(pl.Int64).alias("_typed"))
    joined = frame.join(counts, on=key, how="inner", maintain_order="left")
    return joined.with_columns(messages=pl.col("_all"), user_messages=pl.col("_typed")).drop("_all", "_typed")


def _without_words(table: str, frame: pl.DataFrame, request: ForgetRequest) -> pl.DataFrame:
    """The rows with marks in place of the words, also in columns of sessions, windows and segments that quote removed
    text."""
    quoting = table in ("windows", "segments", "sessions") and request.messages
    if not (request.wanted or quoting) or frame.is_empty():
        return frame
    inside = frame["dedupe_key"].is_in(request.windows) if "dedupe_key" in frame.columns else None
    for name in TABLES[table].columns_with_words:
        values = frame[name].to_list()
        new = [_redacted(value, request.wanted) for value in values]
        if quoting and name in _QUOTING_COLUMNS:
            new = [
                MARK if value and (inside is None or inside[i]) and request.repeated.are_in(value) else value
                for i, value in enumerate(new)
            ]
        if new != values:
            frame = frame.with_columns(pl.Series(name, new, frame.schema[name]))
            if table == "messages" and name == "text":
                roles = frame["role"].to_list()
                spans = [quoted_spans(text) if role == "user" else [] for role, text in zip(roles, new, strict=True)]
                quoted = [[{"start": start, "end": end} for start, end in found] for found in spans]
                frame = frame.with_columns(pl.Series("quoted", quoted, frame.schema["quoted"]))
    return frame


def _redacted(value: Any, wanted: Phrases) -> Any:
    """A text, or a list of texts, with marks in place of the words."""
    return value and ([wanted.without(one) for one in value] if isinstance(value, list) else wanted.without(value))


def _possible_rows(frame: pl.DataFrame, wanted: Phrases, phrases: Iterable[str]) -> pl.DataFrame:
    """The rows that contain the longest word of one of the phrases."""
    if not wanted:
        return frame.clear()
    longest = {max((text[w.start : w.end] for w in words_in(text)), key=len) for text in phrases}
    pattern = "(?i)" + "|".join(re.escape(word) for word in sorted(longest))
    columns = [name for name in TABLES["messages"].columns_with_words if frame.schema[name] == pl.String()]
    lists = [pl.col(name).str.contains(pattern).fill_null(False) for name in columns]
    return frame.filter(pl.any_horizontal(lists))


def _words_of(table: str, row: Mapping[str, Any]) -> Iterator[str]:
    for name in TABLES[table].columns_with_words:
        value = row[name]
        yield from [value] if isinstance(value, str) else value or ()


def _says(request: ForgetRequest, row: Mapping[str, Any]) -> bool:
    return bool(request.wanted) and any(request.wanted.are_in(row.get(name) or "") for name in _IDENTIFYING_COLUMNS)


def _overlaps(span: Mapping[str, Any], gone: Collection[str], spans: Spans) -> bool:
    """Whether the span overlaps removed text."""
    name = span["message_id"]
    return name in gone or any(start < span["end"] and span["start"] < end for start, end in spans.get(name, ()))


def _moved_span(span: Mapping[str, Any], spans: Spans) -> dict[str, Any]:
    """The span, moved to its position in the cleaned text."""
    name = span["message_id"]
    own = spans.get(name, ())
    return {"message_id": name, "start": moved(span["start"], own), "end": moved(span["end"], own)}


def _texts(lake: Lake, request: ForgetRequest, *tables: str) -> list[str]:
    return [text for table in tables for text in _rows_to_remove(lake, request, table)["text"].drop_nulls()]


def _rows_to_remove(lake: Lake, request: ForgetRequest, table: str) -> pl.DataFrame:
    """The rows of the table to be removed by id."""
    return lake.read(table).filter(pl.col(TABLES[table].id_column).is_in(request.ids(table)))


def _segments(lake: Lake, request: ForgetRequest) -> pl.DataFrame:
    return lake.read("segments").filter(pl.col("dedupe_key").is_in(request.windows))
