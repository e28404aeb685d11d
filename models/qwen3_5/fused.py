"""The decoder as a short list of fused kernels: what a bfloat16 model runs on a CUDA device.

Four launches for the products, one for the norm behind the delta rule and one to three for a
mixer, where the plain modules launch some hundred. Weights stay in the checkpoint's own format.

Shape legend
    M  rows of a pass, D hidden size, I feed-forward width, V vocabulary
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ocria.kernels.block_attention import AttentionWeights, RotaryTable, attention_pass
from ocria.kernels.gated_delta import DeltaWeights, delta_fold, delta_pass
from ocria.kernels.gated_norm import gated_norm
from ocria.kernels.head import BestTokens, best_tokens
from ocria.kernels.sequence_table import (
    Place,
    SequenceTable,
    SlotMemory,
    addresses_of,
    sequence_table,
)
from ocria.kernels.small_gemm import (
    Norm,
    PackedWeight,
    TilingTable,
    WeightCodes,
    pack,
    small_gemm,
    two_products,
)
from ocria.kernels.small_gemm.tilings import MEASURED
from ocria.models.base import KEY_BLOCK, Fold, SequenceState
from ocria.models.layers.rope import Rotary, axis_of_frequency, mrope_frequencies, rotary_angles
from ocria.models.layers.span import Pass
from ocria.models.qwen3_5.config import TextConfig
from ocria.models.qwen3_5.weight_codes import joined

Codes = Callable[[str], WeightCodes]
Plain = Callable[[str], Tensor]
PREFIX = "model.language_model"


class _Layer(NamedTuple):
    """One layer's weights; `ba` and `gate_gain_W` of a delta layer only."""

    first: Norm
    projection: PackedWeight
    ba: PackedWeight | None
    mixer: DeltaWeights | AttentionWeights
    gate_gain_W: Tensor | None
    out: PackedWeight
    second: Norm
    gate_up: PackedWeight
    down: PackedWeight


