"""Drafting with DFlash: the page is that of plain decoding, whatever is drafted."""

from collections.abc import Callable, Sequence

import pytest
import torch
from small_model import VOCABULARY, build
from torch import Tensor

from ocria.engine import Engine, EngineConfig, Request, Result, graphs
from ocria.engine.speculative import DFlashDrafter, DraftRooms, dflash_room
from ocria.engine.speculative.drafter import TapDrafter
from ocria.models.base import Prompt
from ocria.models.drafter import DFlash, DrafterConfig
from ocria.models.qwen3_5.model import Qwen35

# Few tokens are left to choose from, so that chance alone accepts some proposals.
ALLOWED = range(3, 8)
FORBIDDEN = frozenset(range(VOCABULARY)) - frozenset(ALLOWED)
PROMPT = Prompt(tuple(3 + n * 5 % 80 for n in range(37)))


@pytest.fixture(scope="module")
def target() -> Qwen35:
    model = build()
    model.tap_layers = (1, 0)
    return model


def random_drafter(generation: int) -> DFlash:
    architecture = {1: "DFlashDraftModel", 2: "DFlash2DraftModel"}[generation]
    config = DrafterConfig.from_mapping(
        {
            "architectures": [architecture],
            "hidden_size": 64,
            "intermediate_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "vocab_size": VOCABULARY,
            "block_size": 16,
            "layer_types": ["sliding_attention", "full_attention"],
            "sliding_window": 40,
            "dflash_config": {
                "mask_token_id": 90,
                "target_layer_ids": [1, 0],
                "conv_kernel_size": 2,
                "conv_group_size": 16,
                "selector_rank": 4,
                "selector_top_k": 8,
            },
        }
    )
    torch.manual_seed(generation)
    model = DFlash(config).requires_grad_(False)
    for parameter in model.parameters():
        # Fused kernels hold weights in bfloat16.
        parameter.copy_(parameter.normal_(0.0, 0.3).bfloat16())
    return model


def rooms(target: Qwen35, generation: int, block: int | None = None) -> DraftRooms:
    model = random_drafter(generation)
    return DraftRooms(model, target, forbidden_ids=FORBIDDEN, block_size=block)


def read(target: Qwen35, drafter: DFlashDrafter | None, window: int) -> Result:
    config = EngineConfig(
        stop_ids=frozenset({0}), forbidden_ids=FORBIDDEN, max_positions=1024, window=window
    )
    request = Request(prompt=PROMPT, image=None, max_tokens=320, drafter=drafter)
    return Engine(target, config).run(request)


@pytest.fixture(scope="module")
def plain(target: Qwen35) -> Result:
    return read(target, None, 16)


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("block", [2, 3, 7, 16, 17, 32])
def test_the_page_is_that_of_plain_decoding(
    target: Qwen35, plain: Result, generation: int, block: int
) -> None:
    drafter = DFlashDrafter(rooms(target, generation, block))
    drafted = read(target, drafter, block)
    assert len(plain.token_ids) == 320
    assert drafted.token_ids == plain.token_ids
    assert drafted.logprobs == plain.logprobs
    # Both happened: rejected windows, and accepted proposals.
    assert drafted.accepted[1] > 0 and drafted.steps < plain.steps


def test_it_is_a_function_of_the_accepted_rows_alone(target: Qwen35) -> None:
    """Rows that come at once or one by one, after a page or fresh, give the same proposals."""
    generator = torch.Generator().manual_seed(4)
    rows = torch.randn(37 + 300, 2, 64, generator=generator)
    emitted = [3 + n % 5 for n in range(301)]
    shared = rooms(target, 2)
    at_once, used = (DFlashDrafter(shared) for _ in range(2))
    at_once.prepare(PROMPT)
    at_once.tap(rows)
    wanted = at_once.propose(emitted, 15)
    used.prepare(Prompt((1, 2)))
    used.tap(rows[:50].flip(0))
    used.prepare(PROMPT)
    for first in range(0, len(rows), 41):
        used.tap(rows[first : first + 41])
    assert len(wanted) == 15 and used.propose(emitted, 15) == wanted
    assert used.propose(emitted, 4) == wanted[:4]


def test_without_all_rows_it_is_silent(target: Qwen35) -> None:
    drafter = DFlashDrafter(rooms(target, 2))
    drafter.prepare(PROMPT)
    assert drafter.propose((), 15) == ()
    drafter.tap(torch.randn(36, 2, 64))
    assert drafter.propose((5,), 15) == ()
    drafter.tap(torch.randn(1, 2, 64))
    assert len(drafter.propose((5,), 15)) == 15
    assert drafter.propose((5, 6), 15) == ()


def test_it_taps() -> None:
    assert issubclass(DFlashDrafter, TapDrafter)


def call_again(run: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
    """Instead of a capture: a replay runs the same again into the same output."""
    output = run().clone()

    def replay() -> None:
        output.copy_(run())

    return output, replay


@pytest.mark.parametrize(("generation", "is_fused"), [(1, False), (2, False), (1, True)])
def test_a_recorded_call_proposes_the_same(
    target: Qwen35, generation: int, is_fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the whole capacity, through growth, and for a second page in the same room."""
    monkeypatch.setattr(dflash_room, "_FIRST_CAPACITY", 64)
    plain = rooms(target, generation)
    with monkeypatch.context() as patched:
        patched.setattr(dflash_room, "can_fuse_draft", lambda *sizes: is_fused)
        shared = rooms(target, generation)
    rows = torch.randn(37 + 300, 2, 64, generator=torch.Generator().manual_seed(6))
    for steps in ((1, 3, 16, 5, 17, 1), (40, 16, 2), (100, 1, 8)):
        expected = proposals(plain, rows, steps)
        with monkeypatch.context() as patched:
            patched.setattr(graphs, "can_record", lambda device: True)
            patched.setattr(graphs, "record", call_again)
            found = proposals(shared, rows, steps)
        if is_fused:
            # Another order of sums takes another one of two tokens that tie.
            found, expected = (
                [[n // 2 for n in ids] for ids in part] for part in (found, expected)
            )
        assert found == expected


def proposals(shared: DraftRooms, rows: Tensor, steps: Sequence[int]) -> list[list[int]]:
    """After the prompt, and after so many accepted rows each."""
    drafter, emitted, found = DFlashDrafter(shared), [3], []
    drafter.prepare(PROMPT)
    drafter.tap(rows[:37])
    for step in steps:
        found.append(list(drafter.propose(emitted, 15)))
        drafter.tap(rows[36 + len(emitted) :][:step])
        emitted += [3 + n % 5 for n in range(step)]
    found.append(list(drafter.propose(emitted, 15)))
    drafter.end_page()
    assert drafter.propose(emitted, 15) == () and all(len(ids) == 15 for ids in found)
    return found
