"""A decoder of the published 4B size with random weights: passes, steps with a DFlash drafter of
public size, and its delta rule beside a kernel that writes the state at every position."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import torch
from launches import Mixers, Product, fill, products
from references import check_mixers, relative_error, write_every_state
from stream import say_shares, shown
from subject import Figures, Subject, run_parts, text_of
from torch import Tensor

from ocria.bench.shapes import Noise, made_up_pages, shape_config
from ocria.engine import Engine, EngineConfig, Request, graphs
from ocria.engine.graphs import GraphRunner
from ocria.engine.speculative import DFlashDrafter, DraftRooms
from ocria.engine.state import StatePool
from ocria.kernels.gated_delta import DeltaWeights, delta_pass
from ocria.kernels.gated_delta.reference import delta_rows
from ocria.kernels.sequence_table import Place, sequence_table
from ocria.kernels.small_gemm import PackedWeight, small_gemm
from ocria.models.base import FOLD_BLOCK, RING_ROWS, WINDOW, Window
from ocria.models.drafter import DFlash, DrafterConfig
from ocria.models.drafter.fused import FusedDraft
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.fused import named_slot
from ocria.models.qwen3_5.model import Qwen35, fused_decoder
from ocria.models.qwen3_5.names import FLOAT32_NAMES
from ocria.weights import assign

ROWS = 16
_STEPS = 40
_LEAST_S = 8.0
_OFFSETS = (("in one block", 0), ("over two blocks", FOLD_BLOCK - 8))


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """Passes first, then steps, the delta rule, vision and prefill."""
    started = time.perf_counter()
    mixed, plain = published(subject, mixed=True), published(subject, mixed=False)
    figures.say("models made in", f"{time.perf_counter() - started:.1f} s")
    parts = (
        lambda: check_mixers(_shell(subject, mixed), figures),
        lambda: _delta(subject, mixed, figures),
        lambda: _passes(subject, mixed, plain, figures),
        lambda: say_shares(figures, mixed, _page(subject, mixed), subject.size.rounds),
        lambda: _steps(subject, mixed, plain, figures, None),
        lambda: _steps(subject, mixed, plain, figures, drafter(subject, mixed)),
    )
    run_parts(subject, figures, ((_LEAST_S, part) for part in parts))


def published(subject: Subject, *, mixed: bool, num_layers: int | None = None) -> Qwen35:
    """The model, its kernels reading mixed formats or what these stand for as bfloat16."""
    is_cuda = subject.device.type == "cuda"
    config = _config(subject, num_layers or subject.size.num_published)
    noise = Noise(config, subject.device, mixed=True)
    with torch.device("meta"):
        model = Qwen35(config)
    dtype = torch.bfloat16 if is_cuda else torch.float32
    assign(model, noise, dtype=dtype, float32_names=FLOAT32_NAMES)
    stored = noise.read_packed if mixed else None
    if not is_cuda:
        model.fused = fused_decoder(model, stored)
    model.prepare(dtype, subject.device, stored=stored)
    return model


def _config(subject: Subject, num_layers: int) -> Qwen35Config:
    if subject.device.type != "cuda":
        return subject.target.config
    config = shape_config("4b")
    text = config.text
    if num_layers == text.num_hidden_layers:
        return config
    kinds = text.layer_types[:num_layers]
    return replace(config, text=replace(text, layer_types=kinds))


def drafter(subject: Subject, target: Qwen35) -> DFlash:
    """DFlash 2 as published for this size, random weights: it costs what a trained one does."""
    is_cuda = subject.device.type == "cuda"
    taps = (1, 8, 15, 22, 29) if is_cuda else (0, 1, 2)
    sizes: dict[str, Any] = {
        "architectures": ["DFlash2DraftModel"],
        "hidden_size": target.hidden_size,
        "intermediate_size": 9728 if is_cuda else 64,
        "num_hidden_layers": 5 if is_cuda else 1,
        "num_attention_heads": 32 if is_cuda else 2,
        "num_key_value_heads": 8 if is_cuda else 1,
        "head_dim": 128 if is_cuda else 16,
        "vocab_size": target.vocab_size,
        "rope_theta": 10_000_000.0,
        "block_size": 16,
        "is_causal": False,
        "dflash_config": {
            "mask_token_id": 9,
            "target_layer_ids": list(taps),
            "conv_kernel_size": 2,
            "conv_group_size": 16,
            "selector_rank": 256 if is_cuda else 8,
            "selector_top_k": 16,
        },
    }
    with torch.device(subject.device):
        model = DFlash(DrafterConfig.from_mapping(sizes)).requires_grad_(False)
    generator = torch.Generator(subject.device).manual_seed(0)
    for parameter in model.parameters():
        scale = 0.1 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5
        noise = torch.randn(parameter.shape, generator=generator, device=subject.device)
        parameter.data = noise * scale + (1.0 if parameter.dim() < 2 else 0.0)
    model.reset_frequencies()
    model.to(target.device, target.dtype)
    model.pack()
    return model


def _passes(subject: Subject, mixed: Qwen35, plain: Qwen35, figures: Figures) -> None:
    """Captured passes in turn; windows of 16 rows held against single ones first."""
    position, ways = subject.size.position, []
    for name, target in (("mixed", mixed), ("bf16", plain)):
        verdict = _equality(subject, target)
        figures.say(f"{name}, 16 rows beside single rows", verdict)
        if subject.device.type == "cuda" and not verdict.startswith("0 "):
            figures.say(f"passes, {name}", "no speed: rows depend on their window")
            continue
        pool = StatePool(target, num_slots=1, max_positions=position + 512)
        _, state = pool.acquire()
        fill(state, position)
        for rows in (1, ROWS):
            runner = GraphRunner(target)
            windows = [Window(state, text_of(rows, 1))]
            runner.verify(windows, with_logits=False)
            (captured,) = runner._captured.values()
            assert captured is not None, "the target has static passes"
            ways.append((name, rows, runner, windows, captured))
    spent: dict[tuple[str, int], list[float]] = {}
    for _ in range(max(1, 3 * subject.size.rounds)):
        for name, rows, _runner, _windows, captured in ways:
            spent.setdefault((name, rows), []).append(replayed_us(subject, captured.replay, 10))
    for (name, rows), values in spent.items():
        figures.say(f"pass of {rows} rows at {position}, {name}", f"{shown(values)} us")
    if len({name for name, _ in spent}) < 2:
        return
    for rows in (1, ROWS):
        pairs = zip(spent["bf16", 1], spent["mixed", rows], strict=True)
        figures.say(
            f"bf16 pass of 1 row over mixed pass of {rows}", shown([a / b for a, b in pairs], 2)
        )


def _equality(subject: Subject, target: Qwen35) -> str:
    """Best tokens and log probabilities of one window against those of its rows one by one."""
    position = subject.size.position
    pool = StatePool(target, num_slots=2, max_positions=position + 512)
    (_, one), (_, other) = pool.acquire(), pool.acquire()
    fill(one, position)
    for kept, copied in zip(named_slot(one).memory, named_slot(other).memory, strict=True):
        copied.copy_(kept)
    other.length = position
    runner, text = GraphRunner(target), text_of(ROWS, 1)
    best = runner.verify([Window(one, text)], with_logits=False).best
    assert best is not None
    rows = list(zip(best.token_T.tolist(), best.logprob_T.tolist(), strict=True))
    unequal, other_tokens, off = 0, 0, 0.0
    for token, row in zip(text, rows, strict=True):
        best = runner.verify([Window(other, [token])], with_logits=False).best
        assert best is not None
        found = (best.token_T.item(), best.logprob_T.item())
        unequal += found != row
        other_tokens += found[0] != row[0]
        off = max(off, abs(found[1] - row[1]))
        pool.commit([(other, 1)])
    return f"{unequal} of {ROWS} rows differ, {other_tokens} in their token, by {off:.1e} at most"


def replayed_us(subject: Subject, work: Callable[[], object], times: int) -> float:
    """Microseconds of a call, of `times` behind each other."""
    if subject.device.type != "cuda":
        started = time.perf_counter()
        work()
        return 1e6 * (time.perf_counter() - started)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(times):
        work()
    end.record()
    end.synchronize()
    return 1e3 * start.elapsed_time(end) / times


def _page(subject: Subject, target: Qwen35) -> Any:
    if subject.device.type != "cuda":
        return SimpleNamespace(**dict(zip(("prompt", "image"), subject.page(), strict=True)))
    return made_up_pages(target.config, num_pages=1, grid=subject.size.grid).pages[0]


def _steps(
    subject: Subject, mixed: Qwen35, plain: Qwen35, figures: Figures, model: DFlash | None
) -> None:
    """Whole steps of the engine: plain ones, and with a drafter whose proposals are wrong."""
    page, most = _page(subject, mixed), min(_STEPS, subject.size.max_tokens)
    config = EngineConfig(
        stop_ids=frozenset(),
        forbidden_ids=frozenset(),
        max_positions=len(page.prompt.token_ids) + most + WINDOW,
    )
    engines = {"mixed, plain": Engine(mixed, config)}
    rooms = DraftRooms(model, mixed) if model is not None else None
    if rooms is None:
        engines["bf16, plain"] = Engine(plain, config)
    else:
        engines["mixed, dflash"] = Engine(mixed, config)
    found: dict[str, tuple[int, ...]] = {}
    spent: dict[str, list[float]] = {}
    rounds = min(2, subject.size.rounds)
    for round_number in range(1 + rounds):
        for name, engine in engines.items():
            drafts = rooms is not None and name.endswith("dflash")
            mixed.tap_layers = model.config.target_layer_ids if model and drafts else ()
            page_drafter = DFlashDrafter(rooms) if rooms is not None and drafts else None
            engine.submit(
                Request(prompt=page.prompt, image=page.image, max_tokens=most, drafter=page_drafter)
            )
            engine.step()
            while engine.num_requests:
                started = time.perf_counter()
                outcomes = engine.step()
                if round_number and not outcomes:
                    spent.setdefault(name, []).append(1e6 * (time.perf_counter() - started))
                for _, outcome in outcomes:
                    found[name] = outcome.token_ids  # type: ignore[union-attr]
            if page_drafter is not None:
                page_drafter.end_page()
    mixed.tap_layers = ()
    for name, values in spent.items():
        if name.startswith("mixed") and found[name] != found["mixed, plain"]:
            figures.say(f"step, {name}", "no speed: other tokens than plain steps")
            continue
        figures.say(
            f"step, host to host, {name}",
            f"{shown(values)} us, {len(found[name])} tokens equal, "
            f"{rounds * len(found[name]) / max(1, len(values)):.2f} a step",
        )
    if rooms is not None and (room := rooms.take())._recorded is not None:
        values = [replayed_us(subject, room._recorded[1], 5) for _ in range(9)]
        figures.say("a call of dflash, recorded", f"{shown(values)} us")


def _delta(subject: Subject, target: Qwen35, figures: Figures) -> None:
    """The mixer of all delta layers in turn, and the same with a state written at every row."""
    assert target.fused is not None
    mixers = [x.mixer for x in target.fused._layers if isinstance(x.mixer, DeltaWeights)]
    weights = mixers[0]
    position = subject.size.position // FOLD_BLOCK * FOLD_BLOCK
    pool = StatePool(target, num_slots=1, max_positions=position + 512)
    _, state = pool.acquire()
    fill(state, position)
    heads = weights.num_value_heads
    qkvz = _random(subject, target, ROWS, weights.channels + heads * weights.value_dim, seed=1)
    ba = _random(subject, target, ROWS, 2 * heads, seed=2).float()
    memory = named_slot(state).memory
    states = torch.empty(
        (len(mixers), ROWS, *memory.checkpoint_LRKW.shape[1:]), device=subject.device
    )
    table = sequence_table([Place(memory, position, ROWS)])
    ours = delta_pass(table, 0, qkvz, ba, weights, prefill=False)
    wanted, last = _exact(memory, position, weights)
    theirs = write_every_state(table, 0, qkvz, ba, weights, states[0])
    figures.say(
        "delta rule against float64, 16 rows behind a block",
        f"ours {relative_error(ours, wanted):.1e}, every state {relative_error(theirs, wanted):.1e}"
        f", its last state {relative_error(states[0, -1], last):.1e}",
    )
    errors = [relative_error(ours, wanted), relative_error(theirs, wanted)]
    if subject.device.type == "cuda" and max(errors) > 1e-2:
        figures.say("delta rule", "no speed: outputs are off")
        return
    layers = range(len(mixers))
    ways: dict[str, list[Callable[[], object]]] = {}
    for name, offset in _OFFSETS:
        placed = sequence_table([Place(memory, position + offset, ROWS)])
        ways[f"three launches, {name}"] = [
            partial(delta_pass, placed, layer, qkvz, ba, mixers[layer], prefill=False)
            for layer in layers
        ]
    for columns, warps in ((8, 1), (16, 2), (32, 4), (32, 2), (64, 4)):
        ways[f"every state written, {columns} columns, {warps} warps"] = [
            partial(
                write_every_state, table, layer, qkvz, ba, mixers[layer], states[layer],
                columns=columns, num_warps=warps,
            )
            for layer in layers
        ]  # fmt: skip
    captured = {name: _graph(subject, calls) for name, calls in ways.items()}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(max(1, 3 * subject.size.rounds)):
        for name, replay in captured.items():
            spent[name].append(replayed_us(subject, replay, 5) / len(mixers))
    for name, values in spent.items():
        figures.say(f"{heads} heads, 16 rows, {name}", f"{shown(values, 1)} us a layer")
    best = min((n for n in ways if n.startswith("every")), key=lambda n: sorted(spent[n])[0])
    for name in list(ways)[: len(_OFFSETS)]:
        ratios = [a / b for a, b in zip(spent[best], spent[name], strict=True)]
        figures.say(f"{best} over {name}", shown(ratios, 2))


def _exact(memory: Any, start: int, weights: DeltaWeights) -> tuple[Tensor, Tensor]:
    """Outputs [M, R W] and the last state in float64, row by row, of rows that are in the ring."""
    places = torch.arange(start, start + ROWS, device=memory.decay_LER.device) % RING_ROWS
    rows = memory.conv_out_LEX[0, places].double()
    width = weights.num_key_heads * weights.key_dim
    q, k, v = rows.split([width, width, weights.channels - 2 * width], -1)
    out, last = delta_rows(
        memory.checkpoint_LRKW[0].double(),
        q.unflatten(-1, (-1, weights.key_dim)),
        k.unflatten(-1, (-1, weights.key_dim)),
        v.unflatten(-1, (-1, weights.value_dim)),
        memory.decay_LER[0, places],
        memory.beta_LER[0, places],
    )
    return out.flatten(1), last


def _graph(subject: Subject, calls: list[Callable[[], object]]) -> Callable[[], object]:
    """All calls as one graph."""
    if subject.device.type != "cuda":
        return calls[0]

    def run() -> None:
        for call in calls:
            call()

    return graphs.record(run)[1]


def _random(subject: Subject, target: Qwen35, *shape: int, seed: int) -> Tensor:
    noise = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return noise.to(subject.device, target.dtype)


def _shell(subject: Subject, model: Qwen35) -> Subject:
    """What launches and checks ask of a subject, for another model."""
    forbidden_V = torch.zeros(model.vocab_size, dtype=torch.uint8, device=subject.device)
    shell = SimpleNamespace(
        device=subject.device,
        target=model,
        fused=model.fused,
        size=subject.size,
        random=subject.random,
        forbidden_V=forbidden_V,
    )
    return cast(Subject, shell)


def launches(subject: Subject) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every kernel of a decoder of few layers, to be compiled; the slowest first."""
    for mixed in (True, False):
        model = published(subject, mixed=mixed, num_layers=4)
        shell = _shell(subject, model)
        kind = "mixed" if mixed else "bf16"
        if mixed:
            mixers = Mixers(shell, 64)
            yield "4B prefill", mixers.prefill
            yield from ((f"4B {name}", call) for name, call in mixers.launches())
        else:
            head = next(call for name, call in Mixers(shell, 64).launches() if "head" in name)
            yield "4B bf16 head", head
        for product in products(shell):
            yield f"4B {kind} {product.name}", partial(_product, subject, product)
    yield from _drafter_launches(subject, model)


