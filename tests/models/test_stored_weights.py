"""The shipped model with its weights as stored: the bits of the plain one, in less room."""

from pathlib import Path

import pytest
import torch

from ocria.engine.state import StatePool
from ocria.models.finding import find_checkpoint
from ocria.models.qwen3_5 import stored_weights
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.registry import load

CPU = torch.device("cpu")
IDS = [5, 900, 17, 6200, 44, 3000, 8]


def logits(target: Qwen35, windows: list[list[int]]) -> torch.Tensor:
    pool = StatePool(target, num_slots=1, max_positions=256)
    _, state = pool.acquire()
    found = []
    for ids in windows:
        found.append(target.verify([(state, ids)]).logits_TV)
        pool.commit([(state, len(ids))])
    return torch.cat(found)


def loaded(packed: bool | None, dtype: torch.dtype) -> Qwen35:
    target = load(find_checkpoint("ocria-nano"), device=CPU, dtype=dtype, packed=packed).target
    assert isinstance(target, Qwen35)
    return target


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_bits_of_the_plain_model_whatever_the_window(dtype: torch.dtype) -> None:
    plain, packed = loaded(False, dtype), loaded(True, dtype)
    expected = logits(plain, [IDS])
    assert torch.equal(logits(packed, [IDS]), expected)
    assert torch.equal(logits(packed, [IDS[:1], IDS[1:4], IDS[4:]]), expected)


def test_weights_stay_packed_and_the_report_is_clean() -> None:
    model = load(find_checkpoint("ocria-nano"), device=CPU, packed=True)
    target = model.target
    assert isinstance(target, Qwen35) and not model.report.unexpected
    decoder = target.model.language_model
    plain = sum(p.nbytes for p in (*decoder.parameters(), *target.lm_head.parameters()))
    stored = [m.stored for m in target.modules() if getattr(m, "stored", None) is not None]
    assert len({id(product) for product in stored}) == 9 * 4 + 1
    packed = sum(product.num_bytes for product in {id(s): s for s in stored}.values())
    assert plain < 1e6 < packed < 20e6


def test_only_where_plain_weights_do_not_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not isinstance(
        loaded(None, torch.bfloat16).model.language_model.embed_tokens,
        stored_weights.StoredEmbedding,
    )
    monkeypatch.setattr(stored_weights, "free_bytes", lambda: 90 << 20)
    assert isinstance(
        loaded(None, torch.bfloat16).model.language_model.embed_tokens,
        stored_weights.StoredEmbedding,
    )
    assert stored_weights.plain_weights_fit(20 << 20, torch.bfloat16)
