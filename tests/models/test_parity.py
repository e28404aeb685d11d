"""The whole model against `transformers`: logits of image and text, prefill and token by token."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ocria.bench.random_windows import random_windows
from ocria.engine.state import StatePool
from ocria.models.base import ImagePatches, Prompt, SequenceState, Window
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35, keeps_rows_apart
from ocria.models.registry import load
from ocria.weights import assign

transformers = pytest.importorskip("transformers")

SHARED = Path(os.environ.get("OCRIA_SHARED", Path(__file__).resolve().parents[3] / "shared"))
SEED_MODEL = SHARED / "seed-model"
IMAGE_TOKEN = 200

TEXT: dict[str, Any] = {
    "vocab_size": 208,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [3, 3, 2],
        "mrope_interleaved": True,
    },
}
VISION: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 48,
    "num_heads": 3,
    "intermediate_size": 96,
    "patch_size": 16,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 64,
    "in_channels": 3,
    "hidden_act": "gelu_pytorch_tanh",
}
VARIANTS: dict[str, dict[str, Any]] = {
    "grouped": {},
    "equal-heads": {"linear_num_value_heads": 2, "num_key_value_heads": 4},
    "one-key-head": {"linear_num_key_heads": 1, "num_key_value_heads": 1},
    "by-interval": {"layer_types": None, "full_attention_interval": 4},
}


def reference_config(changes: dict[str, Any], tied: bool) -> dict[str, Any]:
    return {
        "model_type": "qwen3_5",
        "tie_word_embeddings": tied,
        "image_token_id": IMAGE_TOKEN,
        "video_token_id": 201,
        "vision_start_token_id": 202,
        "vision_end_token_id": 203,
        "text_config": {**TEXT, **changes, "tie_word_embeddings": tied},
        "vision_config": VISION,
    }


class StateDict:
    """A state dict as a weight source: what a checkpoint reader is to `assign`."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self._tensors = tensors

    def names(self) -> list[str]:
        return list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._tensors[name].shape)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        return self._tensors[name].to(dtype).clone()


def both_models(
    changes: dict[str, Any], tied: bool, dtype: torch.dtype = torch.float32, device: str = "cpu"
) -> tuple[Any, Qwen35]:
    """A random float32 `transformers` model and ours with the same weights in `dtype`."""
    raw = reference_config(changes, tied)
    torch.manual_seed(0)
    reference = transformers.Qwen3_5ForConditionalGeneration(
        transformers.Qwen3_5Config(**raw)
    ).eval()
    generator = torch.Generator().manual_seed(1)
    for parameter in reference.parameters():
        # Wide enough that every part matters; the library's own start is near zero.
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data = noise * (0.3 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5)
    state = reference.state_dict()
    if tied:
        state.pop("lm_head.weight", None)
    with torch.device("meta"):
        ours = Qwen35(Qwen35Config.from_mapping(raw))
    assign(ours, StateDict(state), dtype=dtype)
    ours.prepare(dtype, torch.device(device))
    return reference, ours


def page(grid_h: int, grid_w: int) -> ImagePatches:
    values = torch.randn(grid_h * grid_w, 768, generator=torch.Generator().manual_seed(3))
    return ImagePatches(values, grid_h, grid_w)


def reference_logits(reference: Any, ids: list[int], image: ImagePatches, token: int) -> Tensor:
    doubled = image.values_PC.view(-1, 3, 1, 256).expand(-1, -1, 2, -1).reshape(-1, 1536)
    tokens = torch.tensor([ids])
    with torch.inference_mode():
        return reference(
            input_ids=tokens,
            pixel_values=doubled,
            image_grid_thw=torch.tensor([[1, image.grid_h, image.grid_w]]),
            mm_token_type_ids=(tokens == token).int(),
        ).logits[0]


