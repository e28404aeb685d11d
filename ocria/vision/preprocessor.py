"""What a checkpoint's preprocessor file asks for.

Source: the `preprocessor_config.json` of Qwen2-VL and Qwen3.5 checkpoints, which newer ones nest
in `processor_config.json` under `image_processor`. There `size.shortest_edge` and
`size.longest_edge` are areas in pixels, in spite of their names.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocria.errors import WeightsError
from ocria.vision.resize import SizeRule

_HINT = "the checkpoint folder is incomplete or of another architecture: fetch it again"
_DEFAULT_AREA = {"shortest_edge": 65_536, "longest_edge": 16_777_216}
_BICUBIC = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class PreprocessorConfig:
    """How pixels become the numbers of one checkpoint.

    Attributes:
        patch_size: side of a patch in pixels.
        merge_size: patches a side that the encoder merges into one token.
        min_pixels: smallest area of a page, as the model reads it.
        max_pixels: largest.
        image_mean: per channel, after scaling by `rescale_factor`.
        image_std: per channel.
        rescale_factor: bytes to [0, 1].
        do_grayscale: the model reads luma repeated as RGB; our own key.
    """

    patch_size: int = 16
    merge_size: int = 2
    min_pixels: int = _DEFAULT_AREA["shortest_edge"]
    max_pixels: int = _DEFAULT_AREA["longest_edge"]
    image_mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    image_std: tuple[float, float, float] = (0.5, 0.5, 0.5)
    rescale_factor: float = 1 / 255
    do_grayscale: bool = False

    @property
    def size_rule(self) -> SizeRule:
        """Maps a picture's size to the model's."""
        return SizeRule(
            factor=self.patch_size * self.merge_size,
            min_pixels=self.min_pixels,
            max_pixels=self.max_pixels,
        )

    @classmethod
    def from_folder(cls, folder: Path) -> "PreprocessorConfig":
        """Reads a checkpoint's preprocessor file.

        Raises:
            WeightsError: no such file, not JSON, or a value that cannot be honoured.
        """
        path, fields = _image_processor(folder)
        try:
            config = _from_fields(fields)
        except (KeyError, TypeError, ValueError) as error:
            raise WeightsError(f"{path}: unusable value: {error}", hint=_HINT) from error
        if config.patch_size < 1 or config.merge_size < 1:
            raise WeightsError(f"{path}: sizes must be positive", hint=_HINT)
        if not 0 < config.min_pixels <= config.max_pixels:
            raise WeightsError(
                f"{path}: no picture has an area between {config.min_pixels} and "
                f"{config.max_pixels} pixels",
                hint=_HINT,
            )
        return config


def _image_processor(folder: Path) -> tuple[Path, dict[str, Any]]:
    for name in ("preprocessor_config.json", "processor_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            fields = content.get("image_processor", content)
        except (ValueError, AttributeError) as error:
            raise WeightsError(f"{path} is not a JSON object: {error}", hint=_HINT) from error
        if isinstance(fields, dict) and ("size" in fields or "patch_size" in fields):
            return path, fields
    raise WeightsError(f"{folder} has no preprocessor_config.json", hint=_HINT)


def _from_fields(fields: dict[str, Any]) -> PreprocessorConfig:
    for step in ("do_resize", "do_rescale", "do_normalize"):
        if not fields.get(step, True):
            raise ValueError(f"{step} is off, which is not supported")
    if fields.get("resample", _BICUBIC) != _BICUBIC:
        raise ValueError("resample must be 3 (bicubic)")
    size = {**_DEFAULT_AREA, **fields.get("size", {})}
    return PreprocessorConfig(
        patch_size=int(fields.get("patch_size", 16)),
        merge_size=int(fields.get("merge_size", 2)),
        min_pixels=int(fields.get("min_pixels", size["shortest_edge"])),
        max_pixels=int(fields.get("max_pixels", size["longest_edge"])),
        image_mean=_three(fields.get("image_mean", (0.5, 0.5, 0.5))),
        image_std=_three(fields.get("image_std", (0.5, 0.5, 0.5))),
        rescale_factor=float(fields.get("rescale_factor", 1 / 255)),
        do_grayscale=bool(fields.get("do_grayscale", False)),
    )


def _three(values: Any) -> tuple[float, float, float]:
    red, green, blue = (float(value) for value in values)
    return red, green, blue
