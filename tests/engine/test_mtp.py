"""Drafting with a checkpoint's MTP head: the specification's proposals, plain decoding's pages."""

from itertools import pairwise

import pytest
import torch
from small_model import CONFIG, VOCABULARY, build
from torch import Tensor

from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.engine.speculative.drafter import TapDrafter
from ocria.engine.speculative.mtp import MtpDrafter
from ocria.errors import WeightsError
from ocria.models.base import Prompt
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.mtp import MtpHead, has_mtp, load_mtp

ALLOWED = range(3, 8)
FORBIDDEN = frozenset(range(VOCABULARY)) - frozenset(ALLOWED)
PROMPT = Prompt(tuple(3 + n * 5 % 80 for n in range(37)))
# A 3 x 4 image at position 5 of 21.
PICTURE = Prompt((*range(3, 8), *[90] * 12, 8, 9, 10, 11), 5, 3, 4)
CONFIG_TEXT = Qwen35Config.from_mapping(CONFIG).text
HIDDEN, HEADS, KV, WIDTH, TURNED = 64, 2, 1, 32, 16


class Tensors:
    """Random tensors of a head, and the target's final norm, as a weight source."""

    def __init__(self, **changes: Tensor | None) -> None:
        generator = torch.Generator().manual_seed(2)
        with torch.device("meta"):
            shapes = {name: v.shape for name, v in MtpHead(CONFIG_TEXT).state_dict().items()}
        self.tensors = {
            ("mtp." + name).replace("mtp.final_norm", "model.language_model.norm"): torch.randn(
                shape, generator=generator
            )
            * (0.3 if len(shape) == 1 else shape[-1] ** -0.5)
            for name, shape in shapes.items()
        }
        for name, value in changes.items():
            self.tensors.pop(name, None)
            if value is not None:
                self.tensors[name] = value

    def names(self) -> list[str]:
        return list(self.tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.tensors[name].shape)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        return self.tensors[name].to(dtype).clone()


class Host:
    """A target's embedding and head at random: the small model's best tokens nearly tie."""

    device, dtype, num_layers = torch.device("cpu"), torch.float64, 2
    tap_layers = (1,)

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(8)
        self.table, self.rows = torch.randn(2, VOCABULARY, HIDDEN, generator=generator).double()

    def embed(self, ids_T: Tensor) -> Tensor:
        return self.table[ids_T]

    def head(self, hidden_TD: Tensor) -> Tensor:
        return hidden_TD.double() @ self.rows.T


@pytest.fixture(scope="module")
def target() -> Qwen35:
    model = build()
    model.tap_layers = (model.num_layers - 1,)
    return model


@pytest.fixture(scope="module")
def head(target: Qwen35) -> MtpHead:
    return load_mtp(CONFIG_TEXT, Tensors(), target)


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * (1 + weight)


