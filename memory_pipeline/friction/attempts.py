"""Tool calls of agents with their results, and the errors that the results show.

The calls and results of a session are rows of `messages`. They share no id, so a result is assigned to the oldest open
call of its tool.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

import orjson

from memory_pipeline.friction.hidden_failures import hides_its_end, shows_others, verdict_of_failure
from memory_pipeline.text.regex import deferred

REFUSED_CALL = "refused call"
TOOL, USER, ASSISTANT = "tool", "user", "assistant"


class Turn(NamedTuple):
    """A message in the order of its session."""

    message_id: str
    day: date
    session_id: str
    role: str
    at: datetime
    text: str
    """The text of the message, truncated for a tool."""
    tool: str
    is_error: bool
    answer_to: str | None
    answered: str | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A tool call with its result."""

    call: Turn
    result: Turn
    position: int
    """The position of the call in its session."""
    ended: int
    """The position of the result."""

    @property
    def is_refused(self) -> bool:
        return self.result.answer_to == REFUSED_CALL

    @property
    def has_failed(self) -> bool:
        """Whether the call failed, as reported by the harness, or by a shell, test runner or compiler whose exit code
        was hidden."""
        told = self.result.is_error or (self.command is not None and self._has_hidden_failure(self.command))
        return told and not self.is_refused and _CANCELLED.search(self.result.text) is None

    def _has_hidden_failure(self, command: str) -> bool:
        text = self.result.text
        if self.result is self.call:
            return False
        if hidden_error(text) is not None:
            return True
        is_hidden = _COMMAND.search(self.call.text) is None or hides_its_end(command)  # a script has no exit code
        head = head_of(command)
        return is_hidden and not looks_only(head) and not shows_others(head) and verdict_of_failure(text) is not None

    @property
    def command(self) -> str | None:
        """The command of a shell call; None for other tools."""
        return command_of(self.call.text)

    @property
    def head(self) -> str:
        """The short name of the call: program and subcommand, or the tool."""
        return head_of_call(self.call)


_CANCELLED = deferred(
    r"doesn't want to proceed|rejected by user|request interrupted|interrupted by user|sibling tool call|"
    r"aborted by user|user (?:cancelled|aborted)",
    re.I,
)
_COMMAND = deferred(r"^[^\s(]+\((?:.*?, )?(?:command|cmd|script)=(?P<command>.*?)(?:\)\s*)?$", re.S)
_IN_SCRIPT = deferred(r"\"?\bcmd\"?\s*:\s*(?P<command>\"(?:[^\"\\]|\\.)*\")")
_NEXT_ARGUMENT = deferred(
    r", (?:workdir|cwd|dir_path|directory|timeout(?:_ms)?|description|yield_time_ms|max_output_tokens|justification|"
    r"run_in_background|is_background|with_escalated_permissions|sandbox_permissions|prefix_rule|login|shell|tty)=.*$",
    re.S,
)
_PARTS = deferred(r"\s*(?:&&|\|\||;|\n|\|)\s*")
_WORD = deferred(r"[a-z][\w:.-]*")
_ASSIGNMENT = deferred(r"\w+=\S*")
_TRIVIAL = frozenset("cd pushd popd export set source . echo printf true sleep mkdir pwd unset trap".split())  # noqa: SIM905
_WRAPPERS = frozenset("sudo time timeout env nohup nice command exec stdbuf xargs".split())  # noqa: SIM905
PROGRAMS = frozenset(
    """
    git gh npm pnpm yarn bun npx bunx uv uvx pip pip3 poetry cargo go mise make just task docker docker-compose podman
    kubectl helm terraform gradle gradlew mvn dotnet rails bundle composer php deno pytest python python3 node brew apt
    apt-get systemctl aws gcloud az heroku fly vercel supabase prisma alembic flask django-admin swift xcodebuild
    """.split()  # noqa: SIM905
)
"""Programs whose action is named by the next word."""
_RUNNERS = frozenset("run exec x dlx compose mod tool remote stash -m".split())  # noqa: SIM905
"""Subcommands that run another program."""
MAX_SAID = 60


def attempts(turns: Sequence[Turn]) -> list[Attempt]:
    """The calls of a session in order. A call without a result is its own result."""
    return sorted(_paired(turns), key=lambda attempt: attempt.position)


def _paired(turns: Sequence[Turn]) -> Iterator[Attempt]:
    waiting: dict[str, deque[tuple[int, Turn]]] = defaultdict(deque)
    asked = [0, 0]  # positions of the last two messages of the user
    for position, turn in enumerate(turns):
        if turn.role == USER and turn.answer_to is None:
            asked = [asked[1], position]
        if turn.role != TOOL:
            continue
        if is_call(turn):
            waiting[turn.tool].append((position, turn))
            continue
        own = waiting[turn.tool]
        # the call was interrupted; otherwise all later results would be assigned to the wrong call
        while own and own[0][0] < asked[0]:
            began, call = own.popleft()
            yield Attempt(call, call, began, began)
        if own:
            began, call = own.popleft()
            yield Attempt(call, turn, began, position)
        else:  # the call is not stored, or the result names no tool
            yield Attempt(turn, turn, position, position)
    for left in waiting.values():
        for position, call in left:
            yield Attempt(call, call, position, position)


