"""Outputs against float64 and float32: products in the order of fragments, the head, the model."""

import statistics
from collections import defaultdict

import torch
import torch.nn.functional as F
from launches import Product, products, wide_products
from rows import Reader, Script, windows
from subject import Figures, Subject, text_of
from torch import Tensor

from ocria.engine.graphs import GraphRunner
from ocria.engine.state import StatePool
from ocria.kernels.small_gemm import unpack
from ocria.models.base import Window
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.registry import load

_ROWS = 20
_WINDOW = 20


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """Says errors and counts."""
    check_products(subject, figures)
    check_head(subject, figures)
    check_model(subject, figures)


def check_products(subject: Subject, figures: Figures) -> None:
    """Every product of the shipped model, and wide ones with split sums, against float64."""
    errors: dict[str, list[float]] = defaultdict(list)
    flips: dict[str, list[float]] = defaultdict(list)
    num_unequal = 0
    found = [*products(subject), *wide_products(subject)]
    for number, product in enumerate(found):
        weight = product.weight
        x = subject.random(_ROWS, weight.num_in, seed=number)
        residual = None
        if product.has_residual:
            residual = subject.random(_ROWS, weight.num_out, seed=100 + number)
        y, expected = product(x, residual), exact(product, x, residual)
        errors[product.name].append(float((y.double() - expected).norm() / expected.norm()))
        flips[product.name].append(float((y != expected.to(y.dtype)).double().mean()))
        for rows in (1, 16):
            few = product(x[:rows], None if residual is None else residual[:rows])
            num_unequal += int((few != y[:rows]).any(1).sum())
    for name, values in errors.items():
        figures.say(
            f"error of {name}",
            f"{max(values):.2e} of {len(values)}; "
            f"{100 * statistics.fmean(flips[name]):.2f} % not the rounded float64 result",
        )
    total = 17 * len(found)
    figures.say("rows of 1- and 16-row products other than of 20", f"{num_unequal} of {total}")


def exact(product: Product, x: Tensor, residual: Tensor | None) -> Tensor:
    """The product in float64 after the one rounding of x * gain."""
    weight, norm = unpack(product.weight).double(), product.norm
    if norm is None:
        y = x.double() @ weight.mT
    else:
        scaled = (x.float() * norm.gain_K).to(x.dtype).double()
        y = scaled @ weight.mT
        y = y * torch.rsqrt(x.double().square().mean(-1, keepdim=True) + norm.eps)
    if product.weight.paired:
        y = F.silu(y[:, 0::2]) * y[:, 1::2]
    return y if residual is None else y + residual.double()


def check_head(subject: Subject, figures: Figures) -> None:
    """The head kernel of captured passes against their logits, and of its own against float64."""
    fused, forbidden = subject.fused, subject.forbidden_V.bool()
    x_MD = subject.random(_ROWS, subject.target.hidden_size, seed=7)
    head = Product("head", fused._head, fused._norm, False, torch.float32)
    logits = exact(head, x_MD, None).masked_fill(forbidden, -torch.inf)
    found = fused.best(x_MD, subject.forbidden_V)
    _say_best(figures, "head of random rows against float64", *found, logits)

    runner = GraphRunner(subject.target, subject.forbidden_ids)
    tokens, logprobs, rows, unequal = [], [], [], 0

    def verify(passed):  # type: ignore[no-untyped-def]
        nonlocal unequal
        output = runner.verify(passed)
        tokens.append(output.best.token_T.clone())
        logprobs.append(output.best.logprob_T.clone())
        rows.append(output.logits_TV.clone())
        alone = runner.verify(passed, with_logits=False).best
        unequal += int((alone.token_T != tokens[-1]).sum())
        unequal += int((alone.logprob_T != logprobs[-1]).sum())
        return output._replace(logits_TV=rows[-1])

    text = text_of(subject.size.num_rows, seed=8)
    Reader(subject).read(verify, [Script(text, windows(len(text), 5))])
    logits = torch.cat(rows).double().masked_fill(forbidden, -torch.inf)
    name = "head of captured passes against their logits"
    _say_best(figures, name, torch.cat(tokens), torch.cat(logprobs), logits)
    figures.say("best tokens with logits other than without", f"{unequal} of {len(logits)}")


def _say_best(
    figures: Figures, name: str, token_M: Tensor, logprob_M: Tensor, logits_MV: Tensor
) -> None:
    expected_M = logits_MV.log_softmax(-1).amax(-1)
    worst = float((logprob_M.double() - expected_M).abs().max())
    same = int((token_M == logits_MV.argmax(-1)).sum())
    figures.say(name, f"{same} of {len(token_M)} tokens equal, log probability {worst:.1e} off")


def check_model(subject: Subject, figures: Figures) -> None:
    """Logits of fused passes against the plain modules in float32 with the same weights."""
    wide = load(subject.model.folder, device=subject.device, dtype=torch.float32).target
    assert isinstance(wide, Qwen35) and wide.fused is None
    text = text_of(min(60, subject.size.num_rows), seed=6)
    cuts = [(1, 1)] * len(text)
    found = Reader(subject).read(subject.target.verify, [Script(text, cuts)])[0].rows
    mine, subject.model.target.fused = subject.target.fused, None
    try:
        plain = Reader(subject).read(subject.target.verify, [Script(text, cuts)])[0].rows
    finally:
        subject.model.target.fused = mine
    expected = _wide_rows(subject, wide, text)
    for name, rows in (("fused", found), ("plain modules", plain)):
        error = float((rows.double() - expected).norm() / expected.norm())
        same = int((rows.argmax(-1) == expected.argmax(-1)).sum())
        figures.say(
            f"logits, {name}, against float32",
            f"{error:.2e} off, best token the same in {same} of {len(text)} rows",
        )


def _wide_rows(subject: Subject, wide: Qwen35, text: list[int]) -> Tensor:
    prompt, image = subject.page()
    longest = len(prompt.token_ids) + len(text) + 64
    pool = StatePool(wide, num_slots=1, max_positions=longest)
    _, state = pool.acquire()
    # Both decoders get the same image tokens: the vision tower is not under check.
    pool.read(state, prompt, subject.target.encode_image(image).float())
    rows = []
    for first in range(0, len(text), _WINDOW):
        ids = text[first : first + _WINDOW]
        rows.append(wide.verify([Window(state, ids)]).logits_TV.clone())
        pool.commit([(state, len(ids))])
    return torch.cat(rows).double()
