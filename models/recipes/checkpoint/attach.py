"""Puts a trained drafter into a shipped checkpoint's folder; same input, same bytes.

    python -m ocria.models.recipes.checkpoint.attach CHECKPOINT DRAFTER

DRAFTER is a training checkpoint, or a folder that was exported. Its feed-forward matrices and the
one that joins taps become NVFP4, its others FP8. Manifest and card then name it; the digest of the
model stays as it is, since a drafter changes no result.
"""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

from ocria.models.recipes.checkpoint import card
from ocria.models.recipes.drafter.export import read_checkpoint, save_drafter
from ocria.weights import Manifest, read_manifest, write_manifest
from ocria.weights.manifest import DRAFTER_FOLDER, digest_drafter


def attach(checkpoint: Path, source: Path) -> Manifest:
    """Writes `checkpoint`'s drafter, in place of an older one, and its manifest and card.

    Raises:
        WeightsError: the source is no drafter, or the checkpoint's manifest makes no sense.
        ValueError: the checkpoint has no manifest.
    """
    manifest = read_manifest(checkpoint)
    if manifest is None:
        raise ValueError(f"{checkpoint} has no manifest")
    weights, content = read_checkpoint(source)
    folder = checkpoint / DRAFTER_FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    save_drafter(folder, weights, content, "mixed")
    manifest = replace(manifest, drafter=digest_drafter(checkpoint))
    write_manifest(checkpoint, manifest)
    page = checkpoint / "README.md"
    text = page.read_text(encoding="utf-8").partition(card.DRAFTER_HEADING)[0].rstrip()
    millions = sum(tensor.numel() for tensor in weights.values()) / 1e6
    about = card.drafter_section(content, millions)
    page.write_text(f"{text}\n\n{about}", encoding="utf-8")
    return manifest


def main() -> None:
    """Command line of this recipe."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path, help="folder that make.py has made")
    parser.add_argument("drafter", type=Path, help="training checkpoint or exported folder")
    given = parser.parse_args()
    manifest = attach(given.checkpoint, given.drafter)
    for file in manifest.drafter:
        print(f"{file.num_bytes:>10}  {file.sha256}  {file.name}")
    print(f"{manifest.drafter_bytes:>10} bytes for the drafter of {manifest.name}")


if __name__ == "__main__":
    main()
