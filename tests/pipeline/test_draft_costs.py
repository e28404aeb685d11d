"""Which sources `auto` has, by device and company."""

import pytest
import torch

from ocria.pipeline.draft_costs import DraftCosts, draft_costs

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def sources(costs: DraftCosts) -> set[str]:
    return {name for name in costs.of_call if costs.may_pay(name)}


def test_every_source_may_pay_on_a_cpu() -> None:
    assert sources(draft_costs(CPU, num_pages=64)) == {"ngram", "text-layer", "dflash", "mtp"}


@pytest.mark.parametrize(
    ("num_pages", "expected"),
    [(1, {"ngram", "text-layer", "dflash"}), (8, {"text-layer"}), (32, {"text-layer"})],
)
def test_pages_share_a_pass_and_no_call(num_pages: int, expected: set[str]) -> None:
    assert sources(draft_costs(CUDA, num_pages=num_pages)) == expected


def test_a_call_weighs_less_beside_the_pass_of_a_deeper_decoder() -> None:
    shipped, deeper = (draft_costs(CUDA, num_pages=8, num_layers=n) for n in (9, 36))
    assert deeper.of_call["dflash"] == pytest.approx(shipped.of_call["dflash"] / 4)
    assert "dflash" in sources(deeper)


@pytest.mark.parametrize("num_pages", [1, 8, 64])
def test_the_grant_is_enough_for_a_try(num_pages: int) -> None:
    costs = draft_costs(CUDA, num_pages=num_pages)
    assert costs.grant >= costs.of_call["text-layer"] + costs.of_pass.of(16) - 1
