"""The DFlash module against its formulas, row by row, and its loader against broken folders."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from ocria.errors import ExitCode, WeightsError
from ocria.models.drafter import DFlash, DrafterConfig, load_drafter
from ocria.models.drafter.fused import FusedDraft
from ocria.models.drafter.loading import find_drafter
from ocria.models.drafter.selector import candidates

CPU = torch.device("cpu")
HIDDEN, VOCABULARY, HEADS, KV_HEADS, HEAD = 32, 40, 4, 2, 8
FIRST: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "hidden_size": HIDDEN,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD,
    "vocab_size": VOCABULARY,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "block_size": 6,
    "num_target_layers": 5,
    "dflash_config": {"mask_token_id": 39, "target_layer_ids": [3, 1]},
}
SECOND: dict[str, Any] = {
    **FIRST,
    "architectures": ["DFlash2DraftModel"],
    "is_causal": False,
    "dflash_config": {
        **FIRST["dflash_config"],
        "conv_kernel_size": 2,
        "conv_group_size": 8,
        "selector_rank": 3,
        "selector_top_k": 5,
        "output_multiplier": 0.7,
        "final_logit_softcapping": 4.0,
        "input_embedding_scale": 1.5,
    },
}
SLIDING = {**SECOND, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 4}


def random_weights(content: dict[str, Any]) -> dict[str, Tensor]:
    with torch.device("meta"):
        shapes = {
            k: v.shape for k, v in DFlash(DrafterConfig.from_mapping(content)).state_dict().items()
        }
    generator = torch.Generator().manual_seed(5)
    return {name: torch.randn(shape, generator=generator) * 0.5 for name, shape in shapes.items()}


def filled(content: dict[str, Any], weights: dict[str, Tensor]) -> DFlash:
    model = DFlash(DrafterConfig.from_mapping(content))
    model.load_state_dict(weights)
    return model.double().requires_grad_(False)


def rms(x: Tensor, weight: Tensor) -> Tensor:
    return x / math.sqrt(float((x * x).mean()) + 1e-6) * weight


def rope(x: Tensor, position: int) -> Tensor:
    out = x.clone()
    for i in range(HEAD // 2):
        angle = position * 10000.0 ** (-2 * i / HEAD)
        a, b = float(x[i]), float(x[i + HEAD // 2])
        out[i] = a * math.cos(angle) - b * math.sin(angle)
        out[i + HEAD // 2] = b * math.cos(angle) + a * math.sin(angle)
    return out


def plain_draft(
    content: dict[str, Any], w: dict[str, Tensor], taps: Tensor, block: Tensor
) -> Tensor:
    """The formulas of the specification, one row, head and channel group at a time."""
    own = content["dflash_config"]
    is_second = "conv_kernel_size" in own
    kinds = content.get("layer_types", ["full_attention"] * 2)
    rows, anchor = block.shape[0], taps.shape[0]
    context = [rms(w["fc.weight"] @ row, w["hidden_norm.weight"]) for row in taps]
    x = [row * own.get("input_embedding_scale", 1.0) for row in block]

    def kernels(name: str, y: list[Tensor], when: int) -> list[list[Tensor]]:
        found = []
        for row in y:
            d = (w[f"{name}.kernel_projection.weight"] @ row).view(2, 2, HIDDEN // 8)
            found.append([w[f"{name}.base_kernel"][when, o]
                          + torch.stack([d[when, o, j // 8] for j in range(HIDDEN)])
                          for o in range(2)])  # fmt: skip
        return found

    def mixed(k: list[list[Tensor]], z: list[Tensor]) -> list[Tensor]:
        return [k[t][0] * z[t] + (k[t][1] * z[t - 1] if t else 0) for t in range(rows)]

    def around(name: str, y: list[Tensor], work: Callable[..., list[Tensor]]) -> list[Tensor]:
        if not is_second:
            return work(y)
        return mixed(kernels(name, y, 1), work(mixed(kernels(name, y, 0), y)))

    for layer in range(2):
        p = f"layers.{layer}."
        window = content["sliding_window"] if kinds[layer] == "sliding_attention" else None

        def attention(z: list[Tensor], p: str = p, window: int | None = window) -> list[Tensor]:
            a = p + "self_attn."
            keyed = [(s, row) for s, row in enumerate(context)]
            keyed += [(anchor + t, row) for t, row in enumerate(z)]
            out = []
            for t, row in enumerate(z):
                q = (w[a + "q_proj.weight"] @ row).view(HEADS, HEAD)
                heads = []
                for head in range(HEADS):
                    turned = rope(rms(q[head], w[a + "q_norm.weight"]), anchor + t)
                    kv = head // (HEADS // KV_HEADS)
                    scores, values = [], []
                    for s, other in keyed:
                        if window is not None and abs(anchor + t - s) >= window:
                            continue
                        k = (w[a + "k_proj.weight"] @ other).view(KV_HEADS, HEAD)[kv]
                        k = rope(rms(k, w[a + "k_norm.weight"]), s)
                        scores.append(turned @ k / math.sqrt(HEAD))
                        values.append((w[a + "v_proj.weight"] @ other).view(KV_HEADS, HEAD)[kv])
                    heads.append(torch.stack(scores).softmax(0) @ torch.stack(values))
                out.append(w[a + "o_proj.weight"] @ torch.cat(heads))
            return out

        def feed_forward(z: list[Tensor], p: str = p) -> list[Tensor]:
            gate, up, down = (w[f"{p}mlp.{n}_proj.weight"] for n in ("gate", "up", "down"))
            return [down @ (torch.nn.functional.silu(gate @ row) * (up @ row)) for row in z]

        y = [rms(row, w[p + "input_layernorm.weight"]) for row in x]
        x = [a + b for a, b in zip(x, around(p + "attention_conv", y, attention), strict=True)]
        y = [rms(row, w[p + "post_attention_layernorm.weight"]) for row in x]
        x = [a + b for a, b in zip(x, around(p + "mlp_conv", y, feed_forward), strict=True)]
    return torch.stack([rms(row, w["norm.weight"]) for row in x])


@pytest.mark.parametrize("content", [FIRST, SECOND, SLIDING], ids=["first", "second", "sliding"])
def test_hidden_rows_follow_the_formulas(content: dict[str, Any]) -> None:
    weights = {name: tensor.double() for name, tensor in random_weights(content).items()}
    model = filled(content, weights)
    generator = torch.Generator().manual_seed(1)
    taps = torch.randn(9, 2 * HIDDEN, generator=generator, dtype=torch.float64)
    block = torch.randn(6, HIDDEN, generator=generator, dtype=torch.float64)
    wanted = plain_draft(content, weights, taps[:7], block)
    positions = torch.arange(9)[None]
    # Two rows behind the anchor are known, and must not be seen.
    context = model.context(taps[None], positions)
    got = model(block[None, None], torch.tensor([[7]]), context, positions)[0, 0]
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("content", [FIRST, SECOND, SLIDING], ids=["first", "second", "sliding"])
def test_fused_kernels_follow_the_modules(content: dict[str, Any]) -> None:
    """By their references, which round weights to bfloat16: so are the modules' here."""
    model = filled(content, {k: w.bfloat16() for k, w in random_weights(content).items()}).float()
    fused = FusedDraft(model)
    generator = torch.Generator().manual_seed(8)
    taps, block = (
        torch.randn(*shape, generator=generator) for shape in ((9, 2 * HIDDEN), (6, HIDDEN))
    )
    kept = torch.zeros(2, 2, KV_HEADS, 12, HEAD)
    for first, last in ((0, 4), (4, 9)):
        fused.write(taps[first:last], kept, torch.arange(first, last))
    # Rows behind the context's length must not be seen.
    found = fused.hidden(block, kept, torch.tensor([4, 3, 5]))
    positions = torch.arange(9)[None]
    context = model.context(taps[None], positions)
    for place, part in enumerate(context):
        torch.testing.assert_close(kept[0, place, :, :9], part.keys_PJSD[0])
        torch.testing.assert_close(kept[1, place, :, :9], part.values_PJSD[0])
    expected = model(block[None, None], torch.tensor([[7]]), context, positions)[0, 0]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    logits = 3 * torch.randn(5, VOCABULARY, generator=generator)
    forbidden = torch.zeros(VOCABULARY, dtype=torch.uint8)
    chosen = fused.choose(expected[1:], logits, forbidden, torch.tensor([7]))
    wanted = model.choose(expected[None, None, 1:], logits[None, None], torch.tensor([[7]]))
    assert chosen.tolist() == wanted[0, 0].tolist()


