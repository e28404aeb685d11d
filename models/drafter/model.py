"""The drafter: proposes a block of tokens in one pass, from the target's hidden states.

It has no embedding and no head: the target's are lent. Context rows are the target's taps of the
accepted positions, image positions included; a block is the last token (the anchor) and masks.

Shape legend
    P  sequences, N blocks of a sequence, B rows of a block, K = B - 1 places to propose
    S  context rows, X tapped values of a row (taps * H), H hidden size, J key-value heads
    D  channels of a head, V vocabulary

Source: Chen et al. 2026, "DFlash" (arXiv 2602.06036), and its second generation.
"""

import torch
from torch import Tensor, nn

from ocria.models.drafter.config import DrafterConfig, LayerConfig
from ocria.models.drafter.layers import (
    DraftLayer,
    DraftLinear,
    LayerContext,
    PlainRMSNorm,
    Sight,
    Turn,
)
from ocria.models.drafter.selector import PathSelector, candidates
from ocria.models.layers.rope import mrope_frequencies


class DFlash(nn.Module):
    """Draft layers over injected context. The trainer and the engine run this same module."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.fc = DraftLinear(len(config.target_layer_ids) * width, width)
        self.hidden_norm = PlainRMSNorm(width, config.rms_norm_eps)
        self.layers = nn.ModuleList(DraftLayer(config) for _ in config.layers)
        self.norm = PlainRMSNorm(width, config.rms_norm_eps)
        if config.selector is not None:
            self.candidate_selector = PathSelector(config.selector, width, config.vocab_size)
        self.reset_frequencies()

    def reset_frequencies(self) -> None:
        """Rotary frequencies, which no checkpoint holds; again after a build on the meta device."""
        self._frequencies = mrope_frequencies(self.config.head_dim, self.config.rope_theta)

    def pack(self) -> None:
        """Lays the weights out for inference."""
        for module in self.modules():
            if isinstance(module, DraftLinear):
                module.pack()

    def context(self, taps_PSX: Tensor, positions_PS: Tensor) -> list[LayerContext]:
        """Keys and values of accepted rows, layer by layer. Rows do not depend on each other.

        Args:
            taps_PSX: the target's hidden states after `target_layer_ids`, side by side in that
                order.
            positions_PS: absolute token positions; an image token counts as one.
        """
        fused_PSH = self.hidden_norm(self.fc(taps_PSX))
        turn = self.turn(positions_PS)
        made = []
        for layer in self.layers:
            assert isinstance(layer, DraftLayer)
            keys, values = layer.self_attn.keys_values(fused_PSH, turn)
            made.append(LayerContext(keys.transpose(1, 2), values.transpose(1, 2)))
        return made

    def forward(
        self,
        embedded_PNBH: Tensor,
        anchors_PN: Tensor,
        context: list[LayerContext],
        context_positions_PS: Tensor,
    ) -> Tensor:
        """Normed hidden states [P, N, B, H]; row k speaks of position anchor + k itself.

        Args:
            embedded_PNBH: the target's embedding of [last token, mask, mask, ...].
            anchors_PN: positions of the blocks' first rows.
            context: from `context`; each block sees the rows before its anchor alone.
            context_positions_PS: the positions given to `context`.
        """
        num_rows = embedded_PNBH.shape[2]
        steps_B = torch.arange(num_rows, device=anchors_PN.device)
        positions_PNB = anchors_PN[..., None] + steps_B
        turn = self.turn(positions_PNB)
        before = context_positions_PS[:, None, None] < anchors_PN[..., None, None]
        x_PNBH = embedded_PNBH * self.config.embedding_scale
        sights = {
            rule: _sight(rule, before, positions_PNB, context_positions_PS, steps_B)
            for rule in set(self.config.layers)
        }
        for layer, rule, seen in zip(self.layers, self.config.layers, context, strict=True):
            x_PNBH = layer(x_PNBH, seen, turn, sights[rule])
        return self.norm(x_PNBH)

    def choose(self, hidden_PNKH: Tensor, logits_PNKV: Tensor, anchor_ids_PN: Tensor) -> Tensor:
        """Token ids [P, N, K] to propose: the selector's path, or each row's best.

        Args:
            hidden_PNKH: `forward`'s rows without the anchors'.
            logits_PNKV: the target's head of them, forbidden tokens at minus infinity.
            anchor_ids_PN: the last tokens.
        """
        if self.config.selector is None:
            return logits_PNKV.argmax(-1)
        found = candidates(logits_PNKV, self.config, self.config.selector.top_k)
        return self.candidate_selector.walk(hidden_PNKH, found, anchor_ids_PN)

    def turn(self, positions: Tensor) -> Turn:
        """cos and sin of rotary positions."""
        # A captured pass must not copy them from the host.
        self._frequencies = self._frequencies.to(positions.device)
        return Turn.at(positions, self._frequencies)


def _sight(
    rule: LayerConfig,
    before_PN1S: Tensor,
    positions_PNB: Tensor,
    context_positions_PS: Tensor,
    steps_B: Tensor,
) -> Sight:
    """Integers are compared, so that far positions do not round."""
    context = before_PN1S
    if rule.window is not None:
        distance = positions_PNB[..., None] - context_positions_PS[:, None, None]
        context = context & (distance < rule.window)
    block = steps_B[:, None] >= steps_B if rule.is_causal else None
    if rule.window is not None and rule.window < len(steps_B):
        near = (steps_B[:, None] - steps_B).abs() < rule.window
        block = near if block is None else block & near
    return Sight(context, block, len(steps_B))
