"""Review in Todoist: proposals become tasks, and a user decides by completing, editing or deleting them.

A completed task approves its line, as edited; a deleted one rejects it, and so does the label `rejected`. A task that
is merely not listed decides nothing: it is looked up, and counts as deleted only if Todoist says so for the account in
which it was created.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from filelock import Timeout

from memory_pipeline.lake.store import Lake
from memory_pipeline.locks import FileLock
from memory_pipeline.proposals.events import APPROVED, EXPIRED, INVALID, REJECTED, SUPERSEDED, WITHDRAWN, ProposalLog
from memory_pipeline.proposals.review import as_offered, decide, reconcile
from memory_pipeline.proposals.todoist.client import (
    COMPLETED,
    DELETED,
    ReviewTask,
    Todoist,
    TodoistBusyError,
    TodoistRefusedError,
)
from memory_pipeline.proposals.todoist.planning import Plan, plan
from memory_pipeline.proposals.todoist.tasks import (
    SURFACE,
    Account,
    account_file,
    account_of,
    add_showing,
    comment_id,
    content_of,
    description_of,
    edited_text,
    keep_account,
    marked,
    request_id,
)
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

LOOKED_BACK = timedelta(days=30)
"""The period that is searched for completed tasks; older ones are looked up by their id."""
LOCK_SECONDS = 120.0
"""Seconds to wait for another pass, which takes seconds, or a minute when Todoist asks it to wait. Two concurrent
passes would create tasks twice."""


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


def sync(workspace: Workspace, todoist: Todoist, now: datetime) -> Reviewed:
    """Make one pass: read the decisions, update REVIEW.md and MEMORY.md, create and close tasks.

    Raises `TodoistBusyError` or `TodoistRefusedError`; completed steps are recorded, and the next pass does the rest.
    """
    workspace.settings.backups.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(workspace.settings.backups / "todoist.lock", timeout=LOCK_SECONDS):
            return _pass(workspace, todoist, now)
    except Timeout:
        raise TodoistBusyError("Another synchronization with Todoist is still running.") from None


def _pass(workspace: Workspace, todoist: Todoist, now: datetime) -> Reviewed:
    result = Reviewed()
    first = plan(workspace, todoist.review_tasks())
    _read_decisions(workspace, todoist, first, now, result)
    result.promoted = reconcile(workspace, now, tasks_are_read=True).promoted
    after = plan(workspace, [*first.open.values(), *(t for tasks in first.settled.values() for t in tasks)])
    _close_tasks(workspace.lake, todoist, after, result)
    _create_tasks(workspace, todoist, after, now, result)
    return result


def _read_decisions(workspace: Workspace, todoist: Todoist, plan: Plan, now: datetime, result: Reviewed) -> None:
    account = account_of(workspace.settings)
    tasks = dict(plan.open)
    if account and (plan.missing or plan.unmade):
        tasks |= _unlisted_tasks(todoist, plan, account, now)
    decisions: dict[str, str] = {}
    for proposal_id, task in tasks.items():
        if task.state == DELETED or task.is_rejected:
            decisions[proposal_id] = REJECTED
        elif task.state == COMPLETED:
            decisions[proposal_id] = APPROVED
    if account and any(task.state == DELETED for task in tasks.values()):
        _same_account(workspace.settings, account, todoist.account())
    for proposal_id, task in tasks.items():
        if plan.known.get(proposal_id) != task.task_id:
            add_showing(workspace, proposal_id, task.task_id, now)
    offered = as_offered(workspace, ProposalLog(workspace.lake), [plan.waiting[p] for p in decisions])
    edits = {
        p.proposal_id: edited_text(tasks[p.proposal_id], p) for p in offered if decisions[p.proposal_id] == APPROVED
    }
    still = {
        row["proposal_id"] for row in ProposalLog(workspace.lake).pending()
    }  # REVIEW.md may have decided meanwhile
    fresh = {p: decision for p, decision in decisions.items() if p in still}
    texts = {p: text for p, text in edits.items() if text and p in still}
    reasons = decide(workspace, fresh, now, surface=SURFACE, texts=texts)
    result.approved = [p for p, decision in fresh.items() if decision == APPROVED and p not in reasons]
    result.rejected = [p for p, decision in fresh.items() if decision == REJECTED]
    result.invalid = list(reasons)
    for proposal_id, reason in reasons.items():
        task_id = tasks[proposal_id].task_id
        todoist.comment(task_id, f"Not added to MEMORY.md: {reason}", comment_id(task_id))


def _unlisted_tasks(todoist: Todoist, plan: Plan, account: Account, now: datetime) -> dict[str, ReviewTask]:
    """The tasks of proposals whose task was not listed as open, with their state."""
    done = todoist.completed(now - LOOKED_BACK, now + timedelta(days=1))
    by_id = {task.task_id: task for task in done}
    by_mark = {proposal_id: task for task in done if (proposal_id := marked(task, account))}
    found = {p: by_mark[p] for p in plan.unmade if p in by_mark}
    for proposal_id in plan.missing:
        task_id = plan.known[proposal_id]
        found[proposal_id] = by_id.get(task_id) or by_mark.get(proposal_id) or todoist.find(task_id)
    return found


def _same_account(settings: Settings, account: Account, inbox: str) -> None:
    if inbox != account.inbox:
        raise TodoistRefusedError(
            "TODOIST_API_TOKEN is of another account than the tasks were made in, so their absence decides nothing. "
            f"Set the token of that account, or delete {account_file(settings)} to have the tasks made in this one."
        )


def _close_tasks(lake: Lake, todoist: Todoist, plan: Plan, result: Reviewed) -> None:
    """Close the tasks of decided proposals, with a comment on the reason if no user decided."""
    ends = {
        p: (status, reason)
        for p, status, reason in ProposalLog(lake).frame["proposal_id", "status", "reason"].iter_rows()
    }
    for proposal_id, tasks in plan.settled.items():
        status, reason = ends[proposal_id]
        for task in tasks:
            if status in (EXPIRED, INVALID, SUPERSEDED, WITHDRAWN):
                said = f"This proposal is {status} and was not added to MEMORY.md. {reason or ''}".rstrip()
                todoist.comment(task.task_id, said, comment_id(task.task_id))
            elif reason:
                todoist.comment(task.task_id, f"This line was {reason}.", comment_id(task.task_id))
            todoist.close(task.task_id)
        result.closed.append(proposal_id)


def _create_tasks(workspace: Workspace, todoist: Todoist, plan: Plan, now: datetime, result: Reviewed) -> None:
    if not plan.unmade:
        return
    account, inbox = account_of(workspace.settings), todoist.account()
    if account and (plan.open or plan.missing):
        _same_account(workspace.settings, account, inbox)
    if account is None or account.inbox != inbox:
        account = keep_account(workspace.settings, inbox, now)
    for proposal in as_offered(workspace, ProposalLog(workspace.lake), [plan.waiting[p] for p in plan.unmade]):
        task = todoist.add(
            content_of(proposal), description_of(proposal, account), request_id(account, proposal.proposal_id)
        )
        add_showing(workspace, proposal.proposal_id, task.task_id, now)
        result.created.append(proposal.proposal_id)
