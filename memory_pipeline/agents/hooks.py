"""Hooks of agents: a new session gets the briefing, a compacted one a summary from the memory, and a tool call what is
known of it, if that was asked for.

Claude Code and Codex call commands from their settings; pi and OpenCode load a script. The bytes before and after are
stored in `hooks.json`, so that removal restores an unchanged file exactly, and removes only our own entries from a
changed one. Files with comments, which `json` cannot keep, are left to the user.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_pipeline.agents.agents import (
    AGENTS,
    BY_NAME,
    Agent,
    CannotConnectError,
    bytes_of,
    edit_file,
    read_entries,
    write_entries,
)
from memory_pipeline.markdown.blocks import newline_of
from memory_pipeline.markdown.safe_write import decode, encode
from memory_pipeline.settings import Settings

KIT = Path(__file__).parent / "kit"
SCRIPT = KIT / "memory_pipeline_hook.py"
ACTION_SCRIPT = KIT / "memory_pipeline_action.py"
LIST = "hooks.json"
HOOK_SECONDS = 2
"""The time limit in seconds in the agent's settings. The hook ends itself in less than one second."""
CONTEXT_CHARACTERS = 40_000
"""Maximum characters that Codex accepts from a hook. Without this setting it truncates at 10,000, which a brief in
Japanese reaches."""
FIRST_LINE = "// memory_pipeline: made by `memory agents hooks install`, undone by `memory agents hooks remove`."
FIRST_LINE_0_1 = "// memory_pipeline: made by `memory hooks install`, undone by `memory hooks remove`."


@dataclass(frozen=True)
class Hooked:
    """The content of an agent's file before the hooks, and the hash of the file with them."""

    agent: str
    path: str
    before: str | None
    """The former content in base64; None if there was no file."""
    after: str
    """The sha256 of the file with the hooks."""
    made_folder: bool
    actions: bool = False
    """Whether tool calls have hooks, too."""


def hooked(settings: Settings) -> dict[str, Hooked]:
    """The agents with hooks, by name. Raises `CannotConnectError` for an unreadable list."""
    found = read_entries(settings, LIST, Hooked, "memory agents hooks install")
    return {entry.agent: entry for entry in found}


def has_hooks(settings: Settings) -> bool:
    """Whether an agent has the hook of tool calls. Raises `CannotConnectError`."""
    return any(entry.actions for entry in hooked(settings).values())


def hooks_file(agent: Agent) -> Path:
    """The file that lists or contains the hooks."""
    path = agent.home / agent.hooks
    older = agent.home / "plugin"  # OpenCode's former name of the folder, which it still reads
    return older / path.name if agent.name == "opencode" and older.is_dir() and not path.parent.is_dir() else path


def command(settings: Settings) -> list[str]:
    """The command of a hook, without agent and event: this interpreter, the hook, the workspace and the `memory`
    command.

    Raises `CannotConnectError` if the command does not exist, as in a program that imports the package.
    """
    beside = Path(sys.executable).with_name("memory")
    found = str(beside) if beside.is_file() else shutil.which("memory")
    if not found:
        raise CannotConnectError(
            f"Hooks call the command `memory`, which is neither beside {sys.executable} nor on PATH."
        )
    return [sys.executable, "-I", "-S", str(SCRIPT), str(settings.workspace), found]


def action_command(settings: Settings) -> list[str]:
    """The command of a hook of tool calls, without agent and event."""
    return [sys.executable, "-I", "-S", str(ACTION_SCRIPT), str(settings.workspace)]


def with_hooks(settings: Settings, agent: Agent, old: bytes | None, *, actions: bool = False) -> bytes:
    """The agent's file with our hooks, with `actions` also of tool calls. Raises `CannotConnectError` if it cannot be
    edited."""
    path = hooks_file(agent)
    if path.suffix == ".js":
        if old is not None and not _is_ours(old):
            raise CannotConnectError(
                f"{path} exists and was not written by memory_pipeline; move it away, then run this again."
            )
        return _script(settings, agent, actions).encode()
    text = decode(old or b"{}")
    found = _without_ours(_parsed(text, path))
    events = found.get("hooks", {})
    added = {event: [*groups, *events.get(event, [])] for event, groups in _groups(settings, agent, actions).items()}
    return _dumped({**found, "hooks": events | added}, text)


def without_hooks(agent: Agent, old: bytes) -> bytes | None:
    """The agent's file without our entries; None if it was ours as a whole. Raises `CannotConnectError`."""
    path = hooks_file(agent)
    if path.suffix == ".js":
        if _is_ours(old):
            return None
        raise CannotConnectError(f"{path} was edited or was not written by memory_pipeline; remove it yourself.")
    text = decode(old)
    found = _parsed(text, path)
    left = _without_ours(found)
    return old if left == found else _dumped(left, text)


