"""Formats of all products under the options' budget."""

from collections.abc import Sequence
from typing import Protocol

from ocria.calibration.allocation import Loss, allocate
from ocria.calibration.options import DEFAULT_SHARE, QuantizeOptions
from ocria.calibration.rounding import Format
from ocria.calibration.sites import EMBEDDING, HEAD, Site
from ocria.errors import UsageError

_BF16_BYTES = 2


class Sizes(Protocol):
    """What a plan has to know of a parent."""

    @property
    def head(self) -> str:
        """Module whose weight the head multiplies with."""
        ...

    def shape(self, module: str) -> tuple[int, ...]:
        """Shape of a module's weight."""
        ...

    def num_bytes(self) -> int:
        """Bytes of everything but the vision tower."""
        ...


def plan_formats(
    parent: Sizes, losses: Sequence[Loss], options: QuantizeOptions
) -> dict[str, Format]:
    """Formats of all products; the embedding, and a head of its own, are FP8.

    Raises:
        UsageError: not even NVFP4 everywhere fits the budget.
    """
    budget = options.budget_bytes
    if budget is None and options.max_loss is None:
        budget = int(parent.num_bytes() * DEFAULT_SHARE)
    if budget is not None:
        budget = _budget_of_products(parent, losses, budget)
    plan = allocate(losses, budget_bytes=budget, max_loss=options.max_loss)
    return {**plan, EMBEDDING: "fp8", HEAD: "fp8"}


def public_recipe(
    sites: Sequence[Site], parent: Sizes, budget_bytes: int | None
) -> dict[str, Format]:
    """Formats without measuring: mixers in FP8 if that fits the budget, all else in NVFP4.

    Source: what ModelOpt and llm-compressor publish for this family (w4a16_nvfp4-fp8_attn).

    Raises:
        UsageError: not even NVFP4 everywhere fits the budget.
    """
    unknown = [
        Loss(site=site.name, num_weights=_num_weights(parent, site), kl=0, agreement=0, fp8_ratio=0)
        for site in sites
    ]
    budget = budget_bytes or int(parent.num_bytes() * DEFAULT_SHARE)
    left = _budget_of_products(parent, unknown, budget)
    wide: dict[str, Format] = {
        loss.site: "nvfp4" if ".mlp." in loss.site else "fp8" for loss in unknown
    }
    fits = sum(loss.num_bytes(wide[loss.site]) for loss in unknown) <= left
    narrow: dict[str, Format] = dict.fromkeys(wide, "nvfp4")
    return {**(wide if fits else narrow), EMBEDDING: "fp8", HEAD: "fp8"}


def _budget_of_products(parent: Sizes, losses: Sequence[Loss], budget: int) -> int:
    """What is left of the budget for the products of all layers."""
    kept = parent.num_bytes() - sum(_BF16_BYTES * loss.num_weights for loss in losses)
    kept -= sum(_fp8_saves(parent.shape(module)) for module in {EMBEDDING, parent.head})
    least = sum(loss.num_bytes("nvfp4") for loss in losses)
    if budget - kept < least:
        raise UsageError(f"--budget {budget} is too small: all NVFP4 takes {least + kept} bytes")
    return budget - kept


def _fp8_saves(shape: tuple[int, ...]) -> int:
    num_rows, num_columns = shape
    return num_rows * (num_columns * (_BF16_BYTES - 1) - _BF16_BYTES)


def _num_weights(parent: Sizes, site: Site) -> int:
    shapes = [parent.shape(member) for member in site.members]
    return sum(rows * columns for rows, columns in shapes)
