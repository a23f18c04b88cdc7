"""The check of an approved rule: what code can see in a tool call that breaks it.

Only explicit rules get a check: a command that is never to be run, a file that is never to be edited, a flag that is
always needed, a tool to use in place of another. A rule with a condition ("unless …", "in production") gets none, as a
call does not show whether the condition holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory_pipeline.agents.kit.tool_calls import PROGRAMS, SHELL_TOOLS, commands_in, violates
from memory_pipeline.friction.attempts import command_in, path_in
from memory_pipeline.text.languages.identify import cues_of
from memory_pipeline.text.phrases import Cues, word_list
from memory_pipeline.text.similarity import carries_content, words

_CODE = re.compile(r"`([^`\n]+)`")
_PLACEHOLDER = re.compile(r"\bxcode(\d+)x\b")
_PATH = re.compile(r"[\w.@+*-]*(?:/[\w.@+*-]+)+/?|[\w.@+-]+/|[\w@+*.-]*\.[a-z]\w{0,9}|\.[a-z][\w.-]+", re.I)
_FLAG = re.compile(r"--?[A-Za-z][\w-]*(?: [\w.-]+)?")
_BARE_PATH = re.compile(r"(?<![\w`./:-])(?:[\w@-]+/)*[\w@-]*[A-Za-z][\w@-]*\.(?!\.)[a-z][\w.-]*[a-z]\b(?![\w`/(])")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？;；\n]")
_EXCEPTION = re.compile(r"\W*(?:except|unless|only|but|außer|nur|sauf|salvo|excepto|除非|ただし)\b", re.I)
_CONDITION = re.compile(
    r"\b(?:unless|except|if|when|whenever|while|until|till|before|after|without|during|outside|inside|only|because of|"
    r"wenn|falls|außer|ohne|bevor|nachdem|während|bis|nur|außerhalb|"
    r"si|sauf|sans|avant|après|pendant|quand|lorsque|seulement|hors|à moins|"
    r"salvo|excepto|sin|antes|después|durante|cuando|solo|sólo|hasta|fuera|a menos)\b|"
    r"以外|場合|ない限り|前に|後に|だけ|除非|如果|之前|之后|时候|除了|只有|没有",
    re.I,
)
_FORBIDDEN = re.compile(
    r"\b(?:is|are) (?:strictly )?(?:forbidden|prohibited|banned|not allowed|off limits)(?: here)?\b|"
    r"\b(?:ist|sind) (?:verboten|tabu)\b|\best interdite?\b|\bestá prohibid[oa]\b|(?:禁止|しない(?:こと|で)|ないこと)",
    re.I,
)
_ALWAYS = re.compile(r"\b(?:always|every|each|must)\b|\b(?:immer|toujours|siempre)\b|常に|必ず|总是|始终|必须", re.I)
_EDITS = word_list("editing")
_EDITS_CJK = re.compile("修改|编辑|改动|更改|編集|変更")
_ACTS = word_list("using") | word_list("acting") | _EDITS
"""Words of a rule that say what is done with a command or a file, and that it holds everywhere."""
_MORE_PROGRAMS = "grep egrep rg sed awk curl wget rm ssh scp rsync jq tsc eslint prettier black ruff mypy jest"
_PROGRAMS = PROGRAMS.union(_MORE_PROGRAMS.split()) - {"go", "make", "just", "task", "bundle"}
"""Programs that are recognised without backticks: their names are no other words."""
_PUNCTUATION = "()\"'“”,.:、，"

CONDITION = "it depends on a condition that a tool call does not show"
NOTHING_NAMED = "it names no command, flag or file that code could look for"
UNCLEAR = "what it forbids is not a command, a flag or a file alone"
ASKS = "it asks for something, and a tool call does not show that it is missing"


@dataclass(frozen=True)
class Check:
    """A check in the form that `tool_calls.violates` reads."""

    kind: str
    commands: tuple[tuple[str, ...], ...] = ()
    flag: str = ""
    paths: tuple[str, ...] = ()
    instead: str = ""
    """The command to use in place of a forbidden one, if the rule names it."""

    @property
    def data(self) -> dict[str, Any]:
        """The check as JSON."""
        return {
            "kind": self.kind,
            "commands": [list(command) for command in self.commands],
            "flag": self.flag,
            "paths": list(self.paths),
        }

    def stops(self, tool: str, call: str) -> bool:
        """Whether it would stop a stored call, `name(key=value, …)`."""
        return violates(self.data, tool, arguments_of(tool, call))

    def __str__(self) -> str:
        commands = " or ".join(f"`{' '.join(command)}`" for command in self.commands)
        if self.kind == "edit":
            return f"no tool edits {' or '.join(f'`{path}`' for path in self.paths)}"
        if self.kind == "flag":
            return f"{commands} always has `{self.flag}`"
        return f"{commands} is never run" + (f"; `{self.instead}` is" if self.instead else "")


def arguments_of(tool: str, call: str) -> dict[str, Any]:
    """The command or the file of a stored call, as far as it is stored."""
    if tool.lower() in SHELL_TOOLS:
        return {"command": command} if (command := command_in(call)) else {}
    path = path_in(call)
    return ({"path": path} if path else {}) | {"input": call.partition("(")[2]}  # which may be a patch


def check_for(rule: str) -> Check | str:
    """The check of a rule, or the reason why code cannot check it: that of its first sentence with a check, unless a
    later one begins with an exception."""
    codes: list[str] = []

    def placeholder(found: re.Match[str]) -> str:
        codes.append(found[1] if found.re is _CODE else found[0])
        return f" xcode{len(codes) - 1}x "

    text = _BARE_PATH.sub(placeholder, _CODE.sub(placeholder, rule))  # what they name are no words of the sentence
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    cues = cues_of(_CODE.sub("", rule))
    reasons = []
    for number, sentence in enumerate(sentences):
        found = _check(sentence, codes, cues)
        if isinstance(found, Check):
            excepted = any(_EXCEPTION.match(later) for later in sentences[number + 1 :])
            return CONDITION if excepted else found
        reasons.append(found)
    return next((reason for reason in reasons if reason != NOTHING_NAMED), NOTHING_NAMED)


def _check(text: str, codes: Sequence[str], cues: Cues) -> Check | str:
    """The check of one sentence."""
    if _CONDITION.search(text):
        return CONDITION
    given_up = [text[m.start("old") :] for pattern in cues.gives_up for m in pattern.finditer(text)]
    refused = [m["words"] for pattern in cues.refuses for m in pattern.finditer(text)]
    if given_up:
        forbidden = _named(given_up[0], codes)[:1]
        left = [given_up[0].split(",")[0]]
    elif refused or _FORBIDDEN.search(text):
        forbidden = [found for part in refused for found in _named(part, codes)]
        left = refused
        if not forbidden:  # what is refused stands before: "`x` must not be edited", "`x` niemals ausführen"
            clause = re.split(r"[,:–—]", _FORBIDDEN.sub("", text))[0]
            forbidden, left = _named(clause, codes), [clause]
    else:
        return _flag_check(text, codes)
    if not forbidden:
        return NOTHING_NAMED
    if any(_has_more(part, codes) for part in left):
        return UNCLEAR
    others = [named for named in _named(text, codes) if named not in forbidden]
    return _forbidding(text, forbidden, others[0] if len(others) == 1 else "")


def _forbidding(text: str, forbidden: Sequence[str], instead: str) -> Check | str:
    if all(_PATH.fullmatch(named) and named not in PROGRAMS for named in forbidden):
        is_edit = _EDITS_CJK.search(text) or not _EDITS.isdisjoint(words(text))
        return Check("edit", paths=tuple(forbidden)) if is_edit else UNCLEAR
    commands = [tuple(command.words) for named in forbidden for command in commands_in(named)]
    if not commands or any(not re.fullmatch(r"[a-z][\w.+-]*", words[0]) for words in commands):
        return UNCLEAR
    return Check("command", tuple(commands), instead=instead)


def _flag_check(text: str, codes: Sequence[str]) -> Check | str:
    """The check of a sentence that asks for a flag: "Always run `pytest` with `-x`"."""
    clause = text.split(",")[0]
    named = _named(clause, codes)
    flags = [name for name in named if _FLAG.fullmatch(name)]
    commands = [tuple(c.words) for name in named if name not in flags for c in commands_in(name)]
    if not named:
        return NOTHING_NAMED
    if len(flags) == len(commands) == 1 and len(named) == 2 and _ALWAYS.search(clause) and not _has_more(clause, codes):
        return Check("flag", tuple(commands), flag=flags[0])
    return ASKS


def _named(part: str, codes: Sequence[str]) -> list[str]:
    """The commands, flags and files that a part of the text names, in order: code, and programs with what follows."""
    found, left = list[str](), part.split()
    while left:
        given = left.pop(0)
        word = given.strip(_PUNCTUATION)
        if code := _PLACEHOLDER.fullmatch(word):
            found.append(codes[int(code[1])])
        elif re.fullmatch(r"--?[a-z][\w-]*", word):
            found.append(word)
        elif word in _PROGRAMS:
            command = [word]
            while given == given.rstrip(_PUNCTUATION) and left and _continues(left[0].strip(_PUNCTUATION)):
                given = left.pop(0)
                command.append(given.strip(_PUNCTUATION))
            found.append(" ".join(command))
    return found


def _continues(word: str) -> bool:
    """Whether a word after a program is its subcommand or flag."""
    if re.fullmatch(r"-\w|--[a-z][\w-]*|up|down", word):
        return True
    return bool(re.fullmatch(r"[a-z][a-z:-]+", word)) and carries_content(word) and word not in _ACTS


def _has_more(part: str, codes: Sequence[str]) -> bool:
    """Whether a part of the text says more than that what it names is used, run or edited."""
    rest = _PLACEHOLDER.sub(" ", part)
    for named in _named(part, codes):
        rest = rest.replace(named, " ")
    return any(carries_content(word) and word not in _ACTS for word in words(rest))
