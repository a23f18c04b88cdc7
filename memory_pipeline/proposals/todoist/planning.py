"""The changes to make in Todoist, derived from the open tasks and the tables without requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.review import on_display
from memory_pipeline.proposals.todoist.client import ReviewTask
from memory_pipeline.proposals.todoist.tasks import account_of, marked, shown_tasks
from memory_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True)
class Plan:
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

    @property
    def due(self) -> list[str]:
        """A description of the work that is equal for equal work; empty if there is none."""
        work = [f"reject {p}" for p, task in self.open.items() if task.is_rejected]
        work += [f"record {p} {task.task_id}" for p, task in self.open.items() if self.known.get(p) != task.task_id]
        work += [f"look up {p}" for p in self.missing]
        work += [f"create {p}" for p in self.unmade]
        work += [f"close {task.task_id}" for tasks in self.settled.values() for task in tasks]
        return sorted(work)


def plan(workspace: Workspace, tasks: Sequence[ReviewTask]) -> Plan:
    account, log = account_of(workspace.settings), ProposalLog(workspace.lake)
    known = shown_tasks(workspace.lake, account)
    owner = {task_id: proposal_id for proposal_id, task_id in known.items()}
    waiting = {row["proposal_id"]: row for row in log.pending()}
    shown = [row["proposal_id"] for row in on_display(workspace, log)]
    exists = set(log.frame["proposal_id"])
    found: dict[str, list[ReviewTask]] = {}
    for task in tasks:
        proposal_id = owner.get(task.task_id) or marked(task, account)
        if proposal_id in exists:
            found.setdefault(str(proposal_id), []).append(task)
    kept = {
        p: next((task for task in tasks if task.task_id == known.get(p)), tasks[0])
        for p, tasks in found.items()
        if p in waiting
    }
    return Plan(
        waiting,
        known,
        kept,
        missing=[p for p in waiting if p in known and p not in kept],
        unmade=[p for p in shown if p not in known and p not in kept],
        settled={p: tasks for p, tasks in found.items() if p not in waiting},
    )
