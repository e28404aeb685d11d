"""Pages for a parent that cannot read them itself: reading would take all of its weights at once.

The text of self-made pages is known and forced through the model. Of the user's own pages only the
picture is; they tell of prefill, and self-made pages of decoding.
"""

from typing import NamedTuple

from ocria.calibration.options import QuantizeOptions
from ocria.calibration.pages import draw_pages
from ocria.calibration.passages import Passage
from ocria.calibration.pictures import calibration_patches, patches_of
from ocria.calibration.streamed import StoredParent, StreamedModel
from ocria.models.presets import preset_of
from ocria.models.qwen3_5.config import read_config
from ocria.models.special_tokens import special_tokens
from ocria.tokenizer import Tokenizer
from ocria.vision import PreprocessorConfig

# Of the pages with text, one in this many is held out to measure on.
HELD_OUT = 4
# Self-made pages beside the user's own.
_BESIDE = 6


class StreamedPages(NamedTuple):
    """Passages, the ones to learn from first, and ids that are never written."""

    passages: list[Passage]
    num_learnt: int
    forbidden_ids: frozenset[int]


def streamed_pages(
    parent: StoredParent, model: StreamedModel, options: QuantizeOptions
) -> StreamedPages:
    """Encodes the pages of `options`.

    Raises:
        InputError: a calibration file is no document.
    """
    tokenizer = Tokenizer(options.source / "tokenizer.json")
    preset = preset_of(options.source, read_config(options.source), tokenizer.special_ids)
    tokens = special_tokens(options.source, parent.config, tokenizer, preset)
    preprocessor = PreprocessorConfig.from_folder(options.source)
    given = (
        calibration_patches(options.calibrate, preprocessor, num_self_made=0)
        if options.calibrate
        else []
    )
    drawn = draw_pages(_BESIDE if given else options.num_pages)
    images = [*given, *(patches_of(page.rgb, preprocessor) for page in drawn)]
    texts: list[tuple[int, ...]] = [() for _ in given]
    texts += [tuple(tokenizer.encode(page.markdown)[: options.max_tokens]) for page in drawn]
    merge = preprocessor.merge_size
    passages = [
        Passage(tokens.prompt.fill(image.grid_h // merge, image.grid_w // merge), image_ND, ids)
        for image, image_ND, ids in zip(images, model.encode(images), texts, strict=True)
    ]
    own, self_made = passages[: len(given)], passages[len(given) :]
    learnt = [passage for i, passage in enumerate(self_made) if i % HELD_OUT]
    held_out = self_made[::HELD_OUT]
    return StreamedPages([*own, *learnt, *held_out], len(own) + len(learnt), tokens.suppressed_ids)
