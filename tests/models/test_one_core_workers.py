"""Threads with one core each: order, errors, and the caller's settings."""

from collections.abc import Iterator

import pytest
import torch

from ocria.models.layers.one_core_workers import map_on_cores


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_order_and_the_caller_keeps_its_threads(threads: int) -> None:
    seen = map_on_cores(lambda i: (i, torch.get_num_threads()), range(40))
    assert seen == [(i, 1) for i in range(40)]
    assert torch.get_num_threads() == threads


def test_tasks_write_into_the_caller_s_tensors(threads: int) -> None:
    with torch.inference_mode():
        rows = torch.zeros(20, 4)
        map_on_cores(lambda i: rows[i].fill_(i), range(20))
    assert rows[:, 0].tolist() == list(range(20))


def test_an_error_of_a_task_reaches_the_caller(threads: int) -> None:
    def fail(item: int) -> None:
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"):
        map_on_cores(fail, range(3))