def test_blocks_and_sequences_do_not_see_each_other() -> None:
    model = filled(SECOND, random_weights(SECOND))
    generator = torch.Generator().manual_seed(2)
    taps = torch.randn(2, 8, 2 * HIDDEN, generator=generator, dtype=torch.float64)
    blocks = torch.randn(2, 3, 6, HIDDEN, generator=generator, dtype=torch.float64)
    anchors = torch.tensor([[0, 3, 8], [5, 1, 2]])
    positions = torch.arange(8).expand(2, -1)
    together = model(blocks, anchors, model.context(taps, positions), positions)
    for p in range(2):
        for n in range(3):
            seen = int(anchors[p, n])
            own = model.context(taps[p : p + 1, :seen], positions[:1, :seen])
            alone = model(
                blocks[p, n][None, None], anchors[p : p + 1, n : n + 1], own, positions[:1, :seen]
            )
            torch.testing.assert_close(together[p, n], alone[0, 0])


def test_a_causal_block_does_not_look_ahead() -> None:
    content = {**SECOND, "is_causal": True}
    model = filled(content, random_weights(content))
    block = torch.randn(1, 1, 6, HIDDEN, dtype=torch.float64)
    taps = torch.randn(1, 4, 2 * HIDDEN, dtype=torch.float64)
    positions = torch.arange(4)[None]
    context = model.context(taps, positions)
    whole = model(block, torch.tensor([[4]]), context, positions)
    part = model(block[:, :, :3], torch.tensor([[4]]), context, positions)
    torch.testing.assert_close(whole[:, :, :3], part)


