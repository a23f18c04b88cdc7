"""The tables: which of their rows carry what is to be forgotten, and the same tables without it.

Rows that a stage makes go where they carry it, and the next run makes their days anew from what is left. What was
offered, decided and promoted goes with all that happened to it; a proposal that other words carry too keeps those.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import polars as pl

from memory_pipeline.harnesses.transcript import FORGOTTEN
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.operations.forgetting.aim import Aim, refuse_common
from memory_pipeline.proposals.events import KEYS
from memory_pipeline.redaction.forgotten import MARK, Phrases, Runs, moved, words_in
from memory_pipeline.sessions.quoting import quoted_spans

ID_OF = {
    "observations": "observation_id",
    "notes": "note_id",
    "reflections": "reflection_id",
    "pool_reflections": "pool_id",
    "day_distillations": "distillation_id",
    "week_distillations": "distillation_id",
    "month_distillations": "distillation_id",
    "friction_clusters": "pattern_id",
    "watched_rules": "rule_id",
    "embeddings": "point_id",
    "summary_embeddings": "point_id",
    "message_embeddings": "point_id",
} | dict.fromkeys(("proposals", "remembered", "supports", *KEYS), "proposal_id")
"""The column by which rows of a table go."""
_OF_PROPOSALS = ("proposals", "remembered", "friction_fixes")
_DECIDING = ("text", "title", "adds", "replaces", "change")
"""Columns whose words a row stands for: with them the row goes. Of others only the words go."""
_MADE_OF = {  # what a row was made from, from the first to the last
    "reflections": ("sources", "superseded"),
    "day_distillations": ("sources",),
    "week_distillations": ("sources",),
    "month_distillations": ("sources",),
    "pool_reflections": ("observations",),
}
_MASKED = ("files", "sessions", "messages", "windows", "segments", "ledger")
_NOT_WORDS = re.compile(
    r".*_ids?|sources|observations|left_out|superseded|supersedes|used|dedupe_key|content_hash|digest|path|member|"
    r"source_file|reader|harness|model|kind|priority|role|trigger|trust|observer|reflector|state|stage|surface|"
    r"decision|section|untimed|owner|flags|answer|basis|record|answer_to|place|file|item_type|level"
)
_TELLING = ("name", "current_task", "suggested_response", "narrative", "title")
"""Columns of a session, window or segment that quote its messages."""


class Found(NamedTuple):
    """Something that goes: where it is, and its line as it is stored."""

    place: str
    line: str


def find_rows(lake: Lake, aim: Aim) -> Iterator[Found]:
    """What goes from the tables; the aim is told all that has to be known to take it out. Raises
    `CannotForgetError`."""
    overlapping, spans = yield from _find_said(lake, aim)
    gone = set(aim.messages)
    touched = gone | set(spans)
    observed = _find_observed(lake, aim, touched)
    carrying = {row["observation_id"] for row in observed if _rests_on(row, gone, spans) or _says(aim, row)}
    aim.told += [row["text"] for row in observed if row["observation_id"] in carrying]
    _add(aim, "observations", (row["observation_id"] for row in observed))
    _find_answers(lake, aim)
    _find_made(lake, aim, carrying)
    _find_friction(lake, aim, touched)
    _find_offered(lake, aim, gone, spans, overlapping)
    _find_points(lake, aim, touched)
    yield from _shown(lake, aim)


def _find_said(lake: Lake, aim: Aim) -> Any:
    """The messages that go or hold words that do: their texts, and where the words stand in each that stays."""
    sessions, ids, total, said_in = set(aim.sessions), set(aim.messages), 0, 0
    texts: dict[str, str] = {}
    spans: dict[str, list[tuple[int, int]]] = {}
    shown: list[Found] = []
    days, files, windows = set(aim.days), set(aim.files), set(aim.windows)
    for day in lake.days("messages"):
        frame = lake.read("messages", [day])
        total += frame.height
        whole = frame.filter(pl.col("session_id").is_in(list(sessions)) | pl.col("message_id").is_in(list(ids)))
        some = _maybe(frame, aim.wanted, aim.phrases).join(whole, on="message_id", how="anti")
        rows = [(row, True) for row in whole.iter_rows(named=True)]
        rows += [
            (r, False) for r in some.iter_rows(named=True) if any(map(aim.wanted.are_in, _words_of("messages", r)))
        ]
        for row, is_whole in rows:
            name = row["message_id"]
            texts[name] = row["text"]
            if is_whole:
                ids.add(name)
            else:
                spans[name] = aim.wanted.spans(row["text"])
                said_in += 1
            days.add(f"{day}")
            files.add(row["source_file"])
            windows.add(row["dedupe_key"])
            shown.append(Found("messages", row["text"]))
    refuse_common(aim, said_in, total)
    aim.messages, aim.days, aim.files, aim.windows = sorted(ids), sorted(days), sorted(files), sorted(windows)
    aim.told += [texts[name] for name in aim.messages if name in texts]
    of_session = pl.col("session_id").is_in(aim.sessions)
    known = lake.read("files", columns=["path", "session_id"]).filter(of_session)
    aim.files = sorted({*aim.files, *known["path"]})
    own = lake.read("sessions", columns=["day", "session_id", "name"]).filter(of_session)
    aim.told += own["name"].drop_nulls().to_list()
    aim.days = sorted({*aim.days, *map(str, own["day"])})
    yield from shown
    return texts, spans


def _find_observed(lake: Lake, aim: Aim, touched: Collection[str]) -> list[dict[str, Any]]:
    """Observations that rest on these messages or say it: their places in a text that changes are no longer right."""
    sessions, found = set(aim.sessions), []
    for row in lake.read("observations").iter_rows(named=True):
        rests = any(span["message_id"] in touched for span in row["evidence"] or ())
        if (
            rests
            or row["session_id"] in sessions
            or _says(aim, row)
            or row["observation_id"] in _ids(aim, "observations")
        ):
            found.append(row)
    aim.windows = sorted({*aim.windows, *(row["dedupe_key"] for row in found)})
    aim.days = sorted({*aim.days, *(f"{row['day']}" for row in found)})
    return found


def _find_answers(lake: Lake, aim: Aim) -> None:
    """Answers of a model to the windows, and what it told of sessions that go."""
    of_windows = lake.read("segments").filter(pl.col("dedupe_key").is_in(aim.windows))
    aim.answers = sorted({*aim.answers, *of_windows["answer"].drop_nulls()})
    own = of_windows.filter(pl.col("session_id").is_in(aim.sessions))
    aim.told += [text for column in ("narrative", "title", "current_task") for text in own[column].drop_nulls()]


def _find_made(lake: Lake, aim: Aim, carrying: set[str]) -> None:
    """What was condensed of them, level by level."""
    rows = lake.read("notes").iter_rows(named=True)
    _add(aim, "notes", (row["note_id"] for row in rows if _says(aim, row)))
    told = lake.read("segments", columns=["segment_id", "dedupe_key"]).filter(pl.col("dedupe_key").is_in(aim.windows))
    below = carrying | _ids(aim, "notes") | _ids(aim, "observations") | set(told["segment_id"])
    for table, columns in _MADE_OF.items():
        of_all = carrying if table == "pool_reflections" else below  # it is not made again
        rows = lake.read(table).iter_rows(named=True)
        ids = [r[ID_OF[table]] for r in rows if _says(aim, r) or any(s in of_all for c in columns for s in r[c] or ())]
        _add(aim, table, ids)
        if table != "pool_reflections":
            below |= _ids(aim, table)
    aim.told += _texts(lake, aim, "reflections", "pool_reflections")


def _find_friction(lake: Lake, aim: Aim, touched: Collection[str]) -> None:
    rows = lake.read("friction_clusters").iter_rows(named=True)
    rest = [r for r in rows if _says(aim, r) or any(e["message_id"] in touched for e in r["evidence"] or ())]
    _add(aim, "friction_clusters", (row["pattern_id"] for row in rest))
    aim.days = sorted({*aim.days, *(f"{row['day']}" for row in rest)})


def _find_offered(
    lake: Lake,
    aim: Aim,
    gone: Collection[str],
    spans: Mapping[str, Sequence[tuple[int, int]]],
    texts: Mapping[str, str],
) -> None:
    """Proposals and fixes that say it or that nothing else carries; the evidence of those that stay."""
    out = {p for table in _OF_PROPOSALS for p in _ids(aim, table)}
    for table in ("decisions", "promotions"):
        out |= {row["proposal_id"] for row in lake.read(table).iter_rows(named=True) if _says(aim, row)}
    out |= {row["proposal_id"] for row in lake.read("remembered").iter_rows(named=True) if _says(aim, row)}
    forgotten = Runs(texts[name] for name in gone if name in texts)
    for table in ("proposals", "friction_fixes"):
        for row in lake.read(table).iter_rows(named=True):
            evidence = row["evidence"] or []
            left = [e for e in evidence if not _is_hit(e, gone, spans)]
            if _says(aim, row) or (evidence and not left):
                out.add(row["proposal_id"])
            elif left != evidence and forgotten.are_in(row["text"]) and not _carry(lake, left, row["text"]):
                out.add(row["proposal_id"])  # its words are those that go; the others only mean the same
            elif any(e["message_id"] in gone or e["message_id"] in spans for e in evidence):
                aim.evidence[row["proposal_id"]] = [_moved(e, spans) for e in left]
    for table in ("proposals", "remembered", "supports", *KEYS):
        _add(aim, table, out)
    _add(aim, "friction_clusters", (p for p in out if p.startswith("f-")))
    lines = _texts(lake, aim, "proposals", "remembered", "decisions", "promotions")
    aim.told += lines
    own = {tuple(word.text for word in words_in(line)) for line in lines}
    rules = lake.read("watched_rules").iter_rows(named=True)
    same = (r for r in rules if _says(aim, r) or tuple(word.text for word in words_in(r["text"])) in own)
    _add(aim, "watched_rules", (rule["rule_id"] for rule in same))


def _carry(lake: Lake, evidence: Sequence[Mapping[str, Any]], text: str) -> bool:
    """Whether what is left says these words too."""
    ids = [e["message_id"] for e in evidence]
    messages = (lake.read("messages", [day], ["message_id", "text"]) for day in lake.days("messages"))
    said = [t for frame in messages for t in frame.filter(pl.col("message_id").is_in(ids))["text"]]
    return Runs(said).are_in(text)


def _find_points(lake: Lake, aim: Aim, touched: Collection[str]) -> None:
    """The points of all that goes or changes."""
    sources = {one for table in ("observations", "reflections") for one in _ids(aim, table)}
    segments = lake.read("segments").filter(pl.col("dedupe_key").is_in(aim.windows))
    sources |= set(segments["segment_id"])
    inside = set(lake.read("windows").filter(pl.col("dedupe_key").is_in(aim.windows))["session_id"])
    for table in ("embeddings", "summary_embeddings"):
        found = lake.read(table).filter(pl.col("source_id").is_in(list(sources)))
        _add(aim, table, found["point_id"])
    found = lake.read("message_embeddings").filter(
        pl.col("source_id").is_in(list(touched))
        | pl.col("session_id").is_in(aim.sessions)
        | ((pl.col("record") == "session") & pl.col("session_id").is_in(list(inside)))
    )
    _add(aim, "message_embeddings", found["point_id"])
    tables = ("embeddings", "summary_embeddings", "message_embeddings")
    aim.points = sorted({*aim.points, *(point for table in tables for point in _ids(aim, table))})


def _shown(lake: Lake, aim: Aim) -> Iterator[Found]:
    """What else goes, for the user to see."""
    for name in lake.read("sessions").filter(pl.col("session_id").is_in(aim.sessions))["name"]:
        yield Found("sessions", name)
    for table in ("observations", "notes", *_MADE_OF, "friction_clusters", *_OF_PROPOSALS, "decisions", "promotions"):
        ids = _ids(aim, table)
        rows = lake.read(table).filter(pl.col(ID_OF[table]).is_in(list(ids))) if ids else pl.DataFrame()
        for row in rows.iter_rows(named=True):
            yield Found(table, f"{row[ID_OF[table]]} {row.get('text') or row.get('title') or ''}")


def cleaned(table: str, frame: pl.DataFrame, aim: Aim) -> pl.DataFrame:
    """The rows of a table without what goes; the same rows where there is nothing of it."""
    if table in ID_OF and (ids := _ids(aim, table)):
        frame = frame.filter(~pl.col(ID_OF[table]).is_in(list(ids)))
    if "session_id" in frame.columns and aim.sessions and table != "files":
        frame = frame.filter(~pl.col("session_id").is_in(aim.sessions))
    if table == "messages":
        frame = frame.filter(~pl.col("message_id").is_in(aim.messages))
    if table == "friction_clusters" or ("evidence" in frame.columns and table in ("proposals", "friction_fixes")):
        frame = _with_evidence(frame, aim)
    if "session_ids" in frame.columns and aim.sessions:
        left = pl.col("session_ids").list.filter(~pl.element().is_in(aim.sessions))
        frame = frame.with_columns(left)
    return _without_words(table, frame, aim)


def repeats(table: str, frame: pl.DataFrame, aim: Aim) -> bool:
    """Whether a row repeats a stretch of it: of older versions, whose rows may have other ids."""
    return any(aim.repeated.are_in(text) for row in frame.iter_rows(named=True) for text in _words_of(table, row))


def clean_tables(lake: Lake, aim: Aim) -> None:
    """Take out what goes, table by table, each day's file at once. Doing it again changes nothing."""
    for table, about in TABLES.items():
        if table == "forgotten":
            continue
        for day in lake.days(table) if about.daily else [None]:
            before = lake.read(table, [day] if day else None)
            if before.is_empty():
                continue
            after = cleaned(table, before, aim)
            if table == "files":
                after = _without_sessions(after, aim)
            if table in ("windows", "sessions") and day:
                after = _counted(lake, table, after, day, aim)
            if not after.equals(before) and day:
                lake.replace(table, after, [day])  # without a fingerprint: the next run makes it anew
            elif not after.equals(before):
                lake.replace_all(table, after)
            elif day and f"{day}" in aim.days and table in ("sessions", "messages", "windows"):
                lake.replace(table, after, [day])


