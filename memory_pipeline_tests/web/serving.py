"""The page on a port of this machine, within the test's process, and what a browser would send to it."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from memory_pipeline.quality.report import Report, make_report
from memory_pipeline.settings import Settings
from memory_pipeline.web.review_session import ReviewSession
from memory_pipeline.web.server import PageServer
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import at


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    text: str


@dataclass(frozen=True)
class Served:
    """A page that runs."""

    first_address: str
    review_session: ReviewSession
    cookies: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return urlsplit(self.first_address).port or 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def first(self) -> str:
        """The path of the first address."""
        return self.first_address.removeprefix(self.origin)

    def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: str = "") -> Answer:
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        asked.request(method, path, body.encode() or None, sent | dict(headers or {}))
        got = asked.getresponse()
        answer = Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read().decode())
        asked.close()
        return answer

    def enter(self) -> dict[str, str]:
        """The cookie of a browser that is let in; the first to ask is."""
        if not self.cookies:
            self.cookies.append(self.ask("GET", self.first).headers["set-cookie"].partition(";")[0])
        return {"Cookie": self.cookies[0]}

    def form_token(self, own: Mapping[str, str]) -> str:
        found = re.search(r'name="form_token" value="([^"]+)"', self.ask("GET", "/review", own).text)
        assert found
        return found[1]

    @staticmethod
    def form(**fields: str) -> str:
        return urlencode(fields)

    def change(self, path: str, **fields: str) -> Answer:
        """What a form of the page sends."""
        own = self.enter()
        body = self.form(**fields, form_token=self.form_token(own))
        return self.ask("POST", path, own | {"Origin": self.origin}, body)


@contextmanager
def served(settings: Settings, *, held_seconds: float = 3600.0) -> Iterator[Served]:
    """A page that records what is done on it when the next step is taken, or at the end; `held_seconds` changes it."""
    with PageServer(settings, lambda: no_report(settings), held_seconds=held_seconds) as server:
        running = threading.Thread(target=server.run)
        running.start()
        try:
            yield Served(server.first_address, server.review_session)
        finally:
            server.stop()
            running.join(60)
        assert not running.is_alive()


def no_report(settings: Settings) -> Report:
    """Of a workspace in which no check has judged anything."""
    return make_report(Workspace.open(settings), [], {}, at())
