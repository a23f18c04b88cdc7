"""Google's object storage on loopback, as far as our client asks: objects by generation, conditions, listings.

There is no server of it in a package registry that speaks what the client speaks. What is here follows the reference
of the XML API (https://cloud.google.com/storage/docs/xml-api/reference-headers): `x-goog-if-generation-match` of 0 asks
for no object, of another number for that generation; 412 where it is another.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from memory_pipeline_tests.http_handler import LoopbackHandler

BUCKET = "memory-bucket"


@dataclass
class Bucket:
    """Its objects, each with its generation; no two writes have the same one."""

    objects: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    last: int = 0

    def put(self, name: str, data: bytes, match: str | None) -> int | None:
        """The new generation; None where the condition does not hold."""
        with self.lock:
            now = self.objects.get(name, (0, b""))[0]
            if match is not None and int(match) != now:
                return None
            self.last += 1
            self.objects[name] = self.last, data
            return self.last


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def _handler(bucket: Bucket) -> type[BaseHTTPRequestHandler]:
    class Handler(LoopbackHandler):
        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            place, _, name = unquote(parts.path).removeprefix("/").partition("/")
            if place != BUCKET:
                self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            elif not name:
                self._answer(200, self._listing(parse_qs(parts.query)))
            elif self.command == "PUT":
                made = bucket.put(name, body, self.headers.get("x-goog-if-generation-match"))
                self._answer(412 if made is None else 200, b"", made, body)
            elif name not in bucket.objects:
                self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            elif self.command == "DELETE":
                del bucket.objects[name]
                self._answer(204, b"")
            else:
                generation, data = bucket.objects[name]
                self._answer(200, data, generation, data)

        def _listing(self, asked: dict[str, list[str]]) -> bytes:
            prefix, after = (asked.get(part, [""])[0] for part in ("prefix", "start-after"))
            found = [
                f"<Contents><Key>{escape(name)}</Key><Size>{len(data)}</Size><ETag>{escape(_etag(data))}</ETag>"
                "<LastModified>2026-11-20T09:00:00.000Z</LastModified></Contents>"
                for name, (_, data) in sorted(bucket.objects.items())
                if name.startswith(prefix) and name > after
            ]
            return f"<ListBucketResult>{''.join(found)}</ListBucketResult>".encode()

        def _answer(self, status: int, data: bytes, generation: int | None = None, of: bytes = b"") -> None:
            self.send_response_only(status)
            if generation is not None:
                self.send_header("x-goog-generation", f"{generation}")
                self.send_header("ETag", _etag(of))
                self.send_header("Last-Modified", formatdate(1_763_629_200, usegmt=True))
            self.send_header("Content-Length", f"{len(data)}")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_HEAD = do_DELETE = _do

    return Handler


@contextmanager
def google_storage(folder: Path) -> Iterator[dict[str, str]]:
    """With one empty bucket; the variables by which the client finds it, whose file lies in the folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(Bucket()))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    account = folder / "account.json"
    keys = {"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True}
    url = f"http://127.0.0.1:{server.server_port}"
    account.write_text(json.dumps(keys | {"gcs_base_url": url}))
    try:
        yield {"GOOGLE_SERVICE_ACCOUNT": f"{account}", "STORAGE_EMULATOR_HOST": url}
    finally:
        server.shutdown()
        server.server_close()
