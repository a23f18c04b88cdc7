"""Rendering of the page's screens as HTML; all session text is escaped."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from memory_pipeline.quality.page import templates_in, with_code
from memory_pipeline.text.hidden import plain

MAX_AROUND = 280
"""Maximum characters shown before and after the marked words of a message."""
MAX_MARKED = 1_200
MAX_TEXT = 4_000
"""Maximum characters of a message in a session; a link leads to the whole text."""
_ID = re.compile(r"\b(?:[pf]-\d{8}-\d{3,}|[osrgdwmn]-[0-9a-f]{12})\b")


def marked(text: str, start: int, end: int) -> Markup:
    """The message with the words from ``start`` to ``end`` marked, and the text next to them."""
    before, words, after = text[:start], text[start:end], text[end:]
    before = f"…{before[-MAX_AROUND:].partition(' ')[2]}" if len(before) > MAX_AROUND else before
    after = _cut(after, MAX_AROUND)
    return Markup("{}<mark>{}</mark>{}").format(plain(before), plain(_cut(words, MAX_MARKED)), plain(after))


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """The beginning of a text with its lines, at most `limit` characters."""
    return plain(_cut(text, limit))


def linked(text: str) -> Markup:
    """The text with ids of lines as links to their origin, and backticked parts as code."""
    return _linked(with_code(text))


def from_markdown(text: str) -> Markup:
    """A daily log as HTML: its headings, lists and emphasis are rendered; links, images and HTML stay text."""
    return _linked(_markdown().render(plain(text)))


def _linked(html: str) -> Markup:
    return Markup(_ID.sub(r'<a href="/why?id=\g<0>">\g<0></a>', html))


def render(request: Request, screen: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Render the template of a screen."""
    shown = _environment().get_template(f"{screen}.html.jinja")
    return HTMLResponse(shown.render(screen=screen, form_token=request.scope["form_token"], **values), status)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit].rstrip()}…"


@cache
def _environment() -> Environment:
    made = templates_in(Path(__file__).parent / "templates")
    made.filters |= {"cut": cut, "linked": linked, "marked": marked, "markdown": from_markdown}
    return made


@cache
def _markdown() -> MarkdownIt:
    without = ["link", "image", "autolink", "html_block", "html_inline", "entity", "reference"]
    return MarkdownIt("commonmark", {"html": False}).disable(without)
