"""The window of a day in two dimensions, as a PNG: its observations, those of each pattern in a colour of its own.

The same points give the same bytes: the projection has no chance in it, and Pillow writes no time into a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from PIL import ImageDraw, ImageFont

WIDTH, HEIGHT = 720, 440
"""Pixels of the picture."""
_TIMES = 2
"""It is drawn so many times as large and then reduced, which makes its edges smooth."""
_MARGIN, _DOT, _MEMBER, _FONT = 28, 2, 5, 13
_COLOURS = (
    *("#d1495b", "#2a6f97", "#3a7d44", "#c77d0a", "#7b4fa3"),
    *("#00a5a5", "#6b4226", "#d56bb0", "#7f8c00", "#1f2d5c"),
)
_GREY, _FRAME = "#c3c8cf", "#e3e6ea"
MAX_LABELS = 12
"""Patterns that are drawn in colour; more names would cover each other."""

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something of a pattern is drawn: at a point, or, where it has no vector of its own, beside what was said
    before it."""

    point: str
    is_own: bool = True


def picture(vectors: Mapping[str, Sequence[float]], patterns: Mapping[str, Sequence[Place]]) -> bytes | None:
    """PNG of the points by their vectors, with the patterns (at most `MAX_LABELS`, in this order) in colour; None where
    all vectors are the same, or there are none. Places at points without a vector are left out.
    """
    from PIL import Image, ImageDraw, ImageFont

    names = sorted(vectors)
    found = projected([vectors[name] for name in names])
    if found is None:
        return None
    at = dict(zip(names, (_on_canvas(x, y) for x, y in found), strict=True))
    image = Image.new("RGB", (WIDTH * _TIMES, HEIGHT * _TIMES), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(_FONT * _TIMES)
    draw.rectangle((0, 0, image.width - 1, image.height - 1), outline=_FRAME, width=_TIMES)
    for x, y in at.values():
        draw.ellipse(_around(x, y, _DOT), fill=_GREY)
    shown = [(name, [p for p in places if p.point in at]) for name, places in patterns.items()][:MAX_LABELS]
    coloured = [(name, places, _COLOURS[i % len(_COLOURS)]) for i, (name, places) in enumerate(shown) if places]
    for _, places, colour in reversed(coloured):  # the most severe on top
        for place in sorted(places, key=lambda p: (p.is_own, p.point)):
            box = _around(*at[place.point], _MEMBER)
            draw.ellipse(box, fill=colour if place.is_own else "white", outline=colour, width=_TIMES + 1)
    taken: list[Box] = []
    for name, places, colour in coloured:
        points = [at[place.point] for place in places]
        taken.append(_label(draw, font, name, points, colour, taken))
    small = image.reduce(_TIMES).quantize(64)
    written = BytesIO()
    small.save(written, "PNG", optimize=True)
    return written.getvalue()


def projected(vectors: Sequence[Sequence[float]]) -> np.ndarray | None:
    """The vectors along their first two principal components, each from 0 to 1; None where they do not differ."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    if not vectors:
        return None
    centred = np.asarray(vectors, dtype=np.float64)
    centred = centred - centred.mean(axis=0)
    if np.abs(centred).max() < 1e-6:
        return None
    with threadpool_limits(1):  # one thread adds up in one order, and is ten times as fast where the machine is busy
        axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :2]
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.sign(axes[largest, range(axes.shape[1])])  # a component and its opposite are equally good
    flat = centred @ axes
    if flat.shape[1] == 1:
        flat = np.column_stack([flat, np.zeros(len(flat))])
    low, spread = flat.min(axis=0), flat.max(axis=0) - flat.min(axis=0)
    is_line = spread < 1e-9
    return np.where(is_line, 0.5, (flat - low) / np.where(is_line, 1.0, spread)).round(6)


def _on_canvas(x: float, y: float) -> tuple[float, float]:
    inner_width, inner_height = WIDTH - 2 * _MARGIN, HEIGHT - 2 * _MARGIN
    return (_MARGIN + x * inner_width) * _TIMES, (_MARGIN + y * inner_height) * _TIMES


def _around(x: float, y: float, radius: float) -> Box:
    reach = radius * _TIMES
    return x - reach, y - reach, x + reach, y + reach


def _label(
    draw: ImageDraw.ImageDraw,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    name: str,
    points: Sequence[tuple[float, float]],
    colour: str,
    taken: Sequence[Box],
) -> Box:
    """Write the name above the highest of its points or below the lowest, or further out where another name stands."""
    left, top, right, bottom = draw.textbbox((0, 0), name, font=font)
    width, height, gap = right - left, bottom - top, (_MEMBER + 3) * _TIMES
    ends = min(points, key=lambda p: (p[1], p[0])), max(points, key=lambda p: (p[1], p[0]))
    boxes: list[Box] = []
    for step in range(int(HEIGHT * _TIMES / height)):
        for (x, y), sign in zip(ends, (-1, 1), strict=True):
            column = min(max(x - width / 2, gap), WIDTH * _TIMES - width - gap)
            middle = y + sign * (gap + height / 2 + step * (height + gap / 2))
            boxes.append((column, middle - height / 2, column + width, middle + height / 2))
    inside = [box for box in boxes if box[1] > 0 and box[3] < HEIGHT * _TIMES]
    box = next((box for box in inside if not any(_meet(box, other, gap / 2) for other in taken)), inside[0])
    if box not in boxes[:2]:
        x, y = ends[boxes.index(box) % 2]
        draw.line((x, y, box[0] + width / 2, box[3] if box[3] < y else box[1]), fill=colour, width=_TIMES)
    draw.text((box[0] - left, box[1] - top), name, fill=colour, font=font, stroke_width=3, stroke_fill="white")
    return box


def _meet(one: Box, other: Box, gap: float) -> bool:
    return one[0] < other[2] + gap and other[0] < one[2] + gap and one[1] < other[3] + gap and other[1] < one[3] + gap
