"""Rounds a decoder product by product in running order, each one on what the rounded ones before
it write, and towards what the parent would have written.

Source: GPTQ's layer-wise reconstruction (Frantar et al., 2023), with targets from the unrounded
model instead of the rounded one.

Shape legend: T rows of a passage, D hidden size, K inputs and N outputs of a product.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ocria.calibration.embedding import head_moments, round_embedding
from ocria.calibration.layerwise import LayerRunner
from ocria.calibration.moments import Moments
from ocria.calibration.passages import Passage
from ocria.calibration.rounding import Format, dequantize, round_calibrated, split_rows
from ocria.calibration.sites import DECODER, EMBEDDING, HEAD, Site, decoder_sites
from ocria.models.layers.linear import TiledLinear
from ocria.models.qwen3_5.model import Qwen35
from ocria.quantization.layouts import PackedTensor

ReadWeight = Callable[[str], Tensor]
"""A stored module's weight [N, K] by the module's name."""

# Products whose outputs are added to the residual rows: of the mixer, and of the feed-forward.
ENDS_MIXER = ("linear_attn.out_proj", "self_attn.o_proj")
ENDS_LAYER = "mlp.down_proj"


class Rows(NamedTuple):
    """What enters a layer in the parent and in the child, [T, D] by passage."""

    parent: list[Tensor]
    child: list[Tensor]


class LayerRounding:
    """Turns one layer after the other into its quantised child, in place.

    Args:
        target: the parent; of its layers only the one that is rounded needs to have weights.
        read: the parent's weights.
        passages: pages, the ones to learn from first.
        num_learnt: how many of them are learnt from; the rest only pass through.
        plan: format of each site by name.
        progress: hears each site's name once it is done.
    """

    def __init__(
        self,
        target: Qwen35,
        read: ReadWeight,
        passages: Sequence[Passage],
        num_learnt: int,
        plan: Mapping[str, Format],
        progress: Callable[[str], None],
    ) -> None:
        self._target, self._read, self._plan, self._progress = target, read, plan, progress
        self._num_rows = [passage.num_rows for passage in passages[:num_learnt]]
        self._num_prefill = [len(passage.prompt.token_ids) - 1 for passage in passages[:num_learnt]]
        self.runner = LayerRunner(target, passages)

    @torch.inference_mode()
    def round(self, layer: int, rows: Rows) -> tuple[Rows, dict[str, PackedTensor]]:
        """Rows behind the layer, and its packed weights by stored module name.

        Raises:
            ValueError: a weight is NaN or infinite.
        """
        sites = _sites_of(self._target, layer)
        norm = f"{DECODER}.layers.{layer}.post_attention_layernorm"
        names = [site.name for site in sites]
        parent_after, parent = self.runner.run(layer, rows.parent, [*names, norm])
        packed: dict[str, PackedTensor] = {}
        for site in sites:
            if self._plan[site.name] != "bf16":
                child_after, child = self.runner.run(layer, rows.child, [site.name, norm])
                del child_after
                behind = None
                if site.name.endswith(ENDS_LAYER):
                    behind = _differences(parent[norm], child[norm])
                elif site.name.endswith(ENDS_MIXER):
                    behind = _differences(rows.parent, rows.child)
                moments = self._moments(parent[site.name], child[site.name], behind)
                del child, behind
                packed |= self._round_site(site, moments)
            self._progress(site.name)
        child_after, _ = self.runner.run(layer, rows.child)
        return Rows(parent_after, child_after), packed

    @torch.inference_mode()
    def follow(self, layer: int, rows: Rows, packed: Mapping[str, PackedTensor]) -> Rows:
        """Rows behind a layer whose packed weights are known from an earlier run."""
        parent_after, _ = self.runner.run(layer, rows.parent)
        for site in _sites_of(self._target, layer):
            if self._plan[site.name] != "bf16":
                parts = [dequantize(packed[name], self._target.dtype) for name in site.members]
                set_weight(self._target.get_submodule(site.name), torch.cat(parts))
            self._progress(site.name)
        child_after, _ = self.runner.run(layer, rows.child)
        return Rows(parent_after, child_after)

    def _round_site(self, site: Site, moments: Moments) -> dict[str, PackedTensor]:
        format = self._plan[site.name]
        assert format != "bf16", "bf16 needs no rounding"
        weights = [self._read(member) for member in site.members]
        weight_NK = torch.cat(weights)
        packed = round_calibrated(weight_NK, format, moments.joint(weight_NK))
        set_weight(self._target.get_submodule(site.name), dequantize(packed, self._target.dtype))
        parts = split_rows(packed, [weight.shape[0] for weight in weights])
        return dict(zip(site.members, parts, strict=True))

    def _moments(
        self,
        parent: Sequence[Tensor],
        child: Sequence[Tensor],
        behind: Sequence[Tensor] | None,
    ) -> Moments:
        """Moments of a site; one that adds to the residual rows makes up for their drift too."""
        num_prefill = sum(self._num_prefill)
        moments = Moments(
            child[0].shape[1],
            num_prefill=num_prefill,
            num_decode=sum(self._num_rows) - num_prefill,
        )
        for i, num_first in enumerate(self._num_prefill):
            lacking = None if behind is None else behind[i]
            moments.add(child[i], parent[i], num_first, lacking)
        return moments


@torch.inference_mode()
def round_resident(
    target: Qwen35,
    read: ReadWeight,
    passages: Sequence[Passage],
    plan: Mapping[str, Format],
    progress: Callable[[str], None],
) -> dict[str, PackedTensor]:
    """Turns a model that is ready to run, and in memory as a whole, into its quantised child.

    Args:
        target: the parent; its products get rounded weights one after the other.
        read: the parent's weights.
        passages: pages that the parent has read.
        plan: format of each site by name; `EMBEDDING` and `HEAD` among them.
        progress: hears each site's name once it is done.

    Returns:
        Packed weights by stored module name.

    Raises:
        ValueError: a weight is NaN or infinite.
    """
    rounding = LayerRounding(target, read, passages, len(passages), plan, progress)
    before = rounding.runner.embed()
    packed = _round_ends(target, read, passages, plan)
    progress(EMBEDDING)
    rows = Rows(before, rounding.runner.embed())
    for layer in range(target.config.text.num_hidden_layers):
        rows, found = rounding.round(layer, rows)
        packed |= found
    return packed


def _round_ends(
    target: Qwen35, read: ReadWeight, passages: Sequence[Passage], plan: Mapping[str, Format]
) -> dict[str, PackedTensor]:
    """Embedding and head in FP8; a head's error is fed back along what the parent's reads."""
    packed: dict[str, PackedTensor] = {}
    hessian_DD = head_moments(target, passages)
    if plan[EMBEDDING] != "bf16":
        weight_VD = read(EMBEDDING)
        num_rows, size = weight_VD.shape
        moments = hessian_DD if target.tied else None
        packed[EMBEDDING] = round_embedding([weight_VD], (num_rows, size), moments)
        set_embedding(target, dequantize(packed[EMBEDDING], target.dtype))
    if not target.tied and plan[HEAD] != "bf16":
        weight_VD = read(HEAD)
        num_rows, size = weight_VD.shape
        packed[HEAD] = round_embedding([weight_VD], (num_rows, size), hessian_DD)
        set_weight(target.lm_head, dequantize(packed[HEAD], target.dtype))
    return packed


def _sites_of(target: Qwen35, layer: int) -> list[Site]:
    prefix = f"{DECODER}.layers.{layer}."
    return [site for site in decoder_sites(target.config.text) if site.name.startswith(prefix)]


def _differences(parent: Sequence[Tensor], child: Sequence[Tensor]) -> list[Tensor]:
    return [(theirs - ours).cpu() for theirs, ours in zip(parent, child, strict=True)]


@torch.inference_mode()
def set_weight(module: nn.Module, weight_NK: Tensor) -> None:
    """Gives a product that is ready to run another weight, laid out anew."""
    assert isinstance(module, TiledLinear), "only decoder products are quantised"
    weight_NK = weight_NK.to(module.weight.device)
    module.weight = nn.Parameter(weight_NK.contiguous(), requires_grad=False)
    module.pack()


@torch.inference_mode()
def set_embedding(target: Qwen35, weight_VD: Tensor) -> None:
    """Gives a model another embedding, and the head that is tied to it."""
    weight_VD = weight_VD.to(target.device)
    target.model.language_model.embed_tokens.weight = nn.Parameter(weight_VD, requires_grad=False)
    if target.tied:
        set_weight(target.lm_head, weight_VD)