def _product(subject: Subject, product: Product) -> Tensor:
    x = subject.random(ROWS, product.weight.num_in)
    residual = subject.random(ROWS, product.weight.num_out) if product.has_residual else None
    return product(x, residual)


def _drafter_launches(
    subject: Subject, target: Qwen35
) -> Iterator[tuple[str, Callable[[], object]]]:
    model = drafter(subject, target)
    fused = FusedDraft(model)
    layer = fused._layers[0]
    conv, gate = layer.attention_conv, fused._gate
    assert conv is not None and gate is not None
    wide = torch.float32

    def call(weight: PackedWeight, norm: Any = None, out_dtype: Any = None) -> Tensor:
        return small_gemm(
            subject.random(ROWS, weight.num_in), weight, norm=norm, out_dtype=out_dtype
        )

    yield "draft conv", lambda: call(conv.projection, layer.first, wide)
    yield "draft qkv", lambda: call(layer.qkv)
    yield "draft out", lambda: call(layer.out)
    yield "draft gate|up", lambda: call(layer.gate_up)
    yield "draft down", lambda: call(layer.down)
    yield "draft fc", lambda: call(fused._fc)
    yield "draft context", lambda: call(fused._context_kv, fused._context_norm)
    yield "draft gate", lambda: call(gate, None, wide)
    room = DraftRooms(model, target).take()
    taps = len(model.config.target_layer_ids)
    room.add(subject.random(3, taps, target.hidden_size))
    yield "draft, all", lambda: room.propose(20)
