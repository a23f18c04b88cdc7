"""The calls of Todoist's API that the review needs, each with a timeout, and errors with readable messages.

The token never appears in a message, table or log: errors of the HTTP library are rewritten and not chained.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from memory_pipeline.errors import CannotGoOnError, TryAgainLaterError
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip

if TYPE_CHECKING:
    import httpx
    from todoist_api_python.models import Task

URL = "https://api.todoist.com"
LABEL, REJECTED_LABEL = "memory-review", "rejected"
OPEN, COMPLETED, DELETED = "open", "completed", "deleted"
PAGE, MAX_PAGES = 200, 20
"""Items per page, and maximum pages of a list, in case a server always names a next page."""
SECONDS = 30.0
"""Timeout in seconds of each step of a request."""
PATIENCE = 60.0
"""Total seconds that a pass waits when Todoist asks for it."""
WAIT_UNSAID = 60.0
_TOKEN = re.compile(r"[!-~]+")
T = TypeVar("T")


class TodoistBusyError(TryAgainLaterError):
    """Todoist did not answer, or asks the client to wait."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class TodoistRefusedError(CannotGoOnError):
    """Requests cannot succeed: the token is missing or wrong, or belongs to another account."""


class _NotFoundError(TodoistRefusedError):
    """There is no such task."""


@dataclass(frozen=True)
class ReviewTask:
    """A task in its current state."""

    task_id: str
    content: str
    description: str
    labels: tuple[str, ...]
    state: str = OPEN

    @property
    def is_rejected(self) -> bool:
        return REJECTED_LABEL in self.labels


