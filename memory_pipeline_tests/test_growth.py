"""The measure that stands in the place of clocks tells even growth from the other."""

import pytest

from memory_pipeline_tests.growth import grows_evenly


def test_work_that_grows_evenly_passes() -> None:
    grows_evenly(lambda size: sum(range(size)), 500_000)
    grows_evenly(lambda size: sorted(range(size, 0, -1)), 200_000)


def test_work_that_grows_with_the_square_fails() -> None:
    with pytest.raises(AssertionError, match="times as long"):
        grows_evenly(lambda size: [sum(range(size)) for _ in range(size)], 1_000)
