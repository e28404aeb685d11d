"""The trainable model: delta rule, cached decoding, rounding, layout names."""

import pytest
import torch
import torch.nn.functional as F

from ocria.models.recipes.nano import average
from ocria.models.recipes.nano.delta import chunked_delta_rule
from ocria.models.recipes.nano.generate import greedy
from ocria.models.recipes.nano.invert import joined_inverse, unit_lower_inverse
from ocria.models.recipes.nano.layout import from_layout, to_layout
from ocria.models.recipes.nano.model import Geometry, Reader, text_room
from ocria.models.recipes.nano.rounding import Masters, round_fp8_rows, round_in_place, round_nvfp4
from ocria.quantization import nvfp4
from ocria.quantization.scale_search import roomy_global_scale, search_block_scales

SMALL = Geometry(rows=6720, width=64, layers=3, inner=64, heads=2, kv_heads=1, head_width=64,
                 linear_heads=2, linear_width=32, vision_width=64, vision_depth=1, vision_heads=1,
                 vision_inner=64)  # fmt: skip


def step_by_step(q, k, v, decay, beta):
    q = F.normalize(q, dim=-1) * q.shape[-1] ** -0.5
    k = F.normalize(k, dim=-1)
    state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    out = []
    for t in range(q.shape[1]):
        state = state * decay[:, t].exp()[..., None, None]
        seen = torch.einsum("bhdv,bhd->bhv", state, k[:, t])
        new = (v[:, t] - seen) * beta[:, t, :, None]
        state = state + k[:, t, :, :, None] * new[:, :, None]
        out.append(torch.einsum("bhdv,bhd->bhv", state, q[:, t]))
    return torch.stack(out, 1), state


def inputs(length=128, heads=2, depth=16):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, length, heads, depth, generator=generator) for _ in range(3))
    decay = -torch.rand(2, length, heads, generator=generator) * 0.3
    return q, k, v, decay, torch.rand(2, length, heads, generator=generator)


def test_chunked_rule_is_the_recurrence():
    given = inputs()
    wanted, wanted_state = step_by_step(*given)
    out, state = chunked_delta_rule(*given)
    torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state, wanted_state, rtol=1e-4, atol=1e-5)


def test_chunked_rule_has_the_gradient_of_the_recurrence():
    given = [t.requires_grad_() for t in inputs()]
    weight = torch.randn(2, 128, 2, 16, generator=torch.Generator().manual_seed(1))
    wanted = torch.autograd.grad((step_by_step(*given)[0] * weight).sum(), given)
    got = torch.autograd.grad((chunked_delta_rule(*given)[0] * weight).sum(), given)
    for a, b in zip(got, wanted, strict=True):
        assert (a - b).norm() / b.norm() < 1e-4


def test_inverse_survives_keys_all_alike():
    """Blank paper: every key the same, full strength, no decay."""
    lower = torch.ones(1, 64, 64).tril(-1)
    inverse = unit_lower_inverse(lower)
    torch.testing.assert_close(inverse @ (lower + torch.eye(64)), torch.eye(64)[None])


def test_inverse_has_the_gradient_of_its_steps():
    generator = torch.Generator().manual_seed(6)
    lower = (torch.randn(3, 64, 64, generator=generator) * 0.2).tril(-1).requires_grad_()
    weight = torch.randn(3, 64, 64, generator=generator)
    (wanted,) = torch.autograd.grad((joined_inverse(lower) * weight).sum(), lower)
    (got,) = torch.autograd.grad((unit_lower_inverse(lower) * weight).sum(), lower)
    torch.testing.assert_close(got, wanted.tril(-1), rtol=1e-3, atol=1e-4)


def small_reader() -> Reader:
    torch.manual_seed(0)
    return Reader(SMALL).eval()


def test_cached_decoding_is_the_full_pass():
    reader = small_reader()
    pixels = torch.randint(0, 255, (2, 64, 96), dtype=torch.uint8)
    read = greedy(reader, pixels, limit=5)
    ids = torch.zeros(2, text_room(2, 3, 5), dtype=torch.long)
    for row, tokens in zip(ids, read, strict=True):
        row[: len(tokens)] = torch.tensor(tokens)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        logits = reader.logits(reader((pixels.float() - 127.5) / 127.5, ids)).float()
    for row, tokens in zip(logits, read, strict=True):
        for at, token in enumerate(tokens):
            # bf16 ties may fall either way; the chosen token is never far from the best.
            assert row[at, token] > row[at].max() - 0.05


