"""Self-made pages: the same every time, different from each other, with ink inside the sheet."""

import numpy as np

from ocria.calibration.pages import draw_pages
from ocria.vision import measure_ink


def test_same_seed_same_pages() -> None:
    first, again, other = draw_pages(3), draw_pages(3), draw_pages(3, seed=1)
    for one, two, three in zip(first, again, other, strict=True):
        assert one.dtype == np.uint8 and one.shape[2] == 3
        assert np.array_equal(one, two)
        assert not np.array_equal(one, three)


def test_pages_have_ink_and_margins() -> None:
    for page in draw_pages(6):
        assert not measure_ink(page).is_blank
        assert page[:, -6:].min() > 150, "text runs out of the sheet"
