"""What quantising cost: agreement, KL and NLL of children beside their bf16 parent.

    python -m ocria.models.recipes.checkpoint.compare PARENT [CHILD...] --corpus DIR --fonts DIR
        [--rounds 1] [--out rows.csv]

The truth of generated pages, of texts held out of training and calibration, is forced through all
of them. Two children are made in memory: the decoder's products in NVFP4 and the embedding in FP8,
both to nearest, and the same with the embedding in NVFP4 too.

Shape legend: T places where a token is chosen, V vocabulary.
"""

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
from torch import Tensor

from ocria.calibration.passages import Forcing, Passage
from ocria.calibration.rounding import dequantize, num_bytes, round_plainly
from ocria.calibration.run import Parent
from ocria.calibration.sequential import set_embedding, set_weight
from ocria.calibration.sites import EMBEDDING
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.names import canonical_name
from ocria.models.recipes.checkpoint.samples import draw_samples, passage_of
from ocria.models.registry import LoadedModel, load
from ocria.quantization.schemes import SchemeName
from ocria.weights import CheckpointReader

CPU = torch.device("cpu")
VISION = "model.visual."


@dataclass(frozen=True, kw_only=True)
class Row:
    """One checkpoint. Agreement: share of places where the parent's most probable token is its own.

    `mbytes` are those of all but the vision tower; `kl` and the NLL of the truth are nats a place.
    """

    name: str
    mbytes: float
    num_places: int
    kl: float
    agreement: float
    agreement_text: float
    agreement_corners: float
    nll: float
    nll_text: float


class Tally:
    """Sums over places, for one checkpoint."""

    def __init__(self, corner_ids: Sequence[int]) -> None:
        self._corners = torch.tensor(corner_ids, dtype=torch.long)
        self._kl: list[Tensor] = []
        self._same: list[Tensor] = []
        self._nll: list[Tensor] = []
        self._is_corner: list[Tensor] = []

    def add(self, parent_TV: Tensor, child_TV: Tensor, truth_T: Tensor) -> None:
        """Counts one page in: log probabilities, and the tokens of the truth."""
        terms_TV = parent_TV.exp() * (parent_TV - child_TV)
        self._kl.append(torch.where(parent_TV.isinf(), 0.0, terms_TV).sum(-1))
        chosen_T = parent_TV.argmax(-1)
        self._same.append((chosen_T == child_TV.argmax(-1)).float())
        self._nll.append(-child_TV.gather(-1, truth_T[:, None])[:, 0])
        self._is_corner.append(torch.isin(truth_T, self._corners))

    def row(self, name: str, num_stored_bytes: int) -> Row:
        """Means over all places."""
        kl, same, nll = torch.cat(self._kl), torch.cat(self._same), torch.cat(self._nll)
        corner = torch.cat(self._is_corner)

        def mean(values: Tensor) -> float:
            return round(float(values.double().mean()), 5)

        return Row(
            name=name,
            mbytes=round(num_stored_bytes / 1e6, 2),
            num_places=kl.numel(),
            kl=mean(kl),
            agreement=mean(same),
            agreement_text=mean(same[~corner]),
            agreement_corners=mean(same[corner]),
            nll=mean(nll),
            nll_text=mean(nll[~corner]),
        )


def logprobs(model: LoadedModel, passage: Passage) -> Tensor:
    """Log probabilities [T, V] of all places of a passage but the last, whose truth is unknown."""
    target = model.target
    assert isinstance(target, Qwen35), "the registry builds qwen3_5 models"
    logits_TV = Forcing(target, passage.num_rows).logits(passage)[:-1].float()
    forbidden = torch.tensor(sorted(model.tokens.suppressed_ids), dtype=torch.long)
    return logits_TV.index_fill(-1, forbidden, -torch.inf).log_softmax(-1)


def rounded(parent: Parent, *, embedding: SchemeName) -> int:
    """Rounds a parent's model to nearest in place; bytes that its weights would take."""
    saved = 0
    for site in parent.sites:
        weight_NK = torch.cat([parent.read(member) for member in site.members])
        packed = round_plainly(weight_NK, "nvfp4")
        set_weight(parent.target.get_submodule(site.name), dequantize(packed, parent.target.dtype))
        saved += weight_NK.nbytes - num_bytes(packed)
    weight_VD = parent.read(EMBEDDING)
    packed = round_plainly(weight_VD, embedding)
    set_embedding(parent.target, dequantize(packed, parent.target.dtype))
    return parent.num_bytes() - saved - weight_VD.nbytes + num_bytes(packed)


def stored_bytes(folder: Path) -> int:
    """Bytes of all tensors but the vision tower's."""
    infos = CheckpointReader(folder)
    return sum(i.num_bytes for i in infos if not canonical_name(i.name).startswith(VISION))


def subjects(parent: Path, children: Sequence[Path]) -> Iterator[tuple[str, LoadedModel, int]]:
    """Name, model and bytes of each child, one in memory at a time."""
    yield "bf16", load(parent, device=CPU), stored_bytes(parent)
    embeddings: tuple[tuple[str, SchemeName], ...] = (("RTN mixed", "fp8"), ("RTN NVFP4", "nvfp4"))
    for name, scheme in embeddings:
        copy = Parent(parent, CPU)
        size = rounded(copy, embedding=scheme)
        yield name, copy.model, size
    for folder in children:
        yield folder.name, load(folder, device=CPU), stored_bytes(folder)


def compare(parent: Path, children: Sequence[Path], passages: Sequence[Passage]) -> Iterator[Row]:
    """Rows of the parent, of what rounding to nearest makes of it, and of its children."""
    model = load(parent, device=CPU)
    special = model.tokenizer.special_ids
    corners = [special[f"<|{n}|>"] for n in range(512) if f"<|{n}|>" in special]
    expected = [logprobs(model, passage) for passage in passages]
    for name, child, size in subjects(parent, children):
        tally = Tally(corners)
        for passage, parent_TV in zip(passages, expected, strict=True):
            tally.add(parent_TV, logprobs(child, passage), torch.tensor(passage.token_ids))
        yield tally.row(name, size)


def main() -> None:
    """Command line of this recipe."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parent", type=Path)
    parser.add_argument("children", type=Path, nargs="*")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--fonts", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=1, help="pages of each kind")
    parser.add_argument("--out", type=Path, help="CSV to write")
    given = parser.parse_args()
    model = load(given.parent, device=CPU)
    samples = draw_samples(given.corpus, given.fonts, given.rounds, held_out=True)
    passages = [passage_of(sample, model) for sample in samples]
    file = given.out.open("w", newline="", encoding="utf-8") if given.out else sys.stdout
    with file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row in compare(given.parent, given.children, passages):
            writer.writerow(asdict(row))
            file.flush()
            print(row, file=sys.stderr)


if __name__ == "__main__":
    main()