def turn(x_F: Tensor, position_3: list[int]) -> Tensor:
    """Interleaved mRoPE on the first 16 of 32 channels, sections 3, 3, 2; pairs i and i + 8."""
    out = x_F.clone()
    for i in range(TURNED // 2):
        axis = 1 if i % 3 == 1 and i < 9 else 2 if i % 3 == 2 and i < 6 else 0
        angle = torch.tensor(position_3[axis] * 10000.0 ** (-2 * i / TURNED), dtype=x_F.dtype)
        a, c = x_F[i], x_F[i + TURNED // 2]
        out[i] = a * angle.cos() - c * angle.sin()
        out[i + TURNED // 2] = c * angle.cos() + a * angle.sin()
    return out


def position(row: int, prompt: Prompt) -> list[int]:
    """The target's rotary position of a row: the specification's rule for one image."""
    start, count = prompt.image_start, prompt.grid_h * prompt.grid_w
    if start < 0 or row < start:
        return [row] * 3
    if row < start + count:
        return [
            start,
            start + (row - start) // prompt.grid_w,
            start + (row - start) % prompt.grid_w,
        ]
    return [row - count + max(prompt.grid_h, prompt.grid_w)] * 3


class PlainMtp:
    """The specification's formulas, a row at a time in float64, everything computed anew."""

    def __init__(self, target: Host) -> None:
        self.w = {name: t.double() for name, t in Tensors().tensors.items()}
        self.target = target

    def layer(self, name: str) -> Tensor:
        return self.w[f"mtp.layers.0.{name}.weight"]

    def rows(self, pairs: list[tuple[int, Tensor]], prompt: Prompt) -> list[Tensor]:
        """Outputs of rows (following token, hidden row), each looking at all before it."""
        keys: list[Tensor] = []
        values: list[Tensor] = []
        outputs = []
        for row, (token, hidden) in enumerate(pairs):
            embedded = self.target.embed(torch.tensor([token]))[0].double()
            x = self.w["mtp.fc.weight"] @ torch.cat(
                [
                    norm(embedded, self.w["mtp.pre_fc_norm_embedding.weight"]),
                    norm(hidden, self.w["mtp.pre_fc_norm_hidden.weight"]),
                ]
            )
            x = x + self.attend(x, keys, values, position(row, prompt))
            n = norm(x, self.layer("post_attention_layernorm"))
            gate = self.layer("mlp.gate_proj") @ n
            x = x + self.layer("mlp.down_proj") @ (
                gate * torch.sigmoid(gate) * (self.layer("mlp.up_proj") @ n)
            )
            outputs.append(norm(x, self.w["mtp.norm.weight"]))
        return outputs

    def attend(
        self, x: Tensor, keys: list[Tensor], values: list[Tensor], place: list[int]
    ) -> Tensor:
        n = norm(x, self.layer("input_layernorm"))
        both = (self.layer("self_attn.q_proj") @ n).view(HEADS, 2, WIDTH)
        key = norm(self.layer("self_attn.k_proj") @ n, self.layer("self_attn.k_norm"))
        keys.append(turn(key, place))
        values.append(self.layer("self_attn.v_proj") @ n)
        mixed = []
        for q, gate in both:
            query = turn(norm(q, self.layer("self_attn.q_norm")), place)
            weights = torch.softmax(torch.stack(keys) @ query / WIDTH**0.5, 0)
            mixed.append(weights @ torch.stack(values) * torch.sigmoid(gate))
        return self.layer("self_attn.o_proj") @ torch.cat(mixed)

    def propose(self, rows: Tensor, prompt: Prompt, emitted: list[int], most: int) -> list[int]:
        tokens = [*prompt.token_ids, *emitted]
        hidden = norm(rows.double(), self.w["model.language_model.norm.weight"])
        pairs = [(tokens[i + 1], hidden[i]) for i in range(len(rows))]
        drafts: list[int] = []
        while len(drafts) < most:
            last = self.rows(pairs, prompt)[-1]
            logits = self.target.head(last[None])[0]
            drafts.append(max(ALLOWED, key=lambda token: float(logits[token])))
            pairs.append((drafts[-1], last))
        return drafts


@pytest.mark.parametrize("prompt", [PROMPT, PICTURE], ids=["text", "image"])
def test_proposals_are_those_of_the_specification(prompt: Prompt) -> None:
    host = Host()
    head = load_mtp(CONFIG_TEXT, Tensors(), host)
    generator = torch.Generator().manual_seed(6)
    emitted = [3 + n * n % 5 for n in range(60)]
    rows = torch.randn(len(prompt.token_ids) + len(emitted), 1, HIDDEN, generator=generator)
    rows = rows.double()
    drafter = MtpDrafter(head, host, forbidden_ids=FORBIDDEN, num_drafts=6)
    drafter.prepare(prompt)
    plain, tapped, seen = PlainMtp(host), 0, set()
    for known in (1, 2, 5, 17, 18, 43, 60):
        real = len(prompt.token_ids) + known - 1
        drafter.tap(rows[tapped:real])
        tapped = real
        found = list(drafter.propose(emitted[:known], 6))
        assert found == plain.propose(rows[:real, 0], prompt, emitted[:known], 6)
        seen.add(tuple(found))
    assert len(seen) > 3


def read(target: Qwen35, drafter: MtpDrafter | None, prompt: Prompt = PROMPT) -> Result:
    config = EngineConfig(
        stop_ids=frozenset({0}), forbidden_ids=FORBIDDEN, max_positions=1024, window=16
    )
    request = Request(prompt=prompt, image=None, max_tokens=320, drafter=drafter)
    return Engine(target, config).run(request)


@pytest.mark.parametrize("num_drafts", [1, 2, 4, 15])
def test_the_page_is_that_of_plain_decoding(target: Qwen35, head: MtpHead, num_drafts: int) -> None:
    plain = read(target, None)
    drafter = MtpDrafter(head, target, forbidden_ids=FORBIDDEN, num_drafts=num_drafts)
    drafted = read(target, drafter)
    assert len(plain.token_ids) == 320 and drafted.token_ids == plain.token_ids
    assert drafted.logprobs == plain.logprobs
    # Chance accepts some of five possible tokens, and rejects others.
    assert drafted.accepted[1] > 0 and drafted.steps < plain.steps


def test_a_second_page_knows_nothing_of_the_first(target: Qwen35, head: MtpHead) -> None:
    drafter = MtpDrafter(head, target, forbidden_ids=FORBIDDEN)
    first = read(target, drafter)
    read(target, drafter, PICTURE)
    again = read(target, drafter)
    assert (again.token_ids, again.accepted) == (first.token_ids, first.accepted)


def test_rows_in_any_portions_give_the_same_proposals(target: Qwen35, head: MtpHead) -> None:
    rows = torch.randn(37 + 300, 1, HIDDEN, generator=torch.Generator().manual_seed(4))
    emitted = [3 + n % 5 for n in range(301)]
    proposals = []
    for cuts in ([0, 337], [0, 37, 38, 100, 256, 337]):
        drafter = MtpDrafter(head, target, forbidden_ids=FORBIDDEN)
        drafter.prepare(PROMPT)
        for first, last in pairwise(cuts):
            drafter.tap(rows[first:last])
        proposals.append(list(drafter.propose(emitted, 15)))
    assert proposals[0] == proposals[1] and len(proposals[0]) == 4


def test_without_all_rows_it_is_silent(target: Qwen35, head: MtpHead) -> None:
    drafter = MtpDrafter(head, target)
    drafter.prepare(PROMPT)
    assert drafter.propose((), 15) == () and isinstance(drafter, TapDrafter)
    drafter.tap(torch.randn(36, 1, HIDDEN))
    assert drafter.propose((5,), 15) == ()
    drafter.tap(torch.randn(1, 1, HIDDEN))
    assert len(drafter.propose((5,), 2)) == 2
    assert drafter.propose((5, 6), 15) == ()


def test_heads_that_cannot_be_used_are_named(target: Qwen35) -> None:
    assert has_mtp(Tensors())
    with pytest.raises(WeightsError, match=r"lacks fc\.weight"):
        load_mtp(CONFIG_TEXT, Tensors(**{"mtp.fc.weight": None}), target)
    with pytest.raises(WeightsError, match=r"no place for: layers\.1\.x"):
        load_mtp(CONFIG_TEXT, Tensors(**{"mtp.layers.1.x": torch.ones(1)}), target)
