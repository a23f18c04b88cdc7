"""A model that says what a test wants it to say: OpenAI's two protocols on loopback, answered from a script.

::

    with ModelServer(Call("bash", {"command": "echo hello"}), Say("Done."), Fail(400, "no such thing")) as server:
        ...  # a harness talks to server.url with the model named SCRIPTED

Every request for the model `SCRIPTED` takes the next turn of the script; a request for any other model, as harnesses
make to find a title, is answered with `ASIDE` and takes none. `POST /v1/chat/completions` and `POST /v1/responses`
both stream when asked to. A harness that asks more often than the script has turns gets an error that says so.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memory_pipeline_tests.http_handler import LoopbackHandler

SCRIPTED = "scripted-model"
ASIDE = "A title of the test"
_MODEL_TIME = 1735689600
_CALL_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Say:
    """The model answers with a text, after some thought if there is any."""

    text: str
    thought: str = ""
    tokens: int = 100
    """How many tokens the server says the whole of the prompt had, by which a harness decides to compact."""


@dataclass(frozen=True)
class Call:
    """The model calls a tool, after a text if there is one."""

    name: str
    arguments: dict[str, Any]
    text: str = ""
    thought: str = ""
    tokens: int = 100
    call_id: str = field(default_factory=lambda: f"call_{next(_CALL_NUMBERS)}")
    namespace: str = ""
    """What the tool is listed under, where it is in one: Codex has one for each MCP server."""


@dataclass(frozen=True)
class Fail:
    """The server refuses."""

    status: int
    message: str


Turn = Say | Call | Fail


@dataclass
class ModelServer:
    """A server on a free port of 127.0.0.1, for as long as the `with` block lasts."""

    turns: deque[Turn]
    requests: list[dict[str, Any]] = field(default_factory=list)
    """What was asked of the scripted model, in order."""

    def __init__(self, *turns: Turn) -> None:
        self.turns, self.requests = deque(turns), []
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def script(self, *turns: Turn) -> None:
        """Add turns to the end of the script."""
        with self._lock:
            self.turns.extend(turns)

    def answer(self, request: dict[str, Any]) -> Turn:
        if request.get("model") != SCRIPTED:
            return Say(ASIDE)
        with self._lock:
            self.requests.append(request)
            return self.turns.popleft() if self.turns else Fail(400, "The script has no more turns.")


def _handler_of(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(LoopbackHandler):
        def do_GET(self) -> None:
            self._json(200, {"object": "list", "data": [{"id": SCRIPTED, "object": "model", "created": _MODEL_TIME}]})

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            events = _PROTOCOLS.get(self.path)
            turn = server.answer(request) if events else Fail(404, f"{self.path} is not served.")
            if isinstance(turn, Fail):
                self._json(turn.status, {"error": {"message": turn.message, "type": "scripted", "code": "scripted"}})
            elif events and request.get("stream"):
                self._stream(events(turn))
            else:
                self._json(200, _completion(turn))

        def _json(self, status: int, value: dict[str, Any]) -> None:
            self._send(status, "application/json", json.dumps(value).encode())

        def _stream(self, events: Iterator[dict[str, Any]]) -> None:
            lines = []
            for event in events:
                if "type" in event:
                    lines.append(f"event: {event['type']}\n")
                lines.append(f"data: {json.dumps(event)}\n\n")
            self._send(200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode())

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _tool_call(turn: Call) -> dict[str, Any]:
    function = {"name": turn.name, "arguments": json.dumps(turn.arguments)}
    return {"id": turn.call_id, "type": "function", "function": function}


def _usage(turn: Say | Call) -> dict[str, int]:
    return {"prompt_tokens": turn.tokens - 10, "completion_tokens": 10, "total_tokens": turn.tokens}


def _completion(turn: Say | Call) -> dict[str, Any]:
    """The answer of /v1/chat/completions to a client that does not stream."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if isinstance(turn, Call):
        message["tool_calls"] = [_tool_call(turn)]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if isinstance(turn, Call) else "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": _MODEL_TIME, "model": SCRIPTED} | {
        "choices": [choice],
        "usage": _usage(turn),
    }


def _chat_events(turn: Say | Call) -> Iterator[dict[str, Any]]:
    """The chunks of /v1/chat/completions."""
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": _MODEL_TIME, "model": SCRIPTED}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    if turn.thought:
        yield chunk({"reasoning_content": turn.thought})
    middle = len(turn.text) // 2
    for piece in filter(None, (turn.text[:middle], turn.text[middle:])):
        yield chunk({"content": piece})
    if isinstance(turn, Call):
        yield chunk({"tool_calls": [{"index": 0, **_tool_call(turn)}]})
    yield chunk({}, "tool_calls" if isinstance(turn, Call) else "stop")
    yield {**common, "choices": [], "usage": _usage(turn)}


def _response_events(turn: Say | Call) -> Iterator[dict[str, Any]]:
    """The events of /v1/responses."""
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "created_at": _MODEL_TIME, "model": SCRIPTED}
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    items: list[dict[str, Any]] = []
    if turn.thought:
        summary = [{"type": "summary_text", "text": turn.thought}]
        items.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "b3BhcXVl"})
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content})
    if isinstance(turn, Call):
        call = {"name": turn.name, "arguments": json.dumps(turn.arguments), "call_id": turn.call_id}
        call |= {"namespace": turn.namespace} if turn.namespace else {}
        items.append({"type": "function_call", "id": "fc_1", "status": "completed", **call})
    for number, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": number, "item": item}
        if item["type"] == "message":
            yield {"type": "response.output_text.delta", "item_id": item["id"], "delta": turn.text}
        yield {"type": "response.output_item.done", "output_index": number, "item": item}
    usage = {
        "input_tokens": turn.tokens - 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": turn.tokens,
    }
    response |= {"status": "completed", "output": items, "usage": usage}
    yield {"type": "response.completed", "response": response}


_PROTOCOLS = {"/v1/chat/completions": _chat_events, "/v1/responses": _response_events}
