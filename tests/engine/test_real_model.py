"""A small random model of the real architecture: windows, near-ties, rejected states."""

from typing import Any

import pytest
import torch
from fake_drafters import Hostile, Oracle
from torch import Tensor

from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.engine.speculative import AutoDrafter, Drafter, NgramDrafter, PassCost, Source
from ocria.models.base import Prompt
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35
from ocria.weights import assign

VOCABULARY = 96
CONFIG: dict[str, Any] = {
    "model_type": "qwen3_5",
    "tie_word_embeddings": False,
    "image_token_id": 90,
    "video_token_id": 91,
    "vision_start_token_id": 92,
    "vision_end_token_id": 93,
    "text_config": {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "layer_types": ["linear_attention", "full_attention"],
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5,
            "mrope_section": [3, 3, 2],
            "mrope_interleaved": True,
        },
    },
    "vision_config": {
        "depth": 1,
        "hidden_size": 32,
        "num_heads": 2,
        "intermediate_size": 32,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 16,
        "in_channels": 3,
        "hidden_act": "gelu_pytorch_tanh",
    },
}


class RandomWeights:
    """Random tensors of the shapes that a model asks for; output rows in pairs that nearly tie."""

    def __init__(self, model: Qwen35) -> None:
        generator = torch.Generator().manual_seed(11)
        self._tensors = {}
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            scale = 0.3 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5
            self._tensors[name] = noise * scale
        head = self._tensors["lm_head.weight"]
        # One unit in the last place apart: which of the two wins hangs on the last bit of a sum.
        head[1::2] = torch.nextafter(head[0::2], torch.full_like(head[0::2], torch.inf))
        head *= 8

    def names(self) -> list[str]:
        return list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._tensors[name].shape)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        return self._tensors[name].to(dtype).clone()


@pytest.fixture(scope="module")
def target() -> Qwen35:
    with torch.device("meta"):
        model = Qwen35(Qwen35Config.from_mapping(CONFIG))
    assign(model, RandomWeights(model), dtype=torch.float32)
    model.prepare(torch.float32, torch.device("cpu"))
    return model


def read(target: Qwen35, drafter: Drafter | None, window: int) -> Result:
    config = EngineConfig(
        stop_ids=frozenset({0}),
        forbidden_ids=frozenset(range(88, VOCABULARY)) | {0},
        max_positions=1024,
        window=window,
    )
    prompt = Prompt(tuple(3 + n * 5 % 80 for n in range(37)))
    request = Request(prompt=prompt, image=None, max_tokens=320, drafter=drafter)
    return Engine(target, config).run(request)


@pytest.fixture(scope="module")
def plain(target: Qwen35) -> Result:
    return read(target, None, 16)


def test_the_pairs_nearly_tie(target: Qwen35, plain: Result) -> None:
    assert len(plain.token_ids) == 320
    # Both rows of a pair win now and then, so the last bits decide.
    assert {token % 2 for token in plain.token_ids} == {0, 1}


@pytest.mark.parametrize(
    ("kind", "window"),
    [
        *(("often wrong", window) for window in (2, 3, 7, 16, 17, 32)),
        *((kind, 32) for kind in ("right", "hostile", "ngram", "auto")),
    ],
)
def test_every_drafter_gives_the_same_bits(
    target: Qwen35, plain: Result, kind: str, window: int
) -> None:
    cost = PassCost(points=((1, 1.0), (16, 1.3)))
    wrong = Oracle(plain.token_ids, 0.25, VOCABULARY)
    drafter = {
        "right": Oracle(plain.token_ids, 0.0),
        "often wrong": wrong,
        "hostile": Hostile(),
        "ngram": NgramDrafter(),
        "auto": AutoDrafter([Source("x", wrong, 0.001, 0.5, 0.5)], cost),
    }[kind]
    drafted = read(target, drafter, window)
    assert drafted.token_ids == plain.token_ids
    assert drafted.logprobs == plain.logprobs
    if kind == "often wrong":
        assert len([n for n, count in enumerate(drafted.accepted) if count]) >= min(3, window)
