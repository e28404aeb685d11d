"""Does a quantised checkpoint read like its parent? Agreement and error rate on real pages.

    python benchmarks/checkpoints/agreement.py PARENT CHILD DATASET --items 16 --out rows.csv

Both read each page of a document greedily; the error rate is the character error rate after
`ocria eval`'s normalisation, clipped at 1. The parent's tokens are forced through both models, 32 a
pass: the agreement is the share of places where both would write the same next token. Documents
are spread evenly over the dataset's text sets in the languages that the model knows; nothing is
tuned on them.
"""

import argparse
import csv
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch

from ocria.document import Page
from ocria.engine import Engine, EngineConfig, Request
from ocria.engine.state import StatePool
from ocria.errors import PageError
from ocria.eval.datasets import load_dataset
from ocria.eval.engines import PageImage
from ocria.eval.items import RANKED_ORIGINS, Item
from ocria.eval.page_images import page_images
from ocria.eval.text_scores import score_text
from ocria.models.base import WINDOW, ImagePatches, Window
from ocria.models.device import resolve_device
from ocria.models.registry import LoadedModel, load
from ocria.output import DecodedText, PageGeometry, build_page_blocks
from ocria.output.markdown import page_markdown
from ocria.vision import PreprocessorConfig, page_patches

DPI = 200
LANGUAGES = ("en", "english", "de", "fr", "es", "it", "nl", "pl", "pt", "vi")
MAX_TOKENS = 4096
# Pages read at once: the same tokens as one by one, in a third of the time on a CPU.
SIDE_BY_SIDE = 8


@dataclass(frozen=True, kw_only=True)
class Row:
    """One document. Rates are 0..1."""

    document: str
    num_pages: int
    num_tokens: int
    agreement: float
    text_agreement: float
    parent_cer: float
    child_cer: float