def is_call(turn: Turn) -> bool:
    """Whether the message of a tool is a call, and not a result."""
    return bool(turn.tool) and not turn.is_error and turn.text.startswith(f"{turn.tool}(")


def command_of(call: str) -> str | None:
    """The shell command in the text of a call, `name(key=value, …)`."""
    found = _COMMAND.search(call)
    if found:
        command = _NEXT_ARGUMENT.sub("", found["command"])
        if command.startswith("["):
            try:
                words = orjson.loads(command)
                command = str(words[-1]) if words else ""
            except ValueError:  # it was cut
                command = re.split(r'(?<!\\)"', command)[-1]
        return command.strip() or None
    script = _IN_SCRIPT.search(call)
    if script is None:
        return None
    try:
        return str(orjson.loads(script["command"])).strip() or None
    except ValueError:  # a string of JavaScript, which allows more than JSON does
        return script["command"].strip('"').strip() or None


def head_of_call(call: Turn) -> str:
    """Program and subcommand, or the tool."""
    command = command_of(call.text)
    return (head_of(command) if command else call.tool).strip() or "a tool"


_LOOKING = frozenset("read grep glob ls cat head tail sed rg find wc nl view open list_dir search_files".split())  # noqa: SIM905
_LOOKING_GIT = deferred(r"git (?:log|status|diff|show|blame|branch|ls-files)\b")
EDITING = "the edit tool"
_EDITING = frozenset(
    "edit multiedit apply_patch str_replace_editor str_replace_based_edit_tool replace write write_file".split()  # noqa: SIM905
)


def used(head: str) -> str:
    """The canonical name of the tool, for tools that each harness names differently."""
    return EDITING if head.lower() in _EDITING else head


def looks_only(head: str) -> bool:
    """Whether the call only reads something."""
    return head.lower() in _LOOKING or _LOOKING_GIT.match(head) is not None


def head_of(command: str) -> str:
    """Program and subcommand of the first part that has an effect: `npm run build`, `git push`, `pytest`."""
    for part in _PARTS.split(_without_text(command)):
        words = [word for word in _shell_words(part) if not _ASSIGNMENT.fullmatch(word)]
        while words and (words[0] in _WRAPPERS or (words[0].isdigit() and len(words) > 1) or words[0].startswith("(")):
            words = words[1:]
        if words and words[0] == "cat" and any(word.startswith(">") for word in words):
            return "cat >"  # writes a file
        if words and words[0] not in _TRIVIAL:
            return _head(words)
    return clip_head(command)


def _head(words: list[str]) -> str:
    program = words[0].rsplit("/", 1)[-1]
    said = [program]
    if program in PROGRAMS:
        for word in words[1:]:
            if word == "-m" or (_WORD.fullmatch(word) and not word.startswith("-") and "/" not in word):
                said.append(word)
                if word not in _RUNNERS:
                    break
            elif said[-1] in _RUNNERS or not word.startswith("-"):
                break
    return clip_head(" ".join(said))


def clip_head(text: str) -> str:
    """The text on one line, at most as long as a name."""
    return " ".join(text.split())[:MAX_SAID]


def _without_text(command: str) -> str:
    """The command without its here-documents."""
    return re.sub(r"<<-?\s*['\"]?(\w+)['\"]?.*?(?:\n\1\b|$)", "", command, flags=re.S)


def _shell_words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:  # unbalanced quotes
        return part.split()


