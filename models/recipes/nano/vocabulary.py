"""The token ids of OCRia-1 nano: text pieces, control ids, and the markup of MARKUP.md.

Rows: 0..3 control, 4..6143 text pieces, 6144..6146 image, video and drafter mask, then markup.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

PAD, EOS, VISION_START, VISION_END = 0, 1, 2, 3
NUM_PIECES = 6144
IMAGE, VIDEO, MASK = 6144, 6145, 6146
CONTROL = ("<pad>", "<eos>", "<vs>", "<ve>")
COORDINATES = 512
BLOCK_TYPES = (
    *(f"h{level}" for level in range(1, 7)),
    *("paragraph", "list_item", "table", "formula", "code", "figure", "caption", "footnote"),
    *("header", "footer", "page_number", "form_field", "other"),
)
ROTATIONS = ("rot90", "rot180", "rot270")
LEVELS = tuple(f"level{level}" for level in range(2, 7))
CELLS = ("fcel", "ecel", "ched", "lcel", "ucel", "xcel", "nl")
_NAMES = (*ROTATIONS, *BLOCK_TYPES, *LEVELS, *CELLS, *(str(i) for i in range(COORDINATES)))
MARKUP = tuple(f"<|{name}|>" for name in _NAMES)
SPECIALS = ("<|image_pad|>", "<|video_pad|>", "<|mask|>", *MARKUP)
# Rows are padded to a multiple of 64 for the matrix units.
NUM_ROWS = (NUM_PIECES + len(SPECIALS) + 63) // 64 * 64
FIRST_MARKUP = MASK + 1
FIRST_COORDINATE = FIRST_MARKUP + _NAMES.index("0")
LAST_USED = NUM_PIECES + len(SPECIALS) - 1


def train_pieces(texts: list[str]) -> Tokenizer:
    """A 6,144-piece byte-level BPE with single digits, as the seed's, over `texts`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=NUM_PIECES,
        special_tokens=list(CONTROL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def with_specials(pieces: Tokenizer, seed_file: Path) -> Tokenizer:
    """Adds the ids from 6144 up, keeping the seed's decoder settings."""
    document = json.loads(pieces.to_str())
    seed = json.loads(seed_file.read_text(encoding="utf-8"))
    document["pre_tokenizer"], document["decoder"] = seed["pre_tokenizer"], seed["decoder"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    named = [*enumerate(CONTROL), *enumerate(SPECIALS, start=NUM_PIECES)]
    document["added_tokens"] = [
        {"id": i, "content": name, **flags, "special": True} for i, name in named
    ]
    return Tokenizer.from_str(json.dumps(document, ensure_ascii=False))


def initial_rows(tokenizer: Tokenizer, seed: Tokenizer, seed_rows: torch.Tensor) -> torch.Tensor:
    """Embedding rows [NUM_ROWS, d]: each piece is the mean of the seed pieces that spell it."""
    spread = seed_rows[4:NUM_PIECES].float().std()
    generator = torch.Generator().manual_seed(6147)
    width = seed_rows.shape[1]
    rows = torch.randn(NUM_ROWS, width, generator=generator) * spread * 0.5
    # Coordinates start ordered along a line of smooth waves: near numbers get near rows.
    phase = torch.arange(COORDINATES)[:, None] / COORDINATES * torch.pi
    waves = torch.cos(phase * (1 + torch.arange(width) % 48)[None])
    first = tokenizer.token_to_id("<|0|>")
    rows[first : first + COORDINATES] += waves * spread * 0.5
    rows[LAST_USED + 1 :] = 0
    rows[:4] = seed_rows[:4].float()
    vocabulary, seed_vocabulary = tokenizer.get_vocab(), seed.get_vocab()
    spell = Speller(seed)
    for piece, index in vocabulary.items():
        if 4 <= index < NUM_PIECES:
            exact = seed_vocabulary.get(piece)
            ids = [exact] if exact is not None else spell(piece)
            rows[index] = seed_rows[ids].float().mean(0)
    mask = torch.Generator().manual_seed(MASK)
    rows[MASK] = torch.randn(width, generator=mask) * seed_rows[:NUM_PIECES].float().std()
    return rows


class Speller:
    """Spells a byte-level piece with another tokenizer's pieces, merging as it would."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        model = json.loads(tokenizer.to_str())["model"]
        pairs = [m if isinstance(m, list) else m.split(" ") for m in model["merges"]]
        self._rank = {(a, b): i for i, (a, b) in enumerate(pairs)}
        self._ids: dict[str, int] = model["vocab"]

    def __call__(self, piece: str) -> list[int]:
        parts = list(piece)
        while len(parts) > 1:
            ranks = [self._rank.get(pair, 1 << 30) for pair in pairwise(parts)]
            best = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[best] == 1 << 30:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return [self._ids[part] for part in parts]