class Todoist:
    """A connection to Todoist, for use in a `with` block."""

    def __init__(self, token: str | None, *, patience: float = PATIENCE, seconds: float = SECONDS) -> None:
        import httpx
        from todoist_api_python.api import TodoistAPI

        if not token or not _TOKEN.fullmatch(token):
            what = "holds characters that no token has" if token else "is not set"
            raise TodoistRefusedError(
                f"TODOIST_API_TOKEN {what}; copy it from Todoist, Settings, Integrations, Developer, "
                "or unset MEMORY_TODOIST."
            )
        self._token, self._patience, self._seconds = token, patience, seconds
        self._request_id: str | None = None
        # hooks instead of a custom transport, with which httpx would bypass the machine's proxy
        hooks: dict[str, list[Callable[..., Any]]] = {"request": [self._prepare], "response": [self._note_deleted]}
        self._http = httpx.Client(event_hooks=hooks)
        self._api = TodoistAPI(token, lambda: self._request_id or str(uuid4()), self._http)
        self._deleted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._http.close()

    def review_tasks(self) -> list[ReviewTask]:
        """The open tasks with the label."""
        return [_task(task) for task in self._pages(lambda: self._api.get_tasks(label=LABEL, limit=PAGE))]

    def completed(self, since: datetime, until: datetime) -> list[ReviewTask]:
        """All tasks completed in the period of at most three months, whatever their current labels."""
        asked = self._api.get_completed_tasks_by_completion_date
        return [_task(task, COMPLETED) for task in self._pages(lambda: asked(since=since, until=until, limit=PAGE))]

    def find(self, task_id: str) -> ReviewTask:
        """The task in any state; a missing one counts as deleted."""
        self._deleted = False
        try:
            task = self._call(lambda: self._api.get_task(task_id))
        except _NotFoundError:
            return ReviewTask(task_id, "", "", (), DELETED)
        if self._deleted:
            return _task(task, DELETED)
        return _task(task, COMPLETED if task.is_completed else OPEN)

    def add(self, content: str, description: str, request_id: str) -> ReviewTask:
        """Create a task with the label. Repeating the request id does not create a second one, as far as Todoist
        remembers it."""
        self._request_id = request_id
        try:
            # without the last argument, Todoist would turn an @name in the line into a label
            added = self._call(
                lambda: self._api.add_task(content, description=description, labels=[LABEL], auto_parse_labels=False)
            )
        finally:
            self._request_id = None
        return _task(added)

    def comment(self, task_id: str, text: str, request_id: str) -> None:
        self._request_id = request_id
        try:
            self._ignoring_missing(lambda: self._api.add_comment(text, task_id=task_id))
        finally:
            self._request_id = None

    def close(self, task_id: str) -> None:
        """Complete the task; a missing task is ignored."""
        self._ignoring_missing(lambda: self._api.complete_task(task_id))

    def delete(self, task_id: str) -> None:
        self._ignoring_missing(lambda: self._api.delete_task(task_id))

    def account(self) -> str:
        """The id of the account's inbox, of which each account has exactly one."""
        for project in self._pages(lambda: self._api.get_projects(limit=PAGE)):
            if project.is_inbox_project:
                return str(project.id)
        raise TodoistRefusedError(
            "Todoist names no inbox for the account of TODOIST_API_TOKEN; give one that may read it."
        )

    def _pages(self, ask: Callable[[], Iterator[list[T]]]) -> list[T]:
        pages = ask()
        found: list[T] = []
        for _ in range(MAX_PAGES):
            page = self._call(lambda: next(pages, None))
            if page is None:
                break
            found += page
        return found

    def _ignoring_missing(self, ask: Callable[[], object]) -> None:
        with contextlib.suppress(_NotFoundError):
            self._call(ask)

    def _call(self, ask: Callable[[], T]) -> T:
        """Make a request, and wait and retry as Todoist asks, up to the patience of this connection."""
        import httpx

        while True:
            try:
                return ask()
            except httpx.HTTPStatusError as error:
                response = error.response
            except httpx.HTTPError as error:
                raise TodoistBusyError(
                    f"Todoist did not answer ({type(error).__name__}); the next synchronization tries again."
                ) from None
            except Exception as error:  # the library has no exception for an unreadable answer
                raise TodoistBusyError(f"Todoist's answer cannot be read ({type(error).__name__}).") from None
            wait = self._judge(response)
            if wait > self._patience:
                told = f"Todoist asks to wait {wait:.0f} seconds (429); a later synchronization tries again."
                raise TodoistBusyError(told, wait)
            self._patience -= wait
            time.sleep(wait)

    def _judge(self, response: httpx.Response) -> float:
        """Seconds to wait before repeating the request; raises if that would not help."""
        status = response.status_code
        if status == 429:
            return _seconds(response.headers.get("Retry-After"))
        asked = f"{response.request.method} {response.request.url.path}"
        if status == 404:
            raise _NotFoundError(f"Todoist does not know {asked} (404).")
        if status in (401, 403):
            raise TodoistRefusedError(
                f"Todoist does not accept TODOIST_API_TOKEN ({status}); copy it again from Todoist, Settings, "
                f"Integrations, Developer.{self._error_message(response)}"
            )
        if status >= 500:
            raise TodoistBusyError(f"Todoist is unavailable ({status}); the next synchronization tries again.")
        raise TodoistRefusedError(f"Todoist refused {asked} ({status}).{self._error_message(response)}")

    def _error_message(self, response: httpx.Response) -> str:
        said = clip(one_line(response.text.replace(self._token, "…")), 100)
        return f" It says: {said}" if said else ""

    def _prepare(self, request: httpx.Request) -> None:
        """Set the timeout of a request, shorter than the library's, and the address of `URL`."""
        import httpx

        request.extensions["timeout"] = httpx.Timeout(self._seconds).as_dict()
        base = httpx.URL(URL)
        request.url = request.url.copy_with(scheme=base.scheme, host=base.host, port=base.port)
        request.headers["Host"] = base.netloc.decode()

    def _note_deleted(self, response: httpx.Response) -> None:
        """Note deleted tasks, which Todoist still returns with a mark that the library drops."""
        response.read()
        self._deleted = bool(re.search(rb'"is_deleted"\s*:\s*true', response.content))


def open_todoist(settings: Settings, *, patience: float = PATIENCE, seconds: float = SECONDS) -> Todoist:
    """A connection with the token of the settings. Raises `TodoistRefusedError` if there is no valid token."""
    return Todoist(settings.todoist.api_token, patience=patience, seconds=seconds)


def _task(task: Task, state: str = OPEN) -> ReviewTask:
    return ReviewTask(task.id, task.content, task.description or "", tuple(task.labels or ()), state)


def _seconds(header: str | None) -> float:
    return max(1.0, float(header)) if header and header.strip().isdigit() else WAIT_UNSAID
