"""A figure by day as a drawing inside the page: SVG without script or address, in the colours of the page's theme."""

from __future__ import annotations

import io
import re
from datetime import date, timedelta
from typing import Any

import matplotlib
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, MaxNLocator

from memory_pipeline.quality.figures import Figure

INCHES = (5.6, 2.1)
DOTS = 45
"""Days up to which each is marked; more of them would hide the line."""
BREAK = timedelta(days=14)
"""Days without a value from which a line is interrupted, as it would suggest data that does not exist."""
_COLOURS = {"#010101": "var(--mark)", "#020202": "var(--ink-soft)", "#030303": "var(--line)"}
"""Placeholders in the drawing for the colours of the theme."""
_MARK, _INK, _LINE = _COLOURS
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "memory",  # the same days give the same bytes
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": _INK,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _LINE,
}
_HEAD = re.compile(r".*?(?=<svg )|<metadata>.*?</metadata>|<style.*?</style>", re.S)
_STYLES = re.compile(r'style="([^"]*)"')
_SIZE = re.compile(r' (?:width|height)="[\d.]+pt"')


def drawn(figure: Figure) -> str:
    """The SVG of a figure with two days or more."""
    values = sorted(figure.by_day.items())
    with matplotlib.rc_context(_STYLE):
        drawing = Drawing(figsize=INCHES, layout="tight")
        axes = drawing.add_subplot()
        for part in _unbroken(values):
            days = date2num([day for day, _ in part])
            axes.plot(days, [v for _, v in part], color=_MARK, marker="o" if _shows_dots(values, part) else "", ms=3)
        axes.set_ylim(0, (max(v for _, v in values) or 1) * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: figure.told(value)))
        places = AutoDateLocator(minticks=2, maxticks=6)
        axes.xaxis.set_major_locator(places)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(places))
        axes.grid(axis="y")
        axes.spines[["top", "right", "left"]].set_visible(False)
        out = io.StringIO()
        drawing.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    svg = _SIZE.sub("", _HEAD.sub("", out.getvalue()), count=2)
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, variable)
    svg = _STYLES.sub(_as_attributes, svg)  # which a page's policy allows
    return svg.strip().replace("<svg ", f'<svg role="img" aria-label="{_plain(figure, values)}" ', 1)


def _as_attributes(style: re.Match[str]) -> str:
    parts = (part.partition(":") for part in style[1].split(";"))
    return " ".join(f'{name.strip()}="{value.strip()}"' for name, _, value in parts if value)


def _unbroken(values: list[tuple[date, float]]) -> list[list[tuple[date, float]]]:
    found = [[values[0]]]
    for day, value in values[1:]:
        if day - found[-1][-1][0] > BREAK:
            found.append([])
        found[-1].append((day, value))
    return found


def _shows_dots(values: list[tuple[date, float]], part: list[tuple[date, float]]) -> bool:
    return len(values) <= DOTS or len(part) == 1


def _plain(figure: Figure, values: list[tuple[date, float]]) -> str:
    """A description of the drawing in words, for users who cannot see it."""
    numbers = [value for _, value in values]
    told = f"{figure.title}: {len(values)} days from {values[0][0]} to {values[-1][0]}, "
    told += f"lowest {figure.told(min(numbers))}, highest {figure.told(max(numbers))}, last {figure.told(numbers[-1])}"
    return told.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
