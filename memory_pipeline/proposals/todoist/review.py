"""Review in Todoist: proposals become tasks, and a user decides by completing, editing or deleting them.

A completed task approves its line, as edited; a deleted one rejects it, and so does the label `rejected`. A task that
is merely not listed decides nothing: it is looked up, and counts as deleted only if Todoist says so for the account in
which it was created.

A mark in its description identifies the task. It names the workspace, so that two workspaces can share an account.
Tasks are recorded as events; the mark finds those without a row, because an answer was lost or the process died.
"""

from __future__ import annotations

import json
import re
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
from filelock import Timeout

from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.lake.store import Lake
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.proposals.cards import as_offered
from memory_pipeline.proposals.events import (
    APPROVED,
    EXPIRED,
    INVALID,
    REJECTED,
    SHOWN,
    SHOWN_DAY,
    SUPERSEDED,
    TODOIST_SURFACE,
    WITHDRAWN,
    OpenLog,
    ProposalLog,
)
from memory_pipeline.proposals.quoted_change import quoted
from memory_pipeline.proposals.review import decide, on_display, reconcile
from memory_pipeline.proposals.review_file import Proposal
from memory_pipeline.proposals.todoist.client import (
    COMPLETED,
    DELETED,
    REJECTED_LABEL,
    ReviewTask,
    Todoist,
    TodoistBusyError,
    TodoistRefusedError,
)
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

MAX_CHARACTERS = 500
"""Maximum characters of a task's content in Todoist."""
LOOKED_BACK = timedelta(days=30)
"""The period that is searched for completed tasks; older ones are looked up by their id."""
LOCK_SECONDS = 120.0
"""Seconds to wait for another pass, which takes seconds, or a minute when Todoist asks it to wait. Two concurrent
passes would create tasks twice."""
_MARK = re.compile(r"memory-review:(?P<workspace>[0-9a-f]{8})/(?P<id>[pf]-\d{8}-\d{3,})(?!\d)")


@dataclass
class Reviewed:
    """The result of a pass, as proposal ids."""

    approved: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    """Proposals that the user approved but that were not promoted, because their evidence is gone."""
    promoted: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)


def due(workspace: Workspace, todoist: Todoist) -> list[str]:
    """A description of the work of a pass that is equal for equal work; empty if there is none."""
    found = _Plan.of(workspace, todoist.review_tasks())
    work = [f"reject {p}" for p, task in found.open.items() if task.is_rejected]
    work += [f"record {p} {task.task_id}" for p, task in found.open.items() if found.known.get(p) != task.task_id]
    work += [f"look up {p}" for p in found.missing]
    work += [f"create {p}" for p in found.unmade]
    work += [f"close {task.task_id}" for tasks in found.settled.values() for task in tasks]
    return sorted(work)


def sync(workspace: Workspace, todoist: Todoist, now: datetime) -> Reviewed:
    """Make one pass: read the decisions, update REVIEW.md and MEMORY.md, create and close tasks.

    Raises `TodoistBusyError` or `TodoistRefusedError`; completed steps are recorded, and the next pass does the rest.
    """
    workspace.settings.backups.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(workspace.settings.backups / "todoist.lock", timeout=LOCK_SECONDS):
            return _Pass(workspace, todoist, now).run()
    except Timeout:
        raise TodoistBusyError("Another synchronization with Todoist is still running.") from None


@dataclass(frozen=True)
class _Plan:
    """The changes that follow from the open tasks and the tables."""

    waiting: dict[str, ProposalState]
    """The pending proposals."""
    known: dict[str, str]
    """Proposals that are recorded as tasks, with the id of the task."""
    open: dict[str, ReviewTask]
    """Pending proposals with their open task."""
    missing: list[str]
    """Pending proposals whose task is not listed: completed, deleted, or without the label."""
    unmade: list[str]
    """Displayed proposals without a task, as far as known."""
    settled: dict[str, list[ReviewTask]]
    """Decided proposals with their open tasks."""

    @classmethod
    def of(cls, workspace: Workspace, tasks: Sequence[ReviewTask]) -> _Plan:
        account, log = account_of(workspace.settings), ProposalLog(workspace.lake)
        known = shown_tasks(workspace.lake, account)
        owner = {task_id: proposal_id for proposal_id, task_id in known.items()}
        waiting, exists = {row["proposal_id"]: row for row in log.pending()}, log.status
        found: dict[str, list[ReviewTask]] = {}
        for task in tasks:
            proposal_id = owner.get(task.task_id) or _marked(task, account)
            if proposal_id in exists:
                found.setdefault(str(proposal_id), []).append(task)
        kept = {
            p: next((task for task in own if task.task_id == known.get(p)), own[0])
            for p, own in found.items()
            if p in waiting
        }
        shown = [row["proposal_id"] for row in on_display(workspace, log)]
        return cls(
            waiting,
            known,
            kept,
            missing=[p for p in waiting if p in known and p not in kept],
            unmade=[p for p in shown if p not in known and p not in kept],
            settled={p: own for p, own in found.items() if p not in waiting},
        )


