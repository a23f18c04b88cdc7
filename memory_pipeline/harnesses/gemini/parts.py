"""Messages of Gemini CLI: the parts of their content, tool calls, and the speaker of a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memory_pipeline.harnesses.answers import REFUSED, Answer, answers_given
from memory_pipeline.harnesses.content import as_json, call_text, image_mark, image_type
from memory_pipeline.harnesses.model import Image, Role
from memory_pipeline.harnesses.records import JsonObject, decoded_object, list_of, object_of, objects_of, text_of, words
from memory_pipeline.harnesses.speakers import Passage, split_by_speaker
from memory_pipeline.harnesses.transcript import MessageDetails

_READS = words("read_file read_many_files")
_WRITES = words("write_file replace edit smart_edit")
_UNANSWERED = words("validating scheduled awaiting_approval executing")
_FAILED_COMMAND = re.compile(r"^Exit Code: -?[1-9]", re.MULTILINE)
# Text that the program adds to a prompt: files given with `@`, output of a hook, a hint to use an agent.
_ADDED = re.compile(
    r"(--- Content from referenced files ---.*?(?:--- End of content ---|\Z)"
    r"|<hook_context>.*?(?:</hook_context>|\Z)"
    r"|<system_note>\s*The user has explicitly selected.*?(?:</system_note>|\Z))",
    re.DOTALL,
)
_HEADERS = (
    "This is the Gemini CLI. We are setting up the context",
    "Here is the user's editor context as a JSON object",
    "Here is a summary of changes in the user's editor context",
    "System: Please continue.",
    "System: Potential loop detected.",
)
_PLAN = "exit_plan_mode"
_PLAN_ANSWER = re.compile(
    r"(?P<approved>Plan approved)\b|Plan rejected\. User feedback: (?P<words>.+?)(?:\n\nThe plan is stored at: |\Z)",
    re.DOTALL,
)
_SUMMARY = "<state_snapshot>"


class Piece(NamedTuple):
    """A part of a record that becomes a message."""

    role: Role
    text: str
    key: tuple[object, ...]
    """The key that identifies it in its session."""
    details: MessageDetails
    said_at: object = None
    """The time, unless it is that of the record."""
    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


def pieces_of(identity: str, record: JsonObject, line: int) -> Iterator[Piece]:
    """The utterances in a message; thoughts are left out."""
    kind, parts = record.get("type"), parts_of(record.get("content"))
    marks = _marks(record, line)
    if kind == "user":
        yield from _prompt(identity, record, parts, marks)
    else:
        yield Piece("assistant" if kind == "gemini" else "injected", _text(parts, marks), (identity, "text"), {})
    for number, with_result in enumerate(objects_of(record.get("toolCalls"))):
        yield from _tool(identity, number, with_result, marks)
    for number, part in enumerate(parts):
        call, answer = part.get("functionCall"), part.get("functionResponse")
        if isinstance(call, dict):
            key = text_of(call.get("id")) or f"{identity}/part {number}"
            name = text_of(call.get("name"))
            read, modified = _files(name, call.get("args"))
            text = call_text(name, call.get("args"))
            yield Piece("tool", text, (key, "call"), {"tool_name": name}, read=read, modified=modified)
        if isinstance(answer, dict):
            key, name = text_of(answer.get("id")) or f"{identity}/part {number}", text_of(answer.get("name"))
            yield Piece("tool", _result([part], marks), (key, "result"), {"tool_name": name})


def parts_of(content: object) -> list[JsonObject]:
    """The content as parts, from any of its forms."""
    if isinstance(content, str):
        return [{"text": content}]
    found = content if isinstance(content, list) else [content]
    return [{"text": part} if isinstance(part, str) else part for part in found if isinstance(part, str | dict)]


def plain_text(record: JsonObject) -> str:
    """The text of a message, without images."""
    return _text(parts_of(record.get("content")), {})


def image_parts(record: JsonObject) -> list[JsonObject]:
    """The images of a record in order of their numbers: those of its content, then those of its tools."""
    found = parts_of(record.get("content"))
    for call in objects_of(record.get("toolCalls")):
        found += parts_of(call.get("result"))
    return [part for part in _with_nested(found) if _media_type(part)]


def is_summary(text: str) -> bool:
    """Whether a text is the summary of a compressed context."""
    return _SUMMARY in text


Marks = dict[int, str]
"""The marks of a record's images by the `id()` of their part."""


def _marks(record: JsonObject, line: int) -> Marks:
    images = enumerate(image_parts(record))
    return {id(part): image_mark(Image(line, number, _media_type(part))) for number, part in images}


