"""Rounding weights to what will ship: NVFP4 decoder matrices, FP8 embedding rows.

Training sees rounded weights in both passes and updates full-precision masters, which is the
straight-through estimator without a change to the model's graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ocria.quantization import nvfp4
from ocria.quantization.scale_search import roomy_global_scale, search_block_scales

_FP8_MAX = 448.0


def round_nvfp4(groups: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
    """W4A16: e2m1 codes, blocks of 16 along the input axis, e4m3 block scales, one global scale.

    Block scales are those that leave the least squared error, as `checkpoint.make` chooses them.

    Args:
        groups: matrices [N, K]; those of a group are fused at run time and share the global scale.
    """
    # All blocks together: a few launches, however many matrices there are.
    weights = [weight.float() for group in groups for weight in group]
    sizes = [weight.numel() // nvfp4.BLOCK for weight in weights]
    blocks_NG = torch.cat([weight.reshape(-1, nvfp4.BLOCK) for weight in weights])
    shared = [roomy_global_scale(*group) for group in groups for _ in group]
    shared_N1 = torch.cat([s.expand(size, 1) for s, size in zip(shared, sizes, strict=True)])
    step_N1 = search_block_scales(blocks_NG, shared_N1).float() / shared_N1
    rounded = (nvfp4.round_scaled(blocks_NG / step_N1) * step_N1).split(sizes)
    shaped = iter(r.view(w.shape) for r, w in zip(rounded, weights, strict=True))
    return [[next(shaped) for _ in group] for group in groups]


def round_fp8_rows(weight: Tensor) -> Tensor:
    """e4m3 values with one bf16 scale a row."""
    scale = (weight.float().abs().amax(-1, keepdim=True) / _FP8_MAX).clamp(min=1e-12)
    scale = scale.bfloat16().float()
    return _to_fp8(weight.float() / scale) * scale


def _to_fp8(x: Tensor) -> Tensor:
    return x.clamp(-_FP8_MAX, _FP8_MAX).to(torch.float8_e4m3fn).float()


def rounded_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that ship rounded: decoder matrices and the embedding."""
    return {name: p for name, p in model.named_parameters() if ships_rounded(name)}


def ships_rounded(name: str) -> bool:
    """Whether a parameter of this name does."""
    decoder = name.startswith("layers.") and name.endswith("_proj.weight")
    delta = name.endswith(("in_proj_qkv.weight", "in_proj_z.weight"))
    return decoder or delta or name == "embed_tokens.weight"


def _fusion(name: str) -> str:
    """The run-time product a projection is part of: its members share a global scale."""
    module, _, leaf = name.removesuffix(".weight").rpartition(".")
    for product in (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"),
                    ("in_proj_qkv", "in_proj_z")):  # fmt: skip
        if leaf in product:
            return f"{module}.{product[0]}"
    return name


def _fused_names(names: Iterable[str]) -> list[list[str]]:
    """Names of decoder matrices, those of a run-time product together."""
    fused: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if name != "embed_tokens.weight":
            fused[_fusion(name)].append(name)
    return list(fused.values())


@torch.no_grad()
def round_in_place(model: nn.Module) -> None:
    """Rounds the parameters that ship rounded. What they were is lost: training needs `Masters`."""
    live = rounded_parameters(model)
    rows = live["embed_tokens.weight"]
    rows.copy_(round_fp8_rows(rows))
    groups = [[live[name] for name in names] for names in _fused_names(live)]
    for group, rounded in zip(groups, round_nvfp4(groups), strict=True):
        for parameter, new in zip(group, rounded, strict=True):
            parameter.copy_(new)


class Masters:
    """Full-precision copies of the rounded parameters, and the parent that they came from.

    `restore` puts them into the model for the optimiser; `round` takes the update back and leaves
    rounded weights for the next forward pass. All other parameters are kept as the parent has them.

    Args:
        model: the model, holding full-precision weights.
        parent: the weights before the first rounding; those of `model` if not given.
    """

    def __init__(self, model: nn.Module, parent: dict[str, Tensor] | None = None) -> None:
        self._model = model
        self._all = dict(model.named_parameters())
        self.parent = parent or {name: p.detach().clone() for name, p in self._all.items()}
        self._live = rounded_parameters(model)
        self.copies = {name: p.detach().clone() for name, p in self._live.items()}

    @torch.no_grad()
    def restore(self) -> None:
        for name, parameter in self._live.items():
            parameter.copy_(self.copies[name])

    @contextmanager
    def parent_in_place(self) -> Iterator[None]:
        """The parent's weights where the rounded ones are; nothing computed meanwhile may be
        differentiated."""
        with torch.no_grad():
            rounded = [parameter.detach().clone() for parameter in self._live.values()]
            for name, parameter in self._live.items():
                parameter.copy_(self.parent[name])
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(list(self._live.values()), rounded)

    @torch.no_grad()
    def round(self) -> None:
        for name, parameter in self._all.items():
            if name not in self._live:
                parameter.copy_(self.parent[name])
        for name, parameter in self._live.items():
            self.copies[name].copy_(parameter)
        round_in_place(self._model)
