"""Tool calls of Codex and their results, whose form depends on the version and the kind of tool."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
import orjson

from memory_pipeline.harnesses.content import content_text, identifying
from memory_pipeline.harnesses.record_reader import patched_files
from memory_pipeline.harnesses.records import JsonObject, object_of

ARGUMENTS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "web_search_call": "action",
    "tool_search_call": "arguments",
    "image_generation_call": "revised_prompt",
}
"""The types of calls, each with the field of its arguments."""
_PATCHING = ("function_call", "custom_tool_call", "local_shell_call")
OUTPUT_TYPES = frozenset(("function_call_output", "custom_tool_call_output", "tool_search_output"))
_EXIT_CODE = re.compile(r"(?:Process exited with code|Exit code:) (-?\d+)")
# Codex's own answers if a tool could not be run or failed, which have no exit code.
_FAILED = re.compile(
    r"Script (?:failed|error:)|failed in sandbox|unsupported (?:custom tool )?call|execution error: |err: "
    r"|tool call error: |failed to parse [\w ]*arguments|(?:exec_command|write_stdin) failed"
    r"|apply_patch (?:verification failed|handler received)|error: (?:Failed to find expected lines|[Ii]nvalid hunk)"
    r"|error: [Ii]nvalid patch|patch rejected: |approval policy is \S+; reject command"
    r"|unable to (?:locate|read|process) (?:image|media)|\w+ is unavailable in \w+ mode"
)
_SCRIPT = r"(?:Script failed\n(?:Wall time[^\n]*\n)?(?:Output:\n)?\s*)?(?:Script error:\s*)?"
# Results after the user refused or pressed Escape, and then continues with a message.
_REFUSED = re.compile(
    rf"{_SCRIPT}(?:Wall time: [^\n]*\n)?(?:(?:exec command|patch) rejected by user"
    r"|user (?:rejected|cancelled) MCP tool call|(?:command )?aborted by user)\b(?! approval settings)"
)


class Output(NamedTuple):
    """The output of a tool."""

    text: str
    data: object
    """The JSON value, decoded; else the text or the blocks."""
    failed: bool
    refused: bool
    """Whether the user refused or interrupted the call, in which case nothing failed."""


def patched_by(kind: str, arguments: object) -> tuple[str, ...]:
    """The files that a patch in the arguments of a call would change."""
    patch = "\n".join(_strings(arguments)) if kind in _PATCHING else ""
    return patched_files(patch) if "*** Begin Patch" in patch else ()


def read_output(payload: JsonObject, line: int) -> Output:
    """The result in a `response_item` of one of the `OUTPUT_TYPES`."""
    given = payload.get("output")
    output = data = decoded(given) if isinstance(given, str) and given.startswith('{"') else given
    exit_code: object = None
    if isinstance(output, dict) and not output.keys() & {"output", "content"}:
        output = plain(given)
    elif isinstance(output, dict):
        exit_code = object_of(output.get("metadata")).get("exit_code")
        output = output.get("output", output.get("content"))
    text = content_text(output, line)
    if exit_code is None and (found := _EXIT_CODE.search(text, 0, 400)):
        exit_code = int(found[1])
    refused = _REFUSED.match(text) is not None
    failed = not refused and (exit_code not in (None, 0) or (exit_code is None and _FAILED.match(text) is not None))
    return Output(text, data, failed, refused)


def plain(value: object) -> str:
    """The arguments or the output of a call as text that identifies it."""
    value = identifying(value) if isinstance(value, list) else value
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def decoded(text: str) -> object:
    """The JSON value, or the text if it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _strings(value: object) -> list[str]:
    """The strings in the arguments of a call, which contain a patch as a whole or as one word of a command."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        parts = (part if isinstance(part, list) else [part] for part in value)
        return [text for part in parts for text in part if isinstance(text, str)]
    return [value] if isinstance(value, str) else []
