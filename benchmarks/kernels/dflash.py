"""The DFlash drafter: the same proposals recorded and not, time of a call, the examples with it.

Takes the drafter in the checkpoint's folder, else one of the default sizes with random weights:
its proposals are wrong, and cost what right ones do.
"""

from itertools import chain
from pathlib import Path

import torch
from documents import decode, engine_of, parted, speed_of
from speed import timed_us
from subject import Figures, Subject

from ocria.engine import graphs
from ocria.engine.speculative import DraftRooms
from ocria.engine.speculative.dflash_room import DraftRoom
from ocria.models.drafter import DFlash, DrafterConfig, LoadedDrafter, find_drafter, load_drafter
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


def _calls(subject: Subject, drafter: LoadedDrafter, figures: Figures) -> None:
    """Proposals over random rows, recorded beside plain, and what one costs."""
    rooms = DraftRooms(drafter.model, subject.target, forbidden_ids=subject.forbidden_ids)
    recorded, plain = rooms.take(), rooms.take()
    found, expected = _proposals(subject, recorded, True), _proposals(subject, plain, False)
    tokens, wanted = (list(chain.from_iterable(part)) for part in (found, expected))
    equal = sum(one == other for one, other in zip(tokens, wanted, strict=True))
    figures.say("recorded beside plain calls", f"{equal} of {len(wanted)} tokens equal")
    again = _proposals(subject, recorded, True)
    figures.say("a room used again", "equal" if again == found else "other proposals")
    for name, room in (("recorded", recorded), ("plain", plain)):
        position = subject.size.position
        _fill(subject, room, position)
        row = _rows(subject, room, 3)

        def call(room: DraftRoom = room, row: torch.Tensor = row, named: str = name) -> None:
            room.add(row)
            _propose(room, named == "recorded")

        spent = timed_us(subject, call)
        shown = f"{spent:.0f} us from host to host"
        if name == "recorded" and room._recorded is not None:
            shown = f"{timed_us(subject, room._recorded[1]):.0f} us, {shown}"
        figures.say(f"a call behind {position} rows, {name}", shown)


def _proposals(subject: Subject, room: DraftRoom, is_recorded: bool) -> list[list[int]]:
    room.restart()
    _fill(subject, room, subject.size.position)
    found = []
    for place, step in enumerate(_STEPS):
        room.add(_rows(subject, room, step, seed=1 + place))
        found.append(_propose(room, is_recorded, last=20 + place))
    return found


def _propose(room: DraftRoom, is_recorded: bool, last: int = 20) -> list[int]:
    known = graphs.can_record
    if not is_recorded:
        graphs.can_record = lambda device: False
    try:
        return room.propose(last)
    finally:
        graphs.can_record = known


def _fill(subject: Subject, room: DraftRoom, length: int) -> None:
    room.restart()
    room.add(_rows(subject, room, length))


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