def _with_evidence(frame: pl.DataFrame, aim: Aim) -> pl.DataFrame:
    ids = frame["proposal_id"] if "proposal_id" in frame.columns else frame["pattern_id"]
    if not any(i in aim.evidence for i in ids):
        return frame
    new = [aim.evidence.get(i, e) for i, e in zip(ids, frame["evidence"].to_list(), strict=True)]
    return frame.with_columns(pl.Series("evidence", new, frame.schema["evidence"]))


def _without_sessions(files: pl.DataFrame, aim: Aim) -> pl.DataFrame:
    """The catalogue as it is once these files are read again: until then each counts as changed."""
    own, read = pl.col("session_id").is_in(aim.sessions), pl.col("path").is_in(aim.files)
    nothing = {
        name: pl.when(own).then(None).otherwise(pl.col(name)).alias(name) for name in ("cwd", "branch", "repository")
    }
    return files.with_columns(
        pl.when(own).then(pl.lit(FORGOTTEN)).otherwise(pl.col("excluded")).alias("excluded"),
        pl.when(read).then(pl.lit("")).otherwise(pl.col("reader")).alias("reader"),
        *nothing.values(),
    )


def _counted(lake: Lake, table: str, frame: pl.DataFrame, day: date, aim: Aim) -> pl.DataFrame:
    """With as many messages as are left; those without any go. The messages are cleaned by now or will be."""
    if f"{day}" not in aim.days or not aim.messages:
        return frame
    said = cleaned("messages", lake.read("messages", [day]), aim)
    key = "dedupe_key" if table == "windows" else "source_file"
    typed = (pl.col("role") == "user") & ~pl.col("voided").fill_null(False)
    counts = said.group_by(key).agg(pl.len().cast(pl.Int64).alias("_all"), typed.sum().cast(pl.Int64).alias("_typed"))
    joined = frame.join(counts, on=key, how="inner", maintain_order="left")
    return joined.with_columns(messages=pl.col("_all"), user_messages=pl.col("_typed")).drop("_all", "_typed")


