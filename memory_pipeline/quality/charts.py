"""A chart of a figure by day as inline SVG, without scripts or URLs, in the colours of the page's theme."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from markupsafe import Markup

from memory_pipeline.quality.figures import Figure

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


def draw(figure: Figure) -> Markup:
    """The SVG of a figure with values on at least two days."""
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
