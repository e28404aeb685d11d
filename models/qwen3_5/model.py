"""The whole `qwen3_5` model for inference: vision tower, decoder, head.

Parameter names are those of a Hugging Face folder (`model.visual.*`, `model.language_model.*`,
`lm_head.weight` when the head is not tied), so that assignment needs no translation.

Shape legend: T rows, D hidden size, N image tokens, V vocabulary.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ocria.kernels.small_gemm import TilingTable
from ocria.kernels.small_gemm.tilings import MEASURED
from ocria.models.base import (
    PREFILL_CHUNK,
    WINDOW,
    Chunk,
    Fold,
    ImagePatches,
    Output,
    Prompt,
    SequenceState,
    StateLayout,
    Target,
    Window,
)
from ocria.models.layers.linear import TiledLinear
from ocria.models.layers.span import Pass, Span
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.decoder import Decoder, prompt_positions, rope_delta
from ocria.models.qwen3_5.fused import FusedDecoder, can_fuse
from ocria.models.qwen3_5.static_pass import StaticPass
from ocria.models.qwen3_5.static_prefill import StaticPrefill
from ocria.models.qwen3_5.static_vision import StaticVision
from ocria.models.qwen3_5.vision import VisionTower
from ocria.models.qwen3_5.weight_codes import Stored, weight_codes


class _Body(nn.Module):
    """What the checkpoint calls `model`."""

    def __init__(self, config: Qwen35Config) -> None:
        super().__init__()
        self.visual = VisionTower(config.vision)
        self.language_model = Decoder(config.text)


class Qwen35(nn.Module):
    """A `qwen3_5` target (`ocria.models.base.Target`).

    Build it under `torch.device("meta")`, assign the weights, then call `prepare` once.
    """

    def __init__(self, config: Qwen35Config) -> None:
        super().__init__()
        self.config = config
        self.model = _Body(config)
        self.tied = config.tie_word_embeddings
        self.lm_head = TiledLinear(config.text.hidden_size, config.text.vocab_size)
        if self.tied:
            del self.lm_head.weight
        self.layout = _layout(config)
        self.vocab_size = config.text.vocab_size
        self.hidden_size = config.text.hidden_size
        self.num_layers = config.text.num_hidden_layers
        self.tap_layers: tuple[int, ...] = ()
        self.fused: FusedDecoder | None = None

    @torch.inference_mode()
    def prepare(
        self,
        dtype: torch.dtype,
        device: torch.device,
        *,
        stored: Callable[[str], Stored] | None = None,
        fused: bool = True,
        keep_plain: bool = True,
    ) -> None:
        """Casts, moves, fuses and packs; decay parameters stay in float32 or wider.

        Args:
            dtype: of weights and activations.
            device: where it runs.
            stored: a weight by its name as the checkpoint holds it, for kernels that read that.
            fused: run the decoder by fused kernels where they take it.
            keep_plain: keep the modules of the layers beside fused kernels, to compare with.
        """
        wide = torch.promote_types(dtype, torch.float32)
        for name, parameter in self.named_parameters():
            kept = wide if name.endswith(("A_log", "dt_bias")) else dtype
            parameter.data = parameter.data.to(device=device, dtype=kept)
            parameter.requires_grad_(False)
        self.device, self.dtype = device, dtype
        decoder = self.model.language_model
        if fused and can_fuse(self.config.text, device, dtype):
            self.fused = fused_decoder(self, stored)
            if not keep_plain:
                self._drop_plain()
        if self.tied:
            self.lm_head.weight = nn.Parameter(decoder.embed_tokens.weight, requires_grad=False)
        self.lm_head.pack()
        decoder.prepare()
        self.model.visual.prepare()

    def _drop_plain(self) -> None:
        """The kernels hold weights of their own: a second copy would be 9 GB of a 4B model."""
        self.model.language_model.layers = nn.ModuleList()
        if not self.tied:
            self.lm_head.weight = nn.Parameter(torch.empty(0), requires_grad=False)

    @torch.inference_mode()
    def encode_image(self, image: ImagePatches) -> Tensor:
        """Image tokens [N, D]."""
        values_PC = image.values_PC.to(device=self.device, dtype=self.dtype, non_blocking=True)
        return self.model.visual(values_PC, image.grid_h, image.grid_w)

    @torch.inference_mode()
    def prefill(self, state: SequenceState, prompt: Prompt, image_ND: Tensor | None) -> Output:
        """Reads the next chunk of a prompt; see `Target.prefill`."""
        decoder, length, start = self.model.language_model, len(prompt.token_ids), state.length
        assert start % PREFILL_CHUNK == 0 and start < length, "the prompt is read already"
        chunk = Chunk(state, prompt, image_ND)
        ids = prompt.token_ids[start : chunk.end]
        x_TD = decoder.embed_tokens(torch.tensor(ids, device=self.device))
        if image_ND is not None:
            taken, put = chunk.image_rows(len(image_ND))
            x_TD[put] = image_ND[taken].to(x_TD.dtype)
        positions_3S = prompt_positions(length, prompt.image_start, prompt.grid_h, prompt.grid_w)
        state.rope_delta = rope_delta(prompt)
        rotary = decoder.rotary(positions_3S[:, start : chunk.end].to(self.device))
        span = Span(state, start, chunk.num_rows)
        hidden_TD, taps = self._run(x_TD, Pass((span,), rotary, prefill=True))
        num_read = 1 if chunk.is_last else 0
        return Output(self._logits(hidden_TD[-1:])[:num_read], _stacked(taps))

    @torch.inference_mode()
    def verify(self, windows: Sequence[Window]) -> Output:
        """Runs all windows' rows; see `Target.verify`."""
        token_ids: list[int] = []
        positions: list[int] = []
        spans = []
        for state, ids in windows:
            assert 1 <= len(ids) <= WINDOW, f"a window has 1 to {WINDOW} rows, not {len(ids)}"
            first = state.length + state.rope_delta
            token_ids += ids
            positions += range(first, first + len(ids))
            spans.append(Span(state, state.length, len(ids)))
        decoder = self.model.language_model
        positions_T = torch.tensor(positions, device=self.device)
        # Fused kernels look a window's angles up by position.
        positions_T = positions_T if self.fused is None else positions_T[:0]
        rotary = decoder.rotary(positions_T.expand(3, -1))
        x_TD = decoder.embed_tokens(torch.tensor(token_ids, device=self.device))
        rows = Pass(tuple(spans), rotary, prefill=False)
        hidden_TD, taps = self._run(x_TD, rows)
        return Output(self._logits(hidden_TD), _stacked(taps))

    def _run(self, x_TD: Tensor, rows: Pass) -> tuple[Tensor, list[Tensor]]:
        """What `_logits` takes of every row, and the taps."""
        decoder = self.fused or self.model.language_model
        return decoder.tapped(x_TD, rows, self.tap_layers)

    def _logits(self, hidden_TD: Tensor) -> Tensor:
        return self.lm_head(hidden_TD) if self.fused is None else self.fused.logits(hidden_TD)

    @torch.inference_mode()
    def static_pass(
        self,
        windows: Sequence[Window],
        num_rows: int,
        num_sequences: int,
        *,
        forbidden_V: Tensor,
        with_logits: bool,
    ) -> StaticPass | None:
        """A verify pass that can be captured; None without fused kernels."""
        if self.fused is None:
            return None
        return StaticPass(
            self.fused,
            self.model.language_model.embed_tokens,
            windows,
            num_rows=num_rows,
            num_sequences=num_sequences,
            tap_layers=self.tap_layers,
            forbidden_V=forbidden_V,
            with_logits=with_logits,
        )

    @torch.inference_mode()
    def static_prefill(self, state: SequenceState, num_sequences: int) -> StaticPrefill | None:
        """A pass over a chunk each of so many prompts, likewise."""
        if self.fused is None:
            return None
        return StaticPrefill(
            self.fused,
            self.model.language_model,
            state,
            num_sequences=num_sequences,
            tap_layers=self.tap_layers,
        )

    @torch.inference_mode()
    def static_vision(self, image: ImagePatches) -> StaticVision | None:
        """The vision tower over pages of this one's grid, likewise."""
        return None if self.fused is None else StaticVision(self.model.visual, image)

    @torch.inference_mode()
    def embed(self, ids_T: Tensor) -> Tensor:
        """Embedding rows [T, D], which a drafter borrows."""
        return self.model.language_model.embed_tokens(ids_T)

    @torch.inference_mode()
    def head(self, hidden_TD: Tensor) -> Tensor:
        """Logits [T, V] of normed hidden rows, likewise."""
        if self.fused is not None:
            return self.fused.logits(hidden_TD.contiguous(), normed=True)
        return self.lm_head(hidden_TD)

    @torch.inference_mode()
    def fold(self, folds: Sequence[Fold]) -> None:
        """See `Target.fold`."""
        (self.fused or self.model.language_model).fold(folds)


