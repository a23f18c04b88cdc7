"""The page's addresses. What each shows is made in the module of its screen; what is done goes to the desk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from memory_pipeline.page.desk import Desk
from memory_pipeline.page.rendering import render
from memory_pipeline.page.review import review_screen, step_of
from memory_pipeline.quality.report import Report

if TYPE_CHECKING:
    from starlette.types import ASGIApp

STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def page_app(desk: Desk, report: Callable[[], Report], lifespan: Lifespan) -> ASGIApp:
    """The application behind the guard. Each handler runs in a thread: tables are read in it."""
    page = Page(desk, report)
    routes = [
        Route("/", page.home),
        Route("/review", page.review),
        Route("/review", page.step, methods=["POST"]),
        Route("/undo", page.undo, methods=["POST"]),
        Route("/static/{name}", page.static),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


class Page:
    """The handlers, over one desk."""

    def __init__(self, desk: Desk, report: Callable[[], Report]) -> None:
        self.desk, self.settings = desk, desk.settings
        self.report = report

    def home(self, request: Request) -> Response:
        return RedirectResponse("/review", 303)

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return self.shown(request, "missing", 404)
        return FileResponse(Path(__file__).parent / "static" / name, media_type=STATIC[name])

    def review(self, request: Request) -> Response:
        self.desk.look()
        screen = review_screen(self.desk, request.query_params)
        self.desk.saw([each.shown.card.proposal_id for each in screen.cards])
        return self.shown(request, "review", review=screen)

    def step(self, request: Request) -> Response:
        form = request.scope["form"]
        if step := step_of(self.desk, form):
            self.desk.take(step)
        return RedirectResponse(f"/review?{form.get('back', '')}", 303)

    def undo(self, request: Request) -> Response:
        self.desk.undo()
        form = request.scope["form"]
        place = form.get("screen", "review")
        return RedirectResponse(f"/{place if place in ('review', 'memory') else 'review'}?{form.get('back', '')}", 303)

    def shown(self, request: Request, screen: str, status: int = 200, **values: Any) -> Response:
        """A screen with what stands on each: the step that can be undone, and what came of earlier ones."""
        desk = self.desk
        waiting = len(desk.kept.pending()) - len({s.proposal_id for s in desk.under_way() if s.proposal_id})
        has_data = (self.settings.lake_dir / "sessions").is_dir()
        return render(
            request,
            screen,
            status,
            held=desk.held,
            is_under_way=bool(desk.under_way()),
            news=desk.news(),
            waiting=max(0, waiting),
            has_data=has_data,
            settings=self.settings,
            query=request.url.query,
            **values,
        )
