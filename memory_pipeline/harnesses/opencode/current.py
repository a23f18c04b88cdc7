"""Messages of OpenCode 2.x, converted into the records of 1.x: a message with its parts.

A row of `session_message` has a whole message: typed text with its files, a step of the model with text and tool calls,
a command that the user ran, or text inserted by the program. `opencode export` writes the same objects.
"""

from __future__ import annotations

from collections.abc import Iterator

from memory_pipeline.harnesses.records import JsonObject, list_of, object_of, objects_of, text_of, words

STATES = words("idle agent-switched model-switched location-switched")
"""Types of messages without text."""
_INSERTED = words("synthetic system skill")


def record_of(kind: str, data: JsonObject) -> JsonObject:
    """A message of the type as `{"message": …, "parts": […]}`; the data contain its id and times."""
    message = {name: data.get(name) for name in ("id", "time", "time_created")}
    if kind == "user":
        return {"message": message | {"role": "user"}, "parts": list(_typed(data))}
    if kind in _INSERTED:
        return {"message": message | {"role": "user"}, "parts": [_injected(data.get("text"))]}
    if kind == "assistant":
        return {"message": message | _outcome(data), "parts": list(_answered(data))}
    if kind == "shell":
        return {"message": message | {"role": "assistant"}, "parts": [_command(data)]}
    if kind == "compaction":
        return _compaction(message, data)
    return {"message": message | {"role": kind}, "parts": []}


def _injected(text: object) -> JsonObject:
    return {"type": "text", "text": text_of(text), "synthetic": True}


def _typed(data: JsonObject) -> Iterator[JsonObject]:
    """The text that the user typed, its files, and the skills that it calls."""
    yield {"type": "text", "text": text_of(data.get("text"))}
    yield from map(_file, objects_of(data.get("files")))
    yield from (_injected(skill["text"]) for skill in objects_of(data.get("skills")) if text_of(skill.get("text")))


def _file(file: JsonObject) -> JsonObject:
    """A file, as base64 or as a URL."""
    kind, content = text_of(file.get("mime")), text_of(file.get("data"))
    url = f"data:{kind};base64,{content}" if content else text_of(file.get("uri"))
    return {"type": "file", "mime": kind, "filename": text_of(file.get("name")), "url": url}


def _outcome(data: JsonObject) -> JsonObject:
    """The end of a step of the model."""
    error = object_of(data.get("error"))
    ended: JsonObject = {"role": "assistant", "finish": data.get("finish")}
    if error:
        ended["error"] = {"name": text_of(error.get("type")), "data": {"message": error.get("message")}}
    return ended


def _answered(data: JsonObject) -> Iterator[JsonObject]:
    for part in objects_of(data.get("content")):
        yield _tool(part) if part.get("type") == "tool" else part
    yield {"type": "patch", "files": list_of(object_of(data.get("snapshot")).get("files"))}


def _tool(part: JsonObject) -> JsonObject:
    state, times = object_of(part.get("state")), object_of(part.get("time"))
    content = objects_of(state.get("content"))
    output = "\n".join(text for block in content if (text := text_of(block.get("text"))))
    read: JsonObject = {
        "status": state.get("status"),
        "input": state.get("input"),
        "output": output,
        "error": text_of(object_of(state.get("error")).get("message")),
        "attachments": [_file(block) for block in content if block.get("type") == "file"],
        "metadata": state.get("metadata") or state.get("structured"),
        "time": {"start": times.get("ran") or times.get("created"), "end": times.get("completed")},
    }
    if read["error"] and output:
        read["output"] = f"{read['error']}\n{output}"
    return {"type": "tool", "tool": part.get("name"), "callID": part.get("id") or part.get("callID"), "state": read}


def _command(data: JsonObject) -> JsonObject:
    """A command that the user ran in the session, as a call of the tool that runs commands."""
    shown, times = object_of(data.get("output")), object_of(data.get("time"))
    read = {
        "status": "running" if data.get("status") == "running" else "completed",
        "input": {"command": data.get("command")},
        "output": text_of(shown.get("output")) or text_of(shown.get("text")),
        "metadata": {"exit": data.get("exit")},
        "time": {"start": times.get("created"), "end": times.get("completed")},
    }
    return {"type": "tool", "tool": "shell", "callID": data.get("shellID"), "state": read}


def _compaction(message: JsonObject, data: JsonObject) -> JsonObject:
    """The summary if it is complete; before that, and if it failed, nothing was summarised away."""
    if data.get("status") == "completed":
        text = {"type": "text", "text": text_of(data.get("summary"))}
        return {"message": message | {"role": "assistant", "summary": True, "finish": "stop"}, "parts": [text]}
    return {"message": message | _outcome(data), "parts": []}
