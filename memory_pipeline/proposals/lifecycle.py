"""The life of a proposal: pending until exactly one decision, then, when approved, a line of MEMORY.md.

Nothing is updated in place. A decision is a row of its own on the day it was taken, a promotion another;
status is a join. Every step can be repeated: a crash between two of them costs nothing but the next run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl
from filelock import FileLock

from memory_pipeline.days import day_of
from memory_pipeline.files.blocks import one_line
from memory_pipeline.files.daily_log import write_log_blocks
from memory_pipeline.files.safe_write import decode, encode, update_file, write_atomically
from memory_pipeline.lake import Lake
from memory_pipeline.proposals.evidence import evidence_lines
from memory_pipeline.proposals.memory_file import Promotion, add_lines
from memory_pipeline.proposals.review_file import Proposal, last_updated_in, offered_in, read_decisions, update_review
from memory_pipeline.schemas import TABLES
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import RANK

APPROVED, REJECTED = "approved", "rejected"
REVIEW_SURFACE, COMMAND_SURFACE = "REVIEW.md", "command"


_Decision = tuple[str, str, str, str | None]
"""(proposal id, decision, text, section if a person chose another)"""


class UnknownProposal(Exception):
    """No pending proposal has that id; the message says which state it is in."""


@dataclass
class Settled:
    """What a reading of REVIEW.md led to."""

    approved: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    damaged: str | None = None


def with_status(lake: Lake) -> pl.DataFrame:
    """Every proposal with its `status` (pending, or its first decision), that decision's text, and its section."""
    decisions = lake.read("decisions").sort("decided_at").unique("proposal_id", keep="first")
    joined = lake.read("proposals").join(
        decisions.select(
            "proposal_id",
            pl.col("decision").alias("status"),
            pl.col("text").alias("decided_text"),
            pl.col("section").alias("decided_section"),
        ),
        on="proposal_id",
        how="left",
    )
    return joined.with_columns(pl.col("status").fill_null("pending")).sort("proposal_id")


def pending(lake: Lake) -> list[dict[str, Any]]:
    """The pending proposals, those that matter most and were said most often first."""
    rows = with_status(lake).filter(pl.col("status") == "pending").to_dicts()
    return sorted(rows, key=lambda r: (RANK[r["priority"]], -r["support"], r["proposal_id"]))


def decide(settings: Settings, lake: Lake, decisions: dict[str, str], now: datetime) -> None:
    """Record decisions taken at the command line. Raises `UnknownProposal` before anything is recorded."""
    status = dict(with_status(lake).select("proposal_id", "status").iter_rows())
    for proposal_id in decisions:
        if proposal_id not in status:
            raise UnknownProposal(f"There is no proposal {proposal_id}; `memory review` lists the pending ones.")
        if status[proposal_id] != "pending":
            raise UnknownProposal(f"{proposal_id} is {status[proposal_id]} already; a decision is taken once.")
    texts = dict(lake.read("proposals").select("proposal_id", "text").iter_rows())
    _record(settings, lake, [(p, d, texts[p], None) for p, d in decisions.items()], COMMAND_SURFACE, now)


def settle_review(settings: Settings, lake: Lake, now: datetime) -> Settled:
    """Record what a person decided in REVIEW.md and bring the file up to date with what is pending."""
    result = Settled()

    def edit(current: bytes | None) -> bytes:
        text = decode(current) if current is not None else None
        _read_back(settings, lake, text, now, result)
        waiting = pending(lake)
        on_file = offered_in(text or "")
        shown = [p for p in waiting if p["proposal_id"] in on_file]
        shown += [p for p in waiting if p["proposal_id"] not in on_file][: max(0, settings.pending_limit - len(shown))]
        decided = {p for p, s in with_status(lake).select("proposal_id", "status").iter_rows() if s != "pending"}
        day = day_of(now, settings.zone)
        new = update_review(
            None if result.damaged else text, as_offered(settings, lake, shown), decided, day=day, now=now
        )
        # first the copy that tells what was shown, then the file: never a line in the file that we do not know of
        _write_shown(settings, new)
        return encode(new)

    if settings.review_file.exists() or pending(lake):
        update_file(settings.review_file, edit, backups=settings.backups)
    return result