def _without_words(table: str, frame: pl.DataFrame, aim: Aim) -> pl.DataFrame:
    """With marks in the place of the words, also of those that a session's rows quote of what went."""
    quoting = table in ("windows", "segments", "sessions") and aim.messages
    if not (aim.wanted or quoting) or frame.is_empty():
        return frame
    inside = frame["dedupe_key"].is_in(aim.windows) if "dedupe_key" in frame.columns else None
    for name in _columns(table):
        if frame.schema[name] == pl.String():
            values = frame[name].to_list()
            new = [value and aim.wanted.without(value) for value in values]
            if quoting and name in _TELLING:
                new = [
                    MARK if value and (inside is None or inside[i]) and aim.repeated.are_in(value) else value
                    for i, value in enumerate(new)
                ]
        else:
            values = frame[name].to_list()
            new = [value and [aim.wanted.without(one) for one in value] for value in values]
        if new != values:
            frame = frame.with_columns(pl.Series(name, new, frame.schema[name]))
            if table == "messages" and name == "text":
                roles = frame["role"].to_list()
                spans = [quoted_spans(text) if role == "user" else [] for role, text in zip(roles, new, strict=True)]
                quoted = [[{"start": start, "end": end} for start, end in found] for found in spans]
                frame = frame.with_columns(pl.Series("quoted", quoted, frame.schema["quoted"]))
    return frame


