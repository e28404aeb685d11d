"""What each drafter gains by class of page: tokens and characters a pass, calls, CPU seconds.

    python benchmarks/speculative/record.py DATASET OUT.csv [--drafter-model DIR] [--max-tokens N]
    python benchmarks/speculative/record.py PAGE... OUT.csv

DATASET is a folder with an `index.jsonl`; of each class the first two items, taken from its sets
in turn, first page each. A page is decoded once for each drafter, one after the other, and every
drafter must write the same tokens. Drafters begin each page anew. Tables go to standard output.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain, zip_longest
from pathlib import Path

import torch

from ocria.bench.driver import emitted_by_steps
from ocria.bench.ladder import page_drafters
from ocria.bench.measured_target import ImageTokens, MeasuredTarget
from ocria.bench.page_set import BenchPage, read_page_set
from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.engine.speculative import DFlashDrafter
from ocria.models.finding import find_checkpoint
from ocria.models.registry import LoadedModel, load
from ocria.options import DrafterName
from ocria.pipeline.dflash import DFlashMaker, dflash_maker
from ocria.pipeline.page_reader import image_settings, longest_page

DRAFTERS: tuple[DrafterName, ...] = ("none", "ngram", "text-layer", "dflash", "auto")
CLASSES = {
    "born digital": ("bd_nda", "bd_gesetze", "bd_grobid"),
    "scan": ("tesseract_unlv", "scribeocr", "ocrd_gt"),
    "table": ("icdar2013_tables", "pubtabnet"),
    "receipt": ("sroie",),
}
PAGES_OF_CLASS = 2


@dataclass(frozen=True, kw_only=True)
class Row:
    """One page with one drafter.

    Attributes:
        kind: class of the page; `document` its file.
        tokens: emitted after the one that the prefill chooses.
        characters: of the whole page.
        passes: target passes after the prefill.
        dflash_calls: blocks that were drafted.
        cpu_ratio: CPU seconds of plain decoding over this drafter's, prefill and vision left out.
    """

    kind: str
    document: str
    drafter: str
    tokens: int
    characters: int
    passes: int
    dflash_calls: int
    cpu_ratio: float


@dataclass(frozen=True)
class Decoded:
    """A page's result and what it took."""

    result: Result
    calls: int
    cpu_s: float


class CountedMaker:
    """Makes DFlash drafters whose calls are counted."""

    def __init__(self, maker: DFlashMaker) -> None:
        self._maker = maker
        self.calls = 0

    def __call__(self) -> DFlashDrafter:
        drafter = self._maker()
        drafter.propose = self._counted(drafter.propose)  # type: ignore[method-assign]
        return drafter

    def _counted(
        self, propose: Callable[[Sequence[int], int], Sequence[int]]
    ) -> Callable[[Sequence[int], int], Sequence[int]]:
        def counted(emitted: Sequence[int], most: int) -> Sequence[int]:
            self.calls += 1
            return propose(emitted, most)

        return counted


class Decoder:
    """Decodes single pages with any drafter. An image passes through the vision tower once."""

    def __init__(self, model: LoadedModel, named: str | None, max_tokens: int) -> None:
        self._model, self._max_tokens = model, max_tokens
        self._images: ImageTokens = {}
        maker = dflash_maker(model, named)
        assert maker is not None, "the checkpoint has no drafter; name one"
        self._maker = CountedMaker(maker)
        tokens = model.tokens
        self._config = EngineConfig(
            stop_ids=tokens.stop_ids,
            forbidden_ids=tokens.suppressed_ids,
            max_positions=longest_page(tokens, image_settings(model), max_tokens),
        )

    def decode(self, page: BenchPage, drafter: DrafterName) -> Decoded:
        """Reads a page to its end, the token limit or a loop."""
        self._model.target.tap_layers = ()
        target = MeasuredTarget(self._model.target, self._images)
        engine = Engine(target, self._config)
        (made,) = page_drafters(self._model, drafter, self._maker)([page])
        before, cpu_s = self._maker.calls, 0.0
        request = Request(
            prompt=page.prompt, image=page.image, max_tokens=self._max_tokens, drafter=made
        )
        ticket = engine.submit(request)
        while True:
            prefills, started = target.num_prefills, time.process_time()
            finished = dict(engine.step())
            if target.num_prefills == prefills:
                cpu_s += time.process_time() - started
            if ticket in finished:
                break
        result = finished[ticket]
        assert isinstance(result, Result), f"{page.name} could not be decoded"
        return Decoded(result, self._maker.calls - before, cpu_s)


