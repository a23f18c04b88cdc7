"""The hook that an agent calls before and after each tool call: prints one line of memory about it, or nothing.

python -I -S memory_pipeline_action.py WORKSPACE AGENT before|after < payload.json

It reads one small file of the project and starts no other program. It fails open: on any error, or after `SECONDS`, it
ends with exit code 0 and no output, and the call goes on. A problem is one line in `connections/hooks.log`; what was
shown or stopped is one line of JSON in `connections/actions/shown.jsonl`.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
import zlib
from contextlib import suppress

TYPE_CHECKING = False  # as in `typing`, whose import takes as long as that of `json`
if TYPE_CHECKING:
    from typing import Any

    from memory_pipeline.agents.kit.hook_output import INSIDE, append_line, marked, read_payload, run
    from memory_pipeline.agents.kit.tool_calls import command_of_call, commands_in, runs, signatures_in, violates
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # which `-I` leaves out
    from hook_output import INSIDE, append_line, marked, read_payload, run
    from tool_calls import command_of_call, commands_in, runs, signatures_in, violates

SECONDS = 0.5
MAX_LINES = 3
"""Maximum lines that a session is shown."""
MAX_CHARACTERS = 200
MAX_SHOWN_BYTES = 1_000_000
STRICTNESS = ("observe", "ask", "deny")
CANNOT_ASK = ("codex", "opencode", "gemini")
"""Agents whose hooks cannot ask the user: they are told to, and a second attempt in the session is let through."""
NO_CONTEXT_BEFORE = ("pi", "opencode", "gemini")
"""Agents that take text only with the result of a call."""


def _answer(folder: str, agent: str, event: str, payload: dict[str, Any]) -> str:
    known = _known(folder, payload.get("cwd"))
    tool, arguments = payload.get("tool_name"), payload.get("tool_input")
    if not known or not isinstance(tool, str):
        return ""
    session = str(payload.get("session_id") or "")
    if agent == "claude" and payload.get("agent_id"):  # a sub-agent, whose context and transcript are its own
        session += f"/{payload['agent_id']}"
    shown = os.path.join(folder, "shown.jsonl")
    if event == "before":
        broken = [r for r in known["rules"] if r["mode"] != "hint" and violates(r["check"], tool, arguments)]
        if broken:
            rule = max(broken, key=lambda rule: STRICTNESS.index(rule["mode"]))
            is_answered = rule["mode"] == "ask" and agent in CANNOT_ASK and _was_asked(shown, session, rule["id"])
            with suppress(OSError):  # a full disk stops no rule
                _record(shown, agent, session, rule, rule["mode"], event)
            if rule["mode"] != "observe" and not is_answered:
                return _stopped(agent, rule["mode"], f"{rule['line']} ({rule['evidence']})"[:MAX_CHARACTERS])
        found = None if agent in NO_CONTEXT_BEFORE else _about_call(known, tool, arguments)
    else:
        found = _about_call(known, tool, arguments) if agent in NO_CONTEXT_BEFORE else None
        found = found or _about_failure(known, tool, arguments, payload)
    if not found or not _may_show(shown, agent, session, found, event):
        return ""
    evidence = f" ({found['evidence']})"
    return _context(agent, payload, found["line"][: MAX_CHARACTERS - len(evidence)] + evidence)


def _known(folder: str, cwd: object) -> dict[str, Any] | None:
    """The rules and hints of a folder's project, by the file of the folder or of the nearest one above it in the same
    repository; of an unknown folder the rules for every project."""
    while isinstance(cwd, str) and cwd.startswith("/"):
        found = _read(folder, f"{zlib.crc32(cwd.encode('utf-8', 'replace')):08x}.json")
        if found and cwd in found["folders"]:
            return _read(folder, os.path.basename(found["folders"][cwd]))
        if cwd == "/" or os.path.exists(os.path.join(cwd, ".git")):
            return _read(folder, "everywhere.json")
        cwd = os.path.dirname(cwd)
    return None


def _read(folder: str, name: str) -> dict[str, Any] | None:
    with suppress(FileNotFoundError), open(os.path.join(folder, name), "rb") as file:
        return dict(json.loads(file.read()))
    return None


def _about_call(known: dict[str, Any], tool: str, arguments: Any) -> dict[str, Any] | None:
    """The approved rule that the call breaks, or the live pattern of the command."""
    for rule in known["rules"]:
        if rule["mode"] == "hint" and violates(rule["check"], tool, arguments):
            return dict(rule)
    commands = list(commands_in(command_of_call(tool, arguments) or ""))
    called = (hint for hint in known["before"] if any(part.is_call_of(hint["words"]) for part in commands))
    return next(map(dict, called), None)


def _about_failure(known: dict[str, Any], tool: str, arguments: Any, payload: dict[str, Any]) -> dict[str, Any] | None:
    """The cure of the error in the output of a failed call."""
    command = command_of_call(tool, arguments)
    if payload.get("is_error") is False or not command:
        return None
    for signature in signatures_in(_text(payload.get("error")) + _text(payload.get("tool_response"))):
        for hint in known["after"].get(signature, ()):
            if not hint["words"] or runs(command, hint["words"]):
                return dict(hint)
    return None


def _text(value: object) -> str:
    """All text in a result, whatever its form."""
    if isinstance(value, str):
        return f"{value}\n"
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "".join(map(_text, inner))


def _may_show(path: str, agent: str, session: str, found: dict[str, Any], event: str) -> bool:
    """Record that a line is shown, unless the session has seen it or enough others."""
    with open(f"{path}.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # limited by the alarm
        seen = [entry["id"] for entry in _entries(path, session) if entry["as"] == "hint"]
        if found["id"] in seen or len(seen) >= MAX_LINES:
            return False
        _record(path, agent, session, found, "hint", event)
        return True


def _was_asked(path: str, session: str, rule_id: str) -> bool:
    """Whether the session was told to ask its user about this rule: when it tries again, the user has answered."""
    return any(entry["id"] == rule_id and entry["as"] == "ask" for entry in _entries(path, session))


def _entries(path: str, session: str) -> list[dict[str, Any]]:
    """The latest entries of a session."""
    found = []
    with suppress(FileNotFoundError), open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 65_536))
        for line in file.read().splitlines():
            with suppress(ValueError, TypeError, KeyError):
                entry = json.loads(line)
                if entry["session"] == session and entry["as"] and entry["id"]:
                    found.append(entry)
    return found


def _record(path: str, agent: str, session: str, found: dict[str, Any], shown_as: str, event: str) -> None:
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    entry = {"at": moment, "agent": agent, "session": session, "id": found["id"], "as": shown_as, "event": event}
    append_line(path, json.dumps(entry), MAX_SHOWN_BYTES)


def _context(agent: str, payload: dict[str, Any], line: str) -> str:
    if agent in ("pi", "opencode"):
        return json.dumps({"text": marked(line)})
    named = payload.get("hook_event_name") or ("AfterTool" if agent == "gemini" else "PostToolUse")
    return json.dumps({"hookSpecificOutput": {"hookEventName": named, "additionalContext": marked(line)}})


def _stopped(agent: str, mode: str, reason: str) -> str:
    """The answer that stops a call. Only Claude Code and pi can ask their user; another agent is told to."""
    asking = f"{reason} Ask the user before you do this." if mode == "ask" else reason
    if agent == "gemini":
        return json.dumps({"decision": "deny", "reason": asking})
    if agent in ("pi", "opencode"):
        return json.dumps({"stop": asking, "ask": reason if mode == "ask" else ""})
    can_ask = mode == "ask" and agent == "claude"
    decision = {
        "permissionDecision": "ask" if can_ask else "deny",
        "permissionDecisionReason": reason if can_ask else asking,
    }
    return json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}})


if __name__ == "__main__":
    if not os.environ.get(INSIDE) and len(sys.argv) == 4:
        workspace, agent, event = sys.argv[1:]
        folder = os.path.join(workspace, "connections", "actions")
        run(workspace, agent, event, SECONDS, lambda: _answer(folder, agent, event, read_payload()))
