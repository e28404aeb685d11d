"""Products of a 4B decoder with weights from memory, beside a copy in the same run.

By the tilings that are taken, and by those that stream, which are not: equality before time.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from launches import Product, streamed_products, wide_products
from published import replayed_us
from references import exact, relative_error
from speed import L2_BYTES
from stream import shown
from subject import Figures, Subject
from torch import Tensor

from ocria.bench.ceilings import copy_rate
from ocria.engine import graphs

_ROWS = (1, 8, 16)
_MANY = 40
_OFF = 1e-2
_TIMES = 3
"""Rounds over the weights in a graph: its own launch is little beside them."""


class _Timed(NamedTuple):
    """A graph of products, and the weights that it reads: captured launches do not keep them, and
    the next capture gives unused memory back to the device."""

    name: str
    copies: list[Product]
    replay: Callable[[], object]
    given: tuple[Tensor | None, ...]


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """All products in turn, each reading weight after weight past the L2."""
    is_cuda = subject.device.type == "cuda"
    copy = copy_rate(subject.device, 1 << 30 if is_cuda else 1 << 20).p50
    figures.say("copy, read and written", f"{copy / 1e9:.0f} GB/s")
    timed: list[_Timed] = []
    for product in (*wide_products(subject), *streamed_products(subject)):
        weight = product.weight
        x = subject.random(_MANY, weight.num_in)
        residual = subject.random(_MANY, weight.num_out) if product.has_residual else None
        fault = _fault(product, x, residual)
        if fault:
            figures.say(product.name, f"no speed: {fault}")
            continue
        num_copies = max(3, math.ceil(L2_BYTES / weight.num_bytes)) if is_cuda else 2
        copies = [copied(product) for _ in range(num_copies)]
        for rows in _ROWS if "norm" not in product.name else _ROWS[-1:]:
            few, rest = x[:rows], None if residual is None else residual[:rows]
            replay = _graph(is_cuda, copies, few, rest)
            timed.append(_Timed(f"{product.name}, {rows} rows", copies, replay, (few, rest)))
    spent: dict[str, list[float]] = {}
    for _ in range(max(1, 2 * subject.size.rounds)):
        for name, copies, replay, _ in timed:
            us = replayed_us(subject, replay, 3) / len(copies) / _TIMES
            spent.setdefault(name, []).append(us)
    for name, copies, _, _ in timed:
        rates = [copies[0].weight.num_bytes / us / 1e3 for us in spent[name]]
        share = 100 * sorted(rates)[len(rates) // 2] / (copy / 1e9)
        figures.say(
            name,
            f"{shown(spent[name], 1)} us, {shown(rates)} GB/s, {share:.0f} % of the copy, "
            f"{len(copies)} weights",
        )


def _fault(product: Product, x: Tensor, residual: Tensor | None) -> str | None:
    """What speaks against a time: no product, far from float64, or rows that company changes."""
    try:
        y = product(x, residual)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    error = relative_error(y, exact(product, x, residual))
    if not error < _OFF:
        return f"{error:.1e} off float64"
    for rows in _ROWS:
        few = product(x[:rows], None if residual is None else residual[:rows])
        # The references of a CPU promise no bits.
        if few.is_cuda and not torch.equal(few, y[:rows]):
            return f"{rows} rows are other than among {_MANY}"
    return None


def _graph(is_cuda: bool, copies: list[Product], x, residual) -> Callable[[], object]:  # type: ignore[no-untyped-def]
    def run() -> None:
        for product in copies * _TIMES:
            product(x, residual)

    return graphs.record(run)[1] if is_cuda else run


def copied(product: Product) -> Product:
    """The same numbers elsewhere in memory."""
    weight = product.weight
    parts = (weight.codes, weight.block_scales, weight.row_scale)
    codes, scales, rows = (part.clone() for part in parts)
    return product._replace(
        weight=replace(weight, codes=codes, block_scales=scales, row_scale=rows)
    )
