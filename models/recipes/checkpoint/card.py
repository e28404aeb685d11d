"""The model card and the statement of what the weights were trained on."""

from collections.abc import Mapping, Sequence
from typing import Any

from ocria.models.drafter import DrafterConfig
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.weights import Manifest

TRAINING = (
    "Trained on pages that we rendered ourselves from freely licensed text and fonts; "
    "no scanned, photographed or otherwise real document was used. Texts: public domain books, "
    "speeches, statutes and government publications; CC0 technical documents and data; MIT, "
    "Apache-2.0, PSF and MPL-2.0 software documentation and code; CC-BY-4.0 textbooks, "
    "medical questions and tables; CC-BY-SA-3.0 and CC-BY-SA-4.0 textbooks, contracts and "
    "treebanks; GFDL-1.2 mathematics; GPL manuals and data; formulas from an Apache-2.0 "
    "collection; names, addresses and amounts of forms, letters, invoices and receipts made up by "
    "Faker (MIT). Fonts, used for rendering only: OFL, Apache-2.0, GPL with font exception, GUST, "
    "Bitstream Vera, IPA and AGPL with font exception. The weights contain none of these files. "
    "The weights are offered under Apache-2.0; the licences of the texts and fonts are named so "
    "that everyone can judge them for their own use."
)

_CARD = """# {name}

A document reader of {millions:.0f} million parameters: the image of a page in, its
text out. Architecture `qwen3_5`: a vision tower of {depth} layers and {width} channels, a
decoder of {layers} layers ({deltas} Gated DeltaNet, {attentions} full attention) and {hidden}
channels, a vocabulary of {vocabulary} rows.

| part | stored as | files |
|---|---|---|
| vision tower | bf16, never quantised | `vision-*` |
| decoder linears | NVFP4: 4-bit codes, an e4m3 scale for 16 weights | `decoder-*` |
{wide}| norms, convolutions, gates of the recurrence | bf16 | `decoder-*` |
| embedding and tied head | FP8 e4m3, one scale for each row | `embedding-*` |

The layout is compressed-tensors' (`nvfp4-pack-quantized`, `float-quantized`). Digest: `{digest}`;
`ocria models --verify` checks it file by file.

It reads grey pages: `do_grayscale` in `preprocessor_config.json` is a key of OCRia's. Largest page:
{pixels:,} pixels after resizing.

{sensitivity}## With transformers

`transformers` 5.24 with `compressed-tensors` 0.20 reads the folder and gets the same bf16 value
for every weight, but leaves the tied head on the FP8 codes. It needs a new one before the first
pass:

```python
model = AutoModelForImageTextToText.from_pretrained(folder)
model.hf_quantizer.compressor.decompress_model(model)
weight = model.get_input_embeddings().weight.detach()
model.lm_head = torch.nn.Linear(*weight.shape[::-1], bias=False, dtype=weight.dtype)
model.lm_head.weight = torch.nn.Parameter(weight)
```

## Training and licence

Licence of the weights: {licence}.

{training}

## Limits

It was trained on rendered pages, so photographs, handwriting, dense tables and unusual layouts are
where it fails first: by losing its place, by repeating, or by inventing text. It is not a source of
truth for figures that matter.
"""


DRAFTER_HEADING = "## The drafter"

_DRAFTER = """{heading}

`drafter/` holds a DFlash {generation} drafter of {millions:.1f} million parameters: {layers} layers
that read the model's own hidden rows after layers {taps} and propose {num_proposed} tokens in one
call. The model verifies every one, so that a page has the same bytes with it and without; it is
not part of the digest. Feed-forward matrices and the one that joins taps are NVFP4, others FP8,
norms and base kernels bf16.

It was trained on what the model writes of rendered pages, made of the same texts and fonts as the
model's own. Licence: Apache-2.0.
"""


_WIDE = "| of these, {names} | FP8 e4m3, one scale for each row | `decoder-*` |\n"


_SENSITIVITY = """## What each product loses

Alone in NVFP4, rounded to nearest, on generated pages held out of calibration: nats by which the
next token's distribution moves, and the share of places where the token stays the same. Calibrated
together they lose less than the sum. The {num_shown} of {num_all} that lose most:

| product | weights | KL, nats | same token | stored as |
|---|---|---|---|---|
{rows}

![KL of each product](sensitivity.svg)

"""
_SHOWN = 12


def _sensitivity(rows: Sequence[Mapping[str, str]]) -> str:
    lines = [
        f"| `{row['site'].partition('.layers.')[2]}` | {int(row['weights']):,} | {row['kl_nats']} "
        f"| {row['agreement']} | {row['format']} |"
        for row in rows[:_SHOWN]
    ]
    return _SENSITIVITY.format(num_shown=len(lines), num_all=len(rows), rows="\n".join(lines))


def model_card(
    manifest: Manifest,
    config: Qwen35Config,
    *,
    num_parameters: int,
    max_pixels: int,
    wide: Sequence[str] = (),
    sensitivity: Sequence[Mapping[str, str]] = (),
) -> str:
    """README.md of a checkpoint folder.

    `wide` names the decoder linears that are FP8; `sensitivity` has the rows of the table that
    `ocria quantize` writes, the largest loss first.
    """
    short = ", ".join(f"`{name.partition('.layers.')[2]}`" for name in sorted(wide))
    kinds = config.text.layer_types
    return _CARD.format(
        wide=_WIDE.format(names=short) if wide else "",
        sensitivity=_sensitivity(sensitivity) if sensitivity else "",
        name=manifest.name,
        millions=num_parameters / 1e6,
        depth=config.vision.depth,
        width=config.vision.hidden_size,
        layers=len(kinds),
        deltas=kinds.count("linear_attention"),
        attentions=kinds.count("full_attention"),
        hidden=config.text.hidden_size,
        vocabulary=config.text.vocab_size,
        digest=manifest.digest,
        licence=manifest.licence,
        training=manifest.training,
        pixels=max_pixels,
    )


def drafter_section(content: Mapping[str, Any], millions: float) -> str:
    """The card's part on a drafter: its `config.json` and millions of parameters."""
    config = DrafterConfig.from_mapping(content)
    return _DRAFTER.format(
        heading=DRAFTER_HEADING,
        generation=config.generation,
        millions=millions,
        layers=len(config.layers),
        taps=", ".join(map(str, config.target_layer_ids)),
        num_proposed=config.block_size - 1,
    )
