"""Single launches of every kernel of a pass, with the shapes of the shipped model and wide ones."""

import time
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

import torch
from subject import Subject
from torch import Tensor

from ocria.engine.state import StatePool
from ocria.kernels.block_attention import AttentionWeights, attention_pass
from ocria.kernels.gated_delta import DeltaWeights, delta_fold, delta_pass
from ocria.kernels.gated_norm import gated_norm
from ocria.kernels.head import best_tokens
from ocria.kernels.sequence_table import Place, SequenceTable, sequence_table
from ocria.kernels.small_gemm import (
    BY_RULE,
    Norm,
    PackedWeight,
    TilingTable,
    WeightCodes,
    pack,
    small_gemm,
    two_products,
)
from ocria.kernels.small_gemm.layout import Format
from ocria.kernels.small_gemm.tilings import streamed
from ocria.models.base import FOLD_BLOCK, KEY_BLOCK, SequenceState
from ocria.models.qwen3_5.fused import named_slot
from ocria.quantization import fp8, nvfp4

ROWS = 16


class Product(NamedTuple):
    """A product as a pass makes it."""

    name: str
    weight: PackedWeight
    norm: Norm | None = None
    has_residual: bool = False
    out_dtype: torch.dtype | None = None

    def __call__(self, x_MK: Tensor, residual_MN: Tensor | None = None) -> Tensor:
        return small_gemm(
            x_MK,
            self.weight,
            norm=self.norm,
            residual_MN=residual_MN if self.has_residual else None,
            out_dtype=self.out_dtype,
        )


def products(subject: Subject) -> Iterator[Product]:
    """Of all layers, and the head."""
    wide = torch.float32
    for layer in subject.fused._layers:
        mixer = "attention" if isinstance(layer.mixer, AttentionWeights) else "delta"
        found = [
            Product(f"{mixer} in", layer.projection, layer.first),
            Product(f"{mixer} out", layer.out, None, True),
            Product("gate|up", layer.gate_up, layer.second),
            Product("down", layer.down, None, True),
        ]
        if layer.ba is not None:
            found.append(Product("decay and beta", layer.ba, layer.first, False, wide))
        yield from (named(product) for product in found)
    yield named(Product("head", subject.fused._head, subject.fused._norm, False, wide))


def named(product: Product) -> Product:
    """With its shape and format in the name."""
    weight = product.weight
    shape = f"{weight.num_out} x {weight.num_in} {weight.format}"
    return product._replace(name=f"{product.name} {shape}")