class _Pass:
    """One synchronization."""

    def __init__(self, workspace: Workspace, todoist: Todoist, now: datetime) -> None:
        self.workspace, self.todoist, self.now = workspace, todoist, now
        self.settings = workspace.settings
        self.account = account_of(self.settings)
        self.result = Reviewed()

    def run(self) -> Reviewed:
        first = _Plan.of(self.workspace, self.todoist.review_tasks())
        self._read_decisions(first)
        self.result.promoted = reconcile(self.workspace, self.now, tasks_are_read=True).promoted
        listed = [*first.open.values(), *(task for tasks in first.settled.values() for task in tasks)]
        after = _Plan.of(self.workspace, listed)
        self._close_tasks(after)
        self._create_tasks(after)
        return self.result

    def _read_decisions(self, plan: _Plan) -> None:
        tasks = plan.open | self._unlisted_tasks(plan)
        if any(task.state == DELETED for task in tasks.values()):
            self._require_account(self.todoist.account())
        for proposal_id, task in tasks.items():
            if plan.known.get(proposal_id) != task.task_id:
                self._record_task(proposal_id, task.task_id)
        log = ProposalLog(self.workspace.lake)
        waiting = {row["proposal_id"] for row in log.pending()}  # REVIEW.md may have decided meanwhile
        fresh = {p: decision for p, task in tasks.items() if p in waiting and (decision := _decision_of(task))}
        offered = as_offered(self.workspace, log, [plan.waiting[p] for p in fresh if fresh[p] == APPROVED])
        edits = {p.proposal_id: _edited_text(tasks[p.proposal_id], p) for p in offered}
        texts = {p: text for p, text in edits.items() if text}
        reasons = decide(self.workspace, fresh, self.now, surface=TODOIST_SURFACE, texts=texts)
        self.result.approved = [p for p, decision in fresh.items() if decision == APPROVED and p not in reasons]
        self.result.rejected = [p for p, decision in fresh.items() if decision == REJECTED]
        self.result.invalid = list(reasons)
        for proposal_id, reason in reasons.items():
            self._comment(tasks[proposal_id], f"Not added to MEMORY.md: {reason}")

    def _unlisted_tasks(self, plan: _Plan) -> dict[str, ReviewTask]:
        """The tasks of proposals whose task was not listed as open, with their state."""
        if self.account is None or not (plan.missing or plan.unmade):
            return {}
        done = self.todoist.completed(self.now - LOOKED_BACK, self.now + timedelta(days=1))
        by_id = {task.task_id: task for task in done}
        by_mark = {proposal_id: task for task in done if (proposal_id := _marked(task, self.account))}
        found = {p: by_mark[p] for p in plan.unmade if p in by_mark}
        for proposal_id in plan.missing:
            task_id = plan.known[proposal_id]
            found[proposal_id] = by_id.get(task_id) or by_mark.get(proposal_id) or self.todoist.find(task_id)
        return found

    def _require_account(self, inbox: str) -> None:
        if self.account and inbox != self.account.inbox:
            raise TodoistRefusedError(
                "TODOIST_API_TOKEN is of another account than the tasks were made in, so their absence decides "
                f"nothing. Set the token of that account, or delete {account_file(self.settings)} to have the tasks "
                "made in this one."
            )

    def _close_tasks(self, plan: _Plan) -> None:
        """Close the tasks of decided proposals, with a comment on the reason if no user decided."""
        rows = ProposalLog(self.workspace.lake).rows(plan.settled)
        for proposal_id, tasks in plan.settled.items():
            status, reason = rows[proposal_id]["status"], rows[proposal_id]["reason"]
            said = f"This line was {reason}." if reason else ""
            if status in (EXPIRED, INVALID, SUPERSEDED, WITHDRAWN):
                said = f"This proposal is {status} and was not added to MEMORY.md. {reason or ''}".rstrip()
            for task in tasks:
                if said:
                    self._comment(task, said)
                self.todoist.close(task.task_id)
            self.result.closed.append(proposal_id)

    def _create_tasks(self, plan: _Plan) -> None:
        if not plan.unmade:
            return
        inbox = self.todoist.account()
        if plan.open or plan.missing:
            self._require_account(inbox)
        account = self.account
        if account is None or account.inbox != inbox:
            account = keep_account(self.settings, inbox, self.now)
        rows = [plan.waiting[p] for p in plan.unmade]
        for proposal in as_offered(self.workspace, ProposalLog(self.workspace.lake), rows):
            # the same id for every attempt, so that Todoist creates the task once
            request_id = _request_id(f"{account.workspace}/{proposal.proposal_id}")
            task = self.todoist.add(_content_of(proposal), _description_of(proposal, account), request_id)
            self._record_task(proposal.proposal_id, task.task_id)
            self.result.created.append(proposal.proposal_id)

    def _comment(self, task: ReviewTask, text: str) -> None:
        """Add a comment, of which each task gets at most one."""
        self.todoist.comment(task.task_id, text, _request_id(f"comment/{task.task_id}"))

    def _record_task(self, proposal_id: str, task_id: str) -> None:
        row = {"proposal_id": proposal_id, "surface": TODOIST_SURFACE, "external_id": task_id}
        with OpenLog.open(self.workspace) as log:
            known = log.events(SHOWN).select("proposal_id", "external_id")
            if (proposal_id, task_id) not in known.iter_rows():
                log.add(SHOWN, [row], self.now)
                log.record(SHOWN_DAY, [proposal_id], self.now, surface=TODOIST_SURFACE)


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


