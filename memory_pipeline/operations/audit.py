"""An audit of a memory file, whoever wrote it: for each line who said it and when, and what is wrong with it.

It reads, and writes nothing. A line that nobody said is told as that and not as wrong: people write files by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl

from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.rules import Rule, promotion_days
from memory_pipeline.friction.stale import stale_lines
from memory_pipeline.lake.store import Lake
from memory_pipeline.operations.audit_file import Line, MemoryText, read_memory_file
from memory_pipeline.operations.audit_lines import (
    CONTRADICTING,
    KINDS,
    SECRET,
    STALE,
    UNSOURCED,
    Finding,
    of_one,
    of_pairs,
)
from memory_pipeline.operations.audit_project import dead_names, project_of
from memory_pipeline.operations.audit_sources import USER, Said, Transcripts
from memory_pipeline.recall.origin import NoSuchLineError, origin
from memory_pipeline.redaction import Redactor
from memory_pipeline.settings import Settings, workspace_salt
from memory_pipeline.text.kinds import NORMATIVE
from memory_pipeline.text.relation import gives_up, replaces
from memory_pipeline.text.sentences import clip

NOT_SHOWN = "[left out: it tells a secret]"
MAX_QUOTED = 120
FIRST = date.min
"""Of a line of which nobody knows since when it stands there."""


@dataclass(frozen=True)
class AuditedLine:
    """A line with its sources and its findings, the worst first."""

    line: Line
    said: tuple[Said, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Audit:
    """What was found in a file."""

    path: Path
    lines: tuple[AuditedLine, ...]
    messages: int
    """That were looked through; 0 where no session was read, and then no line is called unsourced."""
    last_day: date | None

    @property
    def findings(self) -> list[Finding]:
        return [finding for audited in self.lines for finding in audited.findings]

    def count(self, kind: str) -> int:
        return len({finding.number for finding in self.findings if finding.kind == kind})


def audit(settings: Settings, path: Path) -> Audit:
    """Raises `NotAuditedError` for a file that cannot be."""
    lake = Lake.from_settings(settings)
    redactor = Redactor(workspace_salt(settings))
    text = read_memory_file(path, redactor, promotion_days(lake))
    transcripts = Transcripts(settings, lake, redactor)
    said = _sources(settings, text, transcripts, redactor)
    findings = [
        *(Finding(secret.number, SECRET, secret.kind) for secret in text.secrets),
        *of_pairs(text.lines),
        *_over(text, said, _words_of_users(lake, redactor), _project(lake, path)),
        *dead_names(text.lines, path),
    ]
    lines = []
    for i, line in enumerate(text.lines):
        mine = [f for f in findings if f.number == line.number]
        mine += of_one(line, [*text.lines[max(0, i - 1) : i], *text.lines[i + 1 : i + 2]], said.get(i, ()))
        if transcripts.count and not said.get(i) and not line.proposal_id:
            mine.append(Finding(line.number, UNSOURCED, "nobody said it in what was read"))
        lines.append(AuditedLine(line, tuple(said.get(i, ())), tuple(sorted(mine, key=lambda f: KINDS.index(f.kind)))))
    known = {line.number for line in text.lines}
    for secret in text.secrets:  # in code, in a table
        if secret.number not in known:
            known.add(secret.number)
            of = tuple(f for f in findings if f.number == secret.number)
            lines.append(AuditedLine(Line(secret.number, NOT_SHOWN), (), of))
    lines.sort(key=lambda audited: audited.line.number)
    return Audit(path, tuple(lines), transcripts.count, transcripts.last_day)


def _sources(
    settings: Settings, text: MemoryText, transcripts: Transcripts, redactor: Redactor
) -> dict[int, list[Said]]:
    found = transcripts.sources([line.text for line in text.lines])
    for i, line in enumerate(text.lines):
        if i not in found and line.proposal_id:
            try:
                told = origin(settings, line.proposal_id)["said"]
            except NoSuchLineError:  # of another workspace
                continue
            found[i] = [_of_origin(one, redactor) for one in told if not one.get("missing")]
    return found


def _of_origin(said: Mapping[str, object], redactor: Redactor) -> Said:
    moment = said["said_at"]
    day = moment.date() if isinstance(moment, datetime) else moment
    assert isinstance(day, date)
    words = clip(redactor.redact(str(said["quote"])), MAX_QUOTED)
    project = said.get("project")
    names = (str(said.get("session_id") or ""), str(said["session"] or ""), str(said["role"]))
    return Said(day, *names, words, str(said["message_id"]), str(project) if project else None, False)


def _words_of_users(lake: Lake, redactor: Redactor) -> list[FrictionEvent]:
    """What users typed that says how things are to be: observed, so neither pasted nor of the moment."""
    columns = ("day", "observation_id", "session_id", "observed_at", "text", "trust", "kind", "cwd", "project")
    rows = lake.read("observations", columns=columns)
    rows = rows.filter((pl.col("trust") == USER) & pl.col("kind").is_in([*NORMATIVE, "statement", "state_change"]))
    return [
        FrictionEvent(
            row["observation_id"],
            row["day"],
            row["session_id"],
            row["observed_at"] or datetime.combine(row["day"], datetime.min.time(), UTC),
            redactor.redact(row["text"]),
            (),
            row["cwd"],
            row["project"],
        )
        for row in rows.iter_rows(named=True)
    ]


def _over(
    text: MemoryText, said: Mapping[int, Sequence[Said]], events: Sequence[FrictionEvent], project: str | None
) -> list[Finding]:
    """Lines whose place something took that a user said later; where nobody knows since when a line stands in the file,
    the two contradict each other."""
    rules = {
        i: Rule(text.path.name, line.text, _since(line, said.get(i, ())), line.project or project)
        for i, line in enumerate(text.lines)
    }
    over = stale_lines([e for e in events if _reaches(e, text, project)], list(rules.values()))
    found = []
    for ended, members in over.items():
        told = [m for m in members if gives_up(m.text) and replaces(m.text, ended.text)]
        for i, rule in rules.items() if told else ():
            if rule == ended:
                kind = CONTRADICTING if rule.since == FIRST else STALE
                where = f" in {told[-1].project}" if told[-1].project else ""
                reason = f"you said on {told[-1].day}{where}: “{clip(told[-1].text, MAX_QUOTED)}”"
                found.append(Finding(text.lines[i].number, kind, reason))
    return found


def _reaches(event: FrictionEvent, text: MemoryText, project: str | None) -> bool:
    """Whether words may end a line of the file: those of its own project, or of none. A file of ours holds for all."""
    return text.is_ours or event.project is None or event.project == project


def _since(line: Line, said: Sequence[Said]) -> date:
    """The last day on which it is known to have held."""
    return max((day for day in (line.since, *(s.day for s in said)) if day), default=FIRST)


def _project(lake: Lake, path: Path) -> str | None:
    """The project of the sessions that worked in the file's folder or one above it, else the one that is named like
    its repository: a checkout of CI lies elsewhere."""
    sessions = lake.read("sessions", columns=("cwd", "project")).drop_nulls().unique()
    known = dict(sessions.sort("cwd").iter_rows())
    folders = [f"{folder}" for folder in path.resolve().parents]
    repository = project_of(path)
    named = repository.root.name if repository and repository.root.name in known.values() else None
    return next((known[folder] for folder in folders if folder in known), named)
