"""Threads for many small products, each computed on one core.

torch spreads every product over its own threads and waits for them all at its end. With thousands
of products of a millisecond, one busy core delays each of them: beside other programs on 2 cores a
page's vision took 46 to 73 s that way, and takes 8 s this way. Here each thread works through whole
products alone.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_on_cores(task: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """`task` of every item, in order, on as many threads as torch has; no gradients.

    Items must not depend on each other. An exception of a task is raised here.
    """
    count = torch.get_num_threads()
    if count == 1:
        return [task(item) for item in items]

    def without_gradients(item: Item) -> Result:
        # The mode belongs to a thread: these do not inherit the caller's.
        with torch.inference_mode():
            return task(item)

    return list(_pool(count).map(without_gradients, items))


@lru_cache(maxsize=1)
def _pool(count: int) -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(count, "one-core", initializer=_take_one_core)
    everyone_started = threading.Barrier(count)
    list(pool.map(lambda _: everyone_started.wait(), range(count)))
    # Setting it also changed what threads to come will take.
    torch.set_num_threads(count)
    return pool


def _take_one_core() -> None:
    torch.set_num_threads(1)
    # A thread adopts the process-wide number at its first question: ask while that is 1.
    torch.get_num_threads()