def test_the_selector_walks_the_best_path() -> None:
    weights = random_weights(SECOND)
    model = filled(SECOND, weights)
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(1, 2, 5, HIDDEN, generator=generator, dtype=torch.float64)
    logits = torch.randn(1, 2, 5, VOCABULARY, generator=generator, dtype=torch.float64) * 3
    anchors = torch.tensor([[7, 11]])
    got = model.choose(hidden, logits, anchors)
    before_code = weights["candidate_selector.predecessor_codebook"].double()
    after_code = weights["candidate_selector.successor_codebook"].double()
    differs = False
    for n in range(2):
        last = int(anchors[0, n])
        for k in range(5):
            gate = weights["candidate_selector.hidden_projection.weight"].double() @ hidden[0, n, k]
            best = sorted(range(VOCABULARY), key=lambda b, n=n, k=k: -float(logits[0, n, k, b]))[:5]
            scores = [
                4.0 * math.tanh(0.7 * float(logits[0, n, k, b]) / 4.0)
                + float((before_code[last] * gate * after_code[b]).sum())
                for b in best
            ]
            last = best[scores.index(max(scores))]
            differs |= last != best[0]
            assert int(got[0, n, k]) == last
    assert differs, "the codebooks never mattered: the test shows nothing"


def test_candidates_come_best_first() -> None:
    found = candidates(torch.tensor([[1.0, 5.0, 3.0]]), DrafterConfig.from_mapping(SECOND), 2)
    assert found.ids_KC.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("changes", "causal"),
    [
        ({}, [True, False]),
        ({"is_causal": False}, [False, False]),
        ({"is_causal": True}, [True, True]),
        ({"dflash_config": {**FIRST["dflash_config"], "causal": True}}, [True, True]),
    ],
)
def test_causality_has_an_order_of_precedence(changes: dict[str, Any], causal: list[bool]) -> None:
    kinds = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 9}
    config = DrafterConfig.from_mapping({**FIRST, **kinds, **changes})
    assert [layer.is_causal for layer in config.layers] == causal
    assert [layer.window for layer in config.layers] == [9, None]


def test_block_size_is_read_from_either_place() -> None:
    moved = {k: v for k, v in FIRST.items() if k != "block_size"}
    moved["dflash_config"] = {**FIRST["dflash_config"], "block_size": 8}
    assert DrafterConfig.from_mapping(FIRST).block_size == 6
    assert DrafterConfig.from_mapping(moved).block_size == 8


@dataclass
class Host:
    vocab_size: int = VOCABULARY
    hidden_size: int = HIDDEN
    num_layers: int = 5
    device: torch.device = CPU
    dtype: torch.dtype = torch.float32

    def embed(self, ids: Tensor) -> Tensor:
        raise NotImplementedError

    def head(self, hidden_TH: Tensor) -> Tensor:
        raise NotImplementedError


