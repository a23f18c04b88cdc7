"""The calls of Todoist's API that the review needs, each with a timeout, and errors with readable messages.

The token never appears in a message, table or log.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from memory_pipeline.errors import CannotGoOnError, TryAgainLaterError
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.text.sentences import clip

URL, API = "https://api.todoist.com", "/api/v1"
LABEL, REJECTED_LABEL = "memory-review", "rejected"
OPEN, COMPLETED, DELETED = "open", "completed", "deleted"
PAGE, MAX_PAGES = 200, 20
"""Items per page, and maximum pages of a list, in case a server always names a next page."""
SECONDS = 30.0
"""Timeout in seconds of each step of a request."""
PATIENCE = 60.0
"""Total seconds that a pass waits when Todoist asks for it."""
DEFAULT_WAIT = 60.0
"""Seconds to wait if Todoist does not say how long."""
_TOKEN = re.compile(r"[!-~]+")
_RENEW = "copy it from Todoist, Settings, Integrations, Developer"


class TodoistBusyError(TryAgainLaterError):
    """Todoist did not answer, or asks the client to wait."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class TodoistRefusedError(CannotGoOnError):
    """Requests cannot succeed: the token is missing or wrong, or belongs to another account."""


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


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """A redirect is an error, as it would send the token to another server."""


class Todoist:
    """The API for one token."""

    def __init__(self, token: str | None, *, patience: float = PATIENCE, seconds: float = SECONDS) -> None:
        if not token or not _TOKEN.fullmatch(token):
            what = "holds characters that no token has" if token else "is not set"
            raise TodoistRefusedError(f"TODOIST_API_TOKEN {what}; {_RENEW}, or unset MEMORY_TODOIST.")
        self._token, self._patience, self._seconds = token, patience, seconds
        self._opener = build_opener(_NoRedirect)

    def review_tasks(self) -> list[ReviewTask]:
        """The open tasks with the label."""
        return [_task(task) for task in self._pages("/tasks", "results", label=LABEL)]

    def completed(self, since: datetime, until: datetime) -> list[ReviewTask]:
        """All tasks completed in the period of at most three months, whatever their current labels."""
        period = {"since": _rfc3339(since), "until": _rfc3339(until)}
        return [_task(task) for task in self._pages("/tasks/completed/by_completion_date", "items", **period)]

    def find(self, task_id: str) -> ReviewTask:
        """The task in any state; a missing one counts as deleted."""
        task = self._call("GET", f"/tasks/{task_id}")
        return ReviewTask(task_id, "", "", (), DELETED) if task is None else _task(task)

    def add(self, content: str, description: str, request_id: str) -> ReviewTask:
        """Create a task with the label. Repeating the request id does not create a second one, as far as Todoist
        remembers it."""
        # without the last argument, Todoist would turn an @name in the line into a label
        body = {"content": content, "description": description, "labels": [LABEL], "auto_parse_labels": False}
        return _task(self._call("POST", "/tasks", body, request_id=request_id) or {})

    def comment(self, task_id: str, text: str, request_id: str) -> None:
        self._call("POST", "/comments", {"task_id": task_id, "content": text}, request_id=request_id)

    def close(self, task_id: str) -> None:
        """Complete the task; a missing task is ignored."""
        self._call("POST", f"/tasks/{task_id}/close")

    def account(self) -> str:
        """The id of the account's inbox, of which each account has exactly one."""
        for project in self._pages("/projects", "results"):
            if project["inbox_project"]:
                return str(project["id"])
        raise TodoistRefusedError(
            "Todoist names no inbox for the account of TODOIST_API_TOKEN; give one that may read it."
        )

    def _pages(self, path: str, name: str, **query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for _ in range(MAX_PAGES):
            page = self._call("GET", f"{path}?{urlencode(query | {'limit': PAGE})}") or {}
            found += page[name]
            if not (cursor := page["next_cursor"]):
                break
            query["cursor"] = cursor
        return found

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, request_id: str = ""
    ) -> dict[str, Any] | None:
        """The answer; None if Todoist does not know the task. Waits and retries as Todoist asks, up to the patience of
        this connection."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        headers |= {"X-Request-Id": request_id} if request_id else {}
        data = None if body is None else json.dumps(body).encode()
        while True:
            request = Request(f"{URL}{API}{path}", data, headers, method=method)
            try:
                with self._opener.open(request, timeout=self._seconds) as response:
                    content = response.read()
                answer = json.loads(content) if content else {}
                break
            except HTTPError as error:
                if error.code == 404:
                    return None
                self._wait_or_raise(error, f"{method} {API}{path.partition('?')[0]}")
            except (OSError, HTTPException, ValueError) as error:
                raise TodoistBusyError(
                    f"Todoist did not answer ({type(error).__name__}); the next synchronization tries again."
                ) from None
        if not isinstance(answer, dict):
            raise TodoistBusyError(f"Todoist's answer to {method} {path.partition('?')[0]} cannot be read.")
        return answer

    def _wait_or_raise(self, error: HTTPError, asked: str) -> None:
        """Wait before the request is repeated; raises if that would not help."""
        said = clip(one_line(error.read().decode("utf-8", "replace").replace(self._token, "…")), 100)
        said = f" It says: {said}" if said else ""
        if error.code in (401, 403):
            raise TodoistRefusedError(
                f"Todoist does not accept TODOIST_API_TOKEN ({error.code}); {_RENEW}.{said}"
            ) from None
        if error.code >= 500:
            raise TodoistBusyError(
                f"Todoist is unavailable ({error.code}); the next synchronization tries again."
            ) from None
        if error.code != 429:
            raise TodoistRefusedError(f"Todoist refused {asked} ({error.code}).{said}") from None
        header = error.headers.get("Retry-After", "").strip()
        wait = max(1.0, float(header)) if header.isdigit() else DEFAULT_WAIT
        if wait > self._patience:
            message = f"Todoist asks to wait {wait:.0f} seconds (429); a later synchronization tries again."
            raise TodoistBusyError(message, wait) from None
        self._patience -= wait
        time.sleep(wait)


def _rfc3339(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _task(task: dict[str, Any]) -> ReviewTask:
    state = DELETED if task["is_deleted"] else COMPLETED if task["checked"] else OPEN
    return ReviewTask(str(task["id"]), task["content"], task["description"], tuple(task["labels"]), state)