def _with_nested(parts: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """The parts, including those in a tool's response."""
    for part in parts:
        yield part
        yield from objects_of(object_of(part.get("functionResponse")).get("parts"))


def _media_type(part: JsonObject) -> str:
    """The media type of an image; "" for any other part."""
    for name in ("inlineData", "fileData"):
        kind = text_of(object_of(part.get(name)).get("mimeType"))
        if kind.startswith("image/"):
            return image_type(kind)
    return ""


def _part_text(part: JsonObject) -> str:
    return "" if part.get("thought") else text_of(part.get("text"))


def _text(parts: Iterable[JsonObject], marks: Marks) -> str:
    return "\n".join(filter(None, (marks.get(id(part)) or _part_text(part) for part in parts)))


def _prompt(identity: str, record: JsonObject, parts: list[JsonObject], marks: Marks) -> Iterator[Piece]:
    """The pieces of a record of the user role: typed text, and text added by the program."""
    spoken, typed = plain_text(record), _text(parts_of(record.get("displayContent")), {})
    answers = any("functionResponse" in part for part in parts)
    if answers:
        passages: list[Passage] = [("injected", spoken)]
    elif typed.strip():
        # the displayed text was typed; the model got it with files, commands and hints filled in
        passages = [*_passages(typed), ("injected", spoken.removeprefix(typed))]
    else:
        passages = list(_passages(spoken))
    sender: Role = "injected" if answers else "user"
    passages += [(sender, marks[id(part)]) for part in parts if id(part) in marks]
    roles: tuple[Role, Role] = ("user", "injected")
    for role in roles:
        text = "\n".join(part for speaker, part in passages if speaker == role and part)
        yield Piece(role, text, (identity, role), {})


def _passages(text: str) -> Iterator[Passage]:
    for chunk in _ADDED.split(text):
        bare = chunk.strip()
        if _ADDED.match(chunk) or bare.startswith(_HEADERS):
            yield "injected", bare
        else:
            yield from split_by_speaker(chunk)


def _tool(identity: str, number: int, call: JsonObject, marks: Marks) -> Iterator[Piece]:
    """A call, and its result if there is one."""
    key = text_of(call.get("id")) or f"{identity}/{number}"
    name, status, arguments = text_of(call.get("name")), call.get("status"), call.get("args")
    failed = status in ("error", "cancelled")
    read, modified = ((), ()) if failed else _files(name, arguments)
    yield Piece("tool", call_text(name, arguments), (key, "call"), {"tool_name": name}, read=read, modified=modified)
    text = _result(parts_of(call.get("result")), marks)
    if text or text_of(status) not in _UNANSWERED:
        text = text or text_of(call.get("resultDisplay")) or "(no output)"
        # cancelled means refused or interrupted by the user
        failed = status == "error" or (name == "run_shell_command" and bool(_FAILED_COMMAND.search(text)))
        said_at = call.get("timestamp")
        no = REFUSED if status == "cancelled" else None
        yield Piece("tool", text, (key, "result"), {"tool_name": name, "is_error": failed, "answer": no}, said_at)
        for place, answer in enumerate(_answers(name, arguments, text)):
            yield Piece("user", answer.text, (key, "answer", place), {"tool_name": name, "answer": answer}, said_at)


def _answers(name: str, arguments: object, text: str) -> list[Answer]:
    """The user's answers to questions, or to a plan, whose file alone is known."""
    if name == _PLAN:
        said = _PLAN_ANSWER.match(text)
        plan = next((path for path in object_of(arguments).values() if isinstance(path, str)), "")
        if said and said["approved"]:
            return [Answer(said["approved"], "approved plan", plan)]
        return [Answer(said["words"], "refused plan", plan)] if said else []
    return answers_given(arguments, decoded_object(text)) if text.startswith("{") else []


def _result(parts: list[JsonObject], marks: Marks) -> str:
    texts = []
    for part in _with_nested(parts):
        response = object_of(part.get("functionResponse")).get("response")
        if isinstance(response, dict):
            output = response.get("output", response.get("error"))
            texts.append(output if isinstance(output, str) else as_json(response))
        else:
            texts.append(_text([part], marks))
    return "\n".join(filter(None, texts))


def _files(name: str, arguments: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths that a call reads, and those that it changes."""
    given = object_of(arguments)
    named = [given.get(key) for key in ("file_path", "absolute_path", "path")]
    named += [path for key in ("paths", "include") for path in list_of(given.get(key))]
    paths = tuple(path for path in named if isinstance(path, str) and path and "*" not in path)
    return (paths if name in _READS else ()), (paths if name in _WRITES else ())
