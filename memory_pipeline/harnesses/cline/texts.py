"""Text that Cline writes: elements of a prompt, tool calls as XML, and results as prose.

A user's text is in an element such as `<task>`, with Cline's own text around it. The same elements may occur in the
output of a tool, such as a file, so there they only count in results that Cline wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_pipeline.harnesses.record_reader import patched_files
from memory_pipeline.harnesses.records import JsonObject, object_of, text_of, words
from memory_pipeline.text.regex import deferred

_TAGS = "task|feedback|answer|user_message|user_input|user_command"
_TYPED = deferred(
    rf"(?P<lead>(?:[^<]*|\s*<mode_notice>[^<]*</mode_notice>\s*))<(?P<tag>{_TAGS})(?:\s[^<>]*)?>\n?"
    r"(?P<said>.*?)\n?</(?P=tag)>(?P<rest>.*)",
    re.DOTALL,
)
_RESULT = deferred(r"\[(?P<tool>[a-z][\w.-]*)(?: [^\n]*?)?\] Result:\s*(?P<output>.*)", re.DOTALL)
_TOOLS = (
    "execute_command|read_file|write_to_file|replace_in_file|apply_diff|insert_content|search_and_replace|edit_file|"
    "search_files|list_files|list_code_definition_names|codebase_search|browser_action|use_mcp_tool|"
    "access_mcp_resource|ask_followup_question|attempt_completion|new_task|plan_mode_respond|switch_mode|"
    "fetch_instructions|update_todo_list|load_mcp_documentation|report_bug|condense|summarize_task|web_fetch|web_search"
)
_CALL = deferred(rf"<(?P<tool>{_TOOLS})>(?P<given>.*?)(?:</(?P=tool)>|\Z)", re.DOTALL)
_PARAMETER = deferred(r"<(\w+)>\n?(.*?)\n?</\1>", re.DOTALL)
_THINKING = deferred(r"<thinking>.*?(?:</thinking>|\Z)\s*", re.DOTALL)
_ASKING = words("ask_followup_question plan_mode_respond attempt_completion new_task condense report_bug ask_question")
"""Tools whose results are the user's words."""
_DENIED = "The user denied this operation"
_FEEDBACK = (_DENIED, "The user provided the following feedback:")
_FAILED = deferred(r"The tool execution failed|Error executing|\[ERROR\]")
_EXIT_CODE = deferred(r"Exit code: (-?\d+)")
_PATH = deferred(r"<path>\s*([^<]+?)\s*</path>")


class Typed(NamedTuple):
    """The parts of a text."""

    before: str
    said: str
    """The user's words."""
    after: str


class Outcome(NamedTuple):
    """The outcome of a call."""

    output: str
    said: str
    """The user's words in it."""
    is_error: bool
    refused: bool


def typed(text: str) -> Typed | None:
    """The user's words in a text written by Cline; None if there are none."""
    found = _TYPED.match(text)
    return Typed(found["lead"].strip(), found["said"], found["rest"].strip()) if found else None


def result_in(text: str) -> tuple[str, str] | None:
    """The tool and its output, if a text is the result of a call; the output may also follow in a separate text."""
    found = _RESULT.match(text)
    return (found["tool"], found["output"].strip()) if found else None


def outcome(tool: str, text: str, *, is_error: bool = False) -> Outcome:
    """The result of a tool, separated from the user's words, which Cline reports in it."""
    if text.startswith('{"status":') and (status := object_of(text)):
        denied = status.get("status") == "denied"
        output = text if "feedback" not in status else text_of(status.get("status"))
        return Outcome(output, text_of(status.get("feedback")), status.get("status") == "error", denied)
    denied = text.startswith(_DENIED)
    found = typed(text) if tool in _ASKING or text.startswith(_FEEDBACK) else None
    output = "\n".join(filter(None, (found.before, found.after))) if found else text
    exit_code = _EXIT_CODE.search(text, 0, 400)
    failed = is_error or _FAILED.match(text) is not None or (exit_code is not None and exit_code[1] != "0")
    return Outcome(output, found.said if found else "", failed and not denied, denied)


def spoken_and_called(text: str) -> Iterator[tuple[str, str, JsonObject]]:
    """The parts of a model's answer, in order: its text as `("", text, {})`, and its calls as `(tool, "",
    arguments)`."""
    text = _THINKING.sub("", text)
    end = 0
    for call in _CALL.finditer(text):
        yield "", text[end : call.start()].strip(), {}
        yield call["tool"], "", dict(_PARAMETER.findall(call["given"]))
        end = call.end()
    yield "", text[end:].strip(), {}


def paths(arguments: JsonObject) -> tuple[str, ...]:
    """The paths in the arguments of a call."""
    found = [text_of(arguments.get(name)) for name in ("path", "file_path", "filePath")]
    listed = arguments.get("files") or arguments.get("paths")
    for item in listed if isinstance(listed, list) else ():
        found += paths(item) if isinstance(item, dict) else [text_of(item)]
    for name in ("args", "input", "patch"):
        given = text_of(arguments.get(name))
        found += _PATH.findall(given) if name == "args" else patched_files(given)
    return tuple(filter(None, found))
