"""Access control of the page: only the browser that opens its first address has access.

A page on a loopback address can be reached by every other page in the same browser (by a form, an image, a script, or
DNS rebinding), and by every program and user of this machine. So the first address has a one-time token, for which the
browser gets a cookie; Host and Origin must be the page's own; each change has a token that only the page's forms
contain; and a content security policy prevents quoted text from running or loading anything.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
MAX_BODY = 100_000
"""Maximum bytes of a change: an edited line, or the change of a fix."""
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_HOW_TO_OPEN = "Open this page with `memory open`: its address works once, in one browser."


class Guard:
    """An ASGI application in front of the page on this port. `asked_at` is the time of its last response, by
    `time.monotonic`.

    An admitted request has `form_token` in its scope, for forms, and a change has its fields as `form`.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.asked_at = time.monotonic()
        self._port = port
        self._first: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._form_token = secrets.token_urlsafe(32)

    @property
    def address(self) -> str:
        """The address of the page, without a token."""
        return f"http://{HOST}:{self._port}/"

    @property
    def first_address(self) -> str:
        """The address that gives access to the first browser that opens it."""
        return f"{self.address}?{urlencode({'token': self._first or ''})}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # a websocket: the page has none
            await send({"type": "websocket.close", "code": 1008})
            return
        answer: ASGIApp
        try:
            answer = await self._answer(Request(scope, receive))
        except HTTPException as refused:
            answer = PlainTextResponse(f"{refused.detail}\n", refused.status_code)
        await answer(scope, receive, _with_headers(send))

    async def _answer(self, request: Request) -> ASGIApp:
        """Answer the request. Raises `HTTPException` if it is not allowed."""
        self._check_place(request)
        if request.method == "GET" and (token := request.query_params.get("token")) and request.url.path == "/":
            return self._redirect_with_cookie(request, token)
        if not _same(request.cookies.get(self._cookie, ""), self._session):
            raise HTTPException(401, _HOW_TO_OPEN)
        self.asked_at = time.monotonic()
        request.scope["form_token"] = self._form_token
        if request.method == "POST":
            request.scope["form"] = await self._form(request)
        elif request.method not in ("GET", "HEAD"):
            raise HTTPException(405, "Only GET and POST are allowed.")
        return self.app

    def _check_place(self, request: Request) -> None:
        """Check the Host and Origin headers, which a foreign page cannot set."""
        own = {f"{name}:{self._port}" for name in (HOST, "localhost")}
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in own or len(request.headers.getlist("host")) != 1:
            raise HTTPException(403, f"Unknown host {host!r}. Open the page as {self.address}")
        if (request.method == "POST" or origin is not None) and origin != f"http://{host}":
            raise HTTPException(403, f"Requests from other pages are refused: {origin!r}.")
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise HTTPException(403, "Requests from other pages are refused.")

    def _redirect_with_cookie(self, request: Request, token: str) -> Response:
        """Redirect to the address without the token, which must not stay in the history."""
        is_known = _same(request.cookies.get(self._cookie, ""), self._session)
        if not is_known and (self._first is None or not _same(token, self._first)):
            raise HTTPException(401, _HOW_TO_OPEN)
        answer = RedirectResponse("/", 303)
        if not is_known:
            self._first = None
            answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
        return answer

    async def _form(self, request: Request) -> Mapping[str, str]:
        """The fields of a change. Raises `HTTPException` if it was not sent by a form of the page."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise HTTPException(415, "Only the page's own forms are accepted.")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                raise HTTPException(413, f"More than {MAX_BODY:,} bytes: shorten the line.")
        fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        if not _same(fields.get("form_token", ""), self._form_token):
            raise HTTPException(403, "This form is from an earlier page. Go back and reload the page.")
        return fields

    @property
    def _cookie(self) -> str:
        """The name of the cookie, with the port: a browser sends cookies to all ports of a host."""
        return f"memory_page_{self._port}"


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "replace"), other.encode())


def _with_headers(send: Send) -> Send:
    names = {name.encode() for name in HEADERS}
    own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [h for h in message["headers"] if h[0].lower() not in names] + own
        await send(message)

    return guarded
