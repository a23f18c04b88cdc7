"""The quality report on the page. It is built in the background, as the first one takes seconds, and cached for some
minutes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait

from markupsafe import Markup

from memory_pipeline.quality.page import embedded
from memory_pipeline.quality.report import Report
from memory_pipeline.web.rendering import linked

KEPT_SECONDS = 300.0
PATIENCE = 1.5
"""Seconds for which a page waits for the report."""


class Reports:
    """The last report, with its HTML."""

    def __init__(self, make: Callable[[], Report]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: Future[tuple[Report, Markup]] | None = None
        self._asked_at = 0.0

    def last(self, *, anew: bool = False) -> tuple[Report, Markup] | None:
        """The last report; None while it is being built. Raises the errors of building it."""
        with self._lock:
            made = self._made
            is_old = time.monotonic() - self._asked_at > KEPT_SECONDS
            if made is None or (made.done() and (anew or is_old or made.exception())):
                made = self._made = Future()
                self._asked_at = time.monotonic()
                threading.Thread(target=self._fill, args=(made,), daemon=True).start()
        wait([made], PATIENCE)
        return made.result() if made.done() else None

    def _fill(self, made: Future[tuple[Report, Markup]]) -> None:
        try:
            report = self._make()
            made.set_result((report, embedded(report, linked)))
        except BaseException as error:
            made.set_exception(error)