def install(settings: Settings, agent: Agent, *, actions: bool = False) -> None:
    """Write the hooks. Raises the errors of `with_hooks`, and OSError."""
    known, path = hooked(settings), hooks_file(agent)
    old = bytes_of(path)
    earlier = known.get(agent.name)
    is_as_made = old is not None and earlier is not None and earlier.after == _sha256(old)
    before = earlier.before if earlier and is_as_made else _stored(agent, old)
    made_folder = earlier.made_folder if earlier and is_as_made else not path.parent.exists()
    new = with_hooks(settings, agent, old, actions=actions)
    (settings.workspace / "connections").mkdir(parents=True, exist_ok=True)  # for the log of the hooks
    edit_file(settings, path, lambda current: with_hooks(settings, agent, current, actions=actions))
    known[agent.name] = Hooked(agent.name, str(path), before, _sha256(new), made_folder, actions)
    write_entries(settings, LIST, known.values())


def removed(settings: Settings, agent: Agent, old: bytes | None) -> bytes | None:
    """The content of the file after `remove`."""
    known = hooked(settings).get(agent.name)
    if old is None:
        return None
    if known and known.after == _sha256(old):
        return None if known.before is None else base64.b64decode(known.before)
    left = without_hooks(agent, old)
    is_empty = left is not None and left.strip() == b"{}"
    return None if known and known.before is None and is_empty else left


def remove(settings: Settings, agent: Agent) -> None:
    """Remove the hooks. Raises `CannotConnectError` and OSError."""
    known = hooked(settings)
    entry = known.pop(agent.name, None)
    path = Path(entry.path) if entry else hooks_file(agent)
    if path.exists():
        edit_file(settings, path, lambda old: removed(settings, agent, old))
    if entry and entry.made_folder and path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()
    write_entries(settings, LIST, known.values())


def state(settings: Settings, agent: Agent) -> str:
    """The state of the agent's hooks in a few words; "" without hooks."""
    known = hooked(settings).get(agent.name)
    if known is None:
        return ""
    data = bytes_of(Path(known.path))
    if data is None or b"memory_pipeline_hook.py" not in data:
        return f"hooks are no longer in {known.path}; `memory agents hooks install {agent.name}` restores them"
    if gone := [path for path in _called_paths(data, Path(known.path)) if not Path(path).exists()]:
        return f"hooks do nothing: {gone[0]} has moved; `memory agents hooks install {agent.name}` updates the path"
    what = "hooks, also of tool calls" if known.actions else "hooks"
    return what if known.after == _sha256(data) else f"{what} (the file was changed since)"


def describe(settings: Settings) -> dict[str, str]:
    """The agents with hooks and their state in a few words."""
    found = {name: state(settings, BY_NAME[name]) for name in hooked(settings) if name in BY_NAME}
    return {agent.name: found[agent.name] for agent in AGENTS if agent.name in found}


def _groups(settings: Settings, agent: Agent, actions: bool) -> dict[str, list[dict[str, Any]]]:
    """The hooks for the settings of Claude Code, Codex and Gemini CLI, by event."""
    called = command(settings)
    starts = None if agent.name == "gemini" else "startup|resume|clear|compact"
    groups = {"SessionStart": [_group(agent, called, "start", starts)]}
    if agent.name == "claude":  # it summarises according to the hook's output
        groups["PreCompact"] = [_group(agent, called, "compaction")]
    if agent.name == "codex":  # it takes text only afterwards; Gemini's hook before a compression cannot say anything
        groups["SessionStart"].append(_group(agent, called, "compaction", "compact"))
    tool_events = _TOOL_EVENTS[agent.name] if actions else {}
    return groups | {event: [_group(agent, action_command(settings), name)] for event, name in tool_events.items()}


_TOOL_EVENTS = {
    "claude": {"PreToolUse": "before", "PostToolUse": "after", "PostToolUseFailure": "after"},
    "codex": {"PreToolUse": "before", "PostToolUse": "after"},
    "gemini": {"BeforeTool": "before", "AfterTool": "after"},
}
"""The events of tool calls, each with our name for it."""


