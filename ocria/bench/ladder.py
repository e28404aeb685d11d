"""Which rungs there are on a device, in order: each adds one thing to those before it.

The first is plain decoding by the reference path. On CUDA the ladder goes on with a graph of that
same step, with the model's fused kernels (which read weights as they are stored), and with a graph
of these; speculation and batching stand on the product's own path. A rung that this version or
machine cannot run stands in the ladder with its reason, so that a table says what is not measured.
To fill one in, replace its `MissingRung` by a rung on a target that takes that path, under an
arithmetic of its own if its sums have another order.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec

from ocria.bench.bench_model import BenchModel
from ocria.bench.figures import PageOutput
from ocria.bench.options import BenchOptions
from ocria.bench.page_set import BenchPage
from ocria.bench.rungs import FUSED, REFERENCE, EngineRung, MissingRung, PageDrafters, Rung
from ocria.bench.scripted_drafter import ScriptedDrafter
from ocria.engine.speculative import Drafter
from ocria.errors import UsageError
from ocria.models.registry import LoadedModel
from ocria.options import DrafterName
from ocria.pipeline.dflash import DFlashMaker, dflash_maker
from ocria.pipeline.draft_costs import draft_costs
from ocria.pipeline.drafting import Drafting
from ocria.pipeline.markup_ids import markup_ids

Texts = Callable[[str], Sequence[PageOutput]]
"""What plain decoding wrote by an arithmetic, or by the reference where that has not run."""


def build_ladder(model: BenchModel, options: BenchOptions, texts: Texts) -> tuple[Rung, ...]:
    """The rungs of this device and model, the reference first.

    Raises:
        UsageError: `options.rungs` names none of them.
    """
    rungs: list[Rung] = [EngineRung("plain", model)]
    if model.target.device.type == "cuda":
        rungs += _cuda_rungs(model)
    rungs += _speculative_rungs(model, options, texts)
    rungs.append(_batching_rung(model, options))
    if options.transformers:
        rungs.append(_transformers_rung(model))
    return _chosen(rungs, options.rungs)


def page_drafters(
    loaded: LoadedModel,
    asked: DrafterName,
    dflash: DFlashMaker | None,
    *,
    num_pages: int = 1,
) -> PageDrafters:
    """Drafters as the pipeline makes them: what they learn stays with a document.

    Args:
        dflash: makes DFlash drafters; None without weights for one.
        num_pages: read side by side; where it is over 1, none learns from another.
    """
    markup = markup_ids(loaded.tokenizer)
    target = loaded.target
    costs = draft_costs(target.device, num_pages=num_pages, num_layers=target.layout.num_layers)

    def make(pages: Sequence[BenchPage]) -> Iterator[Drafter | None]:
        drafting, document = None, -1
        for page in pages:
            if drafting is None or page.document != document:
                drafting = Drafting(asked, loaded.tokenizer, markup, costs, dflash)
                document = page.document
            drafter = drafting.drafter(page.layer)
            yield drafter
            if num_pages == 1:
                drafting.end_page(drafter)

    return make


def scripted_drafters(texts: Texts, accepted: int, model: BenchModel) -> PageDrafters:
    """Drafters that make every pass emit `accepted` tokens of what plain decoding wrote."""

    def make(pages: Sequence[BenchPage]) -> Iterator[Drafter | None]:
        for output in texts(_product_arithmetic(model)):
            yield ScriptedDrafter(output.token_ids, accepted, model.target.vocab_size)

    return make


def _cuda_rungs(model: BenchModel) -> list[Rung]:
    why = "no graph runner in this version"
    if find_spec("ocria.engine.graphs") is not None:
        why = "the bench does not drive this version's graph runner yet"
    fused: Rung = MissingRung("fused", "the model takes its reference path here")
    if model.product is not model.target:
        fused = _product_rung("fused", model)
    return [MissingRung("graph", why), fused, MissingRung("fused-graph", why)]


def _product_rung(
    name: str, model: BenchModel, drafters: PageDrafters | None = None, num_slots: int = 1
) -> EngineRung:
    """A rung on the path that `ocria parse` takes on this device."""
    return EngineRung(
        name,
        model.as_product,
        drafters,
        num_slots=num_slots,
        arithmetic=_product_arithmetic(model),
        weight_bytes=model.product_bytes,
    )


def _product_arithmetic(model: BenchModel) -> str:
    return REFERENCE if model.product is model.target else FUSED


def _speculative_rungs(model: BenchModel, options: BenchOptions, texts: Texts) -> list[Rung]:
    if model.loaded is None:
        accepted = options.tokens_a_pass
        drafters = scripted_drafters(texts, accepted, model)
        return [_product_rung(f"accepted-{accepted}", model, drafters)]
    loaded, dflash = model.loaded, dflash_maker(model.loaded)
    asked: tuple[DrafterName, ...] = ("ngram", "text-layer", "auto")
    rungs: list[Rung] = [
        _product_rung(name, model, page_drafters(loaded, name, dflash)) for name in asked
    ]
    if dflash is None:
        return [*rungs, MissingRung("dflash", "the checkpoint has no dflash drafter")]
    drafters = page_drafters(loaded, "dflash", dflash)
    return [*rungs, _product_rung("dflash", model, drafters)]


def _batching_rung(model: BenchModel, options: BenchOptions) -> Rung:
    name = f"batch-{options.sequences_at_once}"
    if options.sequences_at_once == 1:
        return MissingRung(name, "one sequence at a time was asked for")
    drafters = None
    if model.loaded is not None:
        dflash = dflash_maker(model.loaded)
        drafters = page_drafters(model.loaded, "auto", dflash, num_pages=options.sequences_at_once)
    return _product_rung(name, model, drafters, options.sequences_at_once)


def _transformers_rung(model: BenchModel) -> Rung:
    if find_spec("transformers") is None:
        return MissingRung("transformers", "transformers is not installed")
    if model.loaded is None:
        return MissingRung("transformers", "random weights are not handed to it")
    from ocria.bench.transformers_rung import TransformersRung

    return TransformersRung(model, model.loaded)


def _chosen(rungs: Sequence[Rung], wanted: Sequence[str]) -> tuple[Rung, ...]:
    names = [rung.name for rung in rungs]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise UsageError(
            f"no rung is called {', '.join(unknown)}", hint=f"here: {', '.join(names)}"
        )
    # The first is what the others are held against.
    return tuple(r for r in rungs if not wanted or r is rungs[0] or r.name in wanted)
