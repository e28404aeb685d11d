"""Pages of a folder of documents, drawn and cut by several processes before a section reads them.

The folder's `index.jsonl` names a document a line (`file`, and `pages` such as `1-2`).
"""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from ocria.bench.page_set import BenchPage, read_page_set
from ocria.models.registry import LoadedModel, open_checkpoint

CHECKPOINT = "KERNEL_CHECK_CHECKPOINT"
"""Variable of the environment: the folder of another checkpoint than the shipped one."""
_FOLDER = Path(__file__).parents[2] / "models" / "checkpoints" / "ocria-nano"
_FILES = Path("/tmp/kernel-check-pages")


def checkpoint_folder() -> Path:
    """The folder of the model under check."""
    return Path(os.environ.get(CHECKPOINT) or _FOLDER)


def draw(folder: Path, part: int, num_parts: int, most: int) -> None:
    """Draws one part of the documents that give the first `most` pages, a file a document."""
    torch.set_num_threads(1)
    _FILES.mkdir(exist_ok=True)
    checkpoint = open_checkpoint(checkpoint_folder(), device=torch.device("cpu"))
    # It has what a page asks of a loaded model: tokens, folder and preset.
    model = cast(LoadedModel, checkpoint)
    for number, (path, last) in list(enumerate(_documents(folder, most)))[part::num_parts]:
        target = _FILES / f"{number:04}.pt"
        if target.exists():
            continue
        try:
            pages = read_page_set((path,), model).pages[:last]
        except Exception as error:
            print(f"not drawn  {path.name}: {type(error).__name__}: {error}"[:200], flush=True)
            continue
        partial = target.with_suffix(".part")
        torch.save([_narrow(page, number) for page in pages], partial)
        partial.rename(target)


def drawn(most: int) -> tuple[BenchPage, ...]:
    """The pages that were drawn, in the folder's order."""
    found: list[BenchPage] = []
    for path in sorted(_FILES.glob("*.pt")):
        if len(found) < most:
            found += torch.load(path, weights_only=False)
    return tuple(found[:most])


def _documents(folder: Path, most: int) -> list[tuple[Path, int]]:
    """Documents and how many of their pages are read, blank ones allowed for."""
    found: dict[Path, int] = {}
    for line in (folder / "index.jsonl").read_text(encoding="utf-8").splitlines():
        item: dict[str, Any] = json.loads(line)
        last = re.fullmatch(r"1-(\d+)", item.get("pages") or "")
        found.setdefault(folder / item["file"], int(last[1]) if last else 1)
    kept, total = [], 0
    for path, last_page in found.items():
        if total < most + most // 10:
            kept.append((path, last_page))
            total += last_page
    return kept


def _narrow(page: BenchPage, document: int) -> BenchPage:
    """Patches as the tower takes them: half the bytes, the same numbers."""
    image = page.image._replace(values_PC=page.image.values_PC.bfloat16())
    return replace(page, image=image, document=document)
