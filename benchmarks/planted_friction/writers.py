"""Session files as pi, Claude Code and Codex write them, with the lines of each scene."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.planted_friction.model import CLAUDE_CODE, CODEX, PI, Call, Said, Scene, Session, Step

Line = dict[str, Any]
Write = Callable[[Line], None]
_REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). "
)
_STOP = "STOP what you are doing and wait for the user to tell you how to proceed."
_SAID = "To tell you how to proceed, the user said:\n"


class Clock:
    """Time that passes as it does in a session."""

    def __init__(self, start: datetime, chance: random.Random) -> None:
        self.now, self.chance = start, chance

    def after(self, least: float, most: float) -> datetime:
        self.now += timedelta(milliseconds=round(1000 * self.chance.uniform(least, most)))
        return self.now


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def uuid(chance: random.Random) -> str:
    text = f"{chance.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def _name(chance: random.Random, length: int = 24) -> str:
    return "".join(chance.choices(string.ascii_letters + string.digits, k=length))


def write_session(
    folder: Path, session: Session, cwd: Path, instructions: str, chance: random.Random
) -> tuple[Path, list[frozenset[int]], datetime]:
    """The file, the lines (from 1) of each scene, and when it ends. `instructions` is what AGENTS.md says there."""
    assert session.started_at is not None
    session.session_id = uuid(chance)
    clock = Clock(session.started_at, chance)
    lines: list[str] = []

    def write(line: Line) -> None:
        lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")))

    writer = {PI: _Pi, CLAUDE_CODE: _ClaudeCode, CODEX: _Codex}[session.harness or PI](
        session, cwd, instructions, clock, write
    )
    of_scenes = []
    for scene in session.scenes:
        first = len(lines) + 1
        _tell(writer, scene, clock)
        of_scenes.append(frozenset(range(first, len(lines) + 1)))
    path = folder / writer.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path, of_scenes, clock.now


def _tell(writer: _Writer, scene: Scene, clock: Clock) -> None:
    for step in scene.steps:
        if isinstance(step, Said) and step.speaker == "user":
            clock.after(25, 240)
            writer.user(step.text)
        elif isinstance(step, Said):
            clock.after(2, 20)
            writer.agent(step.text)
        else:
            clock.after(1, 6)
            writer.call(step)


class _Writer:
    """What the three have in common."""

    path: str

    def __init__(self, session: Session, cwd: Path, instructions: str, clock: Clock, write: Write) -> None:
        self.session, self.cwd, self.clock, self.write = session, f"{cwd}", clock, write
        self.chance, self.instructions = clock.chance, instructions
        self.begin()

    def begin(self) -> None: ...
    def user(self, text: str) -> None: ...
    def agent(self, text: str) -> None: ...
    def call(self, call: Call) -> None: ...

    def absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self.cwd}/{path}"


def as_command(call: Call) -> str:
    """What a harness without that tool runs in its shell instead."""
    given = call.arguments
    if call.tool == "shell":
        return given["command"]
    if call.tool == "read":
        return f"sed -n '1,200p' {given['path']}"
    if call.tool == "grep":
        return f"rg -n '{given['pattern']}' {given.get('path', '.')}"
    if call.tool == "fetch":
        return f"curl -sL {given['url']}"
    if call.tool == "write":
        return f"cat > {given['path']} <<'EOF'\n{given['content']}\nEOF"
    raise ValueError(f"no command for the tool {call.tool!r}")


class _Pi(_Writer):
    def begin(self) -> None:
        at = self.clock.now
        slug = self.cwd.strip("/").replace("/", "-")
        name = stamp(at).replace(":", "-").replace(".", "-")
        self.path = f"pi/--{slug}--/{name}_{self.session.session_id}.jsonl"
        self.parent: str | None = None
        self.write({"type": "session", "version": 3, "id": self.session.session_id} | self._at() | {"cwd": self.cwd})
        self._entry({"type": "model_change", "provider": "anthropic", "modelId": "claude-sonnet-4-5"})
        self._entry({"type": "thinking_level_change", "thinkingLevel": "off"})

    def _at(self) -> Line:
        return {"timestamp": stamp(self.clock.now)}

    def _entry(self, fields: Line) -> None:
        own = f"{self.chance.getrandbits(32):08x}"
        kind = {"type": fields.pop("type")}
        self.write(kind | {"id": own, "parentId": self.parent} | self._at() | fields)
        self.parent = own

    def _message(self, fields: Line) -> None:
        moment = round(self.clock.now.timestamp() * 1000)
        self._entry({"type": "message", "message": fields | {"timestamp": moment}})

    def user(self, text: str) -> None:
        self._message({"role": "user", "content": [{"type": "text", "text": text}]})

    def _assistant(self, block: Line, stop: str) -> None:
        usage = {"input": 6, "output": 44, "cacheRead": 3424, "cacheWrite": 0, "totalTokens": 3474}
        model = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5"}
        self._message({"role": "assistant", "content": [block]} | model | {"usage": usage, "stopReason": stop})

    def agent(self, text: str) -> None:
        self._assistant({"type": "text", "text": text}, "stop")

    def call(self, call: Call) -> None:
        name, arguments = self._named(call)
        own = f"toolu_01{_name(self.chance, 22)}"
        self._assistant({"type": "toolCall", "id": own, "name": name, "arguments": arguments}, "toolUse")
        self.clock.after(0.2, 5)
        failed = call.refused or call.exit_code != 0
        text = "Blocked by user" if call.refused else call.output
        if call.exit_code and name == "bash" and not call.refused:
            text = f"{text or '(no output)'}\n\nCommand exited with code {call.exit_code}"
        content = [{"type": "text", "text": text or "(no output)"}]
        result = {"role": "toolResult", "toolCallId": own, "toolName": name, "content": content, "isError": failed}
        self._message(result)
        if call.refused and call.words:
            self.clock.after(10, 60)
            self.user(call.words)

    def _named(self, call: Call) -> tuple[str, Line]:
        given = call.arguments
        if call.tool == "read":
            return "read", {"path": given["path"]}
        if call.tool == "edit":
            return "edit", {"path": given["path"], "oldText": given["old"], "newText": given["new"]}
        if call.tool == "write":
            return "write", {"path": given["path"], "content": given["content"]}
        if call.tool == "search":
            return "web_search", {"query": given["query"]}
        if call.tool == "fetch":
            return "web_fetch", {"url": given["url"]}
        return "bash", {"command": as_command(call)}


class _ClaudeCode(_Writer):
    def begin(self) -> None:
        slug = "".join(c if c.isalnum() else "-" for c in self.cwd)
        self.path = f"claude/{slug}/{self.session.session_id}.jsonl"
        self.parent: str | None = None
        self.branch = self.chance.choice(("main", "main", f"feature/{self.session.project}-{self.session.number}"))
        snapshot = {"messageId": uuid(self.chance), "trackedFileBackups": {}, "timestamp": stamp(self.clock.now)}
        self.write(
            {
                "type": "file-history-snapshot",
                "messageId": snapshot["messageId"],
                "snapshot": snapshot,
                "isSnapshotUpdate": False,
            }
        )

    def _record(self, fields: Line) -> str:
        own = uuid(self.chance)
        chain = {"parentUuid": self.parent, "isSidechain": False, "userType": "external", "cwd": self.cwd}
        chain |= {"sessionId": self.session.session_id, "version": "2.1.63", "gitBranch": self.branch}
        self.write(chain | fields | {"uuid": own, "timestamp": stamp(self.clock.now)})
        self.parent = own
        return own

    def user(self, text: str) -> None:
        self._record({"type": "user", "message": {"role": "user", "content": text}, "permissionMode": "default"})

    def _assistant(self, block: Line, stop: str) -> str:
        message: Line = {"model": "claude-opus-4-6", "id": f"msg_01{_name(self.chance, 22)}", "type": "message"}
        usage = {"input_tokens": 3, "cache_read_input_tokens": 18556, "output_tokens": 23}
        message |= {"role": "assistant", "content": [block], "stop_reason": stop, "usage": usage}
        return self._record({"message": message, "requestId": f"req_01{_name(self.chance, 22)}", "type": "assistant"})

    def agent(self, text: str) -> None:
        self._assistant({"type": "text", "text": text}, "end_turn")

    def call(self, call: Call) -> None:
        name, arguments = self._named(call)
        own = f"toolu_01{_name(self.chance, 22)}"
        asked = self._assistant({"type": "tool_use", "id": own, "name": name, "input": arguments}, "tool_use")
        self.clock.after(0.2, 5)
        failed = call.refused or call.exit_code != 0
        text = self._output(call, name)
        result: Line = {"tool_use_id": own, "type": "tool_result", "content": text}
        if failed:
            result["is_error"] = True
        more: Line = {"toolUseResult": f"Error: {text}"} if failed else {}
        if call.refused:
            more = {"toolUseResult": "User rejected tool use"}
        message = {"role": "user", "content": [result]}
        self._record({"type": "user", "message": message} | more | {"sourceToolAssistantUUID": asked})
        if call.refused and not call.words:
            interrupted = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
            self._record({"type": "user", "message": {"role": "user", "content": interrupted}})

    def _output(self, call: Call, name: str) -> str:
        if call.refused:
            return _REFUSED + (f"{_SAID}{call.words}" if call.words else _STOP)
        if call.exit_code and name == "Bash":
            return f"Exit code {call.exit_code}" + (f"\n{call.output}" if call.output else "")
        if call.exit_code and name in ("Edit", "Write", "Read"):
            return f"<tool_use_error>{call.output}</tool_use_error>"
        return call.output

    def _named(self, call: Call) -> tuple[str, Line]:
        given = call.arguments
        if call.tool == "shell":
            return "Bash", {"command": given["command"], "description": given.get("description", "Run it")}
        if call.tool == "read":
            return "Read", {"file_path": self.absolute(given["path"])}
        if call.tool == "edit":
            path = self.absolute(given["path"])
            return "Edit", {"file_path": path, "old_string": given["old"], "new_string": given["new"]}
        if call.tool == "write":
            return "Write", {"file_path": self.absolute(given["path"]), "content": given["content"]}
        if call.tool == "grep":
            return "Grep", {"pattern": given["pattern"], "path": given.get("path", "."), "output_mode": "content"}
        if call.tool == "search":
            return "WebSearch", {"query": given["query"]}
        if call.tool == "fetch":
            return "WebFetch", {"url": given["url"], "prompt": given.get("prompt", "What does it say?")}
        raise ValueError(f"Claude Code has no tool {call.tool!r}")


class _Codex(_Writer):
    def begin(self) -> None:
        at = self.clock.now
        name = f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{self.session.session_id}.jsonl"
        self.path = f"codex/{at:%Y/%m/%d}/{name}"
        git = {
            "commit_hash": f"{self.chance.getrandbits(160):040x}",
            "branch": "main",
            "repository_url": f"git@git.example.com:team/{self.session.project}.git",
        }
        meta: Line = {
            "id": self.session.session_id,
            "timestamp": stamp(at),
            "cwd": self.cwd,
            "originator": "codex_cli_rs",
        }
        meta |= {"cli_version": "0.107.0", "source": "cli", "model_provider": "openai", "git": git}
        self._line("session_meta", meta)
        if self.instructions:
            told = f"# AGENTS.md instructions for {self.cwd}\n\n<INSTRUCTIONS>\n{self.instructions}\n</INSTRUCTIONS>"
            self._item(_message("user", told))
        told = f"<environment_context>\n  <cwd>{self.cwd}</cwd>\n  <shell>bash</shell>\n</environment_context>"
        self._item(_message("user", told))
        policy = {"approval_policy": "on-request", "sandbox_policy": {"type": "workspace-write"}}
        self._line("turn_context", {"cwd": self.cwd, "model": "gpt-5.3-codex", "effort": "medium"} | policy)

    def _line(self, kind: str, payload: Line) -> None:
        self.write({"timestamp": stamp(self.clock.now), "type": kind, "payload": payload})

    def _item(self, payload: Line) -> None:
        self._line("response_item", payload)

    def user(self, text: str) -> None:
        self._item(_message("user", text))
        self._line("event_msg", {"type": "user_message", "message": text, "images": []})

    def agent(self, text: str) -> None:
        self._line("event_msg", {"type": "agent_message", "message": text, "phase": "final_answer"})
        self._item(_message("assistant", text))

    def call(self, call: Call) -> None:
        own = f"call_{_name(self.chance)}"
        if call.tool == "search":
            action = {"type": "search", "query": call.arguments["query"]}
            self._item({"type": "web_search_call", "status": "completed", "action": action})
            return
        if call.tool == "edit":
            self._patch(call, own)
            return
        arguments = {"cmd": as_command(call), "workdir": self.cwd, "yield_time_ms": 10000}
        self._item(
            {"type": "function_call", "name": "exec_command", "arguments": json.dumps(arguments), "call_id": own}
        )
        wall = self.clock.chance.uniform(0.1, 4)
        self.clock.after(wall, wall + 0.3)
        output = "exec command rejected by user"
        if not call.refused:
            output = (
                f"Chunk ID: {self.chance.getrandbits(24):06x}\nWall time: {wall:.4f} seconds\n"
                f"Process exited with code {call.exit_code}\nOriginal token count: {len(call.output) // 4}\n"
                f"Output:\n{call.output}\n"
            )
        self._item({"type": "function_call_output", "call_id": own, "output": output})
        self._after_refusal(call)

    def _patch(self, call: Call, own: str) -> None:
        given = call.arguments
        old = "\n".join(f"-{line}" for line in given["old"].split("\n"))
        new = "\n".join(f"+{line}" for line in given["new"].split("\n"))
        patch = f"*** Begin Patch\n*** Update File: {given['path']}\n@@\n{old}\n{new}\n*** End Patch"
        self._item(
            {"type": "custom_tool_call", "status": "completed", "call_id": own, "name": "apply_patch", "input": patch}
        )
        self.clock.after(0.1, 0.6)
        output = f"Success. Updated the following files:\nM {given['path']}\n"
        if call.refused:
            output = "patch rejected by user"
        elif call.exit_code:
            output = f"Exit code: {call.exit_code}\nWall time: 0.1 seconds\nOutput:\n{call.output}\n"
        self._item({"type": "custom_tool_call_output", "call_id": own, "output": output})
        self._after_refusal(call)

    def _after_refusal(self, call: Call) -> None:
        if call.refused:
            self._line("event_msg", {"type": "turn_aborted", "reason": "interrupted"})
            if call.words:
                self.clock.after(10, 60)
                self.user(call.words)


def _message(role: str, text: str) -> Line:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def told_in(steps: Sequence[Step]) -> tuple[str, ...]:
    """What of these steps is sure to be found in messages: words, commands, pages, errors."""
    found = []
    for step in steps:
        if isinstance(step, Said):
            found.append(step.text)
            continue
        found += [step.words] if step.words else []
        found += [step.output] if step.exit_code and step.output and not step.refused else []
    return tuple(found)
