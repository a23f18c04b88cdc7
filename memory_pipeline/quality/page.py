"""The report as one HTML page without network access and scripts, with charts as inline SVG, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from memory_pipeline.actions.outcomes import describe
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.proposals.events import APPROVED, DECISIONS, PENDING, REJECTED
from memory_pipeline.quality.report import Figure, Report, as_json
from memory_pipeline.quality.results import Checked
from memory_pipeline.text.hidden import plain

COLUMNS = 60
"""Number of last days in the table of checks; the table below it counts all days."""
DAYS_NAMED = 12
_FOLDER = Path(__file__).parent
_CODE = re.compile(r"`([^`]+)`")
WIDTH, HEIGHT = 400, 150
LEFT, RIGHT, TOP, BOTTOM = 56, 10, 10, 24
"""Margins around the plot, for the labels."""
MAX_DOTS = 45
"""Maximum number of days that are marked by dots; more would hide the line."""
_SVG = Markup('<svg role="img" aria-label="{}" viewBox="0 0 {} {}" font-size="11" font-family="sans-serif">{}</svg>')
_GRID = Markup('<path d="M{} {:.1f}H{}" stroke="var(--line)"/>')
_LABEL = Markup('<text x="{}" y="{:.1f}" text-anchor="{}" fill="var(--ink-soft)">{}</text>')
_LINE = Markup('<polyline points="{}" fill="none" stroke="var(--mark)" stroke-width="1.5"/>')
_DOT = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2" fill="var(--mark)"/>')


def write_report(report: Report, folder: Path) -> Path:
    """Write quality.html and quality.json into the folder, and return the page."""
    page = folder / "quality.html"
    written = {
        folder / "quality.json": orjson.dumps(as_json(report), option=orjson.OPT_INDENT_2),
        page: rendered(report).encode(),
    }
    for path, data in written.items():
        write_atomically(path, data, expected=path.read_bytes() if path.exists() else None, backups=None)
    return page


def rendered(report: Report) -> str:
    """The page. All session text is escaped."""
    return templates_in(_FOLDER).get_template("report.html.jinja").render(_shown(report, str))


def embedded(report: Report, linked: Callable[[str], Markup]) -> Markup:
    """The content for embedding in another page with the styles of `report.css`; ``linked`` converts ids in sentences
    to links."""
    names = ("report_head.html.jinja", "report_main.html.jinja")
    shown = _shown(report, linked)
    return Markup("".join(templates_in(_FOLDER).get_template(name).render(shown) for name in names))


def _shown(report: Report, linked: Callable[[str], str]) -> dict[str, Any]:
    by_day = [check for check in report.checked if check.is_by_day]
    judged = {day for check in by_day for day in check.results if day}
    return {
        "report": report,
        "made_at": f"{report.made_at:%Y-%m-%d %H:%M}",
        "errors": any(result.severe for result in report.failed),
        "failing": sorted((c for c in report.checked if c.failed), key=lambda c: -len(c.failed)),
        "by_day": by_day,
        "columns": sorted(judged, reverse=True)[:COLUMNS],
        "shown_days": {day for day, _ in report.worst},
        "ends": [PENDING, *DECISIONS],
        "days_of": _days_of,
        "accepted": _accepted,
        "describe_hints": describe,
        "draw": draw,
        "linked": linked,
    }


@cache
def templates_in(folder: Path) -> Environment:
    """The templates of a folder, which escape every value and remove hidden characters."""
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: plain(value) if type(value) is str else value,
    )
    made.filters["code"] = with_code
    return made


def with_code(text: str) -> Markup:
    """The text with code elements in place of backticks."""
    return Markup(_CODE.sub(r"<code>\1</code>", f"{escape(plain(text))}"))


def _days_of(check: Checked) -> str:
    days = [f"{result.day}" for result in check.failed if result.day]
    more = len(days) - DAYS_NAMED
    return ", ".join(days[:DAYS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _accepted(row: dict[str, int]) -> str:
    decided = row.get(APPROVED, 0) + row.get(REJECTED, 0)
    return f"{row.get(APPROVED, 0) / decided:.0%}" if decided else "–"


def draw(figure: Figure) -> Markup:
    """The SVG of a figure with values on at least two days, in the colours of the page's theme."""
    values = sorted(figure.by_day.items())
    (first, _), (last, _) = values[0], values[-1]
    highest = max(value for _, value in values) or 1

    def place(day: date, value: float) -> tuple[float, float]:
        x = LEFT + (day - first) / (last - first) * (WIDTH - LEFT - RIGHT)
        return x, HEIGHT - BOTTOM - value / highest * (HEIGHT - TOP - BOTTOM)

    parts = []
    for value in (0, highest / 2, highest):
        y = place(first, value)[1]
        parts += [_GRID.format(LEFT, y, WIDTH - RIGHT), _LABEL.format(LEFT - 6, y + 4, "end", figure.shown(value))]
    for x, anchor, day in ((LEFT, "start", first), (WIDTH - RIGHT, "end", last)):
        parts.append(_LABEL.format(x, HEIGHT - 8, anchor, day))
    places = [place(day, value) for day, value in values]
    parts.append(_LINE.format(" ".join(f"{x:.1f},{y:.1f}" for x, y in places)))
    parts += [_DOT.format(x, y) for x, y in places if len(values) <= MAX_DOTS]
    return _SVG.format(_describe(figure, values), WIDTH, HEIGHT, Markup().join(parts))


def _describe(figure: Figure, values: Sequence[tuple[date, float]]) -> str:
    """The contents of the chart in words."""
    numbers = [value for _, value in values]
    lowest, highest, last = map(figure.shown, (min(numbers), max(numbers), numbers[-1]))
    span = f"{len(values)} days from {values[0][0]} to {values[-1][0]}"
    return f"{figure.title}: {span}, lowest {lowest}, highest {highest}, last {last}"
