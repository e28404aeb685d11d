"""The DFlash drafter: proposals by modules and kernels, recorded or not, and the examples with it.

Takes the drafter in the checkpoint's folder, else one of the default sizes with random weights:
its proposals are wrong, and cost what right ones do.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import torch
from documents import decode, engine_of, parted, speed_of
from speed import launched_us, timed_us
from subject import Figures, Subject

from ocria.engine import graphs
from ocria.engine.speculative import DraftRooms, dflash_room
from ocria.engine.speculative.dflash_room import DraftRoom
from ocria.models.drafter import DFlash, DrafterConfig, LoadedDrafter, find_drafter, load_drafter
from ocria.models.drafter.fused import FusedDraft
from ocria.pipeline.dflash import DFlashMaker

_STEPS = (3, 1, 16, 5, 40, 2)
"""Rows that passes accept between two proposals."""


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """Calls first, then pages."""
    drafter = _drafter(subject)
    sizes = drafter.model.config
    figures.say(
        "drafter",
        f"{drafter.precision}, {len(sizes.layers)} layers, block of {sizes.block_size}",
    )
    _calls(subject, drafter, figures)
    _parts(subject, drafter, figures)
    _pages(subject, drafter, figures)


def _drafter(subject: Subject) -> LoadedDrafter:
    folder = find_drafter(subject.model.folder)
    if folder is not None:
        return load_drafter(folder, subject.target)
    model = DFlash(DrafterConfig.from_mapping(_sizes(subject))).requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data = noise * (0.1 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5)
        parameter.data += 1.0 if parameter.dim() < 2 else 0.0
    model.to(subject.device, subject.target.dtype).pack()
    return LoadedDrafter(model=model, precision="random", folder=Path())


def _sizes(subject: Subject) -> dict[str, object]:
    return {
        "architectures": ["DFlash2DraftModel"],
        "hidden_size": subject.target.hidden_size,
        "intermediate_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "vocab_size": subject.target.vocab_size,
        "rope_theta": 10_000_000.0,
        "block_size": 16,
        "is_causal": False,
        "dflash_config": {
            "mask_token_id": 9,
            "target_layer_ids": [2, 5, 7],
            "conv_kernel_size": 2,
            "conv_group_size": 32,
            "selector_rank": 24,
            "selector_top_k": 16,
        },
    }


class _Way(NamedTuple):
    """How a call is run."""

    name: str
    is_fused: bool
    is_recorded: bool

    def rooms(self, subject: Subject, drafter: LoadedDrafter) -> DraftRooms:
        """Rooms whose calls take this way, as long as they are asked through `propose`."""
        with _instead(dflash_room, "can_fuse_draft", lambda *sizes: self.is_fused):
            return DraftRooms(drafter.model, subject.target, forbidden_ids=subject.forbidden_ids)

    def propose(self, room: DraftRoom, last: int = 20) -> list[int]:
        """One call."""
        can = self.is_recorded and room._waiting_RX.is_cuda
        with _instead(graphs, "can_record", lambda device: can):
            return room.propose(last)


_WAYS = (
    _Way("modules", False, False),
    _Way("modules, recorded", False, True),
    _Way("fused", True, False),
    _Way("fused, recorded", True, True),
)


def _calls(subject: Subject, drafter: LoadedDrafter, figures: Figures) -> None:
    """Proposals over random rows by every way, and what one costs."""
    position, wanted = subject.size.position, None
    for way in _WAYS:
        room = way.rooms(subject, drafter).take()
        found = _proposals(subject, way, room)
        wanted = wanted or found
        equal = sum(one == other for one, other in zip(found, wanted, strict=True))
        again = "equal" if _proposals(subject, way, room) == found else "other proposals"
        figures.say(way.name, f"{equal} of {len(found)} tokens as the modules; again: {again}")
        room.restart()
        room.add(_rows(subject, room, position))
        row = _rows(subject, room, 3)

        def call(way: _Way = way, room: DraftRoom = room, row: torch.Tensor = row) -> None:
            room.add(row)
            way.propose(room)

        shown = f"{timed_us(subject, call):.0f} us from host to host"
        if room._recorded is not None:
            shown = f"{timed_us(subject, room._recorded[1]):.0f} us, {shown}"
        figures.say(f"a call behind {position} rows, {way.name}", shown)


def _parts(subject: Subject, drafter: LoadedDrafter, figures: Figures) -> None:
    """What of a recorded call goes where."""
    fused, target = FusedDraft(drafter.model), subject.target
    room = _WAYS[-1].rooms(subject, drafter).take()
    length = subject.size.position
    numbers = torch.tensor([length, 3, 20], device=subject.device)
    block = subject.random(drafter.model.config.block_size, target.hidden_size)
    rows, kept = room._waiting_RX, room._kept_2EJSD
    hidden = fused.hidden(block, kept, numbers)[1:]
    logits = target.head(hidden).float()
    forbidden, anchor = room._forbidden_V, numbers[2:]
    parts: dict[str, Callable[[], object]] = {
        "context": lambda: fused.write(rows, kept, numbers[0] + room._steps_R),
        "layers": lambda: fused.hidden(block, kept, numbers),
        "head": lambda: target.head(hidden),
        "choice": lambda: fused.choose(hidden, logits, forbidden, anchor),
    }
    spent = {name: launched_us(subject, [call]) for name, call in parts.items()}
    figures.say("parts", ", ".join(f"{name} {us:.0f} us" for name, us in spent.items()))


def _proposals(subject: Subject, way: _Way, room: DraftRoom) -> list[int]:
    room.restart()
    room.add(_rows(subject, room, subject.size.position))
    found: list[int] = []
    for place, step in enumerate(_STEPS):
        room.add(_rows(subject, room, step, seed=1 + place))
        found += way.propose(room, last=20 + place)
    return found


@contextmanager
def _instead(module: ModuleType, name: str, other: object) -> Iterator[None]:
    known = getattr(module, name)
    setattr(module, name, other)
    try:
        yield
    finally:
        setattr(module, name, known)


def _rows(subject: Subject, room: DraftRoom, count: int, seed: int = 0) -> torch.Tensor:
    width = subject.target.hidden_size
    return subject.random(count, room._waiting_RX.shape[1] // width, width, seed=seed)


def _pages(subject: Subject, drafter: LoadedDrafter, figures: Figures) -> None:
    """The examples with it alone and as a source of `auto`, beside plain decoding."""
    examples, maker = subject.examples, DFlashMaker(subject.model, drafter)
    expected = decode(subject, engine_of(subject, subject.target), "none", examples)
    engine = engine_of(subject, subject.target)
    for arm in ("dflash", "auto"):
        if subject.left_s < 6:
            figures.say(f"examples, {arm}", "not run: time is up")
            continue
        decode(subject, engine, arm, examples, maker)
        results = decode(subject, engine, arm, examples, maker)
        speed = speed_of(results)
        figures.say(
            f"examples, {arm}",
            f"{parted(results, expected)}; {speed.tokens_per_s:.0f} tokens/s, "
            f"{speed.pass_us:.0f} us a pass",
        )
    subject.target.tap_layers = ()