def keeps_rows_apart(target: Target) -> bool:
    """Whether a row's bits do not depend on the rows beside it: on a CPU, and by fused kernels.

    PyTorch's own CUDA reductions round a row by the number of rows.
    """
    if target.device.type == "cpu":
        return True
    return isinstance(target, Qwen35) and target.fused is not None


def fused_decoder(
    model: Qwen35, stored: Callable[[str], Stored] | None, tilings: TilingTable = MEASURED
) -> FusedDecoder:
    """The model's decoder by fused kernels, from stored weights or else its own; before `prepare`
    joins products."""
    parameters = dict(model.named_parameters())
    read = stored or parameters.__getitem__
    device = next(iter(parameters.values())).device
    return FusedDecoder(
        model.config.text,
        codes=lambda name: weight_codes(read(name), device),
        plain=lambda name: parameters[name].data,
        head="model.language_model.embed_tokens.weight" if model.tied else "lm_head.weight",
        device=device,
        tilings=tilings,
    )


def _stacked(taps: list[Tensor]) -> Tensor | None:
    return torch.stack(taps, 1) if taps else None


def _layout(config: Qwen35Config) -> StateLayout:
    text = config.text
    return StateLayout(
        num_attention_layers=text.layer_types.count("full_attention"),
        num_kv_heads=text.num_key_value_heads,
        head_dim=text.head_dim,
        num_delta_layers=text.layer_types.count("linear_attention"),
        num_key_heads=text.linear_num_key_heads,
        num_value_heads=text.linear_num_value_heads,
        key_dim=text.linear_key_head_dim,
        value_dim=text.linear_value_head_dim,
        conv_kernel=text.linear_conv_kernel_dim,
    )
