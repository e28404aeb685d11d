"""One pass of the parent, layer by layer: what each product would lose, and what the head reads.

For checkpoints that do not fit in memory. Trying each product alone in a whole model would read
all layers once for each of them; here a product's loss is the noise that it would add, beside the
signal that it is added to, all of one pass.

Shape legend: T rows of a passage, D hidden size, N outputs and K inputs of a product.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ocria.calibration.allocation import Loss
from ocria.calibration.layerwise import LayerRunner
from ocria.calibration.passages import Passage
from ocria.calibration.rounding import dequantize, round_plainly
from ocria.calibration.sites import DECODER, Site
from ocria.calibration.streamed import StoredParent, StreamedModel
from ocria.models.qwen3_5.model import Qwen35

# Rows of all passages on which a product is tried: a ratio of sums settles with few.
_TRIED_ROWS = 512


class Survey(NamedTuple):
    """What the pass found.

    Attributes:
        losses: `Loss.kl` is a share here: squared noise over the squared residual rows.
        hessian_DD: second moments of what the head reads, float32.
    """

    losses: tuple[Loss, ...]
    hessian_DD: Tensor


@torch.inference_mode()
def survey(
    parent: StoredParent,
    model: StreamedModel,
    passages: Sequence[Passage],
    progress: Callable[[str], None],
) -> Survey:
    """Runs `passages` through all layers.

    Raises:
        ValueError: a weight is NaN or infinite.
    """
    runner = LayerRunner(model.target, passages)
    rows, losses = runner.embed(), []
    for index in range(len(parent.config.text.layer_types)):
        sites = [site for site in parent.sites if f".layers.{index}." in site.name]
        norm = f"{DECODER}.layers.{index}.post_attention_layernorm"
        with model.layer(index):
            after, seen = runner.run(index, rows, [*(site.name for site in sites), norm])
            for site in sites:
                is_late = site.name.startswith(f"{DECODER}.layers.{index}.mlp.")
                start, end = (seen[norm], after) if is_late else (rows, seen[norm])
                share = _branch_share(start, end)
                losses.append(_loss(parent, site, _sample(seen[site.name]), share))
                progress(site.name)
        rows = after
    return Survey(tuple(losses), _head_moments(model.target, passages, rows))


def _loss(parent: StoredParent, site: Site, read_TK: Tensor, share: float) -> Loss:
    weight_NK = torch.cat([parent.read(member) for member in site.members]).float()
    noise = {}
    signal = float((read_TK @ weight_NK.T).square().sum())
    for format in ("nvfp4", "fp8"):
        rounded_NK = dequantize(round_plainly(weight_NK, format), torch.float32)
        noise[format] = float((read_TK @ rounded_NK.sub_(weight_NK).T).square().sum())
    return Loss(
        site=site.name,
        num_weights=weight_NK.numel(),
        kl=share * noise["nvfp4"] / max(signal, 1e-30),
        agreement=None,
        fp8_ratio=noise["fp8"] / noise["nvfp4"] if noise["nvfp4"] else 0.0,
    )


def _sample(seen: Sequence[Tensor]) -> Tensor:
    """Some rows of all passages, evenly spread."""
    rows_TK = torch.cat(list(seen))
    step = max(1, rows_TK.shape[0] // _TRIED_ROWS)
    return rows_TK[step - 1 :: step].float()


def _branch_share(start: Sequence[Tensor], end: Sequence[Tensor]) -> float:
    """Squared size of what a branch adds to the residual rows, over theirs behind it."""
    pairs = zip(start, end, strict=True)
    added = sum(float((e.cpu() - s.cpu()).float().square().sum()) for s, e in pairs)
    whole = sum(float(e.float().square().sum()) for e in end)
    return added / max(whole, 1e-30)


def _head_moments(target: Qwen35, passages: Sequence[Passage], rows: Sequence[Tensor]) -> Tensor:
    size = target.config.text.hidden_size
    hessian_DD = torch.zeros(size, size)
    for passage, x_TD in zip(passages, rows, strict=True):
        chosen_TD = x_TD[len(passage.prompt.token_ids) - 1 :]
        hidden_TD = target.model.language_model.norm(chosen_TD).cpu().float()
        hessian_DD.addmm_(hidden_TD.T, hidden_TD)
    return hessian_DD
