"""The files that the hook of tool calls reads: for each project its rules and live patterns of failures.

Only approved lines and active friction patterns speak, and of the patterns only those that name a cure or a
replacement, whose fix no user rejected, and that calls did not contradict. The files are written when MEMORY.md or the
patterns change, if an agent has the hook.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

import polars as pl

from memory_pipeline.actions.rules import Rule
from memory_pipeline.agents.kit.tool_calls import commands_in, signature
from memory_pipeline.friction.active import active_patterns, last_day_looked_at
from memory_pipeline.friction.patterns import CONFIGURATION_DRIFT, RECURRING_FAILURE, TOOL_MISUSE
from memory_pipeline.lake.rows import FrictionRow
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip

KINDS = (RECURRING_FAILURE, TOOL_MISUSE, CONFIGURATION_DRIFT)
MAX_LINE = 150
"""Maximum characters of a line without its evidence."""
MAX_SIGNATURES = 20
"""Maximum errors by which one pattern is recognised."""
MIN_CONTRADICTED = 3
"""Number of calls that succeeded although a pattern warned of them, from which it is silent."""
_HEAD = re.compile(r"`([^`]+)`")
_CURE = re.compile(r"(?:run `(?P<run>[^`]+)` first|[Uu]se `(?P<use>[^`]+)`|`(?P<helped>[^`]+)` helped)")
"""The forms in which `friction.failures` names a cure or a replacement."""


def write_files(
    settings: Settings, lake: Lake, rules: Iterable[Rule], outcomes: Mapping[str, Mapping[str, int]]
) -> None:
    """Write the files that have changed, and remove those of projects without any line. ``outcomes`` are those of the
    lines shown so far, by id: a pattern that calls have contradicted becomes silent. Raises OSError."""
    folder = settings.actions_dir
    folder.mkdir(parents=True, exist_ok=True)
    silent = {line_id for line_id, times in outcomes.items() if times.get("contradicted", 0) >= MIN_CONTRADICTED}
    wanted = _files(settings, lake, [rule for rule in rules if rule.check is not None], silent)
    if outcomes:
        wanted[settings.outcomes_file.name] = dict(outcomes)
    for path in folder.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
    for name, content in wanted.items():
        data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        path = folder / name
        old = path.read_bytes() if path.exists() else None
        if old != data:
            write_atomically(path, data, expected=old, backups=None)


def commands_of_hints(lake: Lake, pattern_ids: Collection[str]) -> dict[str, list[str]]:
    """The words of the command that each of these patterns is about, also of those that have ended."""
    rows = lake.read("friction_clusters", columns=("pattern_id", "kind", "adds"))
    rows = rows.filter(pl.col("pattern_id").is_in(list(pattern_ids)))
    return {pattern_id: _words(kind, adds or "") for pattern_id, kind, adds in rows.iter_rows()}


def remove_files(settings: Settings) -> None:
    """Remove the files, as no agent has the hook any more; the record of what was shown stays. Raises OSError."""
    for path in settings.actions_dir.glob("*.json"):
        path.unlink()
    with suppress(OSError):  # the record of what was shown
        settings.actions_dir.rmdir()


def _files(settings: Settings, lake: Lake, rules: Sequence[Rule], silent: Collection[str]) -> dict[str, dict[str, Any]]:
    """The contents by file name: one for each project that has lines, one for each folder of its sessions, which names
    the former, and in `everywhere.json` the rules for every project. Folders with the same checksum share a file."""
    day = last_day_looked_at(lake)
    live = patterns_with_cure(settings, lake, day) if day else ()
    patterns = [row for row in live if row["pattern_id"] not in silent]
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for cwd, project in lake.read("sessions", columns=("cwd", "project")).unique().iter_rows():
        if cwd and project:
            folders[project].add(cwd)
    found: dict[str, dict[str, Any]] = {}
    if everywhere := [_rule(rule) for rule in rules if rule.project is None]:
        found["everywhere.json"] = {"rules": everywhere, "before": [], "after": {}}
    for project, own in sorted(folders.items()):
        content = {
            "rules": [_rule(rule) for rule in rules if rule.project in (project, None)],
            **hints_of((row for row in patterns if not row["projects"] or project in row["projects"]), lake),
        }
        if any(content.values()):
            name = f"p-{hashlib.sha256(project.encode('utf-8', 'replace')).hexdigest()[:16]}.json"
            found[name] = content
            for cwd in sorted(own):
                named = f"{zlib.crc32(cwd.encode('utf-8', 'replace')):08x}.json"
                found.setdefault(named, {"folders": {}})["folders"][cwd] = name
    return found


def patterns_with_cure(settings: Settings, lake: Lake, day: date) -> Iterator[FrictionRow]:
    """The patterns active on the day that name a cure, worst first, without those whose change was rejected."""
    events = lake.read("events", columns=("kind", "proposal_id", "decision"))
    rejected = set(events.filter((pl.col("kind") == "decided") & (pl.col("decision") == "rejected"))["proposal_id"])
    for pattern in active_patterns(lake, day, settings.lookback_days):
        row = pattern.row
        if row["kind"] in KINDS and row["pattern_id"] not in rejected and _CURE.search(row["adds"] or ""):
            yield row


def hints_of(patterns: Iterable[FrictionRow], lake: Lake) -> dict[str, Any]:
    """The hints `before` a call, and those `after` a failure by the signature of its error."""
    before, after = list[dict[str, Any]](), defaultdict[str, list[dict[str, Any]]](list)
    for row in patterns:
        adds = row["adds"] or ""
        words = _words(row["kind"], adds)
        evidence = f"{row['sessions']} sessions, last {row['last_day'] or row['day']}"
        hint = {"id": row["pattern_id"], "line": clip(adds, MAX_LINE), "evidence": evidence, "words": words}
        cure = _CURE.search(adds)
        if row["kind"] == TOOL_MISUSE and cure and cure["use"] and words:
            before.append(hint)
        for error in error_signatures(row, lake):
            after[error].append(hint)
    return {"before": before, "after": dict(after)}


def _words(kind: str, adds: str) -> list[str]:
    """The words of the command; empty for the environment, as the same part of the machine stops many programs."""
    head = _HEAD.search(adds) if kind != CONFIGURATION_DRIFT else None
    return next((list(command.words) for command in commands_in(head[1] if head else "")), [])


def error_signatures(row: FrictionRow, lake: Lake) -> list[str]:
    """The signatures of the errors that are the evidence of a pattern."""
    spans = {span["message_id"]: span for span in row["evidence"]}
    days = [day for day in lake.days("messages") if (row["first_day"] or row["day"]) <= day <= row["day"]]
    messages = lake.read("messages", days, ("message_id", "text", "role")).filter(
        pl.col("message_id").is_in(list(spans)) & (pl.col("role") == "tool")
    )
    lines = (text[spans[i]["start"] : spans[i]["end"]] for i, text, _ in messages.iter_rows())
    return sorted({signature(line) for line in lines if line.strip()})[:MAX_SIGNATURES]


def _rule(rule: Rule) -> dict[str, Any]:
    assert rule.check is not None
    return {
        "id": rule.rule_id,
        "line": clip(rule.text, MAX_LINE),
        "evidence": f"approved {rule.since}" if rule.since else "in MEMORY.md",
        "mode": rule.mode,
        "check": rule.check.data,
    }