def can_fuse(config: TextConfig, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernels take this model: bfloat16 on CUDA, head widths that are powers of two.

    Keys of the delta rule are 32 wide at least: for narrower ones Triton 3.6 fails to compile
    windows (an operand that does not dominate its use, behind layout conversions).
    """
    widths = (config.head_dim, config.linear_key_head_dim, config.linear_value_head_dim)
    powers = all(width >= 16 and width & (width - 1) == 0 for width in widths)
    is_wide = config.linear_key_head_dim >= 32
    return device.type == "cuda" and dtype == torch.bfloat16 and powers and is_wide


class FusedDecoder:
    """Runs passes over the decoder's layers, and the head.

    Args:
        config: of the text model.
        codes: a product's weight as the checkpoint stores it, on the device.
        plain: a parameter on the device, decay parameters in float32.
        head: name of the head's weight.
        device: where it runs.
        tilings: by shape; other shapes are tiled by rule.
    """

    def __init__(
        self,
        config: TextConfig,
        codes: Codes,
        plain: Plain,
        head: str,
        device: torch.device,
        tilings: TilingTable = MEASURED,
    ) -> None:
        self.config = config
        self._layers = [
            _layer(config, layer, codes, plain, tilings) for layer in range(len(config.layer_types))
        ]
        self._norm = _norm(plain(f"{PREFIX}.norm.weight"), config.rms_norm_eps)
        self._head = pack([codes(head)])
        self.text_angles = _rotary_table(config, device)
        mixers = [layer.mixer for layer in self._layers]
        self._delta = next((mixer for mixer in mixers if isinstance(mixer, DeltaWeights)), None)

    def tapped(
        self, x_MD: Tensor, rows: Pass, tap_layers: Sequence[int]
    ) -> tuple[Tensor, list[Tensor]]:
        """Residual stream [M, D] behind the last layer, not normed, and after some layers."""
        rotary = self.text_angles
        if rows.prefill:
            rotary = chunk_angles(rows.rotary)
        return self.run(x_MD, _table(rows), rotary, rows.prefill, tap_layers)

    def run(
        self,
        x_MD: Tensor,
        table: SequenceTable,
        rotary: RotaryTable,
        prefill: bool = False,
        tap_layers: Sequence[int] = (),
    ) -> tuple[Tensor, list[Tensor]]:
        """Like `tapped`, with all that the host decides in a table on the device: a graph can be
        captured of it."""
        streams: dict[int, Tensor] = {}
        for index, layer in enumerate(self._layers):
            x_MD = self._run(layer, index, x_MD, table, rotary, prefill)
            if index in tap_layers:
                streams[index] = x_MD
        return x_MD, [streams[index] for index in tap_layers]

    def logits(self, x_MD: Tensor, *, normed: bool = False) -> Tensor:
        """Logits [M, V], float32, of residual rows; `normed` rows have the last norm already."""
        norm = None if normed else self._norm
        return small_gemm(x_MD, self._head, norm=norm, out_dtype=torch.float32)

    def best(self, x_MD: Tensor, forbidden_V: Tensor) -> BestTokens:
        """What greedy decoding wants of the logits of residual rows."""
        return best_tokens(x_MD, self._head, norm=self._norm, forbidden_V=forbidden_V)

    def fold(self, folds: Sequence[Fold]) -> None:
        """Folds whole blocks of all layers in one launch."""
        if self._delta is not None and folds:
            places = [place_of(state, block * _BLOCK, 0, kept=_BLOCK) for state, block in folds]
            delta_fold(sequence_table(places), self._delta)

    def _run(
        self,
        layer: _Layer,
        index: int,
        x_MD: Tensor,
        table: SequenceTable,
        rotary: RotaryTable,
        prefill: bool,
    ) -> Tensor:
        place = self.config.layer_types[:index].count(self.config.layer_types[index])
        if isinstance(layer.mixer, AttentionWeights):
            projected_ME = small_gemm(x_MD, layer.projection, norm=layer.first)
            mixed_MV = attention_pass(table, place, projected_ME, rotary, layer.mixer, KEY_BLOCK)
        else:
            assert layer.ba is not None and layer.gate_gain_W is not None, "a delta layer has both"
            projected_ME, ba_MR = two_products(
                x_MD, layer.projection, layer.ba, norm=layer.first, second_dtype=torch.float32
            )
            raw_MV = delta_pass(table, place, projected_ME, ba_MR, layer.mixer, prefill=prefill)
            z_MV = projected_ME[:, layer.mixer.channels :]
            mixed_MV = gated_norm(raw_MV, z_MV, layer.gate_gain_W, self.config.rms_norm_eps)
        x_MD = small_gemm(mixed_MV, layer.out, residual_MN=x_MD)
        inner_MI = small_gemm(x_MD, layer.gate_up, norm=layer.second)
        return small_gemm(inner_MI, layer.down, residual_MN=x_MD)


_BLOCK = 32
_MOST_POSITIONS = 1 << 16


def chunk_angles(rotary: Rotary) -> RotaryTable:
    """Angles of a chunk's rows as the kernels read them: those of one half."""
    half = rotary.cos_TF.shape[1] // 2
    return RotaryTable(*(part[:, :half].contiguous() for part in rotary))


class NamedSlot(NamedTuple):
    """A sequence's memory as the kernels name it, and where it lies."""

    memory: SlotMemory
    addresses: tuple[int, ...]


def named_slot(state: SequenceState) -> NamedSlot:
    """Made once: a pass over many sequences asks for all of them."""
    if not isinstance(state.named, NamedSlot):
        memory = SlotMemory(
            state.keys_LJSD,
            state.values_LJSD,
            state.conv_in_LEX,
            state.conv_out_LEX,
            state.decay_LER,
            state.beta_LER,
            state.checkpoint_LRKW,
        )
        state.named = NamedSlot(memory, addresses_of(memory))
    return state.named


def place_of(
    state: SequenceState, start: int, num_rows: int, rope_delta: int = 0, kept: int = 0
) -> Place:
    """A sequence's part of a pass."""
    memory, addresses = named_slot(state)
    return Place(memory, start, num_rows, rope_delta, kept, addresses)


def _table(rows: Pass) -> SequenceTable:
    places = [
        # A prefill brings the angles of its own rows, counted from its first one.
        place_of(
            span.state,
            span.start,
            span.num_rows,
            -span.start if rows.prefill else span.state.rope_delta,
        )
        for span in rows.spans
    ]
    return sequence_table(places)


def _rotary_table(config: TextConfig, device: torch.device) -> RotaryTable:
    """Angles of every text position, computed on the CPU: the same on every device."""
    width = round(config.head_dim * config.rope.partial_rotary_factor)
    # A slot may hold more positions than the model was trained for.
    num_positions = max(config.max_position_embeddings, _MOST_POSITIONS)
    positions_3T = torch.arange(num_positions).expand(3, -1)
    frequencies_F = mrope_frequencies(width, config.rope.theta)
    axis_F = axis_of_frequency(width // 2, config.rope.mrope_section)
    angles = rotary_angles(positions_3T, frequencies_F, axis_F)
    half = width // 2
    return RotaryTable(*(part[:, :half].contiguous().to(device) for part in angles))


def _norm(weight_D: Tensor, eps: float) -> Norm:
    return Norm(1 + weight_D.float(), eps)


def _layer(
    config: TextConfig, index: int, codes: Codes, plain: Plain, tilings: TilingTable
) -> _Layer:
    prefix, eps = f"{PREFIX}.layers.{index}", config.rms_norm_eps

    def product(*names: str, paired: bool = False) -> PackedWeight:
        parts = joined([codes(f"{prefix}.{name}.weight") for name in names])
        return pack(parts, paired=paired, tilings=tilings)

    def gain(name: str) -> Norm:
        return _norm(plain(f"{prefix}.{name}.weight"), eps)

    ba = gate_gain_W = None
    mixer: DeltaWeights | AttentionWeights
    if config.layer_types[index] == "full_attention":
        names: tuple[str, ...] = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        out = product("self_attn.o_proj")
        mixer = AttentionWeights(
            q_gain_D=gain("self_attn.q_norm").gain_K,
            k_gain_D=gain("self_attn.k_norm").gain_K,
            num_heads=config.num_attention_heads,
            num_kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            eps=eps,
        )
    else:
        names = ("linear_attn.in_proj_qkv", "linear_attn.in_proj_z")
        ba = product("linear_attn.in_proj_b", "linear_attn.in_proj_a")
        out = product("linear_attn.out_proj")
        gate_gain_W = plain(f"{prefix}.linear_attn.norm.weight").float()
        mixer = DeltaWeights(
            taps_XT=plain(f"{prefix}.linear_attn.conv1d.weight")[:, 0].mT.contiguous().mT,
            A_log_R=plain(f"{prefix}.linear_attn.A_log").float(),
            dt_bias_R=plain(f"{prefix}.linear_attn.dt_bias").float(),
            num_key_heads=config.linear_num_key_heads,
            key_dim=config.linear_key_head_dim,
            value_dim=config.linear_value_head_dim,
        )
    return _Layer(
        first=gain("input_layernorm"),
        projection=product(*names),
        ba=ba,
        mixer=mixer,
        gate_gain_W=gate_gain_W,
        out=out,
        second=gain("post_attention_layernorm"),
        gate_up=product("mlp.gate_proj", "mlp.up_proj", paired=True),
        down=product("mlp.down_proj"),
    )
