"""Tool calls of agents: the commands that they run, the files that they edit, the errors in their output, and checks.

This module only uses the standard library, as the hook of an agent imports it without the package for every tool call.
Its patterns are strings that are compiled when they are first used, which takes longer than the rest of a call.
"""

from __future__ import annotations

import re
from collections import namedtuple
from functools import lru_cache

TYPE_CHECKING = False  # as in `typing`, whose import takes as long as that of `re`
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAX_COMMAND, MAX_TOKENS = 30_000, 8_000
"""Maximum characters and tokens of a command that are looked at; here-documents are skipped as a whole."""
MAX_SHELLS = 3
"""Maximum depth of shells within shells."""
MAX_PATCH = 200_000
"""Maximum characters of a patch that is searched for the files that it changes."""
MAX_OUTPUT_LINES = 200
"""Maximum lines of an output that are searched for a known error: the first and the last ones."""
MAX_LINE = 400
MAX_SIGNATURE = 200
SHELL_TOOLS = frozenset(
    "bash shell shell_command exec exec_command local_shell run_shell_command run_command terminal".split()
)
EDIT_TOOLS = frozenset(
    "edit multiedit write notebookedit apply_patch replace write_file str_replace_editor create patch".split()
)
_SHELLS = frozenset("bash sh zsh dash".split())
_WRAPPERS = frozenset("sudo time timeout env nohup nice command exec stdbuf xargs".split())
_WITH_VALUE = frozenset("-u -g -n -I -P -L -k -s".split())
"""Options of wrappers that are followed by a value."""
PROGRAMS = frozenset(
    """
    git gh npm pnpm yarn bun npx bunx uv uvx pip pip3 poetry cargo go mise make just task docker docker-compose podman
    kubectl helm terraform gradle gradlew mvn dotnet rails bundle composer php deno pytest python python3 node brew apt
    apt-get systemctl aws gcloud az heroku fly vercel supabase prisma alembic flask django-admin swift xcodebuild
    """.split()
)
"""Programs whose action is named by the next word."""
_RUNNERS = frozenset("run exec x dlx compose mod tool remote stash -m".split())
"""Subcommands that run another program."""
_SUBCOMMAND = r"[a-z][a-z0-9_:.-]*"
_KEYWORDS = frozenset("do then else elif if while until !".split())
_WRITERS = frozenset("rm mv tee truncate touch".split())
_SAME_FLAGS = {
    "git": ({"-f", "--force"}, {"-A", "--all"}),
    "rm": ({"-f", "--force"}, {"-r", "-R", "--recursive"}),
    "grep": ({"-r", "-R", "--recursive"},),
    "docker": ({"-d", "--detach"},),
}
"""Flags of a program with the same effect."""
_PATH_ARGUMENTS = "file_path", "filePath", "path", "notebook_path", "filename", "absolute_path"
_PATCH_ARGUMENTS = "input", "patch", "patchText", "command"
_TOKEN = (
    r"(?s)"
    r"(?:(?<=\s)|^)#[^\n]*|\\\n|(?P<operator>&&|\|\||\|&|[;|&\n(){}`])|"
    r"(?P<redirection>\d?(?:<<<?-?|>>|>&|<&|&>>?|>\||>|<)(?P<descriptor>&?\d)?)|"
    r"(?P<word>(?:[^\s'\"\\;&|<>(){}`]|\\.|'[^']*'?|\"(?:\\.|[^\"\\])*\"?|[{}](?=\S))+)|[^\S\n]+"
)
"""The parts of a shell command. A quotation mark that is never closed quotes the rest."""
_QUOTED = r"(?s)\\(.)|'([^']*)'?|\"((?:\\.|[^\"\\])*)\"?"
_SUBSTITUTED = r"(?s)(?<!\\)\$\(((?:[^()]|\([^()]*\))*)|(?<!\\)`([^`]*)"
"""The commands that double quotation marks do not quote."""
_ASSIGNMENT = r"[A-Za-z_]\w*="
_PATCHED_FILE = r"(?m)^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+)$|^\+\+\+ (?:b/)?(\S+)"
_COLOUR = r"\x1b\[[0-9;?]*[A-Za-z]"
_PATH = r"(?<![\w.@~+-])(?:~|[A-Za-z]:)?[\w.@+-]*(?:[/\\][\w.@%+~-]+)+[/\\]?"
_CHANGING = (
    r"(?i)"
    r"0x[0-9a-f]+|\b[0-9a-f]{7,40}\b|\b[0-9a-f]{8}-[0-9a-f-]{20,}\b|\b\d{4}-\d\d-\d\d[T ]?[\d:.,Z+-]*|"
    r"\b\d+(?:[.:,]\d+)*(?:ms|s|m|kb|mb|gb|%)?\b"
)
_TEMPORARY = r"(?i)\b(?:tmp|temp|tmp\.)[\w.-]*\d[\w.-]*"
_CODE = (
    r"\((?P<rule>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)\)\s*$|\b(?P<code>TS\d{3,5}|[A-Z]{1,4}\d{3,4}|SC\d{4})\b|"
    r"\b(?P<slash>@?[a-z][\w-]*/[a-z][\w-]+)\s*$"
)
"""The rule named by a linter or compiler, which identifies the mistake."""
_NO_MATCHES = r"no matches found: |parse error near"


