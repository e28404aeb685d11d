"""Pictures that threads draw ahead."""

import pytest

from ocria.eval.drawn_ahead import _Drawn


def test_an_end_that_was_told_is_told_again():
    pictures = _Drawn(iter(()))
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(pictures)


def test_what_a_thread_raises_comes_where_the_picture_is_due():
    def broken():
        yield "first"
        raise OSError("no disk")

    pictures = _Drawn(broken())
    assert next(pictures) == "first"
    for _ in range(2):
        with pytest.raises(OSError, match="no disk"):
            next(pictures)
