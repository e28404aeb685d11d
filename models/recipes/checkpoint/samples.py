"""Generated pages to calibrate or to compare on, and their truth as tokens for a model."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from ocria.calibration.passages import Passage
from ocria.models.base import ImagePatches
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.recipes.pages.kinds import KINDS
from ocria.models.recipes.pages.sampler import Sample, make_samples, open_studio
from ocria.models.registry import LoadedModel
from ocria.vision import PreprocessorConfig, page_patches

# Height and width in pixels. Pages are small: many kinds say more than many image tokens.
_SIZES = {
    "slide": (576, 768), "table": (512, 640), "receipt": (768, 384), "region": (512, 640),
    "line": (128, 512), "formula": (320, 640), "strings": (512, 640),
}  # fmt: skip
_SIZE = (896, 640)
_TRIES = 40
_MAX_TOKENS = 500


def draw_samples(
    corpus: Path, fonts: Path, rounds: int, *, held_out: bool = False
) -> Iterator[Sample]:
    """One page of each kind in every round, those without text left out.

    `held_out` takes texts that neither training nor calibration has seen.
    """
    studio = open_studio(corpus, fonts, held_out=held_out)
    purpose = "comparison" if held_out else "calibration"
    for number in range(rounds):
        for kind in KINDS:
            rng = random.Random(f"{purpose}/{number}/{kind}")
            height, width = _SIZES.get(kind, _SIZE)
            for _ in range(_TRIES):
                try:
                    made = make_samples(studio, kind, rng, width_px=width, height_px=height)
                except (ValueError, IndexError, KeyError):
                    continue
                if made and made[0].markup:
                    yield made[0]
                    break


def passage_of(sample: Sample, model: LoadedModel) -> Passage:
    """A page and the tokens of its truth, the first 500 of them."""
    target = model.target
    assert isinstance(target, Qwen35), "the registry builds qwen3_5 models"
    preprocessor = PreprocessorConfig.from_folder(model.folder)
    merge = preprocessor.merge_size
    cut = page_patches(np.repeat(sample.pixels[..., None], 3, axis=2), preprocessor)
    image = ImagePatches(torch.from_numpy(cut.values), cut.grid_h, cut.grid_w)
    tokenizer = Tokenizer.from_file(str(model.folder / "tokenizer.json"))
    token_ids = tokenizer.encode(sample.markup, add_special_tokens=False).ids
    return Passage(
        model.tokens.prompt.fill(cut.grid_h // merge, cut.grid_w // merge),
        target.encode_image(image),
        tuple(token_ids[:_MAX_TOKENS]),
    )
