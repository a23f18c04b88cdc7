"""Proposals as tasks: the line, where it comes from, and a mark by which the task is known again.

The mark names the workspace, so that two workspaces can share an account. What was shown as which task is an
event; the mark finds the tasks of which no row tells, because an answer or this process was lost.
"""

from __future__ import annotations

import json
import re
import secrets
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.proposals.events import SHOWN, TODOIST_SURFACE, OpenLog, ProposalLog
from memory_pipeline.proposals.quoted_change import quoted
from memory_pipeline.proposals.review_file import Proposal
from memory_pipeline.proposals.todoist.client import REJECTED_LABEL, ReviewTask
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

SURFACE = TODOIST_SURFACE
MAX_CHARACTERS = 500
"""Of a task's content; Todoist takes no more."""
_MARK = re.compile(r"memory-review:(?P<workspace>[0-9a-f]{8})/(?P<id>[pf]-\d{8}-\d{3,})(?!\d)")


@dataclass(frozen=True)
class Account:
    """The workspace's own name in marks, and the account that its tasks are in since a moment (ISO 8601)."""

    workspace: str
    inbox: str
    since: str


def account_file(settings: Settings) -> Path:
    return settings.lake_dir / "todoist.json"


def account_of(settings: Settings) -> Account | None:
    """None before the first task, and when the file is no such thing."""
    try:
        return Account(**json.loads(account_file(settings).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def keep_account(settings: Settings, inbox: str, now: datetime) -> Account:
    """Tasks are made in this account from now on. Events from before tell of tasks in another."""
    path = account_file(settings)
    account = Account(secrets.token_hex(4), inbox, now.isoformat())
    old = path.read_bytes() if path.exists() else None
    write_atomically(path, json.dumps(asdict(account)).encode(), expected=old, backups=None)
    return account


def content_of(proposal: Proposal) -> str:
    """The line, or what a fix that is no line is about. A task that begins with an asterisk could not be completed."""
    text = proposal.text if is_line(proposal) else proposal.first_line.replace("**", "")
    return clip(re.sub(r"^(\*\s+)+", "", one_line(text)), MAX_CHARACTERS)


def is_line(proposal: Proposal) -> bool:
    """Whether the task's content is what is approved; a change of several lines is in its description."""
    return proposal.change is None or proposal.change.edits == "line"


def description_of(proposal: Proposal, account: Account) -> str:
    whole = one_line(proposal.text) if is_line(proposal) else ""
    change = proposal.change
    shown = [line.removeprefix("  >").removeprefix(" ") for line in quoted(change)] if change else []
    what = "the line, as you edited it" if is_line(proposal) else "the fix"
    lines = [
        *([whole] if len(whole) > MAX_CHARACTERS else []),
        *([change.headline, "\n".join(shown)] if change else []),
        proposal.evidence,
        f"For: {proposal.section}. Complete it to approve {what}; delete it or add the label "
        f"@{REJECTED_LABEL} to reject it.",
        f"memory-review:{account.workspace}/{proposal.proposal_id}",
    ]
    return "\n\n".join(lines)


def edited_text(task: ReviewTask, proposal: Proposal) -> str | None:
    """The line as a user changed it; None while it is as it was offered."""
    now = one_line(task.content)
    return now if is_line(proposal) and now and now != one_line(content_of(proposal)) else None


def request_id(account: Account, proposal_id: str) -> str:
    """The same for every attempt to make the task, so that Todoist makes it once."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"memory-review:{account.workspace}/{proposal_id}"))


def comment_id(task_id: str) -> str:
    """We say one thing at most about a task."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"memory-review:comment/{task_id}"))


def marked(task: ReviewTask, account: Account | None) -> str | None:
    """The proposal that the task was made for, by the mark in its description."""
    found = _MARK.search(task.description)
    return found["id"] if found and account and found["workspace"] == account.workspace else None


def shown_tasks(lake: Lake, account: Account | None) -> dict[str, str]:
    """Proposals that are tasks of this account, by their task's id. The last row counts: a task may be made again."""
    rows = _showings(lake, account).select("proposal_id", "external_id")
    return dict(rows.iter_rows())


def first_shown(lake: Lake, account: Account | None) -> datetime | None:
    """When the oldest of these was shown."""
    moment = _showings(lake, account)["happened_at"].min()
    return moment if isinstance(moment, datetime) else None


def add_showing(workspace: Workspace, proposal_id: str, task_id: str, now: datetime) -> None:
    row = {"proposal_id": proposal_id, "surface": SURFACE, "external_id": task_id}
    with OpenLog.open(workspace) as log:
        known = log.events(SHOWN).select("proposal_id", "external_id")
        if (proposal_id, task_id) not in known.iter_rows():
            log.add(SHOWN, [row], now)
            log.record_day(now, surface=SURFACE, there=[proposal_id])


def _showings(lake: Lake, account: Account | None) -> pl.DataFrame:
    rows = ProposalLog(lake).events(SHOWN, pl.col("surface") == SURFACE, pl.col("external_id").is_not_null())
    if account is None:
        return rows.clear()
    return rows.filter(pl.col("happened_at") >= datetime.fromisoformat(account.since)).sort(
        "happened_at", maintain_order=True
    )
