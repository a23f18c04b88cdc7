"""Actions on the page: each can be undone for a few seconds, and is then recorded.

A decision is a row that is never removed. So the last one is held, as in `memory review`, until the next action, until
a time limit, or until the page ends. One thread records the actions in order and updates REVIEW.md and MEMORY.md;
requests never wait for it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from filelock import Timeout

from memory_pipeline.days import day_of
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.storage import storage_of
from memory_pipeline.markdown.safe_write import update_file
from memory_pipeline.proposals.applying import left_to_the_user
from memory_pipeline.proposals.events import PAGE_SURFACE, OpenLog, ProposalLog, is_fix
from memory_pipeline.proposals.memory_file import MemoryLine, strike_line
from memory_pipeline.proposals.quoted_change import visible
from memory_pipeline.proposals.review import decide, now_utc, reconcile
from memory_pipeline.proposals.shown_to_agents import refresh_agents
from memory_pipeline.recall.briefing_cache import refresh_kept
from memory_pipeline.settings import Settings
from memory_pipeline.web.proposal_cache import ProposalCache
from memory_pipeline.workspace.workspace import Workspace

logger = logging.getLogger(__name__)
HELD_SECONDS = 8.0
LATER, RETIRED = "later", "retired"
MAX_NEWS = 20
"""Maximum number of unread sentences; older ones are dropped."""


@dataclass(frozen=True)
class Step:
    """An action on a proposal (`approved`, `rejected`, `later`) or on a line of MEMORY.md (`retired`)."""

    done: str
    label: str
    """The line as shown."""
    proposal_id: str = ""
    text: str | None = None
    """The text as edited."""
    section: str | None = None
    line: MemoryLine | None = None


class ReviewSession:
    """The actions in one workspace; a context manager that records all of them at its end."""

    def __init__(self, settings: Settings, *, held_seconds: float = HELD_SECONDS) -> None:
        self.settings = settings
        self.workspace = Workspace.open(settings)
        self.cache = ProposalCache(self.workspace)
        self._held_seconds = held_seconds
        self._lock = threading.Lock()
        self.held: Step | None = None
        """The last step, while it can be undone."""
        self._timer: threading.Timer | None = None
        self._being_recorded: list[Step] = []
        self.later: dict[str, None] = {}
        """Postponed proposals, oldest first."""
        self._news: deque[str] = deque(maxlen=MAX_NEWS)
        self._executor = ThreadPoolExecutor(1, "review")
        self._seen: set[str] = set()
        self._read_at: tuple[int, int] | None = (0, 0)  # nothing read yet

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.record_held()
        self._executor.shutdown()
        refresh_kept(self.settings)

    def under_way(self) -> list[Step]:
        """Actions that are not in a table or file yet."""
        with self._lock:
            return [*self._being_recorded, *([self.held] if self.held else [])]

    def news(self) -> list[str]:
        """Results of earlier actions that were not shown yet, a sentence each."""
        with self._lock:
            return [self._news.popleft() for _ in range(len(self._news))]

    def take(self, step: Step) -> None:
        """Hold this action, which can be undone, and record the previous one."""
        with self._lock:
            self._queue_held()
            self.held = step
            self.later.pop(step.proposal_id, None)
            if step.done == LATER:
                self.later[step.proposal_id] = None
            self._timer = threading.Timer(self._held_seconds, self._record_if_held, (step,))
            self._timer.daemon = True
            self._timer.start()

    def undo(self) -> Step | None:
        """Undo the held action and return it; None if it is recorded already."""
        with self._lock:
            step, self.held = self.held, None
            if step:
                self.later.pop(step.proposal_id, None)
            return step

    def record_held(self) -> None:
        with self._lock:
            self._queue_held()

    def saw(self, proposal_ids: Sequence[str]) -> None:
        """Record that these proposals were shown to the user."""
        with self._lock:
            new = [p for p in proposal_ids if p not in self._seen]
            self._seen.update(new)
        if new:
            self._executor.submit(self._guarded, lambda: self._record_shown(new))

    def look(self) -> None:
        """Read new marks in REVIEW.md and wait until they are recorded, so that the page shows them."""
        if self._state_of_review() != self._read_at:
            self._executor.submit(self._guarded, self._reconcile).result()

    def wait(self) -> None:
        """Wait until all queued actions are recorded."""
        self._executor.submit(lambda: None).result()

    def _record_if_held(self, step: Step) -> None:
        with self._lock:
            if self.held is step:
                self._queue_held()

    def _queue_held(self) -> None:
        step, self.held = self.held, None
        if self._timer:
            self._timer.cancel()
        if step and step.done != LATER:
            self._being_recorded.append(step)
            self._executor.submit(self._guarded, lambda: self._record(step))

    def _guarded(self, work: Callable[[], object]) -> None:
        """Run the work and show its failure on the page; the decision is then still pending."""
        try:
            work()
        except (MemoryPipelineError, Timeout, OSError) as error:
            self._news.append(f"Not recorded; still pending: {error}")
        except Exception:
            logger.exception("a step on the page failed")
            self._news.append("Not recorded; still pending: the terminal where `memory open` runs says why.")

    def _record(self, step: Step) -> None:
        try:
            self._retire(step.line) if step.line else self._decide(step)
        finally:
            with self._lock:
                self._being_recorded.remove(step)
                is_last = not self._being_recorded
            if is_last:
                self._reconcile()

    def _decide(self, step: Step) -> None:
        p = step.proposal_id
        texts = {} if step.text is None else {p: step.text}
        sections = {} if step.section is None else {p: step.section}
        reasons = decide(
            self.workspace, {p: step.done}, now_utc(), surface=PAGE_SURFACE, texts=texts, sections=sections
        )
        if p in reasons:
            self._news.append(f"{p} is not promoted: {reasons[p]}")
        elif is_fix(p) and (how := left_to_the_user(ProposalLog(self.workspace.lake)).get(p)):
            self._news.append(visible(how))

    def _retire(self, line: MemoryLine) -> None:
        today = day_of(now_utc(), self.settings.zone)
        is_there = False

        def edit(current: bytes | None) -> bytes:
            nonlocal is_there
            struck = strike_line(current or b"", line, today)
            is_there = struck is not None
            return struck if struck is not None else current or b""

        if self.settings.memory_file.exists():
            update_file(self.settings.memory_file, edit, backups=self.settings.backups)
        if not is_there:
            self._news.append(f"This line is no longer in MEMORY.md: {line.text}")
        self._news.extend(refresh_agents(self.settings))

    def _reconcile(self) -> None:
        if not storage_of(self.settings).is_begun():
            return
        made = reconcile(self.workspace, now_utc())
        self._read_at = self._state_of_review()
        self._news.extend(made.news)

    def _record_shown(self, proposal_ids: Sequence[str]) -> None:
        with OpenLog.open(self.workspace) as log:
            log.record_shown(proposal_ids, now_utc(), surface=PAGE_SURFACE)

    def _state_of_review(self) -> tuple[int, int] | None:
        try:
            found = self.settings.review_file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
