"""A server on loopback that plays Todoist's API v1 as far as the review uses it, and fails where it is told to.

::

    with todoist_server() as server:
        monkeypatch.setattr("memory_pipeline.proposals.todoist.client.URL", server.url)
        ...                                     # the pipeline makes tasks
        server.complete("Use uv.", edited="Use uv, always.")   # a person does something
        server.fail("POST /tasks", Lost())      # the next such request does its work, and the answer is lost

Tasks come in pages of at most `page` however many are asked for, as Todoist's do at 200.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from memory_pipeline_tests.http_handler import LoopbackHandler

TOKEN = "0123456789abcdef-the-token"
API = "/api/v1"


@dataclass(frozen=True)
class Refuse:
    """The server answers with this status and does nothing."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = "scripted"


@dataclass(frozen=True)
class Lost:
    """The server does what it was asked to, and the connection dies before the answer."""


@dataclass(frozen=True)
class Garbled:
    """The server does what it was asked to and answers with something else than it should."""


@dataclass(frozen=True)
class Request:
    call: str
    """Method and path, like `POST /tasks`; ids are replaced by `{id}`."""
    query: dict[str, str]
    headers: dict[str, str]
    """With lower-case names."""
    body: Any


@dataclass
class TodoistServer:
    page: int = 50
    """Most tasks that one answer lists."""
    shows_deleted: bool = False
    """Whether a deleted task is still shown, marked as such, or not found."""
    shows_completed: bool = True
    """Whether a completed task can be asked for by its id."""
    remembers_requests: bool = True
    """Whether a request id that was used before makes no second task."""
    inbox: str = "inbox-of-mira"
    url: str = ""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    comments: list[tuple[str, str]] = field(default_factory=list)
    """Content of the task and text of each."""
    requests: list[Request] = field(default_factory=list)
    _failures: list[tuple[str, Refuse | Lost | Garbled]] = field(default_factory=list)
    _made: dict[str, str] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # --- what a person does ---

    def open(self) -> list[str]:
        """The contents of the open tasks, oldest first."""
        return [t["content"] for t in self.tasks.values() if not t["checked"] and not t["is_deleted"]]

    def task(self, content: str) -> dict[str, Any]:
        (found,) = [t for t in self.tasks.values() if t["content"] == content and not t["is_deleted"]]
        return found

    def complete(self, content: str, *, edited: str | None = None) -> None:
        task = self.task(content)
        task["content"] = edited or content
        self._complete(task)

    def delete(self, content: str) -> None:
        self.task(content)["is_deleted"] = True

    def label(self, content: str, *labels: str) -> None:
        self.task(content)["labels"] = list(labels)

    def add(self, content: str, *, label: str = "memory-review", description: str = "") -> dict[str, Any]:
        return self._store(_task(content, description, [label]))

    # --- what goes wrong ---

    def fail(self, call: str, failure: Refuse | Lost | Garbled, times: int = 1) -> None:
        """The next requests of this kind (see `Request.call`; `*` for any) fail so."""
        self._failures += [(call, failure)] * times

    def calls(self, call: str) -> list[Request]:
        return [request for request in self.requests if request.call == call]

    # --- the API ---

    def answer(self, request: Request, task_id: str | None) -> tuple[int, Any] | None:
        """Status and body; None when the connection is to die."""
        with self._lock:
            self.requests.append(request)
            failure = self._failure_of(request.call)
            if isinstance(failure, Refuse):
                return failure.status, failure
            if request.headers.get("authorization") != f"Bearer {TOKEN}":
                return 401, {"error": "Unauthorized", "error_code": 401}
            done = self._do(request, task_id)
            if isinstance(failure, Lost):
                return None
            return (200, ["no object"]) if isinstance(failure, Garbled) else done

    def _failure_of(self, call: str) -> Refuse | Lost | Garbled | None:
        for index, (wanted, failure) in enumerate(self._failures):
            if wanted in (call, "*"):
                del self._failures[index]
                return failure
        return None

    def _do(self, request: Request, task_id: str | None) -> tuple[int, Any]:
        task = self.tasks.get(task_id or "")
        hidden = task is not None and (
            (task["is_deleted"] and not self.shows_deleted) or (task["checked"] and not self.shows_completed)
        )
        if task_id is not None and (task is None or hidden):
            return 404, {"error": "Task not found", "http_code": 404}
        if request.call == "GET /tasks":
            label = request.query.get("label")
            live = [t for t in self.tasks.values() if not t["checked"] and not t["is_deleted"]]
            return 200, self._page("results", [t for t in live if label is None or label in t["labels"]], request)
        if request.call == "GET /tasks/completed/by_completion_date":
            done = [t for t in self.tasks.values() if t["checked"] and not t["is_deleted"]]
            since, until = request.query["since"], request.query["until"]
            return 200, self._page("items", [t for t in done if since <= t["completed_at"] <= until], request)
        if request.call == "GET /projects":
            return 200, {"results": [_project("p-1", "Home"), _project(self.inbox, "Inbox", True)], "next_cursor": None}
        if request.call == "POST /comments":
            return self._comment(request)
        if request.call == "POST /tasks":
            return 200, self._create(request)
        if task is not None and request.call == "GET /tasks/{id}":
            return 200, task
        if task is not None and request.call == "POST /tasks/{id}/close":
            self._complete(task)
            return 204, None
        if task is not None and request.call == "DELETE /tasks/{id}":
            task["is_deleted"] = True
            return 204, None
        return 404, {"error": f"{request.call} is not played here"}

    def _page(self, name: str, tasks: list[dict[str, Any]], request: Request) -> dict[str, Any]:
        start = int(request.query.get("cursor", "c0").removeprefix("c"))
        size = min(self.page, int(request.query.get("limit", 50)))
        more = start + size < len(tasks)
        return {name: tasks[start : start + size], "next_cursor": f"c{start + size}" if more else None}

    def _create(self, request: Request) -> dict[str, Any]:
        key = request.headers["x-request-id"]
        if self.remembers_requests and key in self._made:
            return self.tasks[self._made[key]]
        body = request.body
        content, labels = body["content"], list(body.get("labels", []))
        if body.get("auto_parse_labels", True):
            labels += re.findall(r"@(\S+)", content)
            content = re.sub(r"\s*@\S+", "", content)
        if not 0 < len(content) <= 500:
            return {"error": "content is too long"}
        task = self._store(_task(content, body.get("description", ""), labels))
        self._made[key] = task["id"]
        return task

    def _comment(self, request: Request) -> tuple[int, Any]:
        task_id, text = request.body["task_id"], request.body["content"]
        if task_id not in self.tasks:
            return 404, {"error": "Task not found"}
        key = request.headers["x-request-id"]
        if not self.remembers_requests or key not in self._made:
            self._made[key] = task_id
            self.comments.append((self.tasks[task_id]["content"], text))
        return 200, {"id": "c1", "content": text, "posted_uid": "7", "posted_at": _stamp(), "item_id": task_id}

    def _store(self, task: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            task_id = f"6X{len(self.tasks):04d}"
            self.tasks[task_id] = {**task, "id": task_id}
            return self.tasks[task_id]

    def _complete(self, task: dict[str, Any]) -> None:
        if task["content"].startswith("* "):
            return  # Todoist takes it for a heading
        task["checked"], task["completed_at"] = True, _stamp()


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _task(content: str, description: str, labels: list[str]) -> dict[str, Any]:
    empty = ("section_id", "parent_id", "due", "deadline", "duration", "responsible_uid", "assigned_by_uid")
    task: dict[str, Any] = dict.fromkeys([*empty, "completed_at"])
    task |= {"content": content, "description": description, "labels": labels, "project_id": "inbox", "user_id": "7"}
    task |= {"priority": 1, "child_order": 1, "is_collapsed": False, "added_by_uid": "7", "added_at": _stamp()}
    return task | {"updated_at": _stamp(), "checked": False, "is_deleted": False, "note_count": 0, "day_order": -1}


def _project(project_id: str, name: str, is_inbox: bool = False) -> dict[str, Any]:
    project: dict[str, Any] = dict.fromkeys(("is_collapsed", "is_shared", "is_favorite", "is_archived"), False)
    project |= {"id": project_id, "name": name, "description": "", "child_order": 0, "color": "charcoal"}
    project |= {"can_assign_tasks": False, "view_style": "list", "created_at": _stamp(), "updated_at": _stamp()}
    return project | {"inbox_project": is_inbox, "parent_id": None}


@contextmanager
def todoist_server(**how: Any) -> Iterator[TodoistServer]:
    """A server on a free port of 127.0.0.1, for as long as the `with` block lasts."""
    server = TodoistServer(**how)
    http = _QuietServer(("127.0.0.1", 0), _handler_of(server))
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the tests."""


def _handler_of(server: TodoistServer) -> type[BaseHTTPRequestHandler]:
    class Handler(LoopbackHandler):
        def _handle(self) -> None:
            parts = urlsplit(self.path)
            path = parts.path.removeprefix(API)
            found = re.fullmatch(r"/tasks/(6X\d+|gone)(/\w+)?", path)
            call = f"{self.command} /tasks/{{id}}{found[2] or ''}" if found else f"{self.command} {path}"
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            answer = server.answer(Request(call, query, headers, body), found[1] if found else None)
            if answer is None:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            status, content = answer
            extra = content.headers if isinstance(content, Refuse) else {}
            content = content.body if isinstance(content, Refuse) else content
            data = b"" if status == 204 else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": f"{len(data)}", **extra}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _handle

    return Handler