class Subject:
    """A checkpoint under comparison."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        self.model: LoadedModel = load(folder, device=device)
        self.preprocessor = PreprocessorConfig.from_folder(folder)
        tokens = self.model.tokens
        self.forbidden = torch.tensor(sorted(tokens.suppressed_ids), device=device)
        positions = self.preprocessor.max_pixels // 1024 + 64 + MAX_TOKENS + WINDOW
        config = EngineConfig(
            stop_ids=tokens.stop_ids,
            forbidden_ids=tokens.suppressed_ids,
            max_positions=positions,
            num_slots=SIDE_BY_SIDE,
        )
        self.engine = Engine(self.model.target, config)
        self.pool = StatePool(self.model.target, num_slots=1, max_positions=positions)

    def request(self, page: PageImage) -> Request:
        """What the engine is asked for a page's pixels."""
        patches = page_patches(np.asarray(page.image), self.preprocessor)
        merge = self.preprocessor.merge_size
        return Request(
            prompt=self.model.tokens.prompt.fill(patches.grid_h // merge, patches.grid_w // merge),
            image=ImagePatches(torch.from_numpy(patches.values), patches.grid_h, patches.grid_w),
            max_tokens=MAX_TOKENS,
        )

    def read(self, pages: list[PageImage]) -> list[tuple[int, ...]]:
        """What it writes of each page, without drafting."""
        tickets = [self.engine.submit(self.request(page)) for page in pages]
        found: dict[int, tuple[int, ...]] = {}
        for ticket, outcome in self.engine.stream():
            if isinstance(outcome, PageError):
                raise outcome
            found[ticket] = outcome.token_ids
        return [found[ticket] for ticket in tickets]

    def markdown(self, token_ids: tuple[int, ...]) -> str:
        """The page's Markdown, as `ocria parse` writes it."""
        spelling = self.model.tokenizer.spell(token_ids)
        decoded = DecodedText(text=spelling.text, special_spans=spelling.special_spans)
        blocks = build_page_blocks(decoded, PageGeometry(number=1, width_pt=612, height_pt=792))
        page = Page(number=1, width_pt=612, height_pt=792, status="ok", blocks=blocks.blocks)
        return page_markdown(page)

    def next_tokens(self, request: Request, token_ids: tuple[int, ...]) -> list[int]:
        """What it would write at each place of a page that another model has written."""
        target, image = self.model.target, request.image
        assert image is not None, "pages have pictures"
        slot, state = self.pool.acquire()
        logits = [self.pool.read(state, request.prompt, target.encode_image(image))[None]]
        for start in range(0, len(token_ids), WINDOW):
            window = list(token_ids[start : start + WINDOW])
            logits.append(target.verify([Window(state, window)]).logits_TV)
            self.pool.commit([(state, len(window))])
        self.pool.release(slot)
        allowed = torch.cat(logits).index_fill(-1, self.forbidden, -torch.inf)
        return allowed.argmax(-1).tolist()


def same_next(
    parent: Subject, child: Subject, page: PageImage, written: tuple[int, ...]
) -> tuple[list[bool], list[bool]]:
    """Whether both would write the same next token, at each place and at those of text alone.

    Block types and corners are special tokens; a corner may well lie on either of two steps.
    """
    theirs = parent.next_tokens(parent.request(page), written)
    ours = child.next_tokens(child.request(page), written)
    special = set(parent.model.tokenizer.special_ids.values())
    places = [one == other for one, other in zip(theirs, ours, strict=True)]
    text = [same for same, one in zip(places, theirs, strict=True) if one not in special]
    return places, text


@dataclass(frozen=True, kw_only=True)
class Readings:
    """A document's pages, and the tokens that parent and child wrote of each."""

    item: Item
    pages: list[PageImage]
    written: list[tuple[int, ...]]
    rewritten: list[tuple[int, ...]]


def compare(parent: Subject, child: Subject, readings: Readings) -> Row:
    """Holds the two readings of one document against each other and the truth."""
    item, pages, written = readings.item, readings.pages, readings.written
    judged = [
        same_next(parent, child, page, tokens) for page, tokens in zip(pages, written, strict=True)
    ]
    places = [same for page, _ in judged for same in page]
    text = [same for _, page in judged for same in page]
    truth = item.truth
    assert truth is not None and truth.text is not None, "only items with text are read"

    def cer(subject: Subject, read: list[tuple[int, ...]]) -> float:
        text = "\n".join(subject.markdown(token_ids) for token_ids in read)
        return score_text(truth.text or "", text, truth_is_markdown=truth.is_markdown).cer

    return Row(
        document=item.name,
        num_pages=len(pages),
        num_tokens=len(places),
        agreement=round(sum(places) / len(places), 5),
        text_agreement=round(sum(text) / max(1, len(text)), 5),
        parent_cer=round(cer(parent, written), 5),
        child_cer=round(cer(child, readings.rewritten), 5),
    )


def chosen(dataset: Path, num_items: int) -> list[Item]:
    """Items with ranked text in a known language, spread over the dataset."""
    items = [
        item
        for item in load_dataset(dataset).items
        if item.truth is not None
        and item.truth.text
        and item.truth_origin in RANKED_ORIGINS
        and item.metric in ("text", "markdown")
        and item.lang.partition(" ")[0] in LANGUAGES
    ]
    wanted = min(num_items, len(items))
    return [items[n * len(items) // wanted] for n in range(wanted)]


def drawn(items: list[Item]) -> Iterator[tuple[Item, list[PageImage]]]:
    """The items whose pages can all be rasterised, with their pages."""
    for item in items:
        images = list(page_images(item.path, item.pages, dpi=DPI))
        pages = [page for page in images if isinstance(page, PageImage)]
        if len(pages) < len(images):
            print(f"{item.name}: cannot be rasterised", file=sys.stderr)
            continue
        yield item, pages


def read_side_by_side(
    parent: Subject, child: Subject, documents: list[tuple[Item, list[PageImage]]]
) -> Iterator[Readings]:
    """All pages of all documents, read by both."""
    every = [page for _, pages in documents for page in pages]
    written, rewritten = iter(parent.read(every)), iter(child.read(every))
    for item, pages in documents:
        yield Readings(
            item=item,
            pages=pages,
            written=[next(written) for _ in pages],
            rewritten=[next(rewritten) for _ in pages],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parent", type=Path)
    parser.add_argument("child", type=Path)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--items", type=int, default=16)
    parser.add_argument("--shard", default="0/1", help="every N-th item from I on, as I/N")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    device = resolve_device(arguments.device)
    parent, child = Subject(arguments.parent, device), Subject(arguments.child, device)
    index, count = map(int, arguments.shard.split("/"))
    documents = list(drawn(chosen(arguments.dataset, arguments.items)[index::count]))
    rows = []
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for readings in read_side_by_side(parent, child, documents):
            rows.append(compare(parent, child, readings))
            writer.writerow(asdict(rows[-1]))
            file.flush()
            print(rows[-1], file=sys.stderr)
    tokens = sum(row.num_tokens for row in rows)
    print(
        f"documents {len(rows)}, pages {sum(row.num_pages for row in rows)}, tokens {tokens}, "
        f"agreement of text "
        f"{sum(row.text_agreement * row.num_tokens for row in rows) / tokens:.4f}, of all "
        f"{sum(row.agreement * row.num_tokens for row in rows) / tokens:.4f}, median CER parent "
        f"{statistics.median(row.parent_cer for row in rows):.4f} child "
        f"{statistics.median(row.child_cer for row in rows):.4f}"
    )


if __name__ == "__main__":
    main()
