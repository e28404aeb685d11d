"""The fused decoder against the plain modules. On a CPU its operations run as their references."""

import pytest
import torch
from torch import Tensor

from ocria.engine.state import StatePool
from ocria.models.base import Prompt, Window
from ocria.models.device import resolve_device
from ocria.models.finding import SHIPPED
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.fused import can_fuse
from ocria.models.qwen3_5.model import Qwen35, fused_decoder
from ocria.models.registry import load
from ocria.weights import assign

from .test_parity import VARIANTS, StateDict, reference_config

WINDOWS = [(5, 3), (1, 1), (32, 30), (9, 9), (32, 32), (16, 2)]


def random_model(variant: str, tied: bool) -> Qwen35:
    """A random model with its plain modules in float32 and its fused decoder beside them."""
    config = Qwen35Config.from_mapping(reference_config(VARIANTS[variant], tied))
    with torch.device("meta"):
        model = Qwen35(config)
    generator = torch.Generator().manual_seed(1)
    weights = {}
    for name, parameter in model.state_dict().items():
        noise = torch.randn(parameter.shape, generator=generator)
        scale = 0.3 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5
        # The kernels keep plain weights in bfloat16.
        weights[name] = (noise * scale).bfloat16().float()
    assign(model, StateDict(weights), dtype=torch.float32)
    fused = fused_decoder(model, None)
    model.prepare(torch.float32, torch.device("cpu"))
    model.beside = fused
    return model


def logits(model: Qwen35, prompt: Prompt, text: list[int]) -> tuple[Tensor, Tensor]:
    """Of the kept rows of some windows with rejected rows; and the states at the end."""
    pool = StatePool(model, num_slots=1, max_positions=512)
    _, state = pool.acquire()
    found, place = [pool.read(state, prompt, None)], 0
    for rows, kept in WINDOWS:
        window = text[place : place + kept] + [7] * (rows - kept)
        found += list(model.verify([Window(state, window)]).logits_TV[:kept])
        pool.commit([(state, kept)])
        place += kept
    return torch.stack(found), state.checkpoint_LRKW


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_random_models(variant: str, tied: bool) -> None:
    model = random_model(variant, tied)
    ids = torch.randint(4, 190, (140,), generator=torch.Generator().manual_seed(2)).tolist()
    prompt, text = Prompt(tuple(ids[:45])), ids[45:]
    expected, expected_state = logits(model, prompt, text)
    model.fused = model.beside
    found, state = logits(model, prompt, text)
    assert float((found - expected).norm() / expected.norm()) < 1e-4
    assert float((state - expected_state).norm() / expected_state.norm()) < 1e-4


def test_shipped_weights_are_read_as_they_are_stored() -> None:
    folder = next(path for path in sorted(SHIPPED.iterdir()) if path.is_dir())
    loaded = load(folder, device=resolve_device("cpu"), dtype=torch.float32)
    model = loaded.target
    assert isinstance(model, Qwen35)
    ids = torch.randint(10, 6000, (120,), generator=torch.Generator().manual_seed(3)).tolist()
    expected, _ = logits(model, Prompt(tuple(ids[:20])), ids[20:])
    model.fused = stored_decoder(folder)
    found, _ = logits(model, Prompt(tuple(ids[:20])), ids[20:])
    assert float((found - expected).norm() / expected.norm()) < 1e-4


def stored_decoder(folder):
    """The fused decoder of a checkpoint, from its codes."""
    from ocria.models.qwen3_5.config import read_config
    from ocria.models.qwen3_5.names import FLOAT32_NAMES, canonical_name
    from ocria.quantization.layouts import read_quantization
    from ocria.quantization.source import QuantizedSource
    from ocria.weights import CheckpointReader

    raw = read_config(folder)
    source = QuantizedSource(
        CheckpointReader(folder), read_quantization(folder, raw), canonical_name
    )
    with torch.device("meta"):
        model = Qwen35(Qwen35Config.from_mapping(raw))
    assign(model, source, dtype=torch.float32, float32_names=FLOAT32_NAMES)
    return fused_decoder(model, source.read_packed)


@pytest.mark.parametrize(("key_width", "is_taken"), [(16, False), (24, False), (32, True)])
def test_kernels_take_models_that_they_compile_for(key_width: int, is_taken: bool) -> None:
    raw = reference_config({"linear_key_head_dim": key_width}, tied=True)
    config = Qwen35Config.from_mapping(raw).text
    assert can_fuse(config, torch.device("cuda"), torch.bfloat16) == is_taken
    assert not can_fuse(config, torch.device("cuda"), torch.float32)
    assert not can_fuse(config, torch.device("cpu"), torch.bfloat16)
