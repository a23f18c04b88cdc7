"""The scripted server with batches: OpenAI's files and batches, and Anthropic's message batches.

::

    with batch_server(lambda asked: f"You said {asked.prompt}.") as server:
        ...             # a client sends a batch to server.url (OpenAI) or server.host_url (Anthropic)
        server.end()    # all batches have their answers now

A turn that is `Fail` fails its request, `Expire` ends it undone. Requests of batches are in `server.batched`, those
that are asked alone in `server.requests`.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

from memory_pipeline_tests.llm.openai_server import (
    Asked,
    Fail,
    OpenAIServer,
    Say,
    Script,
    answer_of,
    handler_of,
    serving,
)


@dataclass(frozen=True)
class Expire:
    """The batch ends before it comes to the request."""


@dataclass
class BatchServer(OpenAIServer):
    """The running server."""

    batched: list[Asked] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    """As OpenAI or Anthropic would show them."""
    lines: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The requests of each batch."""
    results: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Of Anthropic's."""
    refusal: Fail | None = None
    """Answers every attempt to make a batch."""
    hold: threading.Event | None = None
    """Keeps a batch that is made from being told to who made it."""
    made: threading.Event = field(default_factory=threading.Event)
    """A batch was made."""

    def make(self, lines: list[dict[str, Any]], input_file: str | None) -> dict[str, Any]:
        name = f"{'batch' if input_file else 'msgbatch'}_{len(self.batches) + 1}"
        self.lines[name] = lines
        now = datetime.now(UTC)
        if input_file:
            self.batches[name] = {
                **{"id": name, "object": "batch", "endpoint": "/v1/responses", "completion_window": "24h"},
                **{"created_at": int(time.time()), "input_file_id": input_file, "status": "in_progress"},
                "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            }
        else:
            counts = {"processing": len(lines), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
            self.batches[name] = {
                **{"id": name, "type": "message_batch", "processing_status": "in_progress", "request_counts": counts},
                **{"created_at": now.isoformat(), "expires_at": (now + timedelta(days=1)).isoformat()},
                **{"archived_at": None, "cancel_initiated_at": None, "ended_at": None, "results_url": None},
            }
        return self.batches[name]

    def end(self, failed: str | None = None) -> None:
        """End all batches: answered by the script, or not taken at all, as the reason says."""
        for name, batch in self.batches.items():
            if name.startswith("msgbatch"):
                self._end_anthropic(name, batch)
            elif failed:
                errors = [{"code": "token_limit_exceeded", "message": failed, "line": None}]
                batch |= {"status": "failed", "errors": {"object": "list", "data": errors}}
            elif batch["status"] == "in_progress":
                self._end_openai(name, batch)

    def _turn(self, line: dict[str, Any], path: str, body: dict[str, Any]) -> Any:
        asked = Asked(path, {"custom_id": line["custom_id"]}, body)
        self.batched.append(asked)
        turn = self.script(asked) if callable(self.script) else self.script
        return Say(turn) if isinstance(turn, str) else turn, asked

    def _end_openai(self, name: str, batch: dict[str, Any]) -> None:
        good, bad, status = [], [], "completed"
        for line in self.lines[name]:
            turn, asked = self._turn(line, line["url"], line["body"])
            said: dict[str, Any] = {"id": "batch_req_1", "custom_id": line["custom_id"], "error": None}
            if isinstance(turn, Expire):
                status = "expired"
                bad.append(said | {"response": None, "error": {"code": "batch_expired", "message": "too late"}})
            elif isinstance(turn, Fail):
                body = {"error": {"message": turn.message, "type": "scripted", "code": turn.code}}
                bad.append(said | {"response": {"status_code": turn.status, "request_id": "r", "body": body}})
            else:
                response = {"status_code": 200, "request_id": "r", "body": answer_of(asked, turn)}
                good.append(said | {"response": response})
        batch["status"] = status
        for which, found in (("output_file_id", good), ("error_file_id", bad)):
            if found:
                batch[which] = f"file-{name}-{which}"
                self.files[batch[which]] = "\n".join(map(json.dumps, reversed(found))).encode()

    def _end_anthropic(self, name: str, batch: dict[str, Any]) -> None:
        self.results[name] = []
        for line in self.lines[name]:
            turn, asked = self._turn(line, "/v1/messages", line["params"])
            result: dict[str, Any]
            if isinstance(turn, Expire):
                result = {"type": "expired"}
            elif isinstance(turn, Fail):
                error = {"type": turn.code or "invalid_request_error", "message": turn.message}
                result = {"type": "errored", "error": {"type": "error", "error": error, "request_id": "r"}}
            else:
                result = {"type": "succeeded", "message": answer_of(asked, turn)}
            self.results[name].append({"custom_id": line["custom_id"], "result": result})
        batch |= {"processing_status": "ended", "ended_at": datetime.now(UTC).isoformat()}
        batch["results_url"] = f"{self.host_url}/v1/messages/batches/{name}/results"


@contextmanager
def batch_server(script: Script | Any = "Answered.") -> Iterator[BatchServer]:
    server = BatchServer(script)
    with serving(server, _handler_of(server)):
        yield server


def _handler_of(server: BatchServer) -> type[BaseHTTPRequestHandler]:
    class Handler(handler_of(server)):  # type: ignore[misc]
        def do_POST(self) -> None:
            path = self.path.partition("?")[0]
            if not re.search(r"/(files|batches)(/|$)", path):
                super().do_POST()
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if path.endswith("/files"):
                name = f"file-{len(server.files) + 1}"
                server.files[name] = _uploaded(self.headers["Content-Type"], body)
                self._json(
                    {"id": name, "object": "file", "bytes": len(body), "created_at": 1, "filename": "batch.jsonl"}
                    | {"purpose": "batch", "status": "processed"}
                )
            elif path.endswith("/cancel"):
                batch = server.batches[path.split("/")[-2]]
                batch["status" if "status" in batch else "processing_status"] = "cancelling"
                self._json(batch)
            elif server.refusal:
                error = {"message": server.refusal.message, "type": "scripted", "code": server.refusal.code}
                self._json({"type": "error", "error": error}, server.refusal.status)
            else:
                asked = json.loads(body)
                if "requests" in asked:
                    batch = server.make(asked["requests"], None)
                else:
                    lines = server.files[asked["input_file_id"]].splitlines()
                    batch = server.make([json.loads(line) for line in lines], asked["input_file_id"])
                server.made.set()
                if server.hold:
                    server.hold.wait()
                self._json(batch)

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            name = path.split("/")[-1]
            if path.endswith("/batches"):
                found = list(reversed(server.batches.values()))
                self._json({"object": "list", "data": found, "has_more": False, "first_id": None, "last_id": None})
            elif path.endswith("/results"):
                self._send(200, "\n".join(map(json.dumps, server.results[path.split("/")[-2]])).encode())
            elif path.endswith("/content") and (file := path.split("/")[-2]) in server.files:
                self._send(200, server.files[file], "application/octet-stream")
            elif name in server.batches:
                self._json(server.batches[name])
            else:
                self._json({"error": {"message": f"No such thing: {path}", "type": "not_found", "code": None}}, 404)

        def do_DELETE(self) -> None:
            name = self.path.partition("?")[0].split("/")[-1]
            server.files.pop(name, None)
            server.batches.pop(name, None)
            self._json({"id": name, "object": "file", "type": "message_batch_deleted", "deleted": True})

        def _json(self, body: dict[str, Any], status: int = 200) -> None:
            self._send(status, json.dumps(body).encode())

    return Handler


def _uploaded(kind: str, body: bytes) -> bytes:
    """The file of a form."""
    boundary = kind.partition("boundary=")[2].encode()
    part = next(part for part in body.split(b"--" + boundary) if b"filename=" in part)
    return part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
