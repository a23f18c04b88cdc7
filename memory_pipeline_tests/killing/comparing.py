"""What a killed chain must have in common with one that nobody disturbed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from memory_pipeline.markdown.safe_write import BACKUPS_KEPT
from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline_tests.killing.story import workspace_of
from memory_pipeline_tests.rows import events

LATER = timedelta(hours=2)
"""After so long a temporary file belongs to nobody any more."""


def differences(folder: Path, wanted: Path, left_out: Sequence[str] = ()) -> list[str]:
    """Files whose bytes are not as wanted, but for those below the folders left out. Of backups a crash may leave more,
    but none may lack."""
    found, expected = (
        {name: data for name, data in _bytes(side).items() if not name.startswith(tuple(left_out))}
        for side in (folder, wanted)
    )
    wrong = [f"{name} differs" for name in sorted(found.keys() & expected.keys()) if found[name] != expected[name]]
    wrong += [f"{name} is missing" for name in sorted(expected.keys() - found.keys())]
    wrong += [f"{name} should not be there" for name in sorted(found.keys() - expected.keys())]
    kept, promised = _backups(folder), _backups(wanted)
    for name, versions in promised.items():
        lacking = set(versions) - set(kept.get(name, []))
        if lacking and len(kept.get(name, [])) < BACKUPS_KEPT:
            wrong.append(f"{len(lacking)} backups of {name} are missing")
    wrong += [f"{name} has {len(versions)} backups" for name, versions in kept.items() if len(versions) > BACKUPS_KEPT]
    return wrong


def differences_but_for_times(folder: Path, wanted: Path) -> list[str]:
    """What a run at another time should have left just so: which rows, which lines, each decision in one log, once."""
    (settings, lake), (_, expected) = workspace_of(folder), workspace_of(wanted)
    same = ["reflections", "proposals", "supports", "events"]
    wrong = []
    for table in same:
        rows, right = (of.read(table) for of in (lake, expected))
        if table == "events":
            kinds = pl.col("kind").is_in(["decided", "promoted", "shown"])
            rows, right = (each.filter(kinds).drop("day", "happened_at").sort("kind") for each in (rows, right))
        key = [name for name in ("proposal_id", "reflection_id") if name in rows.columns]
        if not rows.sort(key, maintain_order=True).equals(right.sort(key, maintain_order=True)):
            wrong.append(f"other rows of {table}")
    for name in ("MEMORY.md", "REVIEW.md"):
        if _without_times(folder / name) != _without_times(wanted / name):
            wrong.append(f"{name} differs in more than times")
    wrong += judge_integrity(lake, settings.memory_file).offenders
    told = {
        (date.fromisoformat(path.stem), found[1])
        for path in settings.daily_log(date.min).parent.glob("*.md")
        for found in re.finditer(r"^\* \d\d:\d\d [a-z]+ `(p-[\d-]+)`", path.read_text("utf-8"), re.MULTILINE)
    }
    recorded = set(events(lake, "decided").select("day", "proposal_id").iter_rows())
    return wrong + [f"{p} is in the log of {day} or in the table, not in both" for day, p in sorted(told ^ recorded)]


def _without_times(path: Path) -> str:
    """What stands there but for the day of striking, the times of writing and what is said of expiring."""
    text = path.read_text("utf-8") if path.exists() else ""
    text = re.sub(r"(superseded by p-[\d-]+), [\d-]+", r"\1", text)
    return re.sub(r"^_(?:Offered on|Last updated:) .*| · expires on [\d-]+(?=_$)", "", text, flags=re.MULTILINE)


def _bytes(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".lock", ".tmp"))
    return {
        f"{path.relative_to(folder)}": path.read_bytes()
        for path in files
        if path.suffix == ".shown"
        or folder / "backups" not in path.parents  # versions are named by when they were made
    }


def _backups(folder: Path) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for path in sorted((folder / "backups").glob("*")):
        if stamped := re.fullmatch(r"(.+)\.\d{8}T\d{6}\.\d{6}Z", path.name):
            found.setdefault(stamped[1], []).append(path.read_bytes())
    return found


def age_strays(folder: Path) -> None:
    for path in folder.rglob("*.tmp"):
        old = time.time() - LATER.total_seconds()
        os.utime(path, (old, old))
