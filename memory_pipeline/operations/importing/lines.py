"""The lines of a Markdown file that could be part of MEMORY.md, and the reasons why others could not.

A line is a list item, or a single paragraph under its heading. In doubt a text is no line: useless proposals cost a
reviewer more than adding a line by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from memory_pipeline.markdown.blocks import one_line, split_lines
from memory_pipeline.markdown.safe_write import encode
from memory_pipeline.proposals.memory_file import MemoryLine, hidden_lines, lines_of
from memory_pipeline.proposals.score import why_left_out
from memory_pipeline.reflections.types import ARCHITECTURE
from memory_pipeline.text.similarity import content_words

CODE, TABLE, PROSE, POINTER, TASK, SHORT = "code", "table", "prose", "pointer to another file", "task", "too short"
CONTEXT, EXPLANATION, QUOTATION, MARKUP = "heading of a list", "explanation", "quotation", "markup"
STRUCK, PRIVATE, LONG = "struck through", "marked as private", "item with a long introduction"
ABOUT = "about the file itself"
TOLD = {
    "secret": "line with a secret",
    "question": "question",
    "hypothetical": "hypothetical line",
    "forgotten": "line that `memory forget` deleted",
}
"""The reasons of `why_left_out`, for the user."""
MAX_PARAGRAPH, MAX_ITEM = 300, 600
"""Maximum characters; longer texts are prose."""
MAX_TITLE, MAX_LEADING = 40, 80
"""Maximum characters of a heading that can negate its items, and of text that is prepended to an item."""
MIN_WORDS = 2
"""Minimum content words."""
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])[ \t]+")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_WRITTEN_BY_TOOLS = re.compile(
    r"<!--\s*memory:(?P<key>[\w.:-]+)[^>\n]*-->.*?<!--\s*/\s*memory:(?P=key)\s*-->"
    r"|<claude-mem-context>.*?</claude-mem-context>",
    re.DOTALL,
)
"""The block of `memory agents connect`, and text that claude-mem inserts into a CLAUDE.md."""
_POINTER = re.compile(r"\[[^\]]+\]\([^)]+\)(?:\s*$|\s*[-–—:])|@[\w./~-]+$|[\w./-]+\.md\b(?:\s*$|\s*[-–—:])")
_TASK = re.compile(r"\[[ xX]\]\s")
_EXPLAINS = re.compile(r"\*\*(?:Why|How to apply|Reason|Example)\b[^*]*\*\*", re.IGNORECASE)
_NEGATES = re.compile(
    r"\b(?:never|no|not|don[’']?ts?|cannot|can[’']t|won[’']t|avoid\w*|forbidden|prohibited|banned|anti-?patterns?|bad"
    r"|wrong|incorrect|deprecated|rejected|obsolete|pitfalls?|mistakes?|nie|niemals|nicht|keine?|verboten\w*|vermeiden"
    r"|jamais|ne|pas|éviter|interdits?|nunca|jamás|evitar|prohibid\w+|没有)\b|❌|🚫|⛔|禁止|避免|不要|しない|ダメ",
    re.IGNORECASE,
)
_DEPENDS = re.compile(
    rf"{_NEGATES.pattern}|^(?:if|when|whenever|before|after|while|unless|until|during|only|wenn|bevor|vor|nach|si|quand"
    r"|avant|après|cuando|antes|después)\b",
    re.IGNORECASE,
)
"""A negation, or the beginning of a condition."""
_ABOUT = re.compile(
    r"(?:This|Diese|Dieses|Ce|Este)\s(?:file|document|Datei|Dokument|fichier|document|archivo|documento)\b|このファイル|本文件",
    re.IGNORECASE,
)
_CODE_SPAN = re.compile(r"`[^`]+`[.:]?")


@dataclass(frozen=True)
class TextLine:
    """A line that could be part of MEMORY.md."""

    number: int
    text: str
    heading: str
    project: str | None = None
    cwd: str | None = None
    position: int = ARCHITECTURE
    """The index of the section for a line whose words determine none."""


@dataclass
class TakenApart:
    """The lines of a text, and the number of other parts by kind."""

    lines: list[TextLine] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def keep(self, holds: Callable[[TextLine], bool], reason: str) -> None:
        """Drop the lines for which the condition is false, and count them under the reason."""
        kept = [line for line in self.lines if holds(line)]
        self.left_out[reason] += len(self.lines) - len(kept)
        self.left_out += Counter()  # without those that are 0
        self.lines = kept


def lines_in(text: str) -> TakenApart:
    """The lines and other parts of a Markdown text with masked secrets."""
    shown = _WRITTEN_BY_TOOLS.sub(lambda found: "\n" * found[0].count("\n"), text)
    rows, found = split_lines(shown), TakenApart()
    fences = sum(bool(_FENCE.match(rows[index])) for index in hidden_lines(rows))
    found.left_out[CODE] += (fences + 1) // 2
    for line, reason in _candidates(rows, lines_of(encode(shown))):
        if reason:
            found.left_out[reason] += 1
        else:
            found.lines.append(TextLine(line.line_number, _stored_text(line.text), line.section, line.project))
    found.left_out += Counter()  # without those that are 0
    return found


def _candidates(rows: Sequence[str], lines: Sequence[MemoryLine]) -> Iterator[tuple[MemoryLine, str]]:
    """Each candidate with the reason why it is no line; consecutive paragraphs are prose."""
    judged = [(line, is_item := _is_item(rows, line), why_no_line(line.text, is_item=is_item)) for line in lines]
    told = [one for one in judged if one[2] != EXPLANATION]  # the explained rule still counts as a single paragraph
    context = _Context()
    for (_, is_paragraph), group in groupby(told, lambda one: (one[0].section, not one[1] and not one[2])):
        together = list(group)
        is_prose = is_paragraph and len(together) > 1
        for line, is_item, reason in together:
            row = rows[line.line_number - 1].expandtabs(4)
            yield context.of(line, PROSE if is_prose else reason, len(row) - len(row.lstrip()) if is_item else None)
    yield from ((line, reason) for line, _, reason in judged if reason == EXPLANATION)


class _Context:
    """The context of list items: their introduction, the parent item, the heading. "Never" above a list applies to each
    of its items, which would otherwise mean the opposite."""

    def __init__(self) -> None:
        self._section: str | None = None
        self._above: list[tuple[int, str, str]] = []
        """Indent, text, and reason for being no line, of the introduction (indent -1) and the parent items."""

    def of(self, line: MemoryLine, reason: str, indent: int | None) -> tuple[MemoryLine, str]:
        """The line with the context that it depends on prepended, and the reason why it is no line."""
        if line.section != self._section:
            self._section, self._above = line.section, []
        if indent is None:
            self._above = [(-1, line.text, reason)] if reason in (CONTEXT, SHORT) else []
            return line, reason
        while self._above and self._above[-1][0] >= indent:
            self._above.pop()
        if any(not above for _, _, above in self._above):
            reason = reason or EXPLANATION  # of the rule above it
        leading = " ".join(
            filter(None, map(_repeated_words, (f"{line.section}", *(words for _, words, _ in self._above))))
        )
        if _NEGATES.match(_plain(line.text)) and _NEGATES.search(leading):
            leading = ""
        self._above.append((indent, line.text, reason))
        if not leading:
            return line, reason
        whole = f"{leading} {line.text}"  # text may only be recognised as a secret after these words
        return replace(line, text=whole), reason or (LONG if len(leading) > MAX_LEADING else why_no_line(whole))


def _repeated_words(words: str) -> str:
    """The words to repeat with each item of this text: a condition, a negation, or a subject of several words."""
    plain = _plain(words).rstrip(":： ")
    introduces = _plain(words).endswith((":", "："))
    if _DEPENDS.search(plain) if introduces or len(plain) <= MAX_TITLE else False:
        return f"{plain}:"
    return f"{plain}:" if introduces and len(plain.split()) > 1 else ""


def _plain(text: str) -> str:
    return re.sub(r"[*`]", "", text).strip()


def why_no_line(text: str, *, is_item: bool = True) -> str:
    """The reason why a text cannot be part of MEMORY.md; empty if it can."""
    bare = _stored_text(text)
    plain = _plain(bare)
    forms = (
        (TABLE, bare.startswith("|")),
        (CODE, bare.startswith(("```", "~~~"))),
        (MARKUP, bare.startswith(("<", "-----"))),
        (QUOTATION, bare.startswith(">")),
        (POINTER, _POINTER.match(plain)),
        (TASK, _TASK.match(bare)),
        (STRUCK, bare.startswith("~~")),
        (PRIVATE, "[private]" in bare),
        (ABOUT, _ABOUT.match(plain)),
        (EXPLANATION, not bare or _EXPLAINS.match(text)),
        (CONTEXT, plain.endswith((":", "："))),
        (SHORT, len(content_words(plain)) < MIN_WORDS or _CODE_SPAN.fullmatch(bare)),
        (PROSE, len(bare) > (MAX_ITEM if is_item else MAX_PARAGRAPH)),
    )
    form = next((name for name, holds in forms if holds), "")
    left_out = why_left_out(bare, ())
    return form or (TOLD.get(left_out, PROSE) if left_out else "")


def _stored_text(text: str) -> str:
    """The text to store, without the reason that Claude Code appends to a rule."""
    explained = _EXPLAINS.search(text)
    return one_line(text[: explained.start()] if explained else text)


def _is_item(rows: Sequence[str], line: MemoryLine) -> bool:
    return _ITEM.match(rows[line.line_number - 1]) is not None