def test_layout_names_go_there_and_back():
    state = {name: p.detach() for name, p in small_reader().named_parameters()}
    back = from_layout(to_layout(state))
    assert back.keys() == state.keys()
    for name, tensor in state.items():
        torch.testing.assert_close(back[name], tensor, rtol=2e-2, atol=2e-2)


def test_nvfp4_keeps_blocks_on_their_grid():
    weight = torch.randn(8, 64, generator=torch.Generator().manual_seed(2))
    ((once,),) = round_nvfp4([[weight]])
    assert (once - weight).norm() / weight.norm() < 0.15
    for block in once.view(-1, 16):
        assert len(block.abs().unique()) <= 8
    assert not torch.equal(once, weight)


def test_training_sees_the_values_that_ship():
    generator = torch.Generator().manual_seed(4)
    first, second, alone = (torch.randn(8, 64, generator=generator) for _ in range(3))
    groups = [[first, 3 * second], [alone]]
    for group, seen in zip(groups, round_nvfp4(groups), strict=True):
        shared = roomy_global_scale(*group)
        for weight, rounded in zip(group, seen, strict=True):
            shipped = nvfp4.quantize_with(weight, search_block_scales(weight, shared), shared)
            torch.testing.assert_close(rounded, nvfp4.dequantize(shipped, torch.float32))
            plain = nvfp4.dequantize(nvfp4.quantize(weight), torch.float32)
            assert (rounded - weight).square().sum() < 0.95 * (plain - weight).square().sum()


def test_rounded_weights_stay_as_they_are():
    weight = torch.randn(64, 64, generator=torch.Generator().manual_seed(5))
    ((once,),) = round_nvfp4([[weight]])
    ((twice,),) = round_nvfp4([[once]])
    torch.testing.assert_close(twice, once)


def test_fp8_rows_are_close_and_idempotent():
    weight = torch.randn(4, 64, generator=torch.Generator().manual_seed(3))
    once = round_fp8_rows(weight)
    assert (once - weight).abs().max() <= weight.abs().max() / 16
    torch.testing.assert_close(round_fp8_rows(once), once)


def test_masters_keep_what_rounding_drops():
    reader = small_reader()
    name = "layers.0.mlp.up_proj.weight"
    parameter = dict(reader.named_parameters())[name]
    before = parameter.detach().clone()
    masters = Masters(reader)
    masters.round()
    assert not torch.equal(parameter, before)
    masters.restore()
    assert torch.equal(parameter, before)


def test_rounding_in_place_leaves_what_masters_leave():
    kept, plain = small_reader(), small_reader()
    plain.load_state_dict(kept.state_dict())
    Masters(kept).round()
    round_in_place(plain)
    before = dict(kept.named_parameters())
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, before[name]), name


@pytest.mark.parametrize(("rows", "columns", "tokens"), [(2, 3, 1), (44, 32, 900), (2, 12, 40)])
def test_text_room_fills_whole_chunks(rows, columns, tokens):
    room = text_room(rows, columns, tokens)
    assert room >= tokens
    assert (2 + rows * columns + room) % 64 == 0


def test_the_average_of_two_readers_is_taken_by_name(tmp_path, monkeypatch):
    readers = {}
    for seed, name in enumerate(("one", "two")):
        torch.manual_seed(seed)
        readers[tmp_path / name] = Reader(SMALL)
    monkeypatch.setattr(average, "load_reader", lambda folder: readers[folder.path])
    one, two = (dict(reader.named_parameters()) for reader in readers.values())
    found = average.averaged(*readers, share=0.25)
    assert found.keys() == one.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, one[name] * 0.75 + two[name] * 0.25)


def test_readers_of_two_shapes_have_no_average(tmp_path, monkeypatch):
    wide = Geometry(**{**vars(SMALL), "inner": 128})
    readers = {tmp_path / "one": Reader(SMALL), tmp_path / "two": Reader(wide)}
    monkeypatch.setattr(average, "load_reader", lambda folder: readers[folder.path])
    with pytest.raises(ValueError, match="not of one shape"):
        average.averaged(*readers, share=0.5)
