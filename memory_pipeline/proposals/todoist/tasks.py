"""Proposals as tasks: the line, its origin, and a mark that identifies the task.

The mark names the workspace, so that two workspaces can share an account. Tasks are recorded as events; the mark finds
those without a row, because an answer was lost or the process died.
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
"""Maximum characters of a task's content in Todoist."""
_MARK = re.compile(r"memory-review:(?P<workspace>[0-9a-f]{8})/(?P<id>[pf]-\d{8}-\d{3,})(?!\d)")


@dataclass(frozen=True)
class Account:
    """The workspace's name in marks, and the inbox of the account that has its tasks since a time (ISO 8601)."""

    workspace: str
    inbox: str
    since: str


def account_file(settings: Settings) -> Path:
    return settings.lake_dir / "todoist.json"


def account_of(settings: Settings) -> Account | None:
    """The account of the workspace; None before the first task, and if the file is invalid."""
    try:
        return Account(**json.loads(account_file(settings).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def keep_account(settings: Settings, inbox: str, now: datetime) -> Account:
    """Use this account for tasks from now on. Earlier events refer to tasks in another one."""
    path = account_file(settings)
    account = Account(secrets.token_hex(4), inbox, now.isoformat())
    old = path.read_bytes() if path.exists() else None
    write_atomically(path, json.dumps(asdict(account)).encode(), expected=old, backups=None)
    return account


def content_of(proposal: Proposal) -> str:
    """The line, or the headline of a fix. A task that begins with an asterisk could not be completed."""
    text = proposal.text if is_line(proposal) else proposal.first_line.replace("**", "")
    return clip(re.sub(r"^(\*\s+)+", "", one_line(text)), MAX_CHARACTERS)


def is_line(proposal: Proposal) -> bool:
    """Whether the task's content is the approved text; a change of several lines is in its description."""
    return proposal.change is None or proposal.change.is_editable


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
    """The line as edited by a user; None if unchanged."""
    now = one_line(task.content)
    return now if is_line(proposal) and now and now != one_line(content_of(proposal)) else None


def request_id(account: Account, proposal_id: str) -> str:
    """The request id of a task, equal for every attempt, so that Todoist creates it once."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"memory-review:{account.workspace}/{proposal_id}"))


def comment_id(task_id: str) -> str:
    """The request id of a comment, as each task gets at most one."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"memory-review:comment/{task_id}"))


def marked(task: ReviewTask, account: Account | None) -> str | None:
    """The proposal of a task, from the mark in its description."""
    found = _MARK.search(task.description)
    return found["id"] if found and account and found["workspace"] == account.workspace else None


def shown_tasks(lake: Lake, account: Account | None) -> dict[str, str]:
    """Proposals with a task in this account, with the task's id. The last row counts, as a task may be created
    again."""
    rows = _shown_events(lake, account).select("proposal_id", "external_id")
    return dict(rows.iter_rows())


def add_showing(workspace: Workspace, proposal_id: str, task_id: str, now: datetime) -> None:
    row = {"proposal_id": proposal_id, "surface": SURFACE, "external_id": task_id}
    with OpenLog.open(workspace) as log:
        known = log.events(SHOWN).select("proposal_id", "external_id")
        if (proposal_id, task_id) not in known.iter_rows():
            log.add(SHOWN, [row], now)
            log.record_day(now, surface=SURFACE, there=[proposal_id])


def _shown_events(lake: Lake, account: Account | None) -> pl.DataFrame:
    rows = ProposalLog(lake).events(SHOWN, pl.col("surface") == SURFACE, pl.col("external_id").is_not_null())
    if account is None:
        return rows.clear()
    return rows.filter(pl.col("happened_at") >= datetime.fromisoformat(account.since)).sort(
        "happened_at", maintain_order=True
    )
