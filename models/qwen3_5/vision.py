"""The vision tower of qwen3_5: patches of one page to image tokens.

Parameter names are those below `model.visual.` in a Hugging Face folder.

Shape legend
    P  patches, N image tokens (P / merge**2), C width, H heads, K channels of a head
    D  width of the decoder, X values of a patch (channels * patch_size**2)

Source: architecture specification of qwen3_5, vision tower; `transformers` 5.24 is the oracle.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from ocria.models.layers.packed import PackedLinear
from ocria.models.qwen3_5.config import VisionConfig
from ocria.models.qwen3_5.vision_attention import page_attention
from ocria.models.qwen3_5.vision_geometry import Geometry, interpolate_table, rotary_factors

_EPSILON = 1e-6
# Grids whose geometry is kept: pages of a document share one or two. 10 MiB each at full size.
_KEPT_GRIDS = 4


class _Kernel(nn.Module):
    """The patch kernel as it is stored: a convolution over two equal frames."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        patch = (config.temporal_patch_size, config.patch_size, config.patch_size)
        self.weight = nn.Parameter(torch.empty(config.hidden_size, config.in_channels, *patch))
        self.bias = nn.Parameter(torch.empty(config.hidden_size))

    def flat(self) -> PackedLinear:
        """One product for each patch. Summing over time halves the work: a page is one frame."""
        wide = torch.promote_types(self.weight.dtype, torch.float32)
        flat_CX = self.weight.detach().sum(2, dtype=wide).flatten(1).to(self.weight.dtype)
        linear = PackedLinear(flat_CX.shape[1], flat_CX.shape[0])
        linear.weight = nn.Parameter(flat_CX, requires_grad=False)
        linear.bias = self.bias
        return linear


class _PatchEmbed(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.proj: _Kernel | PackedLinear = _Kernel(config)

    def prepare(self) -> None:
        if isinstance(self.proj, _Kernel):
            self.proj = self.proj.flat()

    def forward(self, values_PX: Tensor) -> Tensor:
        return self.proj(values_PX)


class _Attention(nn.Module):
    """Full attention within the page, rotary on the whole head."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.qkv = PackedLinear(config.hidden_size, 3 * config.hidden_size)
        self.proj = PackedLinear(config.hidden_size, config.hidden_size)

    def forward(self, x_PC: Tensor, geometry: Geometry) -> Tensor:
        qkv_HPK = self.qkv(x_PC).unflatten(1, (3 * self.num_heads, -1)).transpose(0, 1)
        query_key, value_HPK = qkv_HPK.split((2 * self.num_heads, self.num_heads))
        query_HPK, key_HPK = _rotate(query_key, geometry).chunk(2)
        mixed_HPK = page_attention(query_HPK, key_HPK, value_HPK)
        return self.proj(mixed_HPK.transpose(0, 1).flatten(1))


class _FeedForward(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.linear_fc1 = PackedLinear(config.hidden_size, config.intermediate_size, "gelu_tanh")
        self.linear_fc2 = PackedLinear(config.intermediate_size, config.hidden_size)

    def forward(self, x_PC: Tensor) -> Tensor:
        return self.linear_fc2(self.linear_fc1(x_PC))


class _Block(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.hidden_size, _EPSILON)
        self.norm2 = nn.LayerNorm(config.hidden_size, _EPSILON)
        self.attn = _Attention(config)
        self.mlp = _FeedForward(config)

    def forward(self, x_PC: Tensor, geometry: Geometry) -> Tensor:
        x_PC = x_PC + self.attn(self.norm1(x_PC), geometry)
        return x_PC + self.mlp(self.norm2(x_PC))


class _Merger(nn.Module):
    """Joins the patches of each merge block into one image token."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.joined = config.hidden_size * config.spatial_merge_size**2
        self.norm = nn.LayerNorm(config.hidden_size, _EPSILON)
        self.linear_fc1 = PackedLinear(self.joined, self.joined, "gelu_erf")
        self.linear_fc2 = PackedLinear(self.joined, config.out_hidden_size)

    def forward(self, x_PC: Tensor) -> Tensor:
        return self.linear_fc2(self.linear_fc1(self.norm(x_PC).view(-1, self.joined)))


class VisionTower(nn.Module):
    """Patches of one page -> image tokens.

    Assign the weights, cast them, then call `prepare` once; `forward` needs it.
    """

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = _PatchEmbed(config)
        table = torch.empty(config.num_position_embeddings, config.hidden_size)
        self.pos_embed = nn.Embedding.from_pretrained(table)
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.depth))
        self.merger = _Merger(config)
        self._geometries: OrderedDict[tuple[int, int], Geometry] = OrderedDict()

    def prepare(self) -> None:
        """Folds the patch kernel and lays the weights out for their device and dtype."""
        self.patch_embed.prepare()
        packed = [part for part in self.modules() if isinstance(part, PackedLinear)]
        for part in packed:
            part.pack()

    def forward(self, values_PX: Tensor, grid_h: int, grid_w: int) -> Tensor:
        """Image tokens [N, D], in merge-block order.

        Args:
            values_PX: [P, X] on the tower's device, ordered (channel, y, x) within a patch and by
                merge blocks between patches.
            grid_h: patch rows, a multiple of the merge size.
            grid_w: patch columns, likewise.
        """
        assert values_PX.shape[0] == grid_h * grid_w, (
            f"{values_PX.shape[0]} patches do not fill a grid of {grid_h} x {grid_w}"
        )
        return self.encode(values_PX, self.geometry(grid_h, grid_w))

    def encode(self, values_PX: Tensor, geometry: Geometry) -> Tensor:
        """The same for patches of a known geometry."""
        x_PC = self.patch_embed(values_PX.to(self.pos_embed.weight.dtype)) + geometry.position_PC
        for block in self.blocks:
            x_PC = block(x_PC, geometry)
        return self.merger(x_PC)

    def geometry(self, grid_h: int, grid_w: int) -> Geometry:
        """Positions of a grid's patches; those of the last few grids are kept."""
        key = (grid_h, grid_w)
        if key not in self._geometries:
            self._geometries[key] = self._make_geometry(grid_h, grid_w)
            if len(self._geometries) > _KEPT_GRIDS:
                self._geometries.popitem(last=False)
        self._geometries.move_to_end(key)
        return self._geometries[key]

    def _make_geometry(self, grid_h: int, grid_w: int) -> Geometry:
        config, table = self.config, self.pos_embed.weight
        merge = config.spatial_merge_size
        assert grid_h % merge == 0 and grid_w % merge == 0, "grids are whole merge blocks"
        position_PC = interpolate_table(table, config.position_side, grid_h, grid_w, merge)
        cos_PK, sin_PK = rotary_factors(grid_h, grid_w, merge, config.head_dim, config.rope_theta)
        return Geometry(
            position_PC.to(table.dtype), cos_PK.to(table.device), sin_PK.to(table.device)
        )


def _rotate(x_HPK: Tensor, geometry: Geometry) -> Tensor:
    """Turns queries and keys by their position; formed in float32, back in their dtype."""
    swapped_HPK = torch.cat(x_HPK.chunk(2, -1)[::-1], -1)
    return (x_HPK * geometry.cos_PK + swapped_HPK * geometry.sin_PK).to(x_HPK.dtype)
