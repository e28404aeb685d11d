"""Special ids of a checkpoint, held against each other: what stops, what may not be written.

The tokenizer has the first word, then generation_config.json, then config.json. Exports carry
stale ids in the latter two, so an id without a token is ignored and a contradiction is an error.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocria.errors import WeightsError
from ocria.models.base import Prompt
from ocria.models.chat_template import read_chat_template, render_turn
from ocria.models.presets import NATIVE, Preset
from ocria.models.qwen3_5.config import Qwen35Config, id_tuple
from ocria.tokenizer import Tokenizer

IMAGE_TOKEN = "<|image_pad|>"
MASK_TOKEN = "<|mask|>"
TURN_START, TURN_END, END_OF_TEXT = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
THINK_START, THINK_END = "<think>", "</think>"
INSTRUCTION_FILE = "instruction.txt"
"""Text of the user's turn that a checkpoint folder brings along; it replaces the preset's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptTemplate:
    """Ids around a page's image tokens."""

    prefix_ids: tuple[int, ...]
    image_id: int
    suffix_ids: tuple[int, ...]

    def fill(self, grid_h: int, grid_w: int) -> Prompt:
        """The prompt of a page of `grid_h` x `grid_w` image tokens (merged grid)."""
        image = (self.image_id,) * (grid_h * grid_w)
        return Prompt(
            (*self.prefix_ids, *image, *self.suffix_ids), len(self.prefix_ids), grid_h, grid_w
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialTokens:
    """What the engine is told about ids.

    Attributes:
        stop_ids: ids that end a page.
        suppressed_ids: ids that are never chosen: rows without a token, and placeholders.
        prompt: template of a page's prompt.
    """

    stop_ids: frozenset[int]
    suppressed_ids: frozenset[int]
    prompt: PromptTemplate


def special_tokens(
    folder: Path, config: Qwen35Config, tokenizer: Tokenizer, preset: Preset = NATIVE
) -> SpecialTokens:
    """Resolves the special ids of a checkpoint.

    Raises:
        WeightsError: no stop id, or the files contradict each other or the vocabulary.
    """
    known = tokenizer.known_ids()
    if max(known) >= config.text.vocab_size:
        raise WeightsError(
            f"the tokenizer has ids up to {max(known)}, the model only "
            f"{config.text.vocab_size} rows",
            hint="tokenizer.json and the weights must come from the same checkpoint",
        )
    stops = _stop_ids(folder, config, tokenizer)
    image = _image_id(config, tokenizer)
    # A page is transcribed, not thought about: the prompt closes the block before it opens.
    placeholders = {image, config.video_token_id, tokenizer.id_of(MASK_TOKEN)}
    placeholders |= {tokenizer.id_of(THINK_START)}
    markers = {config.vision_start_token_id, config.vision_end_token_id}
    unused = set(range(config.text.vocab_size)) - known
    suppressed = {i for i in unused | placeholders | markers if i is not None}
    return SpecialTokens(
        stop_ids=stops,
        suppressed_ids=frozenset(suppressed - stops),
        prompt=_template(folder, config, tokenizer, image, preset),
    )


def _stop_ids(folder: Path, config: Qwen35Config, tokenizer: Tokenizer) -> frozenset[int]:
    known = tokenizer.known_ids()
    named = _read(folder / "tokenizer_config.json").get("eos_token")
    text = named.get("content") if isinstance(named, dict) else named
    if text is not None and not isinstance(text, str):
        raise WeightsError(f"tokenizer_config.json: `eos_token` must be text, not {text!r}")
    own = tokenizer.id_of(text) if text else None
    first = frozenset(() if own is None else (own,))
    generation = id_tuple(_read(folder / "generation_config.json").get("eos_token_id"))
    second = frozenset(generation) & known
    third = frozenset(config.eos_token_ids) & known
    # Neither can be part of a page, whichever of them a stale file forgot.
    ends = frozenset(i for i in map(tokenizer.id_of, (TURN_END, END_OF_TEXT)) if i is not None)
    stops = first | second | ends or third
    if not stops:
        raise WeightsError(
            f"no stop token is named in {folder}",
            hint="set `eos_token` in tokenizer_config.json or `eos_token_id` in "
            "generation_config.json",
        )
    # A generation config lists all stops, a config one of them.
    if (second and not first <= second) or (third and stops.isdisjoint(third)):
        raise WeightsError(
            f"the files disagree on the stop token: the tokenizer says {sorted(first)}, "
            f"generation_config.json {sorted(second)}, config.json {sorted(third)}"
        )
    return stops


def _image_id(config: Qwen35Config, tokenizer: Tokenizer) -> int:
    found = tokenizer.id_of(IMAGE_TOKEN)
    if found is not None and found != config.image_token_id:
        raise WeightsError(
            f"the files disagree on the image token: the tokenizer says {found}, "
            f"config.json {config.image_token_id}"
        )
    return config.image_token_id


def _template(
    folder: Path, config: Qwen35Config, tokenizer: Tokenizer, image: int, preset: Preset
) -> PromptTemplate:
    """The checkpoint's own chat template, else chat turns where the tokenizer knows them,
    otherwise the bare image between its markers."""
    start, end = config.vision_start_token_id, config.vision_end_token_id
    if tokenizer.id_of(TURN_START) is None:
        return PromptTemplate(prefix_ids=(start,), image_id=image, suffix_ids=(end,))
    instruction = _instruction(folder, preset)
    template = read_chat_template(folder)
    if template is not None:
        text = render_turn(template, instruction, preset.template_arguments)
        return _split_at_image(tokenizer.encode(text), image, folder)
    no_thinking = f"{THINK_START}\n\n{THINK_END}\n\n" if tokenizer.id_of(THINK_START) else ""
    answer = f"{instruction}{TURN_END}\n{TURN_START}assistant\n{no_thinking}"
    return PromptTemplate(
        prefix_ids=(*tokenizer.encode(f"{TURN_START}user\n"), start),
        image_id=image,
        suffix_ids=(end, *tokenizer.encode(answer)),
    )


def _instruction(folder: Path, preset: Preset) -> str:
    path = folder / INSTRUCTION_FILE
    if not path.is_file():
        return preset.instruction
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise WeightsError(f"cannot read the instruction: {path}") from error


def _split_at_image(ids: list[int], image: int, folder: Path) -> PromptTemplate:
    if ids.count(image) != 1:
        raise WeightsError(
            f"the chat template of {folder} places the image token {image} {ids.count(image)} "
            "times in a turn with one image",
            hint="config.json and the template must come from the same checkpoint",
        )
    place = ids.index(image)
    return PromptTemplate(
        prefix_ids=tuple(ids[:place]), image_id=image, suffix_ids=tuple(ids[place + 1 :])
    )


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"not JSON: {path} ({error})") from error
    return content if isinstance(content, dict) else {}
