"""OpenCode: `~/.local/share/opencode`, sessions in JSON folders (until version 1.1) or in an SQLite database (since
1.2), and the files of `opencode export`. Kilo and MiMoCode use the same formats.

A fork copies messages with new ids but the same times, and before 2.0 does not name its original. So a message is
identified by its start, its prompt, and data that copies keep, such as the id of a tool call: copies get the ids of
their originals, and so do messages that are in the folders and in the database. A prompt of 2.x is identified by its
own id or that of its original (`origin`), as its time is only set after waiting and a fork names its parent.

The records are those of `store.records`. An image is a `file` part with an image media type, or such an attachment of a
tool's result, counted in the order of `image_parts`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Unpack

from memory_pipeline.harnesses.answers import REFUSED, Answer, answers_given
from memory_pipeline.harnesses.content import call_text, image_mark, image_type
from memory_pipeline.harnesses.model import Image, Role, Source
from memory_pipeline.harnesses.opencode.current import STATES
from memory_pipeline.harnesses.opencode.store import claims, records
from memory_pipeline.harnesses.protocol import HarnessWithFolders
from memory_pipeline.harnesses.record_reader import RecordReader
from memory_pipeline.harnesses.records import JsonObject, list_of, object_of, text_of, to_time, words
from memory_pipeline.harnesses.speakers import Evidence, is_person, split_by_speaker
from memory_pipeline.harnesses.transcript import MessageDetails, Transcript

# Thoughts, and marks at the beginning and end of a model's step.
_IGNORED = words("reasoning step-start step-finish snapshot retry agent")
_READS = words("read")
_WRITES = words("write edit multiedit")
_COMMANDS = words("bash shell")
_MAIN_AGENT = "main"
_PLACEHOLDER = re.compile(r"(?:New session|Child session) - \d{4}-\d\d-\d\dT")
# `opencode run` quotes an argument with blanks.
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_REFUSED = re.compile(
    r"(?:\w*Error: )?(?:The user rejected permission to use this specific tool call|The user dismissed this question)"
    r"(?: with the following feedback: (?P<words>.+))?",
    re.DOTALL,
)
_APPROVED = re.compile(r"User approved switching to \w+ agent")


def image_parts(parts: list[JsonObject]) -> list[JsonObject]:
    """The images of a message in order of their numbers; each has a `mime` and a `url`."""
    found = []
    for part in parts:
        found += [part, *list_of(object_of(part.get("state")).get("attachments"))]
    return [part for part in found if isinstance(part, dict) and text_of(part.get("mime")).startswith("image/")]


class Reader(RecordReader):
    def __init__(self, transcript: Transcript) -> None:
        super().__init__(transcript)
        self.reverted = ""
        """The first message or part that was reverted."""
        self.voiding = False
        self.withdrawn: set[int] = set()
        self.starts: dict[str, int] = {}
        self.compactions: dict[str, JsonObject] = {}
        self.prompt_digest = ""
        self.typed = ""
        self.overflown = ""
        # data of the current message
        self.message: JsonObject = {}
        self.marks: dict[int, str] = {}
        """The marks of its images, by the `id()` of their part."""

    is_attended = True  # decided for each message

    def voided(self) -> set[int]:
        return self.withdrawn

    def record(self, number: int, record: JsonObject) -> None:
        if "session" in record:
            self._session(number, object_of(record["session"]))
            return
        self.message, parts = object_of(record.get("message")), record.get("parts") or []
        self._begin(number)
        self.marks = {
            id(part): image_mark(Image(number, place, image_type(part["mime"])))
            for place, part in enumerate(image_parts(parts))
        }
        role = text_of(self.message.get("role"))
        if role == "user":
            self._user(parts)
        elif role == "assistant":
            self._assistant(parts)
        elif role not in STATES:
            self.transcript.unknown[f"message/{role}"] += 1

    def _session(self, number: int, session: JsonObject) -> None:
        title, revert, location = text_of(session.get("title")), session.get("revert"), session.get("location")
        self.session_id, self.title = text_of(session.get("id")), "" if _PLACEHOLDER.match(title) else title
        self.cwd = text_of(session.get("directory")) or text_of(object_of(location).get("directory"))
        self.parent_session = text_of(session.get("parent_id")) or text_of(session.get("parentID"))
        self.reverted = text_of(object_of(revert).get("partID")) or text_of(object_of(revert).get("messageID"))
        self.began_at = _time(session, "created")
        self.transcript.next_record(number, self.began_at)

    def _begin(self, number: int, part: JsonObject | None = None) -> None:
        """Begin a message or a part of it, each of which can be voided."""
        owner = part if part is not None else self.message
        times = object_of(owner.get("time")) or object_of(object_of(owner.get("state")).get("time"))
        said = times.get("start") or times.get("created") or _time(self.message, "created")
        written = owner.get("time_created")
        self.transcript.next_record(number, said if written is None else written, said)
        identity = text_of(owner.get("id"))
        if identity:
            self.starts.setdefault(identity, self.transcript.record)
        self.voiding = self.voiding or (identity != "" and identity == self.reverted)
        if self.voiding or self.message.get("withdrawn"):
            self.withdrawn.add(self.transcript.record)

    def _user(self, parts: list[JsonObject]) -> None:
        typed: list[tuple[JsonObject, str]] = []
        injected: list[tuple[JsonObject, str]] = []
        for part in parts:
            kind, text = part.get("type"), text_of(part.get("text"))
            if id(part) in self.marks:
                typed.append((part, self.marks[id(part)]))
            elif kind == "text":
                is_inserted = part.get("synthetic") is True or part.get("ignored") is True
                (injected if is_inserted else typed).append((part, text))
            elif kind == "file":
                injected.append((part, f"[file: {text_of(part.get('filename'))}, {text_of(part.get('mime'))}]"))
            elif kind == "subtask":
                injected.append((part, text_of(part.get("prompt"))))
            elif kind == "compaction":
                self.compactions[text_of(self.message.get("id"))] = part
            elif text_of(kind) not in _IGNORED:
                self.transcript.unknown[f"part/{kind}"] += 1
        # without the marks of images, which contain record numbers, and independent of the order of copied parts
        said = self.transcript.digest(
            "\n".join(sorted(text_of(part.get("text")) or text_of(part.get("url")) for part, _ in typed))
        )
        self.prompt_digest = f"{self._origin()}\x1f{said}"
        if typed:
            self._begin_part(typed[0][0])
            # if the context was too long, OpenCode repeats the prompt in a new message
            self._say("\n".join(text for _, text in typed).strip(), again=said == self.overflown)
            self.typed = said
        self.overflown = ""
        for part, text in injected:
            self._begin_part(part)
            self.add("injected", text, "injected", self.transcript.digest(text))

    def _say(self, said: str, *, again: bool) -> None:
        quoted = _QUOTED.fullmatch(said)
        text = quoted[1].replace('\\"', '"') if quoted and re.search(r"\s", quoted[1]) else said
        typed = not again and self._is_typed()
        for number, (speaker, part) in enumerate(split_by_speaker(text)):
            self.add(speaker if typed else "injected", part, "user", number)

    def _is_typed(self) -> bool:
        """Whether a person typed the message; MiMoCode stores prompts of sub-agents among those of the session."""
        agent = text_of(self.message.get("agent_id"))
        parent = self.parent_session or ("" if agent in ("", _MAIN_AGENT) else agent)
        return is_person(Evidence(self.transcript.id_prefix, parent_session=parent, cwd=self.cwd))

    def _assistant(self, parts: list[JsonObject]) -> None:
        summary = self.message.get("summary") is True
        last_call: int | None = None
        named: dict[int, tuple[list[str], list[str]]] = {}
        changed: set[str] = set()
        for part in parts:
            kind = part.get("type")
            if kind == "text":
                self._begin_part(part)
                text = text_of(part.get("text"))
                is_inserted = summary or part.get("synthetic") is True
                self.add(
                    "injected" if is_inserted else "assistant",
                    text,
                    "text",
                    _start(part) or self.transcript.digest(text),
                )
            elif kind == "tool":
                self._begin_part(part)
                last_call = self._call(part)
                if last_call is not None:
                    named[last_call] = _files(part)
                    changed.update(named[last_call][1])
            elif kind == "patch":
                # changes of the step, including those by commands
                more = [path for path in list_of(part.get("files")) if isinstance(path, str)]
                if last_call is not None:
                    named[last_call][1].extend(path for path in more if path not in changed)
                    changed.update(more)
            elif text_of(kind) not in _IGNORED and kind != "file":
                self.transcript.unknown[f"part/{kind}"] += 1
        for handle, (read, modified) in named.items():
            self.transcript.touch(handle, read=tuple(read), modified=tuple(modified))
        error = object_of(self.message.get("error"))
        if error:
            reason = text_of(object_of(error.get("data")).get("message")) or "no message"
            self.add("injected", f"{text_of(error.get('name')) or 'Error'}: {reason}", "error")
        if summary and not error and self.message.get("finish"):
            self._compacted()

    def _compacted(self) -> None:
        """Record a compaction: a summary counts if the message that it answers requested one."""
        asked = text_of(self.message.get("parentID"))
        compaction = self.compactions.get(asked)
        if compaction is None and asked in self.starts:
            return
        own = self.starts.get(text_of(self.message.get("id")), self.transcript.record)
        before = self.starts.get(asked, own)
        tail = self.starts.get(text_of(object_of(compaction).get("tail_start_id")), before)
        self.transcript.compact(before, stretch=range(tail, before))
        if object_of(compaction).get("overflow") is True:
            self.overflown = self.typed

    def _call(self, part: JsonObject) -> int | None:
        """Add a call, and its result if there is one."""
        state = object_of(part.get("state"))
        name, status = text_of(part.get("tool")), state.get("status")
        key = text_of(part.get("callID")) or _start(part) or text_of(part.get("id"))
        handle = self.add("tool", call_text(name, state.get("input")), "call", key, tool_name=name)
        if status in ("completed", "error"):
            attached = (self.marks.get(id(file)) for file in list_of(state.get("attachments")))
            output = text_of(state.get("output")) or text_of(state.get("error"))
            text = "\n".join(filter(None, [output, *attached])) or "(no output)"
            exit_code = object_of(state.get("metadata")).get("exit")
            refused = _REFUSED.match(output) if status == "error" else None
            failed = (
                (status == "error" and not refused)
                or name == "invalid"
                or (name in _COMMANDS and exit_code not in (0, None))
            )
            end = to_time(object_of(state.get("time")).get("end"))
            if end:
                self.transcript.place = self.transcript.place._replace(said_at=end, written_at=end, is_timed=True)
            no = REFUSED if refused else None
            self.add("tool", text, "result", key, tool_name=name, is_error=failed, answer=no)
            if refused and refused["words"]:
                answers = [Answer(refused["words"], "refused call", call_text(name, state.get("input")))]
            elif approved := _APPROVED.match(output):
                answers = [Answer(approved[0], "approved plan", "")]
            else:
                answers = answers_given(state.get("input"), object_of(state.get("metadata")), output)
            for number, answer in enumerate(answers):
                self.add("user", answer.text, "answer", key, number, tool_name=name, answer=answer)
        return handle

    def _begin_part(self, part: JsonObject) -> None:
        self._begin(self.transcript.place.line, part)

    def add(self, role: Role, text: str, *key: object, **details: Unpack[MessageDetails]) -> int | None:
        identity = "\x1f".join(map(str, (self.prompt_digest, self.message.get("role"), self._origin(), *key)))
        return self.transcript.add(role, text, f"{identity}\x1f{self.transcript.occurrence(identity)}", **details)

    def _origin(self) -> object:
        """The start of the message, or the id of its original, which distinguishes messages with the same words."""
        return text_of(self.message.get("origin")) or _time(self.message, "created")


class OpenCode(HarnessWithFolders):
    name = "opencode"
    reader = Reader
    marks = ("*.db", "session", "storage")
    side_files = (
        "auth.json",
        "mcp-auth.json",
        "storage/session_diff/*.json",
        "storage/session_share/*.json",
        "storage/project/*.json",
        "storage/todo/*.json",
    )

    def __init__(self, name: str = "opencode", *folders: str) -> None:
        """An agent whose folder and database have its name; a variable can set another database, relative to that
        folder."""
        own = f"${{XDG_DATA_HOME:-~/.local/share}}/{name}"
        super().__init__(name, own, f"{own}/${{{name.upper()}_DB:-}}", *folders)

    def recognises(self, record: JsonObject) -> bool:
        """Whether the record is a session file of the JSON folders, or an export."""
        session = record if "projectID" in record else object_of(record.get("info"))
        return text_of(session.get("id")).startswith("ses_")

    def images_of(self, record: JsonObject) -> list[JsonObject]:
        return image_parts(record.get("parts") or [])

    def claims(self, folder: Path, names: Collection[str]) -> tuple[list[Source], list[str]] | None:
        return claims(folder, names, self.name)

    records = staticmethod(records)


def _time(owner: JsonObject, name: str) -> object:
    return object_of(owner.get("time")).get(name, owner.get(f"time_{name}"))


def _start(part: JsonObject) -> object:
    """The start of a part, in the harness's unit."""
    return (object_of(part.get("time")) or object_of(object_of(part.get("state")).get("time"))).get("start")


def _files(part: JsonObject) -> tuple[list[str], list[str]]:
    """The paths that a call reads, and those that it changes."""
    state = object_of(part.get("state"))
    given = object_of(state.get("input"))
    path = given.get("filePath") or given.get("path")
    if not isinstance(path, str) or state.get("status") == "error":
        return [], []
    name = text_of(part.get("tool"))
    return ([path] if name in _READS else []), ([path] if name in _WRITES else [])
