"""Cursor's agent: `~/.cursor/projects/<workspace>/agent-transcripts/<id>/<id>.jsonl`, since version 2.4 (early 2026).

Records have no ids and no times. A prompt begins with its time to the minute; for other messages, in versions since
spring 2026, only the order is known. Cursor rewrites a file when it prunes the history, so a message is identified by
its session, its prompt's time and its text. Results of tools are not recorded, and thoughts only as the mark
`[REDACTED]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec

from memory_pipeline.harnesses.content import blocks_of, plain_text
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader, patched_files, side_file
from memory_pipeline.harnesses.records import JsonObject, object_of, text_of, words
from memory_pipeline.harnesses.speakers import Passage, split_by_speaker, without_private
from memory_pipeline.harnesses.transcript import Transcript

_IGNORED = words("turn_ended metadata")
_READS = words("Read ReadFile read_file")
_WRITES = words("Write StrReplace MultiEdit Edit Delete EditNotebook ApplyPatch edit_file search_replace delete_file")
_REDACTED = re.compile(r"(?:\A|\n)\s*\[REDACTED\]\s*(?=\n|\Z)")
_TIMESTAMP = re.compile(r"\s*<timestamp>([^<>]*)</timestamp>\s*")
_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.DOTALL)
_WRITTEN = re.compile(
    r"(?:\w+, )?(?P<month>[A-Z][a-z]{2})\w* (?P<day>\d{1,2}), (?P<year>\d{4}),? (?:at )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::\d\d)?\s(?P<half>[AP])M"
    r"(?: \((?:UTC|GMT)(?:(?P<sign>[+-])(?P<hours>\d{1,2})(?::(?P<minutes>\d\d))?)?\))"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Reader(RecordReader):
    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        path = Path(transcript.source.path)
        self.session_id, self.cwd = path.stem, _workspace(path)
        # a sub-agent's transcript is in the folder of the session that started it
        self.parent_session = path.parent.parent.name if path.parent.name == "subagents" else ""
        self.prompted = ""

    def record(self, line: int, record: JsonObject) -> None:
        role, message = record.get("role"), object_of(record.get("message"))
        if role not in ("user", "assistant"):
            self.transcript.skip_record()
            kind = text_of(record.get("type")) or text_of(role)
            if kind not in _IGNORED:
                self.transcript.unknown[kind] += 1
            return
        content = message.get("content")
        text = plain_text(content)
        sent = _TIMESTAMP.match(text) if role == "user" else None
        self.transcript.next_record(line, sent and _time(sent[1]))
        self.prompted = sent[1] if sent else self.prompted
        digest = self.transcript.digest(msgspec.json.encode(content))
        self.begin_repeatable(self.session_id, self.prompted, role, digest)
        if role == "user":
            for speaker, said in _passages(text[sent.end() :] if sent else text):
                self.add(speaker, said)
        for block in blocks_of(content):
            self._block(block, role)

    def _block(self, block: JsonObject, role: str) -> None:
        kind = block.get("type")
        if kind == "text":
            if role == "assistant":
                self.add("assistant", _REDACTED.sub("", text_of(block.get("text"))).strip())
        elif kind == "tool_use":
            self.call("", text_of(block.get("name")), block.get("input"))
        elif kind == "tool_result":
            self.result("", plain_text(block.get("content")), failed=block.get("is_error") is True)
        elif kind not in ("thinking", "redacted_thinking", "image"):
            self.transcript.unknown[f"block/{kind}"] += 1

    def files(self, name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        paths = _paths(arguments)
        return (paths if name in _READS else ()), (paths if name in _WRITES else ())


class Cursor(Harness):
    name = "cursor"
    reader = Reader
    folders = ("${CURSOR_CONFIG_DIR:-~/.cursor}/projects/*/agent-transcripts",)
    side_files = (
        ".cursor/*.json",
        ".cursor/projects/*/*.json",
        "mcps/*/*.json",
        "mcps/*/tools/*.json",
        "chats/*/*/meta.json",
    )

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is a message, which only has a role and content."""
        message = record.get("message")
        is_message = record.get("role") in ("user", "assistant") and isinstance(message, dict) and "content" in message
        return is_message and record.keys() <= {"role", "message"}


def _passages(text: str) -> Iterator[Passage]:
    """The text in `<user_query>` is the user's, the rest is Cursor's; older prompts are not wrapped."""
    text = without_private([text])[0]
    end = 0
    for query in _QUERY.finditer(text):
        yield "injected", text[end : query.start()].strip()
        yield from split_by_speaker(query[1])
        end = query.end()
    if end:
        yield "injected", text[end:].strip()
    else:
        yield from split_by_speaker(text)


def _paths(given: object) -> tuple[str, ...]:
    """The paths in the arguments of a call, which for a patch are one text."""
    patch = given if isinstance(given, str) else ""
    if isinstance(given, dict):
        named = [text_of(given.get(name)) for name in ("path", "file_path", "target_file", "target_notebook")]
        if any(named):
            return tuple(filter(None, named))
        patch = text_of(given.get("patch")) or text_of(given.get("input"))
    return patched_files(patch)


def _time(written: str) -> str | None:
    """The time of a prompt, from `Tuesday, Jul 21, 2026, 6:57 PM (UTC+8)` or ISO 8601; None for other forms."""
    found = _WRITTEN.fullmatch(written.strip())
    if not found:
        return written.strip()
    offset = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
    try:
        zone = timezone(-offset if found["sign"] == "-" else offset)
        hour = int(found["hour"]) % 12 + (12 if found["half"] == "P" else 0)
        month = _MONTHS.index(found["month"]) + 1
        moment = datetime(int(found["year"]), month, int(found["day"]), hour, int(found["minute"]), tzinfo=zone)
        return moment.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None


def _workspace(path: Path) -> str:
    """The directory of the workspace if the user trusted it; the name of its folder cannot be converted back to a
    path."""
    project = next((folder.parent for folder in path.parents if folder.name == "agent-transcripts"), None)
    return text_of(side_file(project / ".workspace-trusted").get("workspacePath")) if project else ""