def _group(agent: Agent, called: Sequence[str], event: str, matcher: str | None = None) -> dict[str, Any]:
    line = shlex.join([*called, agent.name, event])
    checks = " && ".join(f"test -f {shlex.quote(path)}" for path in (called[0], called[3]))
    seconds = HOOK_SECONDS * 1000 if agent.name == "gemini" else HOOK_SECONDS  # it counts milliseconds
    handler: dict[str, Any] = {"type": "command", "command": f"{checks} && {line} || true", "timeout": seconds}
    if agent.name == "codex":
        handler["additionalContextLimit"] = CONTEXT_CHARACTERS
    return ({"matcher": matcher} if matcher else {}) | {"hooks": [handler]}


def _script(settings: Settings, agent: Agent, actions: bool) -> str:
    """The complete file for an agent that loads scripts; its first line has the hash of the others."""
    called = json.dumps([*command(settings), agent.name])
    acting = json.dumps([*action_command(settings), agent.name]) if actions else "null"
    body = (KIT / "ask.js").read_text("utf-8").replace('"HOOK"', called).replace('"ACTION"', acting)
    body += (KIT / f"{agent.name}.js").read_text("utf-8")
    return f"{FIRST_LINE} {_sha256(body.encode())[:12]}\n{body}"


def _is_ours(data: bytes) -> bool:
    """Whether the script is unchanged."""
    first, _, body = data.partition(b"\n")
    return first.decode("utf-8", "replace") in {f"{line} {_sha256(body)[:12]}" for line in (FIRST_LINE, FIRST_LINE_0_1)}


def _parsed(text: str, path: Path) -> dict[str, Any]:
    """The parsed settings. Raises `CannotConnectError` if they do not have the expected form."""
    try:
        found = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise CannotConnectError(
            f"{path}, line {error.lineno}, column {error.colno}: {error.msg}. Only JSON without comments can be "
            f"edited; fix that, then run this again."
        ) from None
    if not isinstance(found, dict):
        raise CannotConnectError(f"{path}: expected an object in braces.")
    hooks = found.get("hooks", {})
    if not isinstance(hooks, dict):
        raise CannotConnectError(f"{path}: hooks: expected an object in braces.")
    if wrong := next((event for event, groups in hooks.items() if not isinstance(groups, list)), None):
        raise CannotConnectError(f"{path}: hooks.{wrong}: expected a list in brackets.")
    return found


def _dumped(value: dict[str, Any], text: str) -> bytes:
    """The settings in JSON with the indentation and the line ends of the text."""
    indented = re.search(r"^([ \t]+)\S", text, re.M)
    new = json.dumps(value, indent=indented[1] if indented else 2, ensure_ascii=False)
    return encode(f"{new}\n".replace("\n", newline_of(text)))


def _without_ours(found: dict[str, Any]) -> dict[str, Any]:
    """The settings without our hooks, and without the groups and events that had no others."""
    if not _our_commands(found):
        return found
    events = {event: list(filter(None, map(_other_hooks, groups))) for event, groups in found["hooks"].items()}
    events = {event: groups for event, groups in events.items() if groups}
    rest = {key: value for key, value in found.items() if key != "hooks"}
    return {**rest, "hooks": events} if events else rest


def _other_hooks(group: Any) -> Any:
    """The group without our hooks; None if it had no others."""
    left = [handler for handler in _handlers(group) if not _is_our_hook(handler)]
    if len(left) == len(_handlers(group)):
        return group
    return {**group, "hooks": left} if left else None


def _handlers(group: Any) -> list[Any]:
    handlers = group.get("hooks") if isinstance(group, dict) else None
    return handlers if isinstance(handlers, list) else []


def _is_our_hook(handler: Any) -> bool:
    called = str(handler.get("command")) if isinstance(handler, dict) else ""
    return SCRIPT.name in called or ACTION_SCRIPT.name in called


def _our_commands(found: dict[str, Any]) -> list[str]:
    """The commands of our hooks in the settings."""
    handlers = (h for groups in found.get("hooks", {}).values() for group in groups for h in _handlers(group))
    return [handler["command"] for handler in handlers if _is_our_hook(handler)]


def _called_paths(data: bytes, path: Path) -> list[str]:
    """The paths in the commands of our hooks: interpreter, hook, workspace and `memory`. Raises
    `CannotConnectError`."""
    text = decode(data)
    if path.suffix == ".js":
        line = next(line for line in text.splitlines() if SCRIPT.name in line)
        words = json.loads(line.partition("=")[2].strip().rstrip(";"))
    else:
        words = [word for called in _our_commands(_parsed(text, path)) for word in shlex.split(called)]
    return [word for word in words if word.startswith("/")]


def _stored(agent: Agent, old: bytes | None) -> str | None:
    """The content to restore when the hooks are removed."""
    before = None if old is None else without_hooks(agent, old)
    return None if before is None else base64.b64encode(before).decode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
