"""Stored rows of a day whose files are missing or unreadable."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import cast

import polars as pl

from memory_pipeline.harnesses.model import Answering, Image, Message, ParsedSession, Role
from memory_pipeline.harnesses.transcript import storable
from memory_pipeline.lake.rows import MessageRow
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.quoting import quoted_spans
from memory_pipeline.sessions.windows import STILL_ACTIVE, TOO_FEW, too_few
from memory_pipeline.settings import Settings


class RetainedRows:
    """The stored rows of a day, without sessions that must not be stored (any more).

    Invisible characters are removed and the redactor is applied again: the rows may predate its current rules.
    """

    def __init__(self, lake: Lake, day: date, catalogue: Catalogue, settings: Settings, now: datetime) -> None:
        self.lake, self.day, self.catalogue, self.settings, self.now = lake, day, catalogue, settings, now

    @cached_property
    def _messages(self) -> pl.DataFrame:
        stored = self.lake.read("messages", [self.day])
        return stored.filter(~pl.col("session_id").map_elements(self.catalogue.is_left_out, pl.Boolean))

    def _messages_without_files(self, files: Collection[str]) -> pl.DataFrame:
        """Messages of sessions without a file; earlier messages of an existing file are not included."""
        live = {self.catalogue.rows[key]["session_id"] for key in files}
        return self._messages.filter(~pl.col("session_id").is_in(list(live)), ~pl.col("source_file").is_in(list(files)))

    def ids_without(self, files: Collection[str]) -> list[str]:
        """Ids of the messages of `without`."""
        return self._messages_without_files(files)["message_id"].to_list()

    def without(self, files: Collection[str]) -> dict[str, pl.DataFrame]:
        """The unchanged rows of sessions that are in none of the files."""
        messages = self._messages_without_files(files)
        windows = self.lake.read("windows", [self.day]).filter(
            pl.col("dedupe_key").is_in(messages["dedupe_key"].unique().to_list())
        )
        sessions = self.lake.read("sessions", [self.day]).filter(
            pl.col("source_file").is_in(messages["source_file"].unique().to_list()),
            pl.col("session_id").is_in(messages["session_id"].unique().to_list()),
        )
        return {
            "sessions": self._redacted(sessions, "name", "cwd"),
            "messages": self._with_quotes(self._redacted(messages, "text", "tool_name", "answered")),
            "windows": self._current_windows(self._redacted(windows, "current_task", "suggested_response"), messages),
        }

    def under_stored_ids(self, sessions: Sequence[ParsedSession]) -> list[ParsedSession]:
        """The sessions of several files, with the message ids under which an earlier version stored them, so that
        references stay valid. If two messages shared an id, the one that has it today keeps it."""
        if not any(session.former_ids for session in sessions):
            return list(sessions)
        session_id = sessions[0].session_id
        stored = dict(
            self._messages.filter(pl.col("session_id") == session_id).select("message_id", "said_at").iter_rows()
        )
        today = {message.message_id for session in sessions for message in session.messages}
        taken = today | self._stored_on_other_days(session_id)
        return [
            session.with_ids(
                {
                    message.message_id: former
                    for message in session.messages
                    if (former := session.former_ids.get(message.message_id)) is not None
                    and stored.get(former) == message.said_at
                    and former not in taken
                }
            )
            for session in sessions
        ]

    def _stored_on_other_days(self, session_id: str) -> set[str]:
        days = self.lake.read("sessions", columns=["day", "session_id"]).filter(pl.col("session_id") == session_id)
        others = self.lake.read("messages", set(days["day"]) - {self.day}, columns=["session_id", "message_id"])
        return set(others.filter(pl.col("session_id") == session_id)["message_id"])

    def messages_of(self, sessions: Sequence[ParsedSession], files: Collection[str]) -> Iterator[tuple[Message, str]]:
        """The stored messages of a session from other files, each with its file, without those that are the same
        messages under former ids."""
        replaced = {
            (former, message.said_at)
            for session in sessions
            for message in session.messages
            if (former := session.former_ids.get(message.message_id))
        }
        rows = self._messages.filter(
            pl.col("session_id") == sessions[0].session_id, ~pl.col("source_file").is_in(list(files))
        )
        for row in cast("Iterator[MessageRow]", rows.iter_rows(named=True)):  # one at a time, as texts may be large
            if (row["message_id"], row["said_at"]) not in replaced:
                yield self._message(row), row["source_file"]

    def _message(self, row: MessageRow) -> Message:
        redact = self._redact
        return Message(
            row["message_id"],
            cast("Role", row["role"]),
            row["said_at"],
            row["written_at"],
            redact(row["text"]),
            row["source_line"],
            row["tool_name"],
            row["is_error"],
            bool(row["voided"]),
            tuple(Image(**image) for image in row["images"] or ()),
            is_timed=row["untimed"] is None,
            answer_to=cast("Answering | None", row["answer_to"]),
            answered=row["answered"] and redact(row["answered"]),
        )

    def _redacted(self, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
        return frame.with_columns(pl.col(column).map_elements(self._redact, pl.String) for column in columns)

    def _redact(self, text: str) -> str:
        return self.catalogue.redactor.redact(storable(text))

    @staticmethod
    def _with_quotes(messages: pl.DataFrame) -> pl.DataFrame:
        """The rows with the spans of the current text."""
        rows = messages.select("role", "text").iter_rows()
        spans = [quoted_spans(text) if role == "user" else [] for role, text in rows]
        quoted = [[{"start": start, "end": end} for start, end in found] for found in spans]
        return messages.with_columns(pl.Series("quoted", quoted, messages.schema["quoted"]))

    def _current_windows(self, windows: pl.DataFrame, messages: pl.DataFrame) -> pl.DataFrame:
        """The windows with their current state: a file that disappeared while its session was active gets no more
        messages, and a short session may have become longer by another file."""
        rows, least = self.catalogue.rows, self.settings.min_user_messages
        files = [key for key in messages["source_file"].unique() if key in rows and rows[key]["session_id"]]
        active = [key for key in files if not self.catalogue.is_idle(key, self.day, self.now)]
        ended = messages.filter(~pl.col("source_file").is_in(active))["dedupe_key"].unique().to_list()
        waited = (pl.col("reason") == STILL_ACTIVE) & pl.col("dedupe_key").is_in(ended)
        was_short = pl.col("reason").str.contains(TOO_FEW.pattern).fill_null(False)
        open_ones = windows.filter(waited | was_short)["session_id"].unique()
        is_short = pl.col("session_id").is_in([s for s in open_ones if not self.catalogue.is_long(s)])
        decided = pl.when(is_short & (pl.col("user_messages") < least)).then(pl.lit(too_few(least)))
        reason = pl.when(waited | was_short).then(decided).otherwise(pl.col("reason"))
        rules_only = reason.str.contains(TOO_FEW.pattern).fill_null(False)
        return windows.with_columns(reason=reason, observed=reason.is_null(), rules_only=rules_only)