def wide_products(subject: Subject, tilings: TilingTable = BY_RULE) -> Iterator[Product]:
    """Gate and up, and down, of a 4B model in each format; noise."""
    formats: tuple[Format, ...] = ("nvfp4", "fp8", "bf16")
    for format in formats:
        for name, shape, with_norm in (
            ("4B gate|up", subject.size.gate_up, True),
            ("4B down", subject.size.down, False),
        ):
            num_out, num_in = shape
            is_paired = with_norm
            halves = 2 if is_paired else 1
            parts = [
                codes_of(format, num_out // halves, num_in, subject.device) for _ in range(halves)
            ]
            gain = torch.rand(num_in, device=subject.device) + 0.5
            weight = pack(parts, paired=is_paired, tilings=tilings)
            if with_norm:
                yield named(Product(f"{name} with norm", weight, Norm(gain, 1e-6)))
                yield named(Product(name, weight))
            else:
                yield named(Product(name, weight, has_residual=True))


def streamed_products(subject: Subject) -> Iterator[Product]:
    """Those of `wide_products` that can stream, by tilings that are not taken."""
    for product in wide_products(subject, streamed((subject.size.gate_up, subject.size.down))):
        if product.weight.tiling.streams:
            yield product._replace(name=f"{product.name}, streamed")


def codes_of(format: Format, num_out: int, num_in: int, device: torch.device) -> WeightCodes:
    """Noise in a format."""
    noise = torch.randn(num_out, num_in, device=device) * num_in**-0.5
    ones = torch.ones(num_out, device=device)
    if format == "nvfp4":
        packed = nvfp4.quantize(noise)
        return WeightCodes("nvfp4", packed.packed_NH, ones / packed.global_scale, packed.scale_NB)
    if format == "fp8":
        rows = fp8.quantize(noise)
        return WeightCodes("fp8", rows.codes_NK, rows.scale_N1.flatten())
    return WeightCodes("bf16", noise.bfloat16(), ones)


class Mixers:
    """Launches of the mixers on a sequence of `position` read positions."""

    def __init__(self, subject: Subject, position: int) -> None:
        self._subject = subject
        layers = subject.fused._layers
        self.delta = next(x.mixer for x in layers if isinstance(x.mixer, DeltaWeights))
        self.attention = next(x.mixer for x in layers if isinstance(x.mixer, AttentionWeights))
        self._gain = next(x.gate_gain_W for x in layers if x.gate_gain_W is not None)
        pool = StatePool(subject.target, num_slots=1, max_positions=position + 512)
        _, self.state = pool.acquire()
        fill(self.state, position)

    @cached_property
    def qkvz_MZ(self) -> Tensor:
        delta = self.delta
        columns = delta.channels + delta.num_value_heads * delta.value_dim
        return self._subject.random(ROWS, columns, seed=1)

    @cached_property
    def ba_MR(self) -> Tensor:
        return self._subject.random(ROWS, 2 * self.delta.num_value_heads, seed=2).float()

    @cached_property
    def qkv_ME(self) -> Tensor:
        a = self.attention
        columns = 2 * (a.num_heads + a.num_kv_heads) * a.head_dim
        return self._subject.random(ROWS, columns, seed=3)

    def table(self, start: int, num_rows: int, kept: int = 0) -> SequenceTable:
        """One sequence's rows."""
        return sequence_table([Place(named_slot(self.state).memory, start, num_rows, 0, kept)])

    def launches(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Names and calls."""
        yield "delta mixer, 1 row", self._delta(1, 4)
        yield "delta mixer, 16 rows in one block", self._delta(ROWS, 4)
        yield "delta mixer, 16 rows over two blocks", self._delta(ROWS, FOLD_BLOCK - 8)
        folded = self.table(block_start(self.state), 0, kept=FOLD_BLOCK)
        yield "fold of all layers", lambda: delta_fold(folded, self.delta)
        for rows in (1, ROWS):
            table, qkv_ME = self.table(self.state.length, rows), self.qkv_ME[:rows]
            yield f"attention, {rows} rows", self._attend(table, qkv_ME)
        z_MV = self.qkvz_MZ[:, self.delta.channels :]
        x_MV = z_MV.flip(0).contiguous()
        yield "gated norm, 16 rows", lambda: gated_norm(x_MV, z_MV, self._gain, 1e-6)
        x_MD = self._subject.random(ROWS, self._subject.target.hidden_size, seed=5)
        yield "head, best of 16 rows", lambda: best(self._subject, x_MD)

    def prefill(self) -> None:
        """A chunk of a prompt through a delta layer."""
        table = self.table(block_start(self.state), ROWS)
        delta_pass(table, 0, self.qkvz_MZ, self.ba_MR, self.delta, prefill=True)

    def _delta(self, rows: int, offset: int) -> Callable[[], object]:
        table = self.table(block_start(self.state) + offset, rows)
        qkvz_MZ, ba_MR = self.qkvz_MZ[:rows], self.ba_MR[:rows]
        return lambda: delta_pass(table, 0, qkvz_MZ, ba_MR, self.delta, prefill=False)

    def _attend(self, table: SequenceTable, qkv_ME: Tensor) -> Callable[[], object]:
        angles = self._subject.fused.text_angles
        return lambda: attention_pass(table, 0, qkv_ME, angles, self.attention, KEY_BLOCK)


def fill(state: SequenceState, position: int) -> None:
    """Noise as if so many positions were committed: nothing is compiled for it."""
    noise = (state.keys_LJSD, state.values_LJSD, state.conv_in_LEX, state.conv_out_LEX)
    for tensor in (*noise, state.checkpoint_LRKW, state.decay_LER, state.beta_LER):
        tensor.normal_(0, 0.5)
    state.decay_LER.abs_().neg_()
    state.beta_LER.sigmoid_()
    state.length = position


def block_start(state: SequenceState) -> int:
    """First position of the block that is being filled."""
    return state.length // FOLD_BLOCK * FOLD_BLOCK


def best(subject: Subject, x_MD: Tensor) -> object:
    """The head kernel on rows of the residual stream."""
    fused = subject.fused
    return best_tokens(x_MD, fused._head, norm=fused._norm, forbidden_V=subject.forbidden_V)


def _joined(subject: Subject) -> Callable[[], object]:
    """Both products in front of a delta layer."""
    layer = next(layer for layer in subject.fused._layers if layer.ba is not None)
    assert layer.ba is not None
    x = subject.random(ROWS, layer.projection.num_in)
    return partial(
        two_products, x, layer.projection, layer.ba, norm=layer.first, second_dtype=torch.float32
    )


def _called(subject: Subject, product: Product) -> Callable[[], object]:
    x = subject.random(ROWS, product.weight.num_in)
    residual = subject.random(ROWS, product.weight.num_out) if product.has_residual else None
    return partial(product, x, residual)


def warm(subject: Subject, part: int, num_parts: int) -> None:
    """Compiles one part of all launches, those of one kind by one process."""
    calls: dict[str, Callable[[], object]] = {}
    for product in (*products(subject), *wide_products(subject)):
        calls.setdefault(product.name, _called(subject, product))
    mixers = Mixers(subject, 64)
    # The largest kernel first, and its variants in different processes.
    # Here, since it takes its launches from this module.
    from published import launches as published_launches
    from tables import CANDIDATES, decoder, running
    from tilings import launches as tiling_launches

    with torch.inference_mode():
        published = dict(published_launches(subject))
        ordered = {"prefill": mixers.prefill, "4B prefill": published.pop("4B prefill")}
        ordered |= dict(mixers.launches()) | calls | published
        ordered["two in one"] = _joined(subject)
        for name, tilings in CANDIDATES.items():
            with running(subject, decoder(subject, tilings)):
                ordered |= {f"{x.name}, {name}": _called(subject, x) for x in products(subject)}
                ordered[f"two in one, {name}"] = _joined(subject)
        ordered |= dict(tiling_launches(subject))
        # Last, since no GPU has compiled them: the others of a process are ready by then.
        ordered |= {x.name: _called(subject, x) for x in streamed_products(subject)}
        for name, call in list(ordered.items())[part::num_parts]:
            started = time.perf_counter()
            call()
            print(f"compiled {name} in {time.perf_counter() - started:.1f} s", flush=True)
