"""The report as one HTML page without network access and scripts, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from memory_pipeline.actions.outcomes import describe
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.proposals.events import APPROVED, DECISIONS, PENDING, REJECTED
from memory_pipeline.quality.charts import draw
from memory_pipeline.quality.report import Report, as_json
from memory_pipeline.quality.results import Checked
from memory_pipeline.text.hidden import plain

COLUMNS = 60
"""Number of last days in the table of checks; the table below it counts all days."""
DAYS_NAMED = 12
_CODE = re.compile(r"`([^`]+)`")


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
    return _templates().get_template("report.html.jinja").render(_shown(report, str))


def embedded(report: Report, linked: Callable[[str], Markup]) -> Markup:
    """The content for embedding in another page with the styles of `report.css`; ``linked`` converts ids in sentences
    to links."""
    names = ("report_head.html.jinja", "report_main.html.jinja")
    shown = _shown(report, linked)
    return Markup("".join(_templates().get_template(name).render(shown) for name in names))


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
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: plain(value) if type(value) is str else value,
    )
    made.filters["code"] = _with_code
    return made


def _with_code(text: str) -> Markup:
    """The text with code elements in place of backticks."""
    return Markup(_CODE.sub(r"<code>\1</code>", f"{escape(text)}"))


def _days_of(check: Checked) -> str:
    days = [f"{result.day}" for result in check.failed if result.day]
    more = len(days) - DAYS_NAMED
    return ", ".join(days[:DAYS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _accepted(row: dict[str, int]) -> str:
    decided = row.get(APPROVED, 0) + row.get(REJECTED, 0)
    return f"{row.get(APPROVED, 0) / decided:.0%}" if decided else "–"
