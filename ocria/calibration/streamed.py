"""A parent of which one layer at a time is in memory, read from mapped shards.

Shape legend: T ids, V vocabulary, D hidden size, N image tokens.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from ocria.calibration.embedding import TILE_ROWS
from ocria.calibration.sites import DECODER, EMBEDDING, HEAD, Site, decoder_sites
from ocria.errors import WeightsError
from ocria.models.base import ImagePatches
from ocria.models.device import dtype_of
from ocria.models.layers.norm import ZeroCentredRMSNorm
from ocria.models.qwen3_5.attention import GatedAttention
from ocria.models.qwen3_5.config import Qwen35Config, read_config
from ocria.models.qwen3_5.decoder import DecoderLayer, FeedForward
from ocria.models.qwen3_5.delta import DeltaMixer
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.names import FLOAT32_NAMES, canonical_name
from ocria.models.qwen3_5.vision import VisionTower
from ocria.quantization.layouts import read_quantization
from ocria.weights import CheckpointReader, assign

VISION = "model.visual."
_PREPARED = (DeltaMixer, GatedAttention, FeedForward, ZeroCentredRMSNorm)


class StoredParent:
    """A bf16 checkpoint on disk, by canonical names.

    Raises:
        WeightsError: no qwen3_5 checkpoint, quantised already, a product is missing, or weights
            are NaN or infinite.
    """

    def __init__(self, folder: Path) -> None:
        config = read_config(folder)
        self.config = Qwen35Config.from_mapping(config)
        if read_quantization(folder, config).groups:
            raise WeightsError(
                f"the checkpoint is quantised already: {folder}",
                hint="quantise the bf16 checkpoint that it was made from",
            )
        self.reader = CheckpointReader(folder)
        self._stored = {canonical_name(info.name): info.name for info in self.reader}
        self.sites: tuple[Site, ...] = decoder_sites(self.config.text)
        self._refuse_damage()

    @property
    def head(self) -> str:
        """Module whose weight the head multiplies with."""
        return EMBEDDING if self.config.tie_word_embeddings else HEAD

    def names(self, prefix: str = "") -> list[str]:
        """Canonical names of the tensors that begin with `prefix`, sorted."""
        return sorted(name for name in self._stored if name.startswith(prefix))

    def tensor(self, name: str) -> Tensor:
        """A tensor by its canonical name, as it is stored."""
        return self.reader.read(self._stored[name])

    def read(self, module: str) -> Tensor:
        """Weight [N, K] of a stored module, as it is stored."""
        return self.tensor(f"{module}.weight")

    def shape(self, module: str) -> tuple[int, ...]:
        """Shape of a stored module's weight, from the header."""
        return self.reader.info(self._stored[f"{module}.weight"]).shape

    def tiles(self, module: str) -> Iterator[Tensor]:
        """A weight's rows in order, some at a time; what was read before leaves memory."""
        stored = self._stored[f"{module}.weight"]
        for start in range(0, self.shape(module)[0], TILE_ROWS):
            yield self.reader.read_rows(stored, start, start + TILE_ROWS)
            self.reader.release()

    def num_bytes_of(self, name: str) -> int:
        """Bytes of a tensor, from the header."""
        return self.reader.info(self._stored[name]).num_bytes

    def num_bytes(self) -> int:
        """Bytes of everything but the vision tower."""
        outside = (i for i in self.reader if not canonical_name(i.name).startswith(VISION))
        return sum(info.num_bytes for info in outside)

    def _refuse_damage(self) -> None:
        modules = [member for site in self.sites for member in site.members]
        for module in (*modules, EMBEDDING):
            if f"{module}.weight" not in self._stored:
                raise WeightsError(f"the checkpoint lacks {module}.weight")
            if not all(torch.isfinite(tile).all() for tile in self.tiles(module)):
                raise WeightsError(
                    f"`{module}.weight` holds NaN or infinity",
                    hint="the checkpoint is damaged: training diverged, or a copy went wrong",
                )


class StreamedModel:
    """Runs a stored parent layer by layer.

    Attributes:
        target: a model whose layers have weights only while `layer` lends them; its embedding
            looks rows up in the file, its head and vision tower are not there.
    """

    def __init__(self, parent: StoredParent, device: torch.device) -> None:
        self._parent, self._device, self._dtype = parent, device, dtype_of(device)
        config = parent.config
        without_layers = replace(config, text=replace(config.text, layer_types=()))
        with torch.device("meta"):
            self.target = Qwen35(without_layers)
            self.target.layout = Qwen35(config).layout
        self.target.config, self.target.device, self.target.dtype = config, device, self._dtype
        decoder = self.target.model.language_model
        decoder.layers.extend(nn.Identity() for _ in config.text.layer_types)
        self.look_up(lambda ids: parent.read(EMBEDDING)[ids])
        self._assign(decoder.norm, f"{DECODER}.norm.")
        decoder.prepare()

    def look_up(self, rows_of: Callable[[Tensor], Tensor]) -> None:
        """Takes embedding rows [T, D] of ids [T] from `rows_of`."""
        table = _Rows(rows_of, self._device, self._dtype)
        self.target.model.language_model.embed_tokens = table

    @contextmanager
    def layer(self, index: int) -> Iterator[None]:
        """Lends a layer its weights."""
        layers = self.target.model.language_model.layers
        with torch.device("meta"):
            layer = DecoderLayer(self._parent.config.text, index)
        self._assign(layer, f"{DECODER}.layers.{index}.")
        with torch.inference_mode():
            for module in list(layer.modules()):
                if isinstance(module, _PREPARED):
                    module.prepare()
        layers[index] = layer
        try:
            yield
        finally:
            layers[index] = nn.Identity()
            self._parent.reader.release()

    def encode(self, images: Iterable[ImagePatches]) -> list[Tensor]:
        """Image tokens [N, D] of pages; the vision tower is in memory meanwhile."""
        with torch.device("meta"):
            tower = VisionTower(self._parent.config.vision)
        self._assign(tower, VISION)
        found = []
        with torch.inference_mode():
            tower.prepare()
            for image in images:
                values_PC = image.values_PC.to(device=self._device, dtype=self._dtype)
                found.append(tower(values_PC, image.grid_h, image.grid_w))
        self._parent.reader.release()
        return found

    def _assign(self, module: nn.Module, prefix: str) -> None:
        source = _Below(self._parent, prefix)
        assign(module, source, dtype=self._dtype, float32_names=FLOAT32_NAMES)
        module.to(self._device)


class _Rows(nn.Module):
    """An embedding whose rows come from elsewhere; `weight` only says where they go."""

    def __init__(
        self, rows_of: Callable[[Tensor], Tensor], device: torch.device, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self._rows_of = rows_of
        self.weight = torch.empty(0, device=device, dtype=dtype)

    def forward(self, ids_T: Tensor) -> Tensor:
        """[T] -> [T, D]."""
        return self._rows_of(ids_T.cpu()).to(self.weight)


class _Below:
    """Tensors whose names begin with a prefix, without it (`ocria.weights.TensorSource`)."""

    def __init__(self, parent: StoredParent, prefix: str) -> None:
        self._parent, self._prefix = parent, prefix

    def names(self) -> list[str]:
        return [name.removeprefix(self._prefix) for name in self._parent.names(self._prefix)]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._parent.tensor(self._prefix + name).shape)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        return self._parent.tensor(self._prefix + name).to(dtype)
