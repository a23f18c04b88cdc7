"""What the tests' HTTP servers on loopback have in common."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler


class LoopbackHandler(BaseHTTPRequestHandler):
    """Keeps connections open, answers at once and prints nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Else an answer of two writes waits 40 ms for the first to be acknowledged."""

    def log_message(self, *_: object) -> None:
        pass
