"""OmniDocBench: one JSON list of page annotations beside the page images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ocria.eval.items import Dataset, Item, Problem
from ocria.eval.truth import TruthError, read_json, truth_from_markdown

_IMAGE_FOLDERS = ("images", "imgs", ".")
_LEFT_OUT = frozenset(
    ["abandon", "mask", "need_mask", "text_mask", "table_mask", "header", "footer", "page_number",
     "page_footnote", "figure", "unknown_mask"]
)  # fmt: skip


def read_omnidocbench(source: Path) -> Dataset:
    """Read the annotation file; running heads, feet and masked regions are not truth."""
    root = source.parent
    items: list[Item] = []
    problems: list[Problem] = []
    for number, page in enumerate(read_json(source), start=1):
        try:
            items.append(_item(root, page))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            problems.append(Problem(where=f"{source.name} entry {number}", what=_reason(error)))
    return Dataset(
        name=root.name, root=root, layout="omnidocbench",
        items=tuple(items), problems=tuple(problems),
    )  # fmt: skip


def is_annotation(row: Any) -> bool:
    """Whether a decoded JSON value looks like one annotated page."""
    return isinstance(row, dict) and {"layout_dets", "page_info"} <= row.keys()


def _reason(error: Exception) -> str:
    if isinstance(error, TruthError):
        return str(error)
    return f"no {error}" if isinstance(error, KeyError) else f"cannot be used: {error}"


def _item(root: Path, page: dict[str, Any]) -> Item:
    info = page["page_info"]
    name = str(info["image_path"])
    candidates = (root / folder / name for folder in _IMAGE_FOLDERS)
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        raise TruthError(f"{name} is missing")
    attributes = info.get("page_attribute", {})
    source = str(attributes.get("data_source", "page"))
    return Item(
        name=name,
        path=path,
        pages=None,
        group=source,
        kind=source,
        lang=str(attributes.get("language", "")),
        metric="markdown",
        truth_origin="human",
        truth=truth_from_markdown(_markdown(page["layout_dets"])),
    )


def _markdown(regions: list[dict[str, Any]]) -> str:
    kept = [
        region
        for region in regions
        if not region.get("ignore") and region.get("category_type") not in _LEFT_OUT
    ]
    kept.sort(key=lambda region: (region.get("order") is None, region.get("order") or 0))
    return "\n\n".join(part for part in map(_region_markdown, kept) if part)


def _region_markdown(region: dict[str, Any]) -> str:
    category = region.get("category_type", "")
    if category == "table":
        return str(region.get("html") or region.get("latex") or "")
    if category == "equation_isolated":
        latex = str(region.get("latex") or "").strip()
        return latex if latex.startswith(("$", r"\[")) or not latex else f"$$\n{latex}\n$$"
    text = str(region.get("text") or "")
    return f"# {text}" if category == "title" and text else text
