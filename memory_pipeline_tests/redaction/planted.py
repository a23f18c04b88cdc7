"""Session files of every harness in which each voice says every canary, for the tests that look where they get to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_pipeline_tests.redaction.canaries import CANARIES

START = datetime(2025, 3, 5, 9, tzinfo=UTC)
PRIVATE = "the-words-between-the-private-marks"
_LINE = re.compile(r"\n|\\n")
ASKED = "Which way should the parcels go?"
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the "
    "user said:\n"
)
_QUESTION = {"type": "toolCall", "id": "q", "name": "question", "arguments": {"question": ASKED, "options": []}}
PIECE = 60
"""Characters of a long line of a secret that may not be there."""
ALL = tuple(CANARIES)
LONGEST = 4000
"""Characters of a tool's text; more than the limit, so that excerpts are cut somewhere in the canaries."""


def stamp(number: int) -> str:
    return (START + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def said(kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(voice, text): each of these canaries in every voice, in sentences that an observer would want to keep."""
    for text in (CANARIES[kind][0] for kind in kinds):
        yield "user", f"Always remember for the parcel service, never forget it: {text}\nThat is a rule from now on."
        yield "assistant", f"The root cause was that the parcel service was started with {text}\nIt is fixed now."
        yield "tool", text
        yield "tool", f"{'listing of parcels ' * 60}{text}{' more parcels' * 200}"[:LONGEST]
        yield "thinking", f"I should use {text}"
        yield "answer", text
        yield "bash", text
        yield "injected", f"<system-reminder>The environment of the project has {text}</system-reminder>"
    yield "user", f"Keep this to yourself: <private>{PRIVATE}</private> and always use port 8080 for parcels."


def pi(folder: Path, kinds: Sequence[str] = ALL) -> None:
    records: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "pi-1", "timestamp": stamp(0), "cwd": f"/src/{_in_a_line(kinds)}"},
        {
            "type": "session_info",
            "id": "i",
            "parentId": None,
            "timestamp": stamp(0),
            "name": f"Parcels {_in_a_line(kinds)}",
        },
    ]
    for number, (voice, text) in enumerate(said(kinds), 1):
        block = [{"type": "text", "text": text}]
        message: dict[str, Any] = {"role": "user", "content": block}
        if voice == "assistant":
            calls = [{"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": text, "path": text}}]
            message = {"role": "assistant", "content": [*block, *calls]}
        elif voice == "thinking":
            message = {"role": "assistant", "content": [{"type": "thinking", "thinking": text}, _QUESTION]}
        elif voice == "answer":
            answered = {"question": ASKED, "options": [], "answer": text, "wasCustom": True}
            message = {"role": "toolResult", "toolName": "question", "toolCallId": "q", "content": block}
            message |= {"details": answered, "isError": False}
        elif voice == "bash":
            message = {"role": "bashExecution", "command": text, "output": text, "exitCode": 0}
        elif voice == "tool":
            message = {"role": "toolResult", "toolName": "bash", "isError": True, "content": block}
        entry = {"type": "message", "id": f"{number:08x}", "timestamp": stamp(number), "message": message}
        records.append({**entry, "parentId": f"{number - 1:08x}" if number > 1 else "i"})
    records.append({"type": _in_a_line(kinds), "id": "odd", "parentId": None, "timestamp": stamp(1)})
    lines = [json.dumps(record) for record in records]
    lines.append('{"type": "message", "broken": ' + json.dumps(_in_a_line(kinds)))
    write(folder / "pi/a.jsonl", "\n".join(lines))


def claude(folder: Path, kinds: Sequence[str] = ALL) -> None:
    records = []
    for number, (voice, text) in enumerate(said(kinds), 1):
        content: Any = text
        if voice == "assistant":
            content = [
                {"type": "text", "text": text},
                {"type": "tool_use", "name": "Edit", "input": {"file_path": text}},
            ]
        elif voice == "thinking":
            content = [{"type": "thinking", "thinking": text, "signature": "c2ln"}]
        elif voice == "answer":
            content = [{"type": "tool_result", "tool_use_id": "t", "content": f"{REFUSED}{text}", "is_error": True}]
        elif voice == "bash":
            content = f"<bash-input>{text}</bash-input><bash-stdout>{text}</bash-stdout>"
        elif voice == "tool":
            content = [{"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": True}]
        records.append(
            {
                "type": "assistant" if voice in ("assistant", "thinking") else "user",
                "uuid": f"u-{number}",
                "sessionId": "claude-1",
                "timestamp": stamp(number),
                "cwd": f"/src/{_in_a_line(kinds)}" if number % 500 == 1 else "/src/parcels",
                "message": {"content": content},
            }
        )
    records.append({"type": "ai-title", "aiTitle": _in_a_line(kinds), "sessionId": "claude-1"})
    write(folder / "claude/a.jsonl", "\n".join(map(json.dumps, records)))


def codex(folder: Path, kinds: Sequence[str] = ALL) -> None:
    payloads: list[tuple[str, dict[str, Any]]] = [
        ("session_meta", {"id": "codex-1", "cwd": f"/src/{_in_a_line(kinds)}"})
    ]
    for voice, text in said(kinds):
        kind = {"user": "input_text", "injected": "input_text", "assistant": "output_text"}.get(voice, "")
        role = "assistant" if voice == "assistant" else "user"
        if voice == "thinking":
            summary = [{"type": "summary_text", "text": text}]
            payloads.append(("response_item", {"type": "reasoning", "summary": summary}))
        elif voice == "answer":
            call = {"name": "request_user_input", "call_id": f"q{len(payloads)}"}
            asked = json.dumps({"questions": [{"id": "a", "question": ASKED}]})
            answers = json.dumps({"answers": {"a": {"answers": [f"user_note: {text}"]}}})
            payloads += [
                ("response_item", {"type": "function_call", "arguments": asked, **call}),
                ("response_item", {"type": "function_call_output", "output": answers, **call}),
            ]
        elif voice in ("tool", "bash"):
            payloads += [
                ("response_item", {"type": "function_call", "name": "shell", "arguments": text, "call_id": "c"}),
                ("response_item", {"type": "function_call_output", "call_id": "c", "output": text}),
            ]
        else:
            item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            payloads.append(("response_item", item))
        if voice == "user":
            payloads.append(("event_msg", {"type": "user_message", "message": text}))
    lines = [{"timestamp": stamp(n), "type": kind, "payload": payload} for n, (kind, payload) in enumerate(payloads)]
    write(folder / "codex/rollout.jsonl", "\n".join(map(json.dumps, lines)))


def gemini(folder: Path, kinds: Sequence[str] = ALL) -> None:
    messages = []
    for number, (voice, text) in enumerate(said(kinds), 1):
        speaker = (
            "info" if voice == "injected" else "gemini" if voice in ("assistant", "thinking", "answer") else "user"
        )
        message: dict[str, Any] = {"id": f"g-{number}", "timestamp": stamp(number), "type": speaker, "content": text}
        call = {"id": f"t-{number}", "name": "shell", "args": {"c": text}, "result": text, "status": "error"}
        if voice in ("thinking", "answer"):
            message["content"] = ""
        if voice == "thinking":
            message["thoughts"] = [{"subject": "Parcels", "description": text}]
        elif voice == "answer":
            output = {"output": json.dumps({"answers": {"0": text}})}
            call |= {"name": "ask_user", "args": {"questions": [{"question": ASKED}]}, "status": "success"}
            call["result"] = [{"functionResponse": {"id": f"t-{number}", "name": "ask_user", "response": output}}]
        if voice in ("assistant", "answer"):
            message["toolCalls"] = [call]
        messages.append(message)
    session = {"sessionId": "gemini-1", "projectHash": "p", "summary": _in_a_line(kinds), "messages": messages}
    write(folder / "gemini/session-1.json", json.dumps(session, indent=1))


def opencode(folder: Path, kinds: Sequence[str] = ALL) -> None:
    storage = folder / "opencode/storage"
    write(
        storage / "session/p/ses_1.json",
        json.dumps(
            {"id": "ses_1", "projectID": "p", "title": _in_a_line(kinds), "directory": f"/src/{_in_a_line(kinds)}"}
        ),
    )
    for number, (voice, text) in enumerate(said(kinds), 1):
        at = int((START + timedelta(seconds=number)).timestamp() * 1000)
        role = "user" if voice in ("user", "injected") else "assistant"
        message = {"id": f"msg_{number:05}", "sessionID": "ses_1", "role": role, "time": {"created": at}}
        part: dict[str, Any] = {"id": f"prt_{number:05}", "type": "text", "text": text}
        if voice == "thinking":
            part["type"] = "reasoning"
        elif voice == "answer":
            state = {
                "status": "completed",
                "input": {"questions": [{"question": ASKED}]},
                "output": f'"{ASKED}"="{text}"',
            }
            state |= {"metadata": {"answers": [[text]]}, "time": {"start": at, "end": at}}
            part = {"id": part["id"], "type": "tool", "tool": "question", "callID": f"c{number}", "state": state}
        elif voice in ("tool", "bash"):
            state = {"status": "error", "input": {"command": text}, "error": text, "time": {"start": at, "end": at}}
            part = {"id": f"prt_{number:05}", "type": "tool", "tool": "bash", "callID": f"c{number}", "state": state}
        write(storage / f"message/ses_1/{message['id']}.json", json.dumps(message))
        write(storage / f"part/{message['id']}/{part['id']}.json", json.dumps(part))


def _in_a_line(kinds: Sequence[str]) -> str:
    """These canaries in one line, for what is only a name."""
    return "; ".join(text for text, _ in map(CANARIES.__getitem__, kinds) if "\n" not in text)


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def found_in(texts: list[tuple[str, str]]) -> set[str]:
    """Kinds of canaries that are there, as they are or as JSON writes them; of a long one any line will do.

    Six digits stand by chance in the fractions of so many times and vectors; as a part of a word or number they are no
    secret.
    """
    found = set()
    secrets = {kind: secret for kind, (_, secret) in CANARIES.items()} | {"private": PRIVATE}
    pieces = {
        kind: {
            piece
            for line in _LINE.split(secret)
            for start in range(0, len(line), PIECE)
            if len(part := line[start : start + PIECE]) >= min(len(line), PIECE) >= 4
            for piece in (part, json.dumps(part)[1:-1])
        }
        for kind, secret in secrets.items()
    }
    everything = "\n".join(text for _, text in texts)
    for kind, parts in pieces.items():
        if any(_is_in(part, everything) for part in parts if not part.startswith("-----")):
            found.add(kind)
    return found


def _is_in(part: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){part}(?!\w)", text)) if part.isdecimal() else part in text


HARNESSES: tuple[Callable[..., None], ...] = (pi, claude, codex, gemini, opencode)
