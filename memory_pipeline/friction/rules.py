"""Rules for agents: lines of MEMORY.md, AGENTS.md and CLAUDE.md, whoever wrote them.

Files do not date their lines. A promoted line has a date; any other is dated by the day on which it was first seen,
which is stored, or by the file's last change if that is earlier, so that a rule cannot be broken on an earlier day.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple

import polars as pl

from memory_pipeline.friction.attempts import Session
from memory_pipeline.friction.patterns import FrictionEvent
from memory_pipeline.lake.rows import WatchedRuleRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.redaction.forgotten import Forgotten
from memory_pipeline.scope import noted, without_note
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import sentences, squeeze
from memory_pipeline.text.similarity import content_words
from memory_pipeline.workspace.workspace import Workspace

FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/CLAUDE.md")
MAX_BYTES = 400_000
"""Maximum bytes of a rule file; longer files serve another purpose."""
MIN_WORDS = 3
"""Minimum content words of a rule."""
MAX_LINE = 500
INJECTED = "injected"
"""The role of text that a harness inserted into a session."""
_DATED = re.compile(r"\((?P<day>\d{4}-\d\d-\d\d)\)\s*")
"""The date at the beginning of a promoted line of MEMORY.md."""
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])[ \t]+")
_ID = re.compile(r"<!-- ([pf]-\d{8}-\d{3,}) -->")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_GIVEN = re.compile(r"#? ?AGENTS\.md instructions for (?P<folder>\S[^\n]*)\n|<INSTRUCTIONS>|# claudeMd", re.I)


@dataclass(frozen=True)
class Rule:
    """A line of a file that is given to agents."""

    file: str
    """MEMORY.md, or the path of a project's file."""
    text: str
    since: date
    project: str | None = None
    """The project that a line of MEMORY.md names."""
    line_id: str | None = None
    """The id of the line of MEMORY.md; its other sentences have the same."""

    def reaches(self, event: FrictionEvent) -> bool:
        """Whether the rule applied where and when the event happened."""
        if event.day <= self.since:
            return False
        folder = Path(self.file).parent
        if folder.is_absolute():
            folder = folder.parent if folder.name == ".claude" else folder
            return event.cwd is not None and Path(event.cwd).is_relative_to(folder)
        return self.project is None or event.project is None or self.project == event.project

    @property
    def rule_id(self) -> str:
        return hashlib.sha256(f"{self.file}\n{self.text}".encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        return Path(self.file).name


class RuleBook:
    """The known rules, with the day since which each is known."""

    def __init__(self, workspace: Workspace, today: date) -> None:
        self.lake, settings = workspace.lake, workspace.settings
        stored = typed_rows(self.lake.read("watched_rules"), WatchedRuleRow)
        self._since = {row["rule_id"]: row["since"] for row in stored}
        promoted = promotion_days(self.lake)
        folders = _folders(workspace)

        def day_of(seconds: float) -> date:
            return min(today, datetime.fromtimestamp(seconds, settings.zone).date())

        forgotten = Forgotten.of(settings)
        written = (r for r in _rules_in_files(settings, folders, day_of, promoted) if not forgotten.spans(r.text))
        self.present = {rule.rule_id: rule for rule in map(self._dated, written)}

    def _dated(self, rule: Rule) -> Rule:
        return replace(rule, since=min(rule.since, self._since.get(rule.rule_id, rule.since)))

    def before(self, day: date) -> list[Rule]:
        """The rules that are currently in a file and were known before the day."""
        return [rule for rule in self.present.values() if rule.since < day]

    def fingerprint(self, day: date) -> list[str]:
        """A hash of all rules known before the day. Removing a line later does not change an earlier day."""
        known = {rule_id for rule_id, since in self._since.items() if since < day}
        return sorted(known | {rule.rule_id for rule in self.before(day)})

    def remember(self) -> None:
        """Store the lines that were seen for the first time."""
        new = [rule for rule_id, rule in self.present.items() if rule_id not in self._since]
        if not new:
            return
        rows: list[WatchedRuleRow] = [
            {"rule_id": r.rule_id, "file": r.file, "text": r.text, "project": r.project, "since": r.since} for r in new
        ]
        added = pl.DataFrame(rows, schema=TABLES["watched_rules"].columns)
        self.lake.update("watched_rules", lambda stored: pl.concat([stored, added]).unique("rule_id", keep="first"))
        self._since |= {rule.rule_id: rule.since for rule in new}


def rules_in(text: str) -> Iterator[str]:
    """The lines of a Markdown file with content, verbatim without their bullet."""
    return (line for _, line in lines_in(text))


def lines_in(text: str) -> Iterator[tuple[int, str]]:
    """The same lines, each with its offset."""
    shown = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for sentence in sentences(shown):
        line = shown[sentence.start : sentence.end]
        if sentence.kind == "heading" or len(line) > MAX_LINE or line.lstrip("-*+ ").startswith("~~"):
            continue
        plain = squeeze(line)
        if len(content_words(plain)) >= MIN_WORDS:
            yield sentence.start, plain


def given_in(session: Session) -> Iterator[Rule]:
    """Rules that a harness gave its agent, from the transcript of a session."""
    for turn in session.turns:
        found = _GIVEN.search(turn.text[:2_000]) if turn.role == INJECTED else None
        if found:
            folder = (found["folder"] or "").strip() or session.cwd
            file = f"{folder}/AGENTS.md" if folder else "AGENTS.md"
            yield from (Rule(file, line, turn.day) for line in rules_in(turn.text[found.end() :]))


class MemoryLine(NamedTuple):
    """The parts of a line of MEMORY.md."""

    start: int
    text: str
    """The text of the sentence, without date, project and id."""
    proposal_id: str | None
    promoted: date | None
    dated: date | None
    """The date at its beginning."""
    project: str | None
    handwritten_id: str
    """The id of the whole line if it has no proposal."""


def memory_lines(text: str, promoted: Mapping[str, date]) -> Iterator[MemoryLine]:
    """The lines of a text in the form of MEMORY.md; ``promoted`` is the result of `promotion_days`."""
    for start, line in lines_in(text):
        end = text.find("\n", start) + 1 or len(text)
        dated, named = _DATED.match(line), _ID.search(text, start, end)
        bare = without_note(line[dated.end() if dated else 0 :])
        since = promoted.get(named[1] if named else _plain(bare))
        day = _date(dated["day"]) if dated else None
        project = noted(_COMMENT.sub("", text[start:end]).rstrip())  # the note is behind the last sentence
        whole = one_line(_COMMENT.sub(" ", _BULLET.sub("", text[text.rfind("\n", 0, start) + 1 : end])))
        line_id = handwritten_id(without_note(_DATED.sub("", whole, count=1)), project)
        yield MemoryLine(start, bare, named[1] if named else None, since, day, project, line_id)


def handwritten_id(text: str, project: str | None) -> str:
    """The id of a line of MEMORY.md without a proposal, given its text on one line."""
    return f"l-{hashlib.sha256(f'{project} {text}'.encode('utf-8', 'replace')).hexdigest()[:8]}"


def promotion_days(lake: Lake) -> dict[str, date]:
    """The days on which lines were promoted, by the proposal's id and by its text."""
    events = lake.read("events", columns=("kind", "proposal_id", "text", "day"))
    promoted = events.filter(kind="promoted").drop("kind")
    return {key: day for i, text, day in promoted.iter_rows() for key in (i, _plain(text))}


def _folders(workspace: Workspace) -> list[str]:
    """The folders of sessions. On a server to which many people push, the same path may be another person's folder:
    with a lake in object storage, only sessions read on this machine count."""
    catalogue = Catalogue(workspace.lake, workspace.settings)
    rows = (row for key, row in catalogue.rows.items() if catalogue.is_of_this_machine(key))
    return sorted({row["cwd"] for row in rows if row["cwd"]})


DayOf = Callable[[float], date]


def _rules_in_files(
    settings: Settings, folders: Iterable[str], day_of: DayOf, promoted: Mapping[str, date]
) -> Iterator[Rule]:
    memory = settings.memory_file
    for text, day in _read(memory, day_of):
        for line in memory_lines(text, promoted):
            since = line.promoted or min(day, line.dated or day)
            yield Rule(memory.name, line.text, since, line.project, line.proposal_id or line.handwritten_id)
    for path in sorted(_files(folders)):
        for text, day in _read(path, day_of):
            yield from (Rule(f"{path}", line, day) for line in rules_in(text))


def _date(text: str) -> date | None:
    with suppress(ValueError):  # 2026-02-31
        return date.fromisoformat(text)
    return None


def _files(folders: Iterable[str]) -> set[Path]:
    """The rule files of these folders and of the folders above them, up to their repository."""
    found = set[Path]()
    for place in map(Path, folders):
        with suppress(OSError, ValueError):  # the folder of a session may be any text
            for parent in (place, *place.parents) if place.is_absolute() else ():
                found |= {parent / name for name in FILES if (parent / name).is_file()}
                if (parent / ".git").exists() or parent == Path.home():
                    break
    return found


def _read(path: Path, day_of: DayOf) -> Iterator[tuple[str, date]]:
    try:
        status = path.stat()
        if status.st_size <= MAX_BYTES:
            yield path.read_text("utf-8", "replace"), day_of(status.st_mtime)
    except OSError:  # missing or not readable, so it has no rules
        return


def _plain(text: str) -> str:
    return " ".join(without_note(text).lower().split()).strip(" .")
