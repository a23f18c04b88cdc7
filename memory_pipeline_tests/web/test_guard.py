"""Who may ask the page, with real requests to a real server."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_pipeline.web.guard import HEADERS, MAX_BODY
from memory_pipeline_tests.rows import proposal, put, say, workspace
from memory_pipeline_tests.web.serving import Served, served

LINE = "Never use npm."


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Served]:
    settings, lake = workspace(tmp_path)
    say(lake, "s1", f"user: {LINE}", "assistant: Understood.")
    put(lake, "proposals", proposal(1, LINE))
    with served(settings) as running:
        yield running


def test_the_first_address_is_good_once_and_leaves_no_token_behind(page: Served) -> None:
    first = page.ask("GET", page.first)
    assert (first.status, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    own = {"Cookie": first.headers["set-cookie"].partition(";")[0]}
    assert LINE in page.ask("GET", "/review", own).text
    assert page.ask("GET", page.first, own).status == 303  # who is in already may load it again
    again = page.ask("GET", page.first)
    assert again.status == 401
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("path", ["/", "/review", "/static/page.js", "/?token=guessed", "/?token="])
def test_without_its_token_nothing_is_answered(page: Served, path: str) -> None:
    answer = page.ask("GET", path)
    assert answer.status == 401
    assert answer.text == "Open this page with `memory open`: its address works once, in one browser.\n"
    assert page.ask("GET", path, {"Cookie": f"memory_page_{page.port}=guessed"}).status == 401


@pytest.mark.parametrize(
    "host", ["evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", ""]
)
def test_another_host_is_refused_also_with_the_cookie(page: Served, host: str) -> None:
    """A name of somebody else that leads here (DNS rebinding)."""
    own = page.enter()
    answer = page.ask("GET", "/review", own | {"Host": host.format(port=page.port)})
    assert answer.status in (400, 403)
    assert LINE not in answer.text
    assert page.ask("GET", page.first, {"Host": host.format(port=page.port)}).status in (400, 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # another port of this machine
    ],
)
def test_a_page_of_another_origin_is_refused(page: Served, headers: dict[str, str]) -> None:
    own = page.enter()
    assert page.ask("GET", "/review", own | headers).status == 403
    form = page.form(do="approve", id="p-20250305-001", form_token=page.form_token(own))
    assert page.ask("POST", "/review", own | {"Origin": page.origin} | headers, form).status == 403
    assert page.review_session.held is None


def test_a_change_needs_the_token_of_a_form_its_origin_and_its_kind(page: Served) -> None:
    own, fields = page.enter(), {"do": "approve", "id": "p-20250305-001"}
    origin, right = {"Origin": page.origin}, fields | {"form_token": page.form_token(own)}
    refused = [
        page.ask("POST", "/review", own | origin, page.form(**fields)),
        page.ask("POST", "/review", own | origin, page.form(**fields, form_token="guessed")),
        page.ask("POST", "/review", own, page.form(**right)),
        page.ask("POST", "/review", origin, page.form(**right)),
        page.ask("POST", "/review", own | origin | {"Content-Type": "application/json"}, page.form(**right)),
        page.ask("POST", "/review", own | origin | {"Content-Type": "text/plain"}, page.form(**right)),
        page.ask("POST", "/review", own | origin, page.form(**right, text="x" * MAX_BODY)),
        page.ask("PUT", "/review", own | origin, page.form(**right)),
        page.ask("GET", f"/review?{page.form(**right)}", own),
    ]
    assert [answer.status for answer in refused] == [403, 403, 403, 401, 415, 415, 413, 405, 200]
    assert page.review_session.held is None
    assert page.ask("POST", "/review", own | origin, page.form(**right)).status == 303
    assert page.review_session.held is not None


@pytest.mark.parametrize(
    "path", ["/review", "/static/page.css", "/nothing", "/static/..%2f..%2fsettings.py", "/static/"]
)
def test_every_answer_forbids_script_copies_and_guesses(page: Served, path: str) -> None:
    for own in (page.enter(), {}):
        answer = page.ask("GET", path, own)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "server" not in answer.headers
        assert "import" not in answer.text  # no file but the page's own
    assert page.ask("GET", "/static/../guard.py", page.enter()).status in (400, 404)


def test_only_this_machine_is_listened_to(page: Served) -> None:
    with socket.socket() as other, pytest.raises(OSError):
        other.settimeout(2)
        other.connect((_address_of_this_machine(), page.port))


def _address_of_this_machine() -> str:
    """One that is no loopback address; without a network a loopback address on which nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return "127.0.0.2"
        return str(asked.getsockname()[0])


def test_a_websocket_is_refused(page: Served) -> None:
    asked = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    asked.request("GET", "/review", headers=page.enter() | upgrade | {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="})
    assert asked.getresponse().status != 101
    asked.close()


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/why?id=p-20200101-001", "There is no p-20200101-001 in proposals;"),
        ("/why?id=../../etc/passwd", "This is not the id of a line;"),
        ("/session?id=nobody", "There is no such session;"),
        ("/day?day=tomorrow", "is not a day; write it as YYYY-MM-DD."),
        ("/settings", "There is no such page."),
    ],
)
def test_what_is_not_there_is_a_sentence(page: Served, path: str, sentence: str) -> None:
    answer = page.ask("GET", path, page.enter())
    assert answer.status == 404
    assert sentence in answer.text
    assert "Traceback" not in answer.text


def test_a_search_with_a_filter_that_nothing_fits_says_why(page: Served) -> None:
    answer = page.ask("GET", "/search?q=npm&from=2025-03-09&to=2025-03-01", page.enter())
    assert "The first day, 2025-03-09, is after the last, 2025-03-01; no day lies between them." in answer.text
    assert LINE in page.ask("GET", "/search?q=npm&from=2025-03-01&to=2025-03-09", page.enter()).text
