"""The routes of the page. Each screen has its module; actions go to the review session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import Timeout
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from memory_pipeline import quality
from memory_pipeline.days import parse_day
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.storage import storage_of
from memory_pipeline.quality.page import embedded
from memory_pipeline.quality.report import Report
from memory_pipeline.recall.origin import is_line, origin
from memory_pipeline.recall.showing import day_log, days_with_logs, without_fences
from memory_pipeline.web.memory import memory_sections, retirement
from memory_pipeline.web.reading import PageNotFoundError, search_screen, session_screen
from memory_pipeline.web.rendering import linked, render
from memory_pipeline.web.review import requested_step, review_screen
from memory_pipeline.web.review_session import ReviewSession

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_OWN = Path(__file__).parent / "static"
STATIC = {
    "page.css": (_OWN, "text/css"),
    "page.js": (_OWN, "text/javascript"),
    "icon.svg": (_OWN, "image/svg+xml"),
    "report.css": (Path(quality.__file__).parent, "text/css"),
}
"""All static files by name, with path and media type."""
KEPT_SECONDS = 300.0
"""Seconds for which a quality report, which takes seconds to build, is shown again."""
Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def page_app(review_session: ReviewSession, report: Callable[[], Report], lifespan: Lifespan) -> ASGIApp:
    """The application behind the guard. Each handler runs in a thread, as it reads tables."""
    page = Page(review_session, report)
    routes = [
        Route("/", page.home),
        Route("/review", page.review),
        Route("/review", page.step, methods=["POST"]),
        Route("/undo", page.undo, methods=["POST"]),
        Route("/memory", page.memory),
        Route("/memory", page.retire, methods=["POST"]),
        Route("/search", page.search),
        Route("/session", page.session),
        Route("/why", page.why),
        Route("/day", page.day),
        Route("/quality", page.quality),
        Route("/static/{name}", page.static),
    ]
    refused = dict.fromkeys((404, MemoryPipelineError, Timeout), page.not_shown)
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=refused)


class Page:
    """The handlers of one review session."""

    def __init__(self, review_session: ReviewSession, report: Callable[[], Report]) -> None:
        self.review_session, self.settings = review_session, review_session.settings
        self._make_report = report
        self._report: tuple[Report, Markup] | None = None
        self._report_expires = 0.0
        self._one_report, self._one_search = threading.Lock(), threading.Lock()

    def home(self, request: Request) -> Response:
        return RedirectResponse("/review", 303)

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            raise HTTPException(404)
        folder, kind = STATIC[name]
        return FileResponse(folder / name, media_type=kind)

    def review(self, request: Request) -> Response:
        self.review_session.look()
        screen = review_screen(self.review_session, request.query_params)
        self.review_session.saw([each.shown.card.proposal_id for each in screen["cards"]])
        return self.shown(request, "review", review=screen)

    def step(self, request: Request) -> Response:
        form = request.scope["form"]
        if step := requested_step(self.review_session, form):
            self.review_session.take(step)
        return RedirectResponse(f"/review?{form.get('back', '')}", 303)

    def undo(self, request: Request) -> Response:
        self.review_session.undo()
        form = request.scope["form"]
        place = form.get("screen", "review")
        return RedirectResponse(f"/{place if place in ('review', 'memory') else 'review'}?{form.get('back', '')}", 303)

    def memory(self, request: Request) -> Response:
        self.review_session.look()
        return self.shown(request, "memory", sections=memory_sections(self.review_session))

    def retire(self, request: Request) -> Response:
        if step := retirement(self.review_session, request.scope["form"]):
            self.review_session.take(step)
        return RedirectResponse("/memory", 303)

    def search(self, request: Request) -> Response:
        with self._one_search:  # a second one would find the index locked by this process
            screen = search_screen(self.settings, request.query_params)
        return self.shown(request, "search", search=screen)

    def session(self, request: Request) -> Response:
        return self.shown(request, "session", session=session_screen(self.settings, request.query_params))

    def why(self, request: Request) -> Response:
        identifier = request.query_params.get("id", "")
        if not is_line(identifier):
            raise PageNotFoundError(
                "This is not the id of a line; such ids look like p-20260305-001, o-… or f-20260305-001."
            )
        return self.shown(request, "why", found=origin(self.settings, identifier))

    def day(self, request: Request) -> Response:
        asked = request.query_params.get("day")
        try:
            log = day_log(self.settings, parse_day(asked) if asked else None)
        except ValueError as error:
            raise PageNotFoundError(f"{error}") from None
        text = without_fences(log.text).lstrip().removeprefix(f"# {log.day}") if log and log.text is not None else None
        return self.shown(request, "day", asked=asked, log=log, text=text, days=days_with_logs(self.settings))

    def quality(self, request: Request) -> Response:
        with self._one_report:
            if self._report is None or "rebuild" in request.query_params or time.monotonic() > self._report_expires:
                report = self._make_report()
                self._report, self._report_expires = (report, embedded(report, linked)), time.monotonic() + KEPT_SECONDS
        return self.shown(request, "quality", made=self._report)

    def not_shown(self, request: Request, error: Exception) -> Response:
        """Answer a known error with its message."""
        reason = "There is no such page." if isinstance(error, HTTPException) else f"{error}"
        return self.shown(request, "missing", 404, reason=reason)

    def shown(self, request: Request, screen: str, status: int = 200, **values: Any) -> Response:
        """Render a screen with the common parts: the action that can be undone, and results of earlier ones."""
        review_session = self.review_session
        under_way = {s.proposal_id for s in review_session.under_way() if s.proposal_id}
        waiting = len(review_session.cache.pending()) - len(under_way)
        has_data = storage_of(self.settings).is_begun("sessions")
        return render(
            request,
            screen,
            status,
            held=review_session.held,
            is_under_way=bool(review_session.under_way()),
            news=review_session.news(),
            waiting=max(0, waiting),
            has_data=has_data,
            settings=self.settings,
            query=request.url.query,
            **values,
        )
