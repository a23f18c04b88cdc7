"""Dagster's UI and daemon for one workspace, protected against other pages in the same browser.

Dagster's web server trusts every request. On a loopback address that is not enough: any page that the user visits can
send requests there (by an image, a form, a script), and with DNS rebinding it can read the answers under its own name.
`GuardedApp` therefore filters requests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import dagster as dg
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_pipeline.settings import Settings

MODULE = "memory_pipeline.definitions"
HOST = "127.0.0.1"
_LOCAL_NAMES = {"127.0.0.1", "localhost", "::1"}
_STOP_SECONDS = 20
"""Maximum seconds for the daemon to end, which finishes its tick."""
_LOCAL_IMAGES_POLICY = (
    "img-src 'self' data: blob:; media-src 'self'; font-src 'self' data:; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
"""Addition to Dagster's content security policy, which lets previews fetch images from anywhere."""


class GuardedApp:
    """An ASGI application that only answers its own pages.

    It refuses a foreign Host (403), an Origin other than the Host (403), and any request that could change something
    without a JSON body, which no foreign page can send without a preflight (405, 415). GraphQL is only accepted by POST
    or websocket, as Dagster also accepts mutations by GET.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
        elif (refusal := _refusal(HTTPConnection(scope))) is None:
            await self.app(scope, receive, _with_policy(send))
        elif scope["type"] == "http":
            await refusal(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "refused"})


def _refusal(request: HTTPConnection) -> Response | None:
    """The answer to a request that may not pass."""
    host, origin, method = request.headers.get("host", ""), request.headers.get("origin"), request.scope.get("method")
    if _name(f"//{host}") not in _LOCAL_NAMES:
        return PlainTextResponse(f"Unknown host {host!r}. Open the page as http://{HOST} and its port.", 403)
    if origin is not None and urlsplit(origin).netloc != host:
        return PlainTextResponse(f"Requests from other pages are refused: {origin!r}.", 403)
    if request.scope["type"] == "websocket" or method in ("HEAD", "OPTIONS"):
        return None
    if method == "GET":
        is_query = request.scope["path"] == "/graphql" and request.scope["query_string"]
        return PlainTextResponse("GraphQL requests must use POST.", 405) if is_query else None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return PlainTextResponse("The content type must be application/json.", 415)
    return None


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # not an address
        return None


def _with_policy(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers, name = MutableHeaders(scope=message), "content-security-policy"
            policies = [policy.rstrip("; ") for policy in headers.getlist(name)]
            headers[name] = "; ".join([*policies, _LOCAL_IMAGES_POLICY])
        await send(message)

    return guarded


def serve(settings: Settings, port: int, host: str = HOST) -> None:
    """Run the UI in this process and the daemon in another, until Ctrl-C. On any address, only requests for this
    machine's own names are answered.

    The daemon ends with this process, however that ends; the code servers end when both are gone.
    """
    import uvicorn
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import ModuleTarget
    from dagster_webserver.app import create_app_from_workspace_process_context

    target = ModuleTarget(MODULE, None, str(settings.dagster_home), None)
    with (
        _daemon(),
        dg.DagsterInstance.from_config(str(settings.dagster_home)) as instance,
        WorkspaceProcessContext(instance, target, version=dg.__version__) as context,
    ):
        app = create_app_from_workspace_process_context(context, live_data_poll_rate=2000)
        uvicorn.run(GuardedApp(app), host=host, port=port, log_level="warning")


@contextmanager
def _daemon() -> Iterator[None]:
    command = [sys.executable, "-c", f"from {__name__} import run_daemon; run_daemon()"]
    daemon = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        assert daemon.stdin
        daemon.stdin.close()
        try:
            daemon.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def run_daemon() -> None:
    """Run Dagster's daemon until its standard input ends, which is when the process that started it is gone."""
    from dagster._daemon.cli import cli

    def watch() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
    cli(["run", "--module-name", MODULE, "--working-directory", os.environ["DAGSTER_HOME"]])