def _maybe(frame: pl.DataFrame, wanted: Phrases, phrases: Iterable[str]) -> pl.DataFrame:
    """The rows that have the longest word of one of the phrases somewhere."""
    if not wanted:
        return frame.clear()
    longest = {max((text[w.start : w.end] for w in words_in(text)), key=len) for text in phrases}
    pattern = "(?i)" + "|".join(re.escape(word) for word in sorted(longest))
    columns = [name for name in _columns("messages") if frame.schema[name] == pl.String()]
    lists = [pl.col(name).str.contains(pattern).fill_null(False) for name in columns]
    return frame.filter(pl.any_horizontal(lists))


def _columns(table: str) -> list[str]:
    """Those with words in them."""
    kinds = (pl.String(), pl.List(pl.String()))
    return [name for name, kind in TABLES[table].columns.items() if kind in kinds and not _NOT_WORDS.fullmatch(name)]


def _words_of(table: str, row: Mapping[str, Any]) -> Iterator[str]:
    for name in _columns(table):
        value = row[name]
        yield from [value] if isinstance(value, str) else value or ()


def _says(aim: Aim, row: Mapping[str, Any]) -> bool:
    return bool(aim.wanted) and any(aim.wanted.are_in(row.get(name) or "") for name in _DECIDING)