def write(folder: Path, content: dict[str, Any], weights: dict[str, Tensor]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(content))
    save_file(weights, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(("content", "tensors"), [(FIRST, 25), (SECOND, 36)])
def test_a_public_folder_loads(tmp_path: Path, content: dict[str, Any], tensors: int) -> None:
    weights = random_weights(content)
    assert len(weights) == tensors
    loaded = load_drafter(write(tmp_path, content, weights), Host())
    assert loaded.precision == "float32"
    assert loaded.model.config.generation == (1 if content is FIRST else 2)
    taps, positions = torch.randn(1, 3, 2 * HIDDEN), torch.arange(3)[None]
    block = torch.randn(1, 1, 6, HIDDEN)
    model = filled(content, weights).float()
    got, wanted = (
        m(block, torch.tensor([[3]]), m.context(taps, positions), positions)
        for m in (loaded.model, model)
    )
    torch.testing.assert_close(got, wanted)


def lacking(name: str) -> Callable[[dict[str, Tensor]], None]:
    def spoil(weights: dict[str, Tensor]) -> None:
        del weights[name]

    return spoil


@pytest.mark.parametrize(
    ("content", "spoil", "host", "message"),
    [
        (SECOND, None, Host(hidden_size=64), "its hidden size is 32, the model's 64"),
        (SECOND, None, Host(vocab_size=41), "its vocabulary is 40, the model's 41"),
        (SECOND, None, Host(num_layers=6), "its target depth is 5, the model's 6"),
        ({**SECOND, "num_target_layers": None}, None, Host(num_layers=3), "reads layer 3"),
        (SECOND, lacking("fc.weight"), Host(), "lacks fc.weight"),
        (SECOND, lacking("candidate_selector.successor_codebook"), Host(), "lacks candidate_sel"),
        (SECOND, lambda w: w.update(extra=torch.ones(1)), Host(), "does not explain: extra"),
        ({**SECOND, "architectures": ["DFlashDraftModel"]}, None, Host(), "does not explain"),
        ({**SECOND, "architectures": ["Qwen3ForCausalLM"]}, None, Host(), "unknown drafter arch"),
        (SECOND, lambda w: w.update({"fc.weight": torch.ones(3, 3)}), Host(), "shapes differ"),
        ({**SECOND, "head_dim": 7}, None, Host(), "must be even"),
        ({**SECOND, "num_key_value_heads": 3}, None, Host(), "must be a multiple"),
        ({**SECOND, "hidden_size": "x"}, None, Host(), "`hidden_size` must be a whole number"),
        ({**SECOND, "rope_scaling": {"rope_type": "yarn"}}, None, Host(), "plain rotary"),
        ({**FIRST, "dflash_config": {"mask_token_id": 40, "target_layer_ids": [1, 2]}}, None,
         Host(), "mask token 40"),
        ({**FIRST, "dflash_config": {"mask_token_id": 3, "target_layer_ids": []}}, None,
         Host(), "`target_layer_ids` must list"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    tmp_path: Path,
    content: dict[str, Any],
    spoil: Callable[[dict[str, Tensor]], None] | None,
    host: Host,
    message: str,
) -> None:
    # Tensors are those of the second generation wherever the config claims less.
    sound = SECOND if "conv_kernel_size" in content["dflash_config"] else FIRST
    weights = random_weights(sound)
    if spoil is not None:
        spoil(weights)
    with pytest.raises(WeightsError, match=message) as caught:
        load_drafter(write(tmp_path, content, weights), host)
    assert caught.value.exit_code == ExitCode.WEIGHTS


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, SECOND, random_weights(SECOND))
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(WeightsError, match="damaged weights file"):
        load_drafter(folder, Host())


def test_a_drafter_is_found_in_the_checkpoint_or_where_it_is_named(tmp_path: Path) -> None:
    assert find_drafter(tmp_path) is None
    inside = write(tmp_path / "drafter", SECOND, {})
    assert find_drafter(tmp_path) == inside
    other = write(tmp_path / "other", SECOND, {})
    assert find_drafter(tmp_path, other) == other
    with pytest.raises(WeightsError, match="no drafter in"):
        find_drafter(tmp_path, tmp_path / "nowhere")
