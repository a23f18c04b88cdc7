"""The picture of a window: its bytes are the same for the same points, small, and it shows where the patterns lie."""

from __future__ import annotations

import math
import random
from io import BytesIO

import pytest
from PIL import Image

from memory_pipeline.friction.picture import HEIGHT, MAX_LABELS, WIDTH, Place, picture, projected

RED = (209, 73, 91)


def cloud(points: int, dimensions: int = 384, seed: int = 1) -> dict[str, list[float]]:
    chance = random.Random(seed)
    found = {}
    for n in range(points):
        vector = [chance.gauss(3.0 if i == n % 7 else 0.0, 1.0) for i in range(dimensions)]
        length = math.hypot(*vector)
        found[f"o-{n:04d}"] = [x / length for x in vector]
    return found


def opened(png: bytes | None) -> Image.Image:
    assert png
    return Image.open(BytesIO(png)).convert("RGB")


def near(image: Image.Image, colour: tuple[int, int, int]) -> int:
    """Pixels of about this colour."""
    pixels = image.get_flattened_data()
    return sum(all(abs(a - b) < 24 for a, b in zip(pixel, colour, strict=True)) for pixel in pixels)


def test_the_same_points_give_the_same_bytes_in_whatever_order() -> None:
    points = cloud(120)
    patterns = {"f-20250305-001": [Place("o-0001"), Place("o-0008", is_own=False)]}
    first = picture(points, patterns)
    assert first == picture(dict(reversed(points.items())), {k: list(reversed(v)) for k, v in patterns.items()})
    assert first != picture(points, {})


def test_a_full_window_stays_small() -> None:
    points = cloud(2000)
    patterns = {f"f-20250305-{n:03d}": [Place(f"o-{i:04d}") for i in range(n, 600, 40)] for n in range(1, 31)}
    png = picture(points, patterns)
    image = opened(png)
    assert png and len(png) < 45_000  # as a data URI a third more, and that is below 60 kB
    assert image.size == (WIDTH, HEIGHT)


def test_a_pattern_is_in_its_colour_and_a_ring_where_it_has_no_vector() -> None:
    points = cloud(60)
    name, places = "f-20250305-001", [f"o-{n:04d}" for n in range(0, 56, 7)]
    without = near(opened(picture(points, {})), RED)
    discs = near(opened(picture(points, {name: [Place(p) for p in places]})), RED)
    rings = near(opened(picture(points, {name: [Place(p, is_own=False) for p in places]})), RED)
    assert without == 0 and discs > rings > 100


def test_places_without_a_vector_and_too_many_patterns_are_left_out() -> None:
    points = cloud(60)
    assert picture(points, {"f-1": [Place("o-of-nobody")]}) == picture(points, {})
    shown = {f"f-{n:02d}": [Place(f"o-{n:04d}")] for n in range(MAX_LABELS)}
    assert picture(points, shown | {"f-99": [Place("o-0050")]}) == picture(points, shown)


def test_names_of_patterns_at_one_place_do_not_cover_each_other() -> None:
    points = cloud(60)
    one, ten = ({f"f-20250305-{n:03d}": [Place("o-0007")] for n in range(1, many + 1)} for many in (1, 10))
    ink = [
        sum(near(opened(picture(points, {})), (255, 255, 255)) - near(i, (255, 255, 255)) for i in [image])
        for image in (opened(picture(points, one)), opened(picture(points, ten)))
    ]
    assert ink[1] > 7 * ink[0]


@pytest.mark.parametrize("vectors", [[], [[0.0, 1.0]], [[0.6, 0.8]] * 5, [[1.0, 0.0], [1.0, 1e-9]]])
def test_what_does_not_differ_is_not_drawn(vectors: list[list[float]]) -> None:
    assert projected(vectors) is None
    assert picture({f"o-{n}": vector for n, vector in enumerate(vectors)}, {"f-1": [Place("o-0")]}) is None


def test_points_on_a_line_and_of_one_dimension_are_drawn() -> None:
    line = projected([[float(n), 2.0 * n, 0.0] for n in range(3)])
    assert line is not None and sorted(line[:, 0]) == [0.0, 0.5, 1.0] and set(line[:, 1]) == {0.5}
    assert projected([[1.0], [2.0]]) is not None


def test_a_second_axis_shows_what_the_first_does_not() -> None:
    """Two far apart along the longest axis, two along the next."""
    found = projected([[10.0, 0.0, 0.0], [-10.0, 0.0, 0.0], [0.0, 3.0, 0.1], [0.0, -3.0, 0.0]])
    assert found is not None
    (a, b, c, d) = found.tolist()
    assert {a[0], b[0]} == {0.0, 1.0} and {round(c[1]), round(d[1])} == {0, 1}
    assert c[0] == pytest.approx(0.5, abs=0.01)