class Command(namedtuple("Command", ["words", "writes", "operator"])):
    """A simple command of a shell call: `words`, its program and arguments without quotation marks, assignments and
    wrappers like `sudo`; `writes`, the files to which its output is redirected; and the `operator` after it."""

    __slots__ = ()
    if TYPE_CHECKING:
        words: tuple[str, ...]
        writes: tuple[str, ...]
        operator: str

    @property
    def head(self) -> str:
        """Program and subcommand, as people name the command: `npm run build`, `git push`, `pytest`."""
        named = [self.words[0]]
        for word in self.words[1:] if named[0] in PROGRAMS else ():
            if word == "-m" or re.fullmatch(_SUBCOMMAND, word):
                named.append(word)
                if word not in _RUNNERS:
                    break
            elif named[-1] in _RUNNERS or not word.startswith("-"):
                break
        return " ".join(named)

    @property
    def flags(self) -> set[str]:
        """The flags, with each letter of combined ones (`-xvf` has `-x`) and with other names of the same."""
        flags = {word.partition("=")[0] for word in self.words[1:] if word.startswith("-")}
        flags |= {f"-{c}" for flag in flags if re.fullmatch(r"-[A-Za-z]{2,5}", flag) for c in flag[1:]}
        return flags.union(*(same for same in _SAME_FLAGS.get(self.words[0], ()) if flags & same))

    def has_flag(self, flag: str) -> bool:
        """Whether it has a flag, with its value if one is given: `--context staging`."""
        name, _, value = flag.partition(" ")
        if not value:
            return name in self.flags
        return (name, value) in zip(self.words, self.words[1:], strict=False) or f"{name}={value}" in self.words

    @property
    def changed_files(self) -> list[str]:
        """The files that it writes, moves or removes, as far as its words tell."""
        program, named = self.words[0], [word for word in self.words[1:] if not word.startswith("-")]
        if program == "cp":
            return [*self.writes, *named[-1:]]
        in_place = program == "sed" and any(flag.startswith(("-i", "--in-place")) for flag in self.flags)
        return [*self.writes, *named] if program in _WRITERS or in_place else [*self.writes]

    def is_call_of(self, wanted: list[str]) -> bool:
        """Whether it has the wanted program, its subcommands in order, and its flags anywhere.

        Before the first subcommand only flags and their values may stand: `git -C DIR push` is a `git push`, and `git
        stash push` is none.
        """
        if self.words[0] != wanted[0]:
            return False
        subcommands = [word for word in wanted[1:] if not word.startswith("-")]
        if not all(word in self.flags for word in wanted[1:] if word not in subcommands):
            return False
        left = iter(self.words[1:])
        before = self.words[0]
        for word in left if subcommands else ():
            if word == subcommands[0]:
                break
            if not word.startswith("-") and not before.startswith("-"):
                return False
            before = word
        else:
            return not subcommands
        return all(word in left for word in subcommands[1:])


@lru_cache(maxsize=256)  # each rule looks at the same call
def commands_in(text: str) -> tuple[Command, ...]:
    """The simple commands of a shell call, including those of shells within shells."""
    return tuple(_commands(text[:MAX_COMMAND], 0))


def _commands(text: str, depth: int) -> Iterator[Command]:
    words: list[str] = []
    writes: list[str] = []
    inner: list[str] = []  # the commands in the double quotation marks of the words
    documents: list[str] = []  # the ends of here-documents that begin on the next line
    position, redirection = 0, ""
    for _ in range(MAX_TOKENS):
        token = re.compile(_TOKEN).match(text, position)
        if token is None:
            break
        position = token.end()
        if token["operator"]:
            yield from _unwrapped(words, writes, token["operator"], inner, depth)
            words, writes, inner, redirection = [], [], [], ""
            if token["operator"] == "\n":
                for end in documents:
                    found = re.compile(rf"(?m)^[ \t]*{re.escape(end)}[ \t]*$").search(text, position)
                    position = found.end() if found else len(text)
                documents = []
        elif token["redirection"]:
            redirection = "" if token["descriptor"] else token["redirection"]
        elif token["word"]:
            word = re.sub(_QUOTED, lambda m: m[1] or m[2] or re.sub(r"\\(.)", r"\1", m[3] or ""), token["word"])
            if '"' in token["word"]:
                quoted = (m[3] or "" for m in re.finditer(_QUOTED, token["word"]))
                inner += [one or other for part in quoted for one, other in re.findall(_SUBSTITUTED, part)]
            if redirection:
                writes += [word] if ">" in redirection and word != "/dev/null" else []
                if not _SHELLS.isdisjoint(words):  # what a shell reads is a script
                    inner += [word] if redirection == "<<<" else []
                elif redirection in ("<<", "<<-"):
                    documents.append(word)
                redirection = ""
            else:
                words.append(word)
    yield from _unwrapped(words, writes, "", inner, depth)


