"""Searches of the page. The index stays open for a few seconds after each, as opening it takes longer than
searching."""

from __future__ import annotations

import threading
from typing import Self

from memory_pipeline.recall.fusion import Filters
from memory_pipeline.recall.search import Results, Searcher
from memory_pipeline.settings import Settings

OPEN_SECONDS = 8.0
"""Seconds after the last search until the index is closed. A run that needs to write waits for up to half a minute."""


class OpenSearch:
    """An open search that answers one question at a time; a context manager that closes the index."""

    def __init__(self, settings: Settings, *, open_seconds: float = OPEN_SECONDS) -> None:
        self._settings, self._open_seconds = settings, open_seconds
        self._lock = threading.Lock()
        self._searcher: Searcher | None = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def search(self, query: str, filters: Filters, *, limit: int) -> Results:
        """See `recall.search.search`."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
            searcher = self._searcher or Searcher(self._settings)
            self._searcher = None
            try:
                found = searcher.search(query, filters, limit=limit)
            except BaseException:
                searcher.close()
                raise
            if found.notes:  # something was missing or in use, so the next search checks again
                searcher.close()
                return found
            self._searcher = searcher
            self._timer = threading.Timer(self._open_seconds, self.close)
            self._timer.daemon = True
            self._timer.start()
            return found

    def close(self) -> None:
        with self._lock:
            if self._searcher:
                self._searcher.close()
            self._searcher = None
