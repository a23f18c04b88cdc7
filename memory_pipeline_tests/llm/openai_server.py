"""A server on loopback that speaks OpenAI's chat protocol (and three others, see `answer_of`) from a script.

::

    with openai_server(["Hello.", Fail(429, headers={"Retry-After": "7"}), Say("Bye.")]) as server:
        ...  # a client talks to server.url
    assert [asked.prompt for asked in server.requests] == ["one", "two", "two"]

    with openai_server(lambda asked: f"You said {asked.prompt}.") as server: ...
    with openai_server(Fail(500)) as server: ...  # every time

A list is taken turn by turn; when it is used up, the server refuses with a sentence that says so.
"""

from __future__ import annotations

import base64
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

from memory_pipeline_tests.http_handler import LoopbackHandler

USED_UP = "The script has no more turns."


@dataclass(frozen=True)
class Say:
    """The model answers."""

    text: str | None
    finish: str = "stop"
    tokens: tuple[int, int] | None = (100, 10)
    """In and out, as the server counts them; None: it does not say."""
    after: float = 0.0
    """Seconds that it takes."""
    cached: int = 0
    """Of the tokens in, those that it read from its cache."""
    model: str | None = None
    """What it calls itself; None: as it was asked for. In the chat protocol alone."""


@dataclass(frozen=True)
class Fail:
    """The server refuses."""

    status: int
    message: str = "scripted"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Body:
    """The server answers with status 200 and this, whatever it is."""

    data: bytes
    kind: str = "application/json"


@dataclass(frozen=True)
class Cut:
    """The connection is cut off in the middle of the answer."""


@dataclass(frozen=True)
class Drip:
    """The answer comes byte by byte and never ends."""


Turn = str | Say | Fail | Body | Cut | Drip


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    """With lower-case names."""
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Of the chat protocol and of Anthropic's, or the input of the responses protocol."""
        return self.body["messages"] if "messages" in self.body else self.body["input"]

    @property
    def system(self) -> str:
        apart = _text(self.body.get("system") or self.body.get("instructions"))
        inside = (_text(m["content"]) for m in self.messages if m["role"] in ("system", "developer"))
        return "\n".join(filter(None, [apart, *inside]))

    @property
    def prompt(self) -> str:
        return "\n".join(_text(m["content"]) for m in self.messages if m["role"] == "user")

    @property
    def schema(self) -> dict[str, Any] | None:
        """What the answer has to fit, wherever the protocol puts it."""
        form = self.body.get("response_format") or self.body.get("output_config") or self.body.get("text") or {}
        form = form.get("json_schema") or form.get("format") or form
        found: dict[str, Any] | None = form.get("schema") or self.body.get("generationConfig", {}).get(
            "responseJsonSchema"
        )
        return found

    @property
    def images(self) -> list[bytes]:
        parts = [p for m in self.body["messages"] if isinstance(m["content"], list) for p in m["content"]]
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        return [base64.b64decode(url.partition(",")[2]) for url in urls]


Script = Turn | Sequence[Turn] | Callable[[Asked], Turn]


@dataclass
class OpenAIServer:
    """The running server. `requests` holds what was asked, in order."""

    script: Script
    requests: list[Asked] = field(default_factory=list)
    url: str = ""
    """With /v1, as OPENAI_BASE_URL has it."""
    closing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        turns = self.script
        self._turns = deque(turns) if isinstance(turns, Sequence) and not isinstance(turns, str) else None

    @property
    def host_url(self) -> str:
        return self.url.removesuffix("/v1")

    def turn(self, asked: Asked) -> Turn:
        with self._lock:
            self.requests.append(asked)
            if self._turns is not None:
                return self._turns.popleft() if self._turns else Fail(400, USED_UP)
        return self.script(asked) if callable(self.script) else self.script  # type: ignore[return-value]