def shown_tasks(lake: Lake, account: Account | None) -> dict[str, str]:
    """Proposals with a task in this account, with the task's id. The last row counts, as a task may be created
    again."""
    if account is None:
        return {}
    in_account = pl.col("happened_at") >= datetime.fromisoformat(account.since)
    rows = ProposalLog(lake).events(
        SHOWN, pl.col("surface") == TODOIST_SURFACE, pl.col("external_id").is_not_null(), in_account
    )
    return dict(rows.sort("happened_at", maintain_order=True).select("proposal_id", "external_id").iter_rows())


def _decision_of(task: ReviewTask) -> str | None:
    if task.state == DELETED or task.is_rejected:
        return REJECTED
    return APPROVED if task.state == COMPLETED else None


def _content_of(proposal: Proposal) -> str:
    """The line, or the headline of a fix. A task that begins with an asterisk could not be completed."""
    text = proposal.text if _is_line(proposal) else proposal.first_line.replace("**", "")
    return clip(re.sub(r"^(\*\s+)+", "", one_line(text)), MAX_CHARACTERS)


def _is_line(proposal: Proposal) -> bool:
    """Whether the task's content is the approved text; a change of several lines is in its description."""
    return proposal.change is None or proposal.change.is_editable


def _description_of(proposal: Proposal, account: Account) -> str:
    whole = one_line(proposal.text) if _is_line(proposal) else ""
    change = proposal.change
    shown = [line.removeprefix("  >").removeprefix(" ") for line in quoted(change)] if change else []
    what = "the line, as you edited it" if _is_line(proposal) else "the fix"
    lines = [
        *([whole] if len(whole) > MAX_CHARACTERS else []),
        *([change.headline, "\n".join(shown)] if change else []),
        proposal.evidence,
        f"For: {proposal.section}. Complete it to approve {what}; delete it or add the label "
        f"@{REJECTED_LABEL} to reject it.",
        f"memory-review:{account.workspace}/{proposal.proposal_id}",
    ]
    return "\n\n".join(lines)


def _edited_text(task: ReviewTask, proposal: Proposal) -> str | None:
    """The line as edited by a user; None if unchanged."""
    now = one_line(task.content)
    return now if _is_line(proposal) and now and now != one_line(_content_of(proposal)) else None


def _request_id(name: str) -> str:
    """An id that is equal for every attempt."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"memory-review:{name}"))


def _marked(task: ReviewTask, account: Account | None) -> str | None:
    """The proposal of a task, from the mark in its description."""
    found = _MARK.search(task.description)
    return found["id"] if found and account and found["workspace"] == account.workspace else None