def relative_error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def prompt_of(image: ImagePatches, before: list[int], after: list[int], token: int) -> Prompt:
    merged = (image.grid_h // 2, image.grid_w // 2)
    ids = (*before, *[token] * (merged[0] * merged[1]), *after)
    return Prompt(ids, len(before), *merged)


def check_parity(reference: Any, ours: Qwen35, image: ImagePatches, token: int) -> None:
    prompt = prompt_of(image, [2, 7], [3, 9, 11], token)
    text = torch.randint(4, 190, (70,), generator=torch.Generator().manual_seed(5)).tolist()
    expected = reference_logits(reference, [*prompt.token_ids, *text], image, token)

    pool = StatePool(ours, num_slots=1, max_positions=512)
    _, state = pool.acquire()
    found = [pool.read(state, prompt, ours.encode_image(image))]
    for token_id in text:
        found.append(ours.verify([Window(state, [token_id])]).logits_TV[0])
        pool.commit([(state, 1)])
    start = len(prompt.token_ids) - 1
    for step, logits in enumerate(found):
        assert relative_error(logits, expected[start + step]) < 1e-4, f"after {step} tokens"


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_logits_of_random_models(variant: str, tied: bool) -> None:
    reference, ours = both_models(VARIANTS[variant], tied)
    for grid in ((2, 2), (4, 10), (12, 6)):
        check_parity(reference, ours, page(*grid), IMAGE_TOKEN)


def greedy(ours: Qwen35, prompt: Prompt, image: ImagePatches, num_tokens: int) -> list[int]:
    pool = StatePool(ours, num_slots=1, max_positions=1024)
    _, state = pool.acquire()
    emitted = [int(pool.read(state, prompt, ours.encode_image(image)).argmax())]
    while len(emitted) < num_tokens:
        emitted.append(int(ours.verify([Window(state, emitted[-1:])]).logits_TV[0].argmax()))
        pool.commit([(state, 1)])
    return emitted


@pytest.mark.skipif(not SEED_MODEL.is_dir(), reason=f"no bf16 seed model at {SEED_MODEL}")
def test_seed_model_logits_and_200_greedy_tokens() -> None:
    reference = transformers.Qwen3_5ForConditionalGeneration.from_pretrained(
        SEED_MODEL, dtype=torch.float32
    ).eval()
    loaded = load(SEED_MODEL, device=torch.device("cpu"), dtype=torch.float32)
    ours, token = loaded.target, loaded.tokens.prompt.image_id
    assert isinstance(ours, Qwen35)
    image = page(8, 20)
    check_parity(reference, ours, image, token)

    prompt = prompt_of(image, [2], [3], token)
    emitted = greedy(ours, prompt, image, 200)
    expected = reference_logits(reference, [*prompt.token_ids, *emitted], image, token)
    # Teacher forced, each of our tokens is the reference's own next one: so are 200 greedy steps.
    start = len(prompt.token_ids) - 1
    assert expected[start : start + 200].argmax(-1).tolist() == emitted


def run_windows(
    ours: Qwen35,
    state: SequenceState,
    pool: StatePool,
    text: list[int],
    cuts: list[tuple[int, int]],
) -> list[Tensor]:
    """Logits of the kept rows; rejected rows hold other tokens than the text."""
    found, place = [], 0
    for rows, kept in cuts:
        window = text[place : place + kept] + [(7 * n) % 190 for n in range(rows - kept)]
        found += list(ours.verify([Window(state, window)]).logits_TV[:kept])
        pool.commit([(state, kept)])
        place += kept
    return found


@pytest.mark.parametrize(
    ("device", "dtype"),
    [
        pytest.param("cpu", torch.float32, id="cpu-float32"),
        pytest.param("cpu", torch.bfloat16, id="cpu-bfloat16"),
        pytest.param("cuda", torch.bfloat16, id="cuda-bfloat16", marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_token_has_the_same_bits_in_every_window(
    seed: int, device: str, dtype: torch.dtype
) -> None:
    # As wide as fused kernels ask.
    widths = {"linear_key_head_dim": 32}
    _, ours = both_models(widths, tied=True, dtype=dtype, device=device)
    assert keeps_rows_apart(ours)
    image = page(4, 6)
    prompt = prompt_of(image, [2, 7], [3], IMAGE_TOKEN)
    text = torch.randint(4, 190, (130,), generator=torch.Generator().manual_seed(9)).tolist()
    pool = StatePool(ours, num_slots=2, max_positions=512)
    results = []
    for cuts in ([(1, 1)] * len(text), random_windows(len(text), seed)):
        _, state = pool.acquire()
        pool.read(state, prompt, ours.encode_image(image))
        results.append((run_windows(ours, state, pool, text, cuts), state))
    (plain, plain_state), (drafted, drafted_state) = results
    different = [
        n for n, pair in enumerate(zip(plain, drafted, strict=True)) if not torch.equal(*pair)
    ]
    assert different == []
    assert torch.equal(plain_state.checkpoint_LRKW, drafted_state.checkpoint_LRKW)