@contextmanager
def openai_server(script: Script = "Answered.") -> Iterator[OpenAIServer]:
    """A server on a free port of 127.0.0.1, for as long as the `with` block lasts."""
    with serving(OpenAIServer(script)) as server:
        yield server


_Server = TypeVar("_Server", bound=OpenAIServer)


@contextmanager
def serving(server: _Server, handler: type[BaseHTTPRequestHandler] | None = None) -> Iterator[_Server]:
    http = _QuietServer(("127.0.0.1", 0), handler or handler_of(server))
    server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        http.shutdown()
        http.server_close()
        thread.join()


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the tests."""


def handler_of(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(LoopbackHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            turn = server.turn(asked)
            turn = Say(turn) if isinstance(turn, str) else turn
            if isinstance(turn, Fail):
                error = {"message": turn.message, "type": "scripted", "code": turn.code, "status": turn.code}
                self._send(turn.status, json.dumps({"type": "error", "error": error}).encode(), headers=turn.headers)
            elif isinstance(turn, Body):
                self._send(200, turn.data, turn.kind)
            elif isinstance(turn, Cut):
                self._send(200, b'{"id": "chatcmpl-1", "choi', length=10_000)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
            elif isinstance(turn, Drip):
                self._send(200, b"", length=1_000_000)
                while not server.closing.wait(0.05):
                    self.wfile.write(b" ")
            else:
                server.closing.wait(turn.after)
                self._send(200, json.dumps(answer_of(asked, turn)).encode())

        def _send(
            self,
            status: int,
            data: bytes,
            kind: str = "application/json",
            *,
            length: int | None = None,
            headers: dict[str, str] | None = None,
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data) if length is None else length))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

    return Handler


def answer_of(asked: Asked, turn: Say) -> dict[str, Any]:
    asked_tokens, answered_tokens = turn.tokens or (0, 0)
    if asked.path.endswith("/messages"):
        reason = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[turn.finish]
        content = [{"type": "text", "text": turn.text}] if turn.text else []
        usage = {"input_tokens": asked_tokens - turn.cached, "output_tokens": answered_tokens}
        usage |= {"cache_read_input_tokens": turn.cached}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.body["model"]}
        return message | {"content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}
    if ":generateContent" in asked.path:
        reason = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}[turn.finish]
        parts = [{"text": turn.text}] if turn.text else []
        usage = {"promptTokenCount": asked_tokens, "candidatesTokenCount": answered_tokens}
        usage |= {"totalTokenCount": asked_tokens + answered_tokens, "cachedContentTokenCount": turn.cached}
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini"}
    if asked.path.endswith("/responses"):
        part = {"type": "output_text", "text": turn.text or "", "annotations": []}
        output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}]
        reason = {"length": "max_output_tokens"}.get(turn.finish, turn.finish)
        details = None if turn.finish == "stop" else {"reason": reason}
        usage = {"input_tokens": asked_tokens, "output_tokens": answered_tokens}
        usage |= {"total_tokens": asked_tokens + answered_tokens}
        response = {"id": "r", "object": "response", "created_at": 1735689600, "model": asked.body["model"]}
        response |= {"status": "incomplete" if details else "completed", "incomplete_details": details}
        response |= {"parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "output": output}
        counts = {
            "input_tokens_details": {"cached_tokens": turn.cached},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return response | {"usage": usage | counts}
    choice = {"index": 0, "message": {"role": "assistant", "content": turn.text}, "finish_reason": turn.finish}
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1735689600}
    answer |= {"model": turn.model or asked.body["model"]}
    answer |= {"choices": [choice]}
    if turn.tokens:
        total = asked_tokens + answered_tokens
        usage = {"prompt_tokens": asked_tokens, "completion_tokens": answered_tokens, "total_tokens": total}
        answer |= {"usage": usage | {"prompt_tokens_details": {"cached_tokens": turn.cached}}}
    return answer


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content or [] if part["type"] in ("text", "input_text"))