def promote(settings: Settings, lake: Lake, now: datetime) -> list[str]:
    """Put approved proposals that are not there yet into MEMORY.md; returns their ids.

    A line that a person removed later does not come back: what was promoted once is on record.
    """
    done = set(lake.read("promotions")["proposal_id"])
    rows = (
        with_status(lake).filter((pl.col("status") == APPROVED) & ~pl.col("proposal_id").is_in(list(done))).to_dicts()
    )
    if not rows:
        return []
    promotions = [
        Promotion(r["proposal_id"], r["decided_section"] or r["section"], r["decided_text"], r["day"]) for r in rows
    ]
    present: list[str] = []

    def edit(current: bytes | None) -> bytes:
        result = add_lines(current, promotions, settings.sections)
        present[:] = result.present
        return result.data

    update_file(settings.memory_file, edit, backups=settings.backups)
    _append(
        lake,
        "promotions",
        settings,
        now,
        [
            {
                "proposal_id": p.proposal_id,
                "section": p.section,
                "text": p.text,
                "promoted_at": now,
                "already_there": p.proposal_id in present,
            }
            for p in promotions
        ],
    )
    return [p.proposal_id for p in promotions]


def as_offered(settings: Settings, lake: Lake, rows: Iterable[dict[str, Any]]) -> list[Proposal]:
    """Rows of `proposals` as they stand in REVIEW.md."""
    rows = list(rows)
    lines = evidence_lines(settings, lake, rows)
    return [Proposal(r["proposal_id"], r["section"], r["text"], lines[r["proposal_id"]]) for r in rows]


def _read_back(settings: Settings, lake: Lake, text: str | None, now: datetime, result: Settled) -> None:
    base = settings.review_shown
    base_text = decode(base.read_bytes()) if base.exists() else None
    if text is None and base_text is None:
        return  # the first time: nothing was ever shown
    ids = offered_in(base_text if base_text is not None else text or "")
    waiting = {r["proposal_id"]: r for r in pending(lake)}
    known = with_status(lake).filter(pl.col("proposal_id").is_in(list(ids))).to_dicts()
    shown = {p.proposal_id: p for p in as_offered(settings, lake, known)}
    stamp = last_updated_in(base_text) if base_text is not None else None
    reading = read_decisions(text, shown, last_updated=stamp)
    result.damaged = reading.damaged
    result.ignored = [p for p in reading.ignored if p in waiting or p not in shown]
    approved = {p: t for p, t in reading.approved.items() if p in waiting}
    rejected = [p for p in reading.rejected if p in waiting]
    sections = offered_in(text or "")  # a line that a person moved to another group belongs there
    decisions = [(p, APPROVED, t, sections[p]) for p, t in approved.items()]
    decisions += [(p, REJECTED, waiting[p]["text"], None) for p in rejected]
    _record(settings, lake, decisions, REVIEW_SURFACE, now)
    result.approved += list(approved)
    result.rejected += rejected


def _record(settings: Settings, lake: Lake, decisions: list[_Decision], surface: str, now: datetime) -> None:
    if not decisions:
        return
    rows = [
        {"proposal_id": p, "decision": d, "decided_at": now, "surface": surface, "section": section, "text": text}
        for p, d, text, section in decisions
    ]
    # the log first: once the rows are there, no later run would know that the log still lacks them
    _log_decisions(settings, lake, now, rows)
    _append(lake, "decisions", settings, now, rows)


def _append(lake: Lake, table: str, settings: Settings, now: datetime, rows: list[dict[str, Any]]) -> None:
    """Add rows to the day of `now`; a proposal that has one already keeps it."""
    day = day_of(now, settings.zone)
    settings.backups.mkdir(parents=True, exist_ok=True)
    new = pl.DataFrame([{"day": day} | row for row in rows], schema=TABLES[table].columns)
    with FileLock(settings.backups / f"{table}.lock"):  # a command and a sensor's run may decide at once
        both = pl.concat([lake.read(table, [day]), new])
        lake.replace(table, both.unique("proposal_id", keep="first", maintain_order=True), [day])


def _log_decisions(settings: Settings, lake: Lake, now: datetime, new: list[dict[str, Any]]) -> None:
    day = day_of(now, settings.zone)
    rows = sorted([*lake.read("decisions", [day]).to_dicts(), *new], key=lambda r: (r["decided_at"], r["proposal_id"]))
    lines = [
        f"* {r['decided_at'].astimezone(settings.zone):%H:%M} {r['decision']} `{r['proposal_id']}` {r['text']}"
        for r in rows
    ]
    body = "### Decisions on memory proposals\n\n" + "\n".join(map(one_line, lines))
    write_log_blocks(settings.daily_log(day), day, {"decisions": body}, backups=settings.backups)


def _write_shown(settings: Settings, text: str) -> None:
    path = settings.review_shown
    write_atomically(path, encode(text), expected=path.read_bytes() if path.exists() else None, backups=None)


def now_utc() -> datetime:
    return datetime.now(UTC)
