"""Object storage on loopback: moto's S3 behind a proxy that counts, refuses, cuts and lets a client die.

::

    with object_storage() as server:
        server.kill_after(pid, 7)       # SIGKILL to the process once seven of its requests were answered
        server.answer_with(503, times=3)
        server.may_only("ana's key", "ana/")    # 403 for it elsewhere; who asked for what is in `asked`

moto 5.2 honours If-Match and If-None-Match, but looks and writes in two steps: the proxy sends it one PUT at a time,
which real storages do by themselves.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from memory_pipeline_tests.http_handler import LoopbackHandler

BUCKET = "memory-bucket"


@dataclass
class ObjectServer:
    """What the proxy does, and what it saw."""

    port: int = 0
    behind: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    status: int = 0
    """Answer with this instead, so many times."""
    times: float = 0
    victim: int = 0
    left: int = 0
    cut: int = 0
    """Cut the connection of so many PUTs after half of their body."""
    prefixes: dict[str, str] = field(default_factory=dict)
    """Of access keys: the only prefix that each may use."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """The access key and the object of each request; of a listing its prefix."""

    @property
    def env(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "of-a-test",
            "AWS_SECRET_ACCESS_KEY": "s3cret-of-a-test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def answer_with(self, status: int, times: float = float("inf")) -> None:
        self.status, self.times = status, times

    def kill_after(self, pid: int, requests: int) -> None:
        self.victim, self.left = pid, requests

    def may_only(self, access_key: str, prefix: str) -> dict[str, str]:
        """The variables of somebody who has this key."""
        self.prefixes[access_key] = prefix
        return self.env | {"AWS_ACCESS_KEY_ID": access_key}

    def calm(self) -> None:
        self.status = self.times = self.victim = self.left = self.cut = 0
        self.counts.clear()
        self.prefixes.clear()
        self.asked.clear()


def _handler(server: ObjectServer) -> type[BaseHTTPRequestHandler]:
    class Handler(LoopbackHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if self.command == "PUT" and server.cut:
                server.cut -= 1
                self.rfile.read(length // 2)
                self.close_connection = True
                return
            body = self.rfile.read(length)
            with server.lock:
                kind = "LIST" if "list-type" in self.path else self.command
                server.counts[kind] += 1
                access_key, name = self._asked()
                server.asked.append((access_key, name))
                if server.victim:
                    if not server.left:
                        os.kill(server.victim, signal.SIGKILL)
                        server.victim = 0
                        self.close_connection = True
                        return
                    server.left -= 1
                if server.times > 0:
                    server.times -= 1
                    self._answer(server.status, {}, b"<Error><Code>Refused</Code></Error>")
                    return
                if not name.startswith(server.prefixes.get(access_key, "")):
                    self._answer(403, {}, b"<Error><Code>AccessDenied</Code></Error>")
                    return
                status, headers, data = self._ask(body)
            self._answer(status, headers, data)

        def _asked(self) -> tuple[str, str]:
            signed = re.search("Credential=([^/]+)/", self.headers.get("Authorization", ""))
            parts = urlsplit(self.path)
            name = unquote(parts.path).removeprefix(f"/{BUCKET}").removeprefix("/")
            return signed[1] if signed else "", name or parse_qs(parts.query).get("prefix", [""])[0]

        def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", server.behind)
            headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            connection.request(self.command, self.path, body, headers)
            found = connection.getresponse()
            data = found.read()
            connection.close()
            return found.status, dict(found.getheaders()), data

        def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            length = headers.get("Content-Length", "0") if self.command == "HEAD" else f"{len(data)}"
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _do

    return Handler


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """A client that was killed answers nobody."""


@contextmanager
def object_storage() -> Iterator[ObjectServer]:
    """With one empty bucket, for as long as it is open."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    server = ObjectServer(behind=moto.get_host_and_port()[1])
    proxy = _Proxy(("127.0.0.1", 0), _handler(server))
    server.port = proxy.server_port
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    connection = http.client.HTTPConnection("127.0.0.1", server.behind)
    connection.request("PUT", f"/{BUCKET}", headers={"Host": "s3.amazonaws.com"})
    assert connection.getresponse().status == 200
    connection.close()
    try:
        yield server
    finally:
        proxy.shutdown()
        proxy.server_close()
        moto.stop()
