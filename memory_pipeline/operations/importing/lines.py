"""The lines of a Markdown file that could be part of MEMORY.md.

A line is a list item, or a single paragraph under its heading. In doubt a text is no line: useless proposals cost a
reviewer more than adding a line by hand.

A problem with one file does not stop the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path

from memory_pipeline.markdown.blocks import one_line, split_lines
from memory_pipeline.markdown.safe_write import encode
from memory_pipeline.operations.memory_text import UnreadableMemoryError, read_text, without_secrets
from memory_pipeline.proposals.memory_file import MemoryLine, lines_of
from memory_pipeline.proposals.offering import why_left_out
from memory_pipeline.proposals.remembering import ImportLine
from memory_pipeline.recall.folders import place_of_folder, project_of_place
from memory_pipeline.redaction import Redactor, redactor_of
from memory_pipeline.reflections.types import ARCHITECTURE
from memory_pipeline.text.similarity import content_words
from memory_pipeline.workspace.workspace import Workspace

MAX_PARAGRAPH, MAX_ITEM = 300, 600
"""Maximum characters; longer texts are prose."""
MAX_TITLE, MAX_LEADING = 40, 80
"""Maximum characters of a heading that can negate its items, and of text that is prepended to an item."""
MIN_WORDS = 2
"""Minimum content words."""
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])[ \t]+")
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


def lines_in(text: str) -> list[TextLine]:
    """The lines of a Markdown text with masked secrets."""
    shown = _WRITTEN_BY_TOOLS.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [
        TextLine(line.line_number, _stored_text(line.text), line.section, line.project)
        for line in _importable(split_lines(shown), lines_of(encode(shown)))
    ]


def _importable(rows: Sequence[str], lines: Sequence[MemoryLine]) -> Iterator[MemoryLine]:
    """The lines that can be imported; consecutive paragraphs are prose. An explanation is left out first, so that the
    explained rule still counts as a single paragraph."""
    judged = [
        (line, is_item := _is_item(rows, line), is_importable(line.text, is_item=is_item))
        for line in lines
        if not _is_explanation(line.text)
    ]
    context = _Context()
    for (_, is_paragraph), group in groupby(judged, lambda one: (one[0].section, not one[1] and one[2])):
        together = list(group)
        is_prose = is_paragraph and len(together) > 1
        for line, is_item, holds in together:
            row = rows[line.line_number - 1].expandtabs(4)
            indent = len(row) - len(row.lstrip()) if is_item else None
            if (whole := context.line_in_context(line, indent, holds=holds and not is_prose)) is not None:
                yield whole


class _Context:
    """The context of list items: their introduction, the parent item, the heading. "Never" above a list applies to each
    of its items, which would otherwise mean the opposite."""

    def __init__(self) -> None:
        self._section: str | None = None
        self._above: list[tuple[int, str, bool]] = []
        """Indent, text, and whether it can be imported, of the introduction (indent -1) and the parent items."""

    def line_in_context(self, line: MemoryLine, indent: int | None, *, holds: bool) -> MemoryLine | None:
        """The line after the context that it depends on; None if it cannot be imported. `holds` says whether it can
        without a context."""
        if line.section != self._section:
            self._section, self._above = line.section, []
        if indent is None:
            self._above = [(-1, line.text, False)] if _introduces(line.text) else []
            return line if holds else None
        while self._above and self._above[-1][0] >= indent:
            self._above.pop()
        holds = holds and not any(above for _, _, above in self._above)  # otherwise it explains the rule above it
        leading = " ".join(
            filter(None, map(_repeated_words, (f"{line.section}", *(words for _, words, _ in self._above))))
        )
        if _NEGATES.match(_plain(line.text)) and _NEGATES.search(leading):
            leading = ""
        self._above.append((indent, line.text, holds))
        whole = f"{leading} {line.text}".strip()  # text may only be recognised as a secret after these words
        holds = holds and len(leading) <= MAX_LEADING and (not leading or is_importable(whole))
        return replace(line, text=whole) if holds else None


def _repeated_words(words: str) -> str:
    """The words to repeat with each item of this text: a condition, a negation, or a subject of several words."""
    plain = _plain(words).rstrip(":： ")
    introduces = _plain(words).endswith((":", "："))
    if _DEPENDS.search(plain) if introduces or len(plain) <= MAX_TITLE else False:
        return f"{plain}:"
    return f"{plain}:" if introduces and len(plain.split()) > 1 else ""


def _plain(text: str) -> str:
    return re.sub(r"[*`]", "", text).strip()


def is_importable(text: str, *, is_item: bool = True) -> bool:
    """Whether a text can be part of MEMORY.md."""
    bare = _stored_text(text)
    plain = _plain(bare)
    return not (
        _is_explanation(text)
        or bare.startswith(("|", "```", "~~~", "<", "-----", ">", "~~"))
        or "[private]" in bare
        or _POINTER.match(plain)
        or _TASK.match(bare)
        or _ABOUT.match(plain)
        or plain.endswith((":", "："))
        or _is_short(bare)
        or len(bare) > (MAX_ITEM if is_item else MAX_PARAGRAPH)
        or why_left_out(bare, ())
    )


def _is_explanation(text: str) -> bool:
    return not _stored_text(text) or bool(_EXPLAINS.match(text))


def _is_short(bare: str) -> bool:
    return len(content_words(_plain(bare))) < MIN_WORDS or bool(_CODE_SPAN.fullmatch(bare))


def _introduces(text: str) -> bool:
    """Whether a paragraph introduces the list below it."""
    return _plain(text).endswith((":", "：")) or _is_short(_stored_text(text))


def _stored_text(text: str) -> str:
    """The text to store, without the reason that Claude Code appends to a rule."""
    explained = _EXPLAINS.search(text)
    return one_line(text[: explained.start()] if explained else text)


def _is_item(rows: Sequence[str], line: MemoryLine) -> bool:
    return _ITEM.match(rows[line.line_number - 1]) is not None


@dataclass(frozen=True)
class MemoryFile:
    """A file with the lines that can be imported."""

    source: str
    path: Path
    lines: tuple[ImportLine, ...] = ()
    problem: str = ""
    """The reason why it was not read completely."""


class Importer:
    """Reads files for one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._projects: dict[str, str | None] = {}

    @cached_property
    def redactor(self) -> Redactor:
        return redactor_of(self.workspace.settings)

    @cached_property
    def known_folders(self) -> list[str]:
        """The folders of sessions, newest first."""
        rows = self.workspace.lake.read("files", columns=["cwd", "began_at"]).drop_nulls("cwd")
        return list(dict.fromkeys(rows.sort("began_at", descending=True, nulls_last=True)["cwd"]))

    def project_of(self, folder: str) -> str | None:
        """The project of a session in this folder, or None."""
        if folder not in self._projects:
            self._projects[folder] = project_of_place(self.workspace.lake, place_of_folder(Path(folder)))
        return self._projects[folder]

    def masked(self, text: str) -> str:
        """The text with the same line numbers, without secrets and forgotten text."""
        shown, _ = without_secrets(text, self.redactor)
        return "\n".join(self.redactor.redact(row) for row in shown.split("\n"))

    def markdown(
        self, source: str, path: Path, origin: str, parse: Callable[[str], list[TextLine]] = lines_in
    ) -> MemoryFile:
        """The lines of a Markdown file, parsed by ``parse``."""
        try:
            text = read_text(path)
        except UnreadableMemoryError as error:
            return MemoryFile(source, path, problem=str(error))
        return MemoryFile(source, path, tuple(import_line(origin, path, line) for line in parse(self.masked(text))))


def import_line(origin: str, path: Path, line: TextLine) -> ImportLine:
    """The line in the form in which it is offered."""
    return ImportLine(line.text, origin, path, line.number, line.position, line.heading, line.project, line.cwd)
