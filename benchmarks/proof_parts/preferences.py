"""Changing preferences (MemoryCode): is the rule of a day in the brief of the next day, and is the old one gone?

Each dialogue of a mentor and a mentee becomes a project, each of its sessions a day: the mentor is the user, the mentee
the agent. A rule counts as shown if the brief has the words in quotation marks that name it ('e_', '@lru_cache').
"""

import json
import random
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, run_everything
from benchmarks.proof_parts.measuring import Memory, keep, print_counts
from memory_pipeline.recall.assembly import Briefing

COMMIT, LICENCE = "1ab87e119b2f9a498de8075219e1c07f6041b394", "Apache-2.0"
FIRST = datetime(2026, 3, 2, 9, tzinfo=UTC)
CHOSEN, MAX_SESSIONS, SEED = 24, 10, 20261128
"""Number of dialogues, drawn with a fixed seed among those of two to ten sessions; none was looked at before."""
BRIEF, BRIEF_APPROVED = "the brief, nothing approved", "the brief, had everything offered been approved"
GONE, GONE_APPROVED = "the old rule is gone from it, nothing approved", "the old rule is gone from it, approved"
_QUOTED = re.compile(r"'([^']+)'")


def run(dataset: Path, workspace: Path, out: Path | None) -> None:
    """``dataset`` is the folder `dataset` of a checkout of Cohere-Labs-Community/MemoryCode."""
    dialogues = _chosen(dataset)
    if not (workspace / "workspace").exists():
        for name, dialogue in dialogues.items():
            _write(name, dialogue, workspace / "sessions")
        run_everything(ROOT, [workspace / "sessions"], workspace / "workspace", workspace / "home")
    memory = Memory(workspace / "workspace")
    cases = [case for name, dialogue in dialogues.items() for case in _cases(memory, name, dialogue)]
    keep(out, "preferences", cases)
    print_counts(
        f"3. changing preferences, no model: {len(dialogues)} dialogues of MemoryCode ({COMMIT[:8]}, {LICENCE})",
        cases,
        (BRIEF, BRIEF_APPROVED, GONE, GONE_APPROVED),
    )


def _chosen(dataset: Path) -> dict[str, Any]:
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(dataset.glob("dialogue_*.json"))}
    short = [name for name, dialogue in found.items() if 2 <= len(dialogue["sessions"]) <= MAX_SESSIONS]
    return {name: found[name] for name in sorted(random.Random(SEED).sample(short, min(CHOSEN, len(short))))}


def _day(number: int) -> datetime:
    return FIRST + timedelta(days=number)


def _write(name: str, dialogue: dict[str, Any], folder: Path) -> None:
    mentor = dialogue["context"]["mentor"]
    for number, session in enumerate(dialogue["sessions"]):
        path = folder / f"-src-{name}" / f"{name}-{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        records, parent = [], None
        for turn, part in enumerate(filter(None, map(str.strip, session["text"].split("\n\n")))):
            speaker, _, text = part.partition(": ")
            role, uuid = ("user" if speaker == mentor else "assistant"), f"{name}-{number}-{turn}"
            content = text if role == "user" else [{"type": "text", "text": text}]
            records.append(
                {
                    "type": role,
                    "uuid": uuid,
                    "parentUuid": parent,
                    "sessionId": f"{name}-{number}",
                    "timestamp": (_day(number) + timedelta(minutes=turn)).isoformat().replace("+00:00", "Z"),
                    "cwd": f"/src/{name}",
                    "version": "2.0.0",
                    "message": {"role": role, "content": content},
                }
            )
            parent = uuid
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def _cases(memory: Memory, name: str, dialogue: dict[str, Any]) -> list[dict[str, Any]]:
    """A case for each rule of each session but the last; its old wording is that of the same object before."""
    cases, before = [], dict[str, str]()
    for number, session in enumerate(dialogue["sessions"]):
        day: date = (_day(number) + timedelta(days=1)).date()
        brief = memory.brief(day, name)
        approved = memory.brief(day, name, "approved", "offered")
        rules = zip(session["topic"], session["type"], session["session_regex"], strict=False)
        for topic, kind, regex in rules:
            if not kind.startswith("instruction") or not (mark := _QUOTED.search(topic)):
                continue
            about, old = regex[0], before.get(regex[0])
            case = {
                "dialogue": name,
                "day": day,
                "rule": topic,
                BRIEF: _shows(brief, mark[1]),
                BRIEF_APPROVED: _shows(approved, mark[1]),
            }
            if kind == "instruction-update" and old and old != mark[1]:
                case |= {"old": old, GONE: not _shows(brief, old), GONE_APPROVED: not _shows(approved, old)}
            cases.append(case)
            before[about] = mark[1]
    return cases


def _shows(brief: Briefing, mark: str) -> bool:
    return re.search(rf"(?<![\w@]){re.escape(mark)}", brief.text) is not None