def rows_of(decoder: Decoder, model: LoadedModel, kind: str, page: BenchPage) -> Iterator[Row]:
    """A page with every drafter.

    Raises:
        AssertionError: a drafter wrote something else.
    """
    plain = None
    for drafter in DRAFTERS:
        if drafter == "text-layer" and (page.layer is None or not page.layer.lines):
            continue
        decoded = decoder.decode(page, drafter)
        plain = plain or decoded
        same = decoded.result.token_ids == plain.result.token_ids
        assert same, f"{page.name}: {drafter} wrote other tokens than plain decoding"
        yield Row(
            kind=kind,
            document=page.name,
            drafter=drafter,
            tokens=emitted_by_steps(decoded.result),
            characters=len(model.tokenizer.spell(decoded.result.token_ids).text),
            passes=decoded.result.steps,
            dflash_calls=decoded.calls,
            cpu_ratio=round(plain.cpu_s / decoded.cpu_s, 3),
        )


def sample(dataset: Path) -> Iterator[tuple[str, Path]]:
    """Class and file of the fixed sample: sets of a class in turn, each in the index's order.

    The first page of every class comes before the second of any.
    """
    lines = (dataset / "index.jsonl").read_text(encoding="utf-8").splitlines()
    files = [json.loads(line)["file"] for line in lines]
    for place in range(PAGES_OF_CLASS):
        for kind, sets in CLASSES.items():
            of_sets = [[file for file in files if file.startswith(f"{name}/")] for name in sets]
            in_turn = [file for file in chain(*zip_longest(*of_sets)) if file is not None]
            yield kind, dataset / in_turn[place]


def table(rows: Sequence[Row]) -> str:
    """Markdown: sums over the pages of a class; a ratio's mean is harmonic in plain seconds."""
    lines = [
        "| class | drafter | pages | tokens | tokens a pass | characters a pass | calls | CPU |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    kinds = dict.fromkeys(row.kind for row in rows)
    for kind in kinds:
        for drafter in DRAFTERS:
            some = [row for row in rows if (row.kind, row.drafter) == (kind, drafter)]
            if not some:
                continue
            tokens, characters, passes, calls = (
                sum(getattr(row, name) for row in some)
                for name in ("tokens", "characters", "passes", "dflash_calls")
            )
            # Plain decoding takes about the same time for each token.
            ratio = tokens / sum(row.tokens / row.cpu_ratio for row in some)
            lines.append(
                f"| {kind} | {drafter} | {len(some)} | {tokens} | {tokens / passes:.2f} "
                f"| {characters / passes:.1f} | {calls} | {ratio:.2f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("inputs", type=Path, nargs="+")
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="ocria-nano")
    parser.add_argument("--drafter-model")
    parser.add_argument("--max-tokens", type=int, default=160)
    given = parser.parse_args()
    first = given.inputs[0]
    is_dataset = (first / "index.jsonl").is_file()
    files = list(sample(first)) if is_dataset else [(path.stem, path) for path in given.inputs]
    model = load(find_checkpoint(given.model), device=torch.device("cpu"))
    decoder = Decoder(model, given.drafter_model, given.max_tokens)
    rows: list[Row] = []
    with given.out.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for kind, path in files:
            for page in read_page_set([path], model, first_only=is_dataset).pages:
                for row in rows_of(decoder, model, kind, page):
                    rows.append(row)
                    writer.writerow(asdict(row))
                    stream.flush()
    print(table(rows))


if __name__ == "__main__":
    main()
