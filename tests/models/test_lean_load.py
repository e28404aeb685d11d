"""Loading for fused kernels: matrices are never held plain beside their codes."""

import pytest
import torch

from ocria.engine.state import StatePool
from ocria.models import finding, registry
from ocria.models.base import Prompt, Window
from ocria.models.qwen3_5 import model as model_module
from ocria.models.qwen3_5.model import Qwen35
from ocria.options import DEFAULT_MODEL

CPU = torch.device("cpu")


@pytest.fixture
def lean(monkeypatch: pytest.MonkeyPatch) -> Qwen35:
    """The shipped model as a CUDA device gets it; its kernels run as their references here."""
    for module in (registry, model_module):
        monkeypatch.setattr(module, "can_fuse", lambda *arguments: True)
    folder = finding.find_checkpoint(DEFAULT_MODEL)
    target = registry.load(folder, device=CPU, dtype=torch.bfloat16, packed=False).target
    assert isinstance(target, Qwen35)
    return target


def test_the_decoder_holds_no_plain_matrix(lean: Qwen35) -> None:
    assert lean.fused is not None and len(lean.model.language_model.layers) == 0
    matrices = {
        name: parameter.untyped_storage().nbytes()
        for name, parameter in lean.named_parameters()
        if parameter.dim() == 2 and "visual" not in name and parameter.untyped_storage().nbytes()
    }
    # The embedding alone is looked up; a tied head is the same storage.
    assert set(matrices) <= {"model.language_model.embed_tokens.weight", "lm_head.weight"}


def test_it_writes_what_the_plain_model_writes(lean: Qwen35) -> None:
    folder = finding.find_checkpoint(DEFAULT_MODEL)
    plain = registry.load(folder, device=CPU, dtype=torch.bfloat16, keep_plain=True).target
    assert isinstance(plain, Qwen35) and len(plain.model.language_model.layers) > 0
    plain.fused = None
    ids = torch.randint(10, 6000, (40,), generator=torch.Generator().manual_seed(3)).tolist()
    logits = []
    for target in (lean, plain):
        pool = StatePool(target, num_slots=1, max_positions=512)
        _, state = pool.acquire()
        first = pool.read(state, Prompt(tuple(ids[:24])), None)
        later = target.verify([Window(state, ids[24:])]).logits_TV
        logits.append(torch.cat([first[None], later]).float())
    error = float((logits[0] - logits[1]).norm() / logits[1].norm())
    # Both round activations to bfloat16, in another order.
    assert error < 0.03