_COLOUR = deferred(r"\x1b\[[0-9;?]*[A-Za-z]")
_WRAPPING = deferred(
    r"^\s*(?:Chunk ID: .*|Wall time: .*|Process exited with code \d+|Original token count: .*|Output:|Exit code:? \d+|"
    r"Command exited with code \d+|Total output lines: .*|Script (?:completed|failed|error:?).*|\(no output\)|"
    r"<(?:/?(?:stdout|stderr|output|error))>|stdout:|stderr:|Error: Exit code \d+)\s*$",
    re.I | re.M,
)
"""The text that a harness puts around a tool's output."""
_MARKUP = deferred(r"</?tool_use_error>|^failed in sandbox \w+ with execution error: ", re.I)
_JSON_OUTPUT = deferred(r"^\s*\{\s*\"output\"\s*:")
_EXPLAINING = deferred(
    r"error|fail|denied|not found|refused|in use|cannot|can't|could not|couldn't|exception|invalid|missing|unknown|"
    r"no such|unable|fatal|conflict|undefined|unexpected|mismatch|required|not installed|timed? ?out|"
    r"timeout|no matches|unauthori[sz]ed|"
    r"forbidden|out of date|does not|doesn't|must |expected |does not exist|unsupported|not set|panic|abort",
    re.I,
)
_SUMMARY = deferred(
    r"task failed|exit(?:ed)?(?: with)? (?:status|code)|^make(?:\[\d+\])?: \*\*\*|npm err! (?:code|errno|path|command|"
    r"a complete log|lifecycle)|^\s*(?:\d+ )?(?:tests?|failed|failures?|errors?|passed)[:, ]*\d*\s*$|"
    r"\b\d{1,4} (?:failed|passed)\b(?!:)|"
    r"^(?:FAIL|ok|---|===|\[\w+\] ERROR)\b|command failed|^error:?$|^traceback|^\s*at |^\s*File \"|^warning|"
    r"found \d+ (?:errors?|problems?|warnings?)|elifecycle|short test summary|^npm warn|\b(?:INFO|DEBUG)\b:?\s|"
    r"^(?:checking|compiling|downloading|downloaded|installing|building) [\w.-]+ v?\d",
    re.I,
)
"""A line that reports a failure without its cause."""


_OF_A_SHELL = deferred(
    r"^(?:\(eval\)|(?:/bin/)?(?:ba|z|da)?sh|/bin/\w+): ?(?:line )?\d*:? ?.*(?:command not found|"
    r"no matches found|parse error|"
    r"no such file or directory|permission denied).*$|^\S+: command not found$|^find: .*: no such file or directory$",
    re.I | re.M,
)
MAX_ALONE = 3
"""Maximum lines of an output that is only an error message."""
MAX_HIDDEN = 1_500
"""Maximum characters of an output in which the shell's error message is searched."""


def hidden_error(text: str) -> str | None:
    """The shell's own error message in the output of a call that the harness reports as successful."""
    found = _OF_A_SHELL.search(_COLOUR.sub("", text[:MAX_HIDDEN])) if len(text) <= MAX_HIDDEN else None
    return found[0].strip() if found else None


def error_in(text: str) -> str | None:
    """The line of a failed tool's output that describes the error, verbatim; None if there is none."""
    lines = _lines(text)
    telling = [line for line in lines if _EXPLAINING.search(line)]
    specific = [line for line in telling if not _SUMMARY.search(line)]
    python = [line for line in specific if re.match(r"[\w.]*(?:Error|Exception)\b", line)]
    shell = hidden_error(text)
    alone = [line for line in lines if len(line.split()) > 2] if len(lines) <= MAX_ALONE else []
    for found in (python[-1:], [shell] if shell else [], specific[:1], [] if telling else alone[:1]):
        if found:
            return _MARKUP.sub("", found[0]).strip()
    return None


def errors_in(text: str) -> list[str]:
    """Every line of the output that describes an error, not merely that there was one."""
    return [line for line in _lines(text) if _EXPLAINING.search(line) and not _SUMMARY.search(line)]


def _lines(text: str) -> list[str]:
    lines = (line.strip() for line in output_of(text).splitlines())
    return [line for line in lines if any(c.isalnum() for c in line)]


def output_of(text: str) -> str:
    """The output of a tool without the text that its harness adds."""
    if _JSON_OUTPUT.match(text):
        try:
            text = str(orjson.loads(text)["output"])
        except (ValueError, KeyError, TypeError):  # it was cut
            text = text.replace("\\n", "\n")
    return _WRAPPING.sub("", _COLOUR.sub("", text))


_ARGUMENT = deferred(r"[\w@./:+-]{3,}")
_PLACE = deferred(r"\b(?:file_path|filePath|path|filename|notebook_path|target_file|absolute_path)=(?P<path>[^,)\n]+)")


def path_of(attempt: Attempt) -> str | None:
    """The file that a tool was called on, with its folder."""
    place = place_of_call(attempt.call.text)
    return "/".join(place.split("/")[-2:]) if place else None


def place_of_call(call: str) -> str | None:
    """The path of the file in the text of a call, `name(key=value, …)`."""
    found = _PLACE.search(call)
    return found["path"].strip() if found else None


def words_of_call(attempt: Attempt) -> frozenset[str]:
    """The subject of the call: paths, names and words of the arguments, without program and options."""
    text = attempt.command or attempt.call.text.removeprefix(attempt.call.tool)
    own = set(attempt.head.lower().split())
    found = (w.strip("./:").lower() for w in _ARGUMENT.findall(text[:1_000]) if not w.startswith("-"))
    parts = (part for word in found for part in (word, *re.split(r"[/.:]", word)))
    return frozenset(part for part in parts if len(part) > 2 and part not in own)
