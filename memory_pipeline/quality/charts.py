"""A figure by day as a drawing inside the page: SVG without script or address, in the colours of the page's theme."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pygal
from pygal.style import Style

from memory_pipeline.quality.figures import Figure

WIDTH, HEIGHT = 560, 220
DOTS = 45
"""Days up to which each is marked; more of them would hide the line."""
_LEFT_OUT = re.compile(
    r"<\?xml[^>]*\?>|<!--.*?-->|<(defs|script|title)\b.*?</\1>|<desc class=\"[xy] [^>]*>[^<]*</desc>|"
    r"<g [^>]*class=\"plot (?:text|tooltip)-overlay\">.*(?=</g></svg>)|id=\"\" ",
    re.S,
)
"""Styles are the page's, scripts and what only they use have no place in it."""
_VALUE = re.compile(r'(<circle [^>]*?) ?/><desc class="value">([^<]*)</desc>')
_LONG = re.compile(r"(\d\.\d)\d{2,}")


def drawn(figure: Figure) -> str:
    """The SVG of a figure with two days or more."""
    values = sorted(figure.by_day.items())
    first, last = values[0][0], values[-1][0]
    chart = pygal.DateLine(
        style=Style(font_family="inherit", label_font_size=13, major_label_font_size=13),  # for the room of the labels
        js=[],
        width=WIDTH,
        height=HEIGHT,
        margin=8,
        margin_right=34,
        show_legend=False,
        show_dots=len(values) <= DOTS,
        allow_interruptions=True,
        dots_size=3,
        range=(0, max(v for _, v in values) or 1),
        x_label_rotation=0,
        x_labels=_labels(first, last),
        x_value_formatter=lambda day: f"{day:%d %b %y}",
        value_formatter=figure.told,
        max_scale=5,
        no_prefix=True,
        explicit_size=False,
        disable_xml_declaration=True,
    )
    chart.add(figure.title, _with_gaps(values))
    svg = _LONG.sub(r"\1", _VALUE.sub(r"\1><title>\2</title></circle>", _LEFT_OUT.sub("", chart.render(is_unicode=True))))
    label = f'role="img" aria-label="{_plain(figure, values)}"'
    return svg.strip().replace("<svg ", f"<svg {label} ", 1)


def _labels(first: date, last: date) -> list[date]:
    """Five days, evenly apart."""
    span = (last - first).days
    return sorted({first + timedelta(days=round(span * n / 4)) for n in range(5)})


def _with_gaps(values: list[tuple[date, float]]) -> list[tuple[date, float | None]]:
    """With a break where more than two weeks have no value: a line across them would tell of days that are not."""
    found: list[tuple[date, float | None]] = []
    for day, value in values:
        if found and (day - found[-1][0]).days > 14:
            found.append((day - timedelta(days=1), None))
        found.append((day, value))
    return found


def _plain(figure: Figure, values: list[tuple[date, float]]) -> str:
    """What the drawing shows, for those who do not see it."""
    numbers = [value for _, value in values]
    told = f"{figure.title}: {len(values)} days from {values[0][0]} to {values[-1][0]}, "
    told += f"lowest {figure.told(min(numbers))}, highest {figure.told(max(numbers))}, last {figure.told(numbers[-1])}"
    return told.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
