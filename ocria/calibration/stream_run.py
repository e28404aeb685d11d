"""Quantises a checkpoint that is not held in memory: layer by layer, resumable, or to nearest.

A pass of the parent tries every product and collects what the head reads; a second one rounds layer
after layer while parent and child run side by side. Memory holds a layer, its statistics, and the
rows of all pages between two layers. Without calibration weights are only read, rounded, written.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from ocria.calibration.allocation import Loss, write_table
from ocria.calibration.divergence import Divergence, divergence_by_tiles
from ocria.calibration.embedding import round_embedding
from ocria.calibration.folder import (
    PLOT_FILE,
    TABLE_FILE,
    Identity,
    replace_folder,
    write_identity,
    write_settings,
)
from ocria.calibration.options import QuantizeOptions, QuantizeResult
from ocria.calibration.passages import Passage
from ocria.calibration.plan import plan_formats, public_recipe
from ocria.calibration.progress import Counter, Progress
from ocria.calibration.rounding import Format, round_plainly, split_rows
from ocria.calibration.sensitivity_plot import write_plot
from ocria.calibration.sequential import LayerRounding, Rows
from ocria.calibration.sites import DECODER, EMBEDDING, HEAD, Site
from ocria.calibration.streamed import VISION, StoredParent, StreamedModel
from ocria.calibration.streamed_pages import StreamedPages, streamed_pages
from ocria.calibration.survey import Survey, survey
from ocria.calibration.work_folder import NOTES, WorkFolder, fingerprint, work_folder
from ocria.models.device import resolve_device
from ocria.quantization.layouts import PackedTensor, packed_from, stored_tensors
from ocria.quantization.linear import dequantize_rows
from ocria.weights import CheckpointReader

# Tensors of the vision tower written together.
_FILE_BYTES = 128 << 20
_HEAD_MOMENTS = f"{NOTES}/head-moments"


def quantize_streamed(
    options: QuantizeOptions, identity: Identity, progress: Progress
) -> QuantizeResult:
    """Makes the folder `options.target`; see `ocria.calibration.quantize`."""
    parent = StoredParent(options.source)
    settings = {"source": fingerprint(parent.reader), **asdict(options), "overwrite": None}
    with work_folder(options.target, settings, overwrite=options.overwrite) as path:
        run = _Run(parent, WorkFolder(path), options, progress)
        divergence = None
        if options.calibration:
            divergence = run.calibrated()
        else:
            run.plain()
        run.copy_the_rest()
        return run.finish(identity, divergence)


@dataclass(frozen=True, slots=True)
class _Run:
    """One quantisation; each step leaves its parts in the work folder and skips finished ones."""

    parent: StoredParent
    work: WorkFolder
    options: QuantizeOptions
    progress: Progress

    def plain(self) -> None:
        """Rounds every product to nearest."""
        plan = public_recipe(self.parent.sites, self.parent, self.options.budget_bytes)
        self._note_plan(plan, ())
        for index in range(self._num_layers):
            if not self.work.has(self._layer_part(index)):
                self._save_layer(index, self._round_plainly(index, plan))
            self.progress("rounding layers", index + 1, self._num_layers)
        self._round_ends(None)

    def calibrated(self) -> Divergence:
        """Surveys, plans and rounds on pages."""
        model = StreamedModel(self.parent, resolve_device(self.options.device))
        pages = streamed_pages(self.parent, model, self.options)
        found = self._survey(model, pages.passages[: pages.num_learnt])
        plan = plan_formats(self.parent, found.losses, self.options)
        self._note_plan(plan, found.losses)
        self._round_ends(found.hessian_DD)
        hidden = self._round_layers(model, pages, plan)
        dtype = model.target.dtype
        return divergence_by_tiles(hidden, lambda: self._heads(dtype), pages.forbidden_ids)

    def copy_the_rest(self) -> None:
        """What stays as it is, vision tower and all, into parts of its own."""
        taken = (f"{DECODER}.layers.", f"{EMBEDDING}.", f"{HEAD}.")
        names = [name for name in self.parent.names() if not name.startswith(taken)]
        vision = [name for name in names if name.startswith(VISION)]
        self._copy(self._layer_part(self._num_layers), sorted({*names} - {*vision}))
        groups = _groups(self.parent, vision)
        for i, group in enumerate(groups, start=1):
            self._copy(f"vision-{i:05d}-of-{len(groups):05d}", group)

    def finish(self, identity: Identity, divergence: Divergence | None) -> QuantizeResult:
        """Index, settings and manifest; then the folder gets its name."""
        note = self.work.noted("plan")
        plan, losses = note["plan"], tuple(Loss(**loss) for loss in note["losses"])
        formats = {
            member: plan[site.name]
            for site in self.parent.sites
            for member in site.members
            if plan[site.name] != "bf16"
        } | {module: plan[module] for module in self._ends}
        folder, options = self.work.path, self.options
        write_settings(folder, options.source, self.work.placed(), formats, options.layout)
        manifest = write_identity(folder, formats, identity)
        if losses:
            write_table(folder / TABLE_FILE, losses, plan)
            write_plot(folder / PLOT_FILE, losses, plan)
        written = CheckpointReader(folder)
        target_bytes = sum(i.num_bytes for i in written if not i.name.startswith(VISION))
        replace_folder(folder, options.target)
        shutil.rmtree(options.target / NOTES)
        return QuantizeResult(
            manifest=manifest,
            losses=losses,
            plan=plan,
            divergence=divergence,
            source_bytes=self.parent.num_bytes(),
            target_bytes=target_bytes,
        )

    @property
    def _num_layers(self) -> int:
        return len(self.parent.config.text.layer_types)

    @property
    def _ends(self) -> tuple[str, ...]:
        """Embedding, and the head if it has a weight of its own."""
        return (EMBEDDING,) if self.parent.head == EMBEDDING else (EMBEDDING, HEAD)

    def _layer_part(self, index: int) -> str:
        # Behind the layers' parts comes one for what belongs to none.
        return f"decoder-{index + 1:05d}-of-{self._num_layers + 1:05d}"

    def _end_part(self, module: str) -> str:
        return f"embedding-{self._ends.index(module) + 1:05d}-of-{len(self._ends):05d}"

    def _survey(self, model: StreamedModel, passages: Sequence[Passage]) -> Survey:
        if self.work.noted("losses") is not None and self.work.has(_HEAD_MOMENTS):
            losses = tuple(Loss(**loss) for loss in self.work.noted("losses"))
            return Survey(losses, self.work.load(_HEAD_MOMENTS)["hessian"])
        done = Counter("trying products", len(self.parent.sites), self.progress)
        found = survey(self.parent, model, passages, done.count)
        self.work.save(_HEAD_MOMENTS, {"hessian": found.hessian_DD})
        self.work.note("losses", [asdict(loss) for loss in found.losses])
        return found

    def _note_plan(self, plan: Mapping[str, Format], losses: Sequence[Loss]) -> None:
        self.work.note("plan", {"plan": plan, "losses": [asdict(loss) for loss in losses]})

    def _round_ends(self, hessian_DD: Tensor | None) -> None:
        for module in self._ends:
            if not self.work.has(self._end_part(module)):
                moments = hessian_DD if module == self.parent.head else None
                num_rows, size = self.parent.shape(module)
                tiles = self._counted_tiles(module)
                packed = round_embedding(tiles, (num_rows, size), moments)
                self._save(self._end_part(module), {module: packed}, [])

    def _counted_tiles(self, module: str) -> Iterator[Tensor]:
        num_rows, done = self.parent.shape(module)[0], 0
        for tile in self.parent.tiles(module):
            yield tile
            done += tile.shape[0]
            self.progress(f"rounding rows of {module.rpartition('.')[2]}", done, num_rows)

    def _packed_end(self, module: str) -> PackedTensor:
        tensors = self.work.load(self._end_part(module))
        return packed_from(tensors, module, "fp8", self.options.layout)

    def _round_plainly(self, index: int, plan: Mapping[str, Format]) -> dict[str, PackedTensor]:
        packed: dict[str, PackedTensor] = {}
        for site in self._sites(index):
            format = plan[site.name]
            if format != "bf16":
                weights = [self.parent.read(member) for member in site.members]
                rounded = round_plainly(torch.cat(weights), format)
                parts = split_rows(rounded, [weight.shape[0] for weight in weights])
                packed |= zip(site.members, parts, strict=True)
        return packed

    def _round_layers(
        self,
        model: StreamedModel,
        pages: StreamedPages,
        plan: Mapping[str, Format],
    ) -> tuple[Tensor, Tensor]:
        """Normed rows [T, D] of the held-out places, of parent and child."""
        done = Counter("rounding products", len(self.parent.sites), self.progress)
        rounding = LayerRounding(
            model.target, self.parent.read, pages.passages, pages.num_learnt, plan, done.count
        )
        before = rounding.runner.embed()
        embedding = self._packed_end(EMBEDDING)
        model.look_up(lambda ids: dequantize_rows(embedding, ids, model.target.dtype))
        rows = Rows(before, rounding.runner.embed())
        for index in range(self._num_layers):
            with model.layer(index):
                if self.work.has(self._layer_part(index)):
                    rows = rounding.follow(index, rows, self._load_layer(index, plan))
                else:
                    rows, packed = rounding.round(index, rows)
                    self._save_layer(index, packed)
        norm, held_out = model.target.model.language_model.norm, pages.passages[pages.num_learnt :]
        parent_TD, child_TD = (
            torch.cat(
                [
                    norm(x_TD[len(passage.prompt.token_ids) - 1 :])
                    for x_TD, passage in zip(found[pages.num_learnt :], held_out, strict=True)
                ]
            )
            for found in rows
        )
        return parent_TD.cpu(), child_TD.cpu()

    def _heads(self, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows of the parent's and the child's head, some at a time."""
        packed, start = self._packed_end(self.parent.head), 0
        for tile_ND in self.parent.tiles(self.parent.head):
            rows = slice(start, start + tile_ND.shape[0])
            yield tile_ND, dequantize_rows(packed, rows, dtype)
            start += tile_ND.shape[0]

    def _sites(self, index: int) -> list[Site]:
        prefix = f"{DECODER}.layers.{index}."
        return [site for site in self.parent.sites if site.name.startswith(prefix)]

    def _save_layer(self, index: int, packed: Mapping[str, PackedTensor]) -> None:
        prefix = f"{DECODER}.layers.{index}."
        kept = [
            name for name in self.parent.names(prefix) if name.removesuffix(".weight") not in packed
        ]
        self._save(self._layer_part(index), packed, kept)

    def _load_layer(self, index: int, plan: Mapping[str, Format]) -> dict[str, PackedTensor]:
        tensors = self.work.load(self._layer_part(index))
        found = {}
        for site in self._sites(index):
            format = plan[site.name]
            if format != "bf16":
                for member in site.members:
                    found[member] = packed_from(tensors, member, format, self.options.layout)
        return found

    def _copy(self, part: str, names: Sequence[str]) -> None:
        if names and not self.work.has(part):
            self._save(part, {}, names)

    def _save(self, part: str, packed: Mapping[str, PackedTensor], kept: Sequence[str]) -> None:
        tensors = {name: self.parent.tensor(name) for name in kept}
        for module, weight in packed.items():
            tensors |= stored_tensors(module, weight, self.options.layout)
        # Fused projections share one global scale, and files share no memory.
        unshared = {
            name: t.clone() if t.numel() == 1 else t.contiguous() for name, t in tensors.items()
        }
        self.work.save(part, unshared)
        self.parent.reader.release()


def _groups(parent: StoredParent, names: Sequence[str]) -> list[list[str]]:
    """Names in order, as many together as a file may hold."""
    groups: list[list[str]] = []
    size = _FILE_BYTES
    for name in names:
        num_bytes = parent.num_bytes_of(name)
        if size + num_bytes > _FILE_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += num_bytes
    return groups
