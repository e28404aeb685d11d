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

from ocria.calibration.layerwise import LayerRunner
from ocria.calibration.moments import Moments
from ocria.calibration.passages import Forcing, Passage
from ocria.calibration.rounding import Format, dequantize, round_calibrated, split_rows
from ocria.calibration.sites import DECODER, EMBEDDING, HEAD, Site, decoder_sites
from ocria.models.layers.linear import TiledLinear
from ocria.models.qwen3_5.model import Qwen35
from ocria.quantization import error_feedback, fp8
from ocria.quantization.layouts import PackedTensor

ReadWeight = Callable[[str], Tensor]
"""A stored module's weight [N, K] by the module's name."""

# Products whose outputs are added to the residual rows: of the mixer, and of the feed-forward.
_ENDS_MIXER = ("linear_attn.out_proj", "self_attn.o_proj")
_ENDS_LAYER = "mlp.down_proj"


class _Rows(NamedTuple):
    """What enters a layer in the parent and in the child, [T, D] by passage."""

    parent: list[Tensor]
    child: list[Tensor]


class SequentialRounding:
    """Turns a model that is ready to run into its quantised child, in place.

    Args:
        target: the parent; its products get rounded weights one after the other.
        read: the parent's weights.
        passages: pages that the parent has read.
        plan: format of each site by name; `EMBEDDING` among them.
        progress: hears each site's name once it is done.
    """

    def __init__(
        self,
        target: Qwen35,
        read: ReadWeight,
        passages: Sequence[Passage],
        plan: Mapping[str, Format],
        progress: Callable[[str], None],
    ) -> None:
        self._target, self._read, self._plan, self._progress = target, read, plan, progress
        self._passages = passages
        self._num_prefill = [len(passage.prompt.token_ids) - 1 for passage in passages]
        self._runner = LayerRunner(target, passages)
        self._packed: dict[str, PackedTensor] = {}

    @torch.inference_mode()
    def run(self) -> dict[str, PackedTensor]:
        """Packed weights by stored module name.

        Raises:
            ValueError: a weight is NaN or infinite.
        """
        before = self._runner.embed()
        self._round_embedding()
        rows = _Rows(before, self._runner.embed())
        sites = decoder_sites(self._target.config.text)
        for layer in range(self._target.config.text.num_hidden_layers):
            prefix = f"{DECODER}.layers.{layer}."
            rows = self._round_layer(
                layer, [site for site in sites if site.name.startswith(prefix)], rows
            )
        return self._packed

    def _round_layer(self, layer: int, sites: Sequence[Site], rows: _Rows) -> _Rows:
        norm = f"{DECODER}.layers.{layer}.post_attention_layernorm"
        names = [site.name for site in sites]
        parent_after, parent = self._runner.run(layer, rows.parent, [*names, norm])
        for site in sites:
            format = self._plan[site.name]
            if format != "bf16":
                _, child = self._runner.run(layer, rows.child, [site.name, norm])
                behind = None
                if site.name.endswith(_ENDS_LAYER):
                    behind = _differences(parent[norm], child[norm])
                elif site.name.endswith(_ENDS_MIXER):
                    behind = _differences(rows.parent, rows.child)
                moments = self._moments(parent[site.name], child[site.name], behind)
                weight_NK = torch.cat([self._read(member) for member in site.members])
                packed = round_calibrated(weight_NK, format, moments.joint(weight_NK))
                self._place(site, packed)
            self._progress(site.name)
        child_after, _ = self._runner.run(layer, rows.child)
        return _Rows(parent_after, child_after)

    def _moments(
        self,
        parent: Sequence[Tensor],
        child: Sequence[Tensor],
        behind: Sequence[Tensor] | None,
    ) -> Moments:
        """Moments of a site; one that adds to the residual rows makes up for their drift too."""
        moments = Moments(child[0].shape[1])
        for i, num_prefill in enumerate(self._num_prefill):
            lacking = None if behind is None else behind[i]
            moments.add(child[i], parent[i], num_prefill, lacking)
        return moments

    def _place(self, site: Site, packed: PackedTensor) -> None:
        set_weight(self._target.get_submodule(site.name), dequantize(packed, self._target.dtype))
        sizes = [self._read(member).shape[0] for member in site.members]
        self._packed |= dict(zip(site.members, split_rows(packed, sizes), strict=True))

    def _round_embedding(self) -> None:
        """FP8 rows; the head's error is fed back along what the parent's head reads."""
        if self._plan[EMBEDDING] != "bf16":
            weight_VD = self._read(EMBEDDING)
            packed = fp8.quantize(weight_VD, scale_dtype=torch.bfloat16)
            if self._target.tied:
                hessian_DD = self._head_hessian()
                packed = error_feedback.round_fp8(weight_VD, packed.scale_N1, hessian_DD)
            set_embedding(self._target, dequantize(packed, self._target.dtype))
            self._packed[EMBEDDING] = packed
        if not self._target.tied and self._plan[HEAD] != "bf16":
            packed = fp8.quantize(self._read(HEAD), scale_dtype=torch.bfloat16)
            packed = error_feedback.round_fp8(
                self._read(HEAD), packed.scale_N1, self._head_hessian()
            )
            set_weight(self._target.lm_head, dequantize(packed, self._target.dtype))
            self._packed[HEAD] = packed
        self._progress(EMBEDDING)

    def _head_hessian(self) -> Tensor:
        forcing = Forcing(self._target, max(passage.num_rows for passage in self._passages))
        size = self._target.config.text.hidden_size
        hessian_DD = torch.zeros(size, size)
        for passage in self._passages:
            hidden_TD = forcing.hidden(passage).cpu().float()
            hessian_DD.addmm_(hidden_TD.T, hidden_TD)
        return hessian_DD


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
