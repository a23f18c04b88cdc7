"""The page's server: one process on a loopback port, until Ctrl-C or an hour without a request."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Self

import uvicorn

from memory_pipeline.errors import MisuseError
from memory_pipeline.quality.report import Report
from memory_pipeline.settings import Settings
from memory_pipeline.web.app import page_app
from memory_pipeline.web.guard import HOST, Guard
from memory_pipeline.web.review_session import HELD_SECONDS, ReviewSession

SILENCE_SECONDS = 3600.0
LOOK_SECONDS = 5.0
STOP_SECONDS = 3
"""Seconds for active requests when the server stops."""


class PortTakenError(MisuseError):
    """Another program listens on the port."""


class PageServer:
    """The page of one workspace on this port of 127.0.0.1 (0: any free one). It listens from the beginning; when the
    context ends, pending decisions are recorded.

    ``report`` builds the quality report. Raises `PortTakenError`.
    """

    def __init__(
        self,
        settings: Settings,
        report: Callable[[], Report],
        *,
        port: int = 0,
        silence: float = SILENCE_SECONDS,
        held_seconds: float = HELD_SECONDS,
    ) -> None:
        self._silence = silence
        with ExitStack() as opened:
            self._socket = opened.enter_context(listening(port))
            self.review_session = opened.enter_context(ReviewSession(settings, held_seconds=held_seconds))
            self._guard = Guard(page_app(self.review_session, report, self._watched), self._socket.getsockname()[1])
            self._ends = opened.pop_all()
        self.first_address = self._guard.first_address
        """The address with a token that one browser can use once."""
        config = uvicorn.Config(
            self._guard,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._server = uvicorn.Server(config)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.close()

    def run(self) -> bool:
        """Serve until Ctrl-C or `stop`; True if it ended because of inactivity."""
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again when it has ended
            self._server.run(sockets=[self._socket])
        return self._is_silent()

    def stop(self) -> None:
        self._server.should_exit = True

    def _is_silent(self) -> bool:
        return time.monotonic() - self._guard.asked_at >= self._silence

    @asynccontextmanager
    async def _watched(self, _: object) -> AsyncIterator[None]:
        async def watch() -> None:
            while not self._is_silent():
                await asyncio.sleep(min(LOOK_SECONDS, self._silence))
            self.stop()

        watching = asyncio.create_task(watch())
        yield
        watching.cancel()


def listening(port: int) -> socket.socket:
    """A socket that listens on this port of 127.0.0.1 (0: any free one). Raises `PortTakenError`."""
    made = socket.socket()
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen()
    except OSError as error:
        made.close()
        raise PortTakenError(f"Port {port} cannot be used: {error.strerror}. Name another with --port.") from None
    return made