def _rests_on(row: Mapping[str, Any], gone: Collection[str], spans: Mapping[str, Any]) -> bool:
    return any(_is_hit(span, gone, spans) for span in row["evidence"] or ())


def _is_hit(span: Mapping[str, Any], gone: Collection[str], spans: Mapping[str, Any]) -> bool:
    """Whether the place is in what goes."""
    name = span["message_id"]
    return name in gone or any(start < span["end"] and span["start"] < end for start, end in spans.get(name, ()))


def _moved(span: Mapping[str, Any], spans: Mapping[str, Sequence[tuple[int, int]]]) -> dict[str, Any]:
    """The place in the text with marks."""
    name = span["message_id"]
    own = spans.get(name, ())
    return {"message_id": name, "start": moved(span["start"], own), "end": moved(span["end"], own)}


def _texts(lake: Lake, aim: Aim, *tables: str) -> list[str]:
    found = [lake.read(t).filter(pl.col(ID_OF[t]).is_in(list(_ids(aim, t))))["text"].to_list() for t in tables]
    return [text for texts in found for text in texts]


def _ids(aim: Aim, table: str) -> set[str]:
    return set(aim.rows.get(table, ()))


def _add(aim: Aim, table: str, ids: Iterable[str]) -> None:
    if new := {*_ids(aim, table), *ids}:
        aim.rows[table] = sorted(new)
