"""Rows: a token has the same bits in every window, alone, in company and in a captured graph."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from subject import Figures, Subject, text_of
from torch import Tensor

from ocria.bench.random_windows import random_windows
from ocria.engine.graphs import GraphRunner
from ocria.engine.state import StatePool
from ocria.models.base import FOLD_BLOCK, RING_ROWS, Output, SequenceState, Window

Verify = Callable[[Sequence[Window]], Output]
Cuts = list[tuple[int, int]]
_SLOTS = 4


class Script(NamedTuple):
    """One text and how it is cut into windows of (rows, rows kept)."""

    text: list[int]
    cuts: Cuts


class Read(NamedTuple):
    """The kept rows of a sequence, [rows, V] or [rows, 2] (token, log probability); its state."""

    rows: Tensor
    state: dict[str, Tensor]


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """Counts rows that differ from single rows by plain passes."""
    size, target = subject.size, subject.target
    runner = GraphRunner(target, subject.forbidden_ids)

    def best(windows: Sequence[Window]) -> Output:
        return runner.verify(windows, with_logits=False)

    reader = Reader(subject)
    text = text_of(size.num_rows, seed=9)
    singles: Cuts = [(1, 1)] * len(text)
    alone = Script(text, singles)
    expected = reader.read(target.verify, [alone])[0]
    expected_best = reader.read(best, [alone])[0]
    graph_singles = reader.read(runner.verify, [alone])[0]
    figures.say("single rows, graph beside plain", difference([(graph_singles, expected)]))
    ways: tuple[tuple[str, Verify, Read], ...] = (
        ("plain", target.verify, expected),
        ("graph", runner.verify, expected),
        ("graph, best alone, beside single rows", best, expected_best),
    )
    for name, verify, held in ways:
        for num_others in (0, 3):
            pairs = []
            for seed in range(size.num_seeds):
                others = [
                    Script(text_of(len(text), 20 + n), random_windows(len(text), 40 + 3 * seed + n))
                    for n in range(num_others)
                ]
                # Beside others it is not the first, so that its rows begin anywhere.
                place = seed % (num_others + 1)
                sequences = [*others[:place], Script(text, random_windows(len(text), seed))]
                sequences += others[place:]
                pairs.append((reader.read(verify, sequences)[place], held))
            company = f" beside {num_others} others" if num_others else ""
            figures.say(f"windows, {name}{company}", difference(pairs))
    figures.say("graphs captured", len(runner._captured))


class Reader:
    """Decodes texts behind the same page."""

    def __init__(self, subject: Subject) -> None:
        self._target = subject.target
        self._prompt, image = subject.page()
        self._image_ND = subject.target.encode_image(image)
        longest = len(self._prompt.token_ids) + subject.size.num_rows + 64
        self._pool = StatePool(subject.target, num_slots=_SLOTS, max_positions=longest)

    def read(self, verify: Verify, sequences: Sequence[Script]) -> list[Read]:
        """All sequences side by side; nothing is waited for between two passes."""
        pool, slots = self._pool, [self._pool.acquire() for _ in sequences]
        states = [state for _, state in slots]
        for state in states:
            pool.read(state, self._prompt, self._image_ND)
        found: list[list[Tensor]] = [[] for _ in sequences]
        places = [0] * len(sequences)
        for step in range(max(len(sequence.cuts) for sequence in sequences)):
            active = [n for n, sequence in enumerate(sequences) if step < len(sequence.cuts)]
            passed = []
            for n in active:
                rows, kept = sequences[n].cuts[step]
                ids = sequences[n].text[places[n] : places[n] + kept]
                rejected = [10 + (7 * row + 31 * step) % 5000 for row in range(rows - kept)]
                passed.append(Window(states[n], ids + rejected))
            rows_M = _rows(verify(passed))
            first, commits = 0, []
            for n in active:
                rows, kept = sequences[n].cuts[step]
                found[n].append(rows_M[first : first + kept].clone())
                first, places[n] = first + rows, places[n] + kept
                commits.append((states[n], kept))
            pool.commit(commits)
        read = [
            Read(torch.cat(rows), committed(state))
            for rows, state in zip(found, states, strict=True)
        ]
        for slot, _ in slots:
            pool.release(slot)
        return read


def _rows(output: Output) -> Tensor:
    if len(output.logits_TV):
        return output.logits_TV
    assert output.best is not None
    return torch.stack([output.best.token_T.float(), output.best.logprob_T], 1)


def committed(state: SequenceState) -> dict[str, Tensor]:
    """A copy of what later passes may read."""
    first = state.length // FOLD_BLOCK * FOLD_BLOCK
    block = [position % RING_ROWS for position in range(first, state.length)]
    taps = [position % RING_ROWS for position in range(state.length - 3, state.length)]
    return {
        "checkpoint": state.checkpoint_LRKW.clone(),
        "keys": state.keys_LJSD[:, :, : state.length].clone(),
        "values": state.values_LJSD[:, :, : state.length].clone(),
        "inputs": state.conv_in_LEX[:, taps].clone(),
        "outputs": state.conv_out_LEX[:, block].clone(),
        "decay": state.decay_LER[:, block].clone(),
        "beta": state.beta_LER[:, block].clone(),
    }


def difference(pairs: Sequence[tuple[Read, Read]]) -> str:
    """How many rows differ in bits, and which parts of the states."""
    places = [
        (found.rows != held.rows).any(1).nonzero().flatten().tolist() for found, held in pairs
    ]
    total = sum(len(found.rows) for found, _ in pairs)
    parts = {
        name
        for found, held in pairs
        for name, tensor in found.state.items()
        if not torch.equal(tensor, held.state[name])
    }
    states = f"states differ in {', '.join(sorted(parts))}" if parts else "states equal"
    said = f"{sum(map(len, places))} of {total} rows differ, {states}"
    if any(places):
        said += f"; places by seed {[found[:12] for found in places]}"
        largest = max(float((f.rows - h.rows).nan_to_num().abs().max()) for f, h in pairs)
        said += f", by {largest:.3g} at most"
    return said
