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

from memory_pipeline.agents.kit.tool_calls import commands_in
from memory_pipeline.friction.attempts import PROGRAMS
from memory_pipeline.text.languages.cues import cues_of
from memory_pipeline.text.phrases import word_list
from memory_pipeline.text.similarity import carries_content, words

_CODE = re.compile(r"`([^`\n]+)`")
_PLACEHOLDER = re.compile(r"\bxcode(\d+)x\b")
_PATH = re.compile(r"[\w.@+*-]*(?:/[\w.@+*-]+)+/?|[\w.@+-]+/|[\w@+*-]*\.[a-z]\w{0,9}|\.[a-z][\w.-]+", re.I)
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_CONDITION = re.compile(
    r"\b(?:unless|except|if|when|whenever|while|until|till|before|after|without|during|outside|inside|only|because of|"
    r"wenn|falls|außer|ohne|bevor|nachdem|während|bis|nur|außerhalb|"
    r"si|sauf|sans|avant|après|pendant|quand|lorsque|seulement|hors|"
    r"salvo|excepto|sin|antes|después|durante|cuando|solo|sólo|hasta|fuera)\b|"
    r"以外|場合|ない限り|前に|後に|だけ|除非|如果|之前|之后|时候|除了|只有|没有",
    re.I,
)
_FORBIDDEN = re.compile(r"\b(?:is|are) (?:strictly )?(?:forbidden|prohibited|banned|not allowed|off limits)\b", re.I)
_PASSIVE = re.compile(r"^\W*(?:be|get)\b", re.I)
_ALWAYS = re.compile(r"\b(?:always|every|each|must)\b|\b(?:immer|toujours|siempre)\b|常に|必ず|总是|始终|必须", re.I)
_ACTS = word_list("using") | word_list("acting")
"""Words of a rule that say what is done with a command or a file, and that it holds everywhere."""

CONDITION = "it depends on a condition that a tool call does not show"
NOTHING_NAMED = "it names no command, flag or file in `backticks` that code could look for"
UNCLEAR = "what it forbids is not a command, a flag or a file alone"


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

    def __str__(self) -> str:
        commands = " or ".join(f"`{' '.join(command)}`" for command in self.commands)
        if self.kind == "edit":
            return f"no tool edits {' or '.join(f'`{path}`' for path in self.paths)}"
        if self.kind == "flag":
            return f"{commands} always has `{self.flag}`"
        return f"{commands} is never run" + (f"; `{self.instead}` is" if self.instead else "")


def check_for(rule: str) -> Check | str:
    """The check of a rule, or the reason why code cannot check it."""
    codes = _CODE.findall(rule)
    text = rule
    for number, code in enumerate(codes):  # punctuation and words of code are no words of the sentence
        text = text.replace(f"`{code}`", f" xcode{number}x ", 1)
    if _CONDITION.search(text):
        return CONDITION
    cues = cues_of(_CODE.sub("", rule))
    given_up = [m["old"] for pattern in cues.gives_up for m in pattern.finditer(text)]
    refused = [m["words"] for pattern in cues.refuses for m in pattern.finditer(text)]
    if given_up:
        forbidden = [found for old in given_up[:1] if (found := _first_named(old, codes))]
        left = [] if forbidden else given_up
    elif refused:
        forbidden = [found for part in refused for found in _named(part, codes)]
        if not forbidden and len(codes) == 1 and all(_PASSIVE.match(part) for part in refused):
            forbidden = codes
        left = refused if forbidden else []
    elif _FORBIDDEN.search(text) and len(codes) == 1:
        forbidden, left = codes, [_FORBIDDEN.sub("", text)]
    else:
        return _flag_check(text, codes)
    if not forbidden:
        return NOTHING_NAMED
    if any(_has_more(part, forbidden) for part in left):
        return UNCLEAR
    others = [code for code in codes if code not in forbidden] or (
        [name for name in _bare_programs(text) if name not in forbidden] if given_up or refused else []
    )
    return _forbidding(forbidden, others[0] if len(others) == 1 else "")


def _forbidding(forbidden: Sequence[str], instead: str) -> Check | str:
    if all(_PATH.fullmatch(named) and named not in PROGRAMS for named in forbidden):
        return Check("edit", paths=tuple(forbidden))
    commands = [tuple(command.words) for named in forbidden for command in commands_in(named)]
    if not commands or any(not re.fullmatch(r"[a-z][\w.+-]*", words[0]) for words in commands):
        return UNCLEAR
    return Check("command", tuple(commands), instead=instead)


def _flag_check(text: str, codes: Sequence[str]) -> Check | str:
    """The check of a rule that asks for a flag: "Always run `pytest` with `-x`"."""
    flags = [code for code in codes if _FLAG.fullmatch(code)]
    commands = [tuple(c.words) for code in codes if code not in flags for c in commands_in(code)]
    if len(flags) == len(commands) == 1 and len(codes) == 2 and _ALWAYS.search(text):
        return UNCLEAR if _has_more(text, codes) else Check("flag", tuple(commands), flag=flags[0])
    return NOTHING_NAMED if not codes else "it asks for something, and a tool call does not show that it is missing"


def _named(part: str, codes: Sequence[str]) -> list[str]:
    """The code of a part of the text, else the programs that it names."""
    return [codes[int(n)] for n in _PLACEHOLDER.findall(part)] or _bare_programs(part)


def _first_named(part: str, codes: Sequence[str]) -> str:
    return next(iter(_named(part, codes)), "")


def _bare_programs(part: str) -> list[str]:
    return [word for word in re.findall(r"(?<![\w./-])[a-z][\w-]*(?![\w/-]|\.\w)", part) if word in PROGRAMS]


def _has_more(part: str, forbidden: Sequence[str]) -> bool:
    """Whether a part of the text says more than that something is used, run or edited."""
    rest = words(_PLACEHOLDER.sub(" ", part))
    return any(carries_content(word) and word not in _ACTS and word not in forbidden for word in rest)