def _unwrapped(words: list[str], writes: list[str], operator: str, inner: list[str], depth: int) -> Iterator[Command]:
    """The command without wrappers, or those of the script that it runs, and then those `inner` to its words."""
    program = words[0].rsplit("/", 1)[-1] if words else ""
    while words and (re.match(_ASSIGNMENT, words[0]) or program in _WRAPPERS or program in _KEYWORDS):
        if words[:2] == ["command", "-v"]:
            break  # only looks for the program
        words = words[1:]
        while program in _WRAPPERS and words and (words[0].startswith("-") or words[0][:1].isdigit()):
            words = words[2:] if words[0] in _WITH_VALUE else words[1:]  # options of the wrapper
        program = words[0].rsplit("/", 1)[-1] if words else ""
    script = next((i + 1 for i, word in enumerate(words[1:4], 1) if re.fullmatch(r"-[a-z]*c", word)), len(words))
    is_shell = program in _SHELLS and script < len(words) and depth < MAX_SHELLS
    if words and not is_shell:
        yield Command((program, *words[1:]), tuple(writes), operator)
    for text in [*([words[script]] if is_shell else []), *inner] if depth < MAX_SHELLS else ():
        yield from _commands(text, depth + 1)


def command_of_call(tool: str, arguments: Any) -> str | None:
    """The shell command in the arguments of a call; None for another tool."""
    if not isinstance(arguments, dict) or tool.lower() not in SHELL_TOOLS:
        return None
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list):
        command = " ".join("'" + str(word).replace("'", "'\\''") + "'" for word in command)
    return command if isinstance(command, str) else None


def files_of_call(tool: str, arguments: Any) -> list[str]:
    """The files that a call edits, including those that a shell command writes, moves or removes."""
    command = command_of_call(tool, arguments)
    if command is not None:
        return [path for part in commands_in(command) for path in part.changed_files]
    if tool.lower() not in EDIT_TOOLS or not isinstance(arguments, dict):
        return []
    found = [value for name in _PATH_ARGUMENTS if isinstance(value := arguments.get(name), str)]
    for name in _PATCH_ARGUMENTS:
        if isinstance(patch := arguments.get(name), str):
            found += [one or other for one, other in re.findall(_PATCHED_FILE, patch[:MAX_PATCH])]
    return found


def violates(check: dict[str, Any], tool: str, arguments: Any) -> bool:
    """Whether a call does what a check forbids.

    The `kind` of a check is `command` (one of the `commands` is run), `flag` (one of them is run without the `flag`),
    or `edit` (a file of the `paths` is changed).
    """
    if check["kind"] == "edit":
        return any(_is_below(path, wanted) for path in files_of_call(tool, arguments) for wanted in check["paths"])
    command = command_of_call(tool, arguments)
    ran = [part for part in commands_in(command or "") if any(part.is_call_of(wanted) for wanted in check["commands"])]
    return not all(part.has_flag(check["flag"]) for part in ran) if check["kind"] == "flag" else bool(ran)


def runs(command: str, words: list[str]) -> bool:
    """Whether a shell call runs a program with these subcommands and flags."""
    return any(part.is_call_of(words) for part in commands_in(command))


def _is_below(path: str, wanted: str) -> bool:
    """Whether a path is the wanted file, has its name, or is below the wanted folder."""
    path = path.replace("\\", "/")
    if wanted.endswith("/"):
        return f"/{wanted.strip('/')}/" in f"/{path}"
    pattern = "[^/]*".join(map(re.escape, wanted.removeprefix("./").split("*")))
    return re.search(f"/{pattern}$", f"/{path}") is not None


def signatures_in(output: str) -> Iterator[str]:
    """The signatures of the lines of an output, the last line first, as the error is mostly at the end."""
    lines, half = output.splitlines(), MAX_OUTPUT_LINES // 2
    for line in reversed(lines if len(lines) <= MAX_OUTPUT_LINES else [*lines[:half], *lines[-half:]]):
        if line.strip():
            yield signature(re.sub(_COLOUR, "", line.strip()[:MAX_LINE]))


def signature(line: str) -> str:
    """The error message without numbers, hashes, times, temporary names and paths, which vary."""
    if re.search(_NO_MATCHES, line):
        return "no matches found"
    code = re.search(_CODE, line)
    if code and (named := code["rule"] or code["code"] or code["slash"]):
        return named
    line = re.sub(_PATH, "…", line)
    line = re.sub(_CHANGING, "#", re.sub(_TEMPORARY, "#", line))
    return " ".join(re.sub(r"(?:#[\s:.,/-]*)+", "# ", line).lower().split())[:MAX_SIGNATURE]
