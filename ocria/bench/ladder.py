"""Which rungs there are on a device, in order: each adds one thing to those before it.

A rung that this version cannot run stands in the ladder with its reason, so that a table says what
is not measured. To fill one in, replace its `MissingRung` by an `EngineRung` on a model whose
target takes that path, with an arithmetic of its own if its sums are ordered otherwise.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec

from ocria.bench.bench_model import BenchModel
from ocria.bench.figures import PageOutput
from ocria.bench.options import BenchOptions
from ocria.bench.page_set import BenchPage
from ocria.bench.rungs import EngineRung, MissingRung, PageDrafters, Rung
from ocria.bench.scripted_drafter import ScriptedDrafter
from ocria.engine.speculative import Drafter
from ocria.errors import UsageError
from ocria.models.registry import LoadedModel
from ocria.options import DrafterName
from ocria.pipeline.drafting import Drafting
from ocria.pipeline.markup_ids import markup_ids

Texts = Callable[[], Sequence[PageOutput]]
"""What the first rung wrote, once it has run."""


def build_ladder(model: BenchModel, options: BenchOptions, texts: Texts) -> tuple[Rung, ...]:
    """The rungs of this device and model, the reference first.

    Raises:
        UsageError: `options.rungs` names none of them.
    """
    on_cuda = model.target.device.type == "cuda"
    rungs = [EngineRung("plain", model), *(_cuda_rungs() if on_cuda else ())]
    rungs += _speculative_rungs(model, options, texts)
    rungs.append(_batching_rung(model, options))
    if options.transformers:
        rungs.append(_transformers_rung(model))
    return _chosen(rungs, options.rungs)


def page_drafters(loaded: LoadedModel, asked: DrafterName, *, alone: bool = False) -> PageDrafters:
    """Drafters as the pipeline makes them: what they learn stays with a document.

    Args:
        alone: make every page's drafter anew, for pages that are read at the same time.
    """
    markup = markup_ids(loaded.tokenizer)

    def make(pages: Sequence[BenchPage]) -> Iterator[Drafter | None]:
        drafting, document = Drafting(asked, loaded.tokenizer, markup), -1
        for page in pages:
            if alone or page.document != document:
                drafting, document = Drafting(asked, loaded.tokenizer, markup), page.document
            yield drafting.drafter(page.layer)

    return make


def scripted_drafters(texts: Texts, accepted: int, vocab_size: int) -> PageDrafters:
    """Drafters that make every pass emit `accepted` tokens of what the first rung wrote."""

    def make(pages: Sequence[BenchPage]) -> Iterator[Drafter | None]:
        for output in texts():
            yield ScriptedDrafter(output.token_ids, accepted, vocab_size)

    return make


def _cuda_rungs() -> list[Rung]:
    no_graphs = "no graph runner in this version"
    if find_spec("ocria.engine.graphs") is not None:
        no_graphs = "the bench does not drive this version's graph runner yet"
    return [
        MissingRung("graph", no_graphs),
        MissingRung("mixed", "the decoder's products read bf16 weights in this version"),
        MissingRung("fused", "no fused decoder step in this version"),
    ]


def _speculative_rungs(model: BenchModel, options: BenchOptions, texts: Texts) -> list[Rung]:
    if model.loaded is None:
        accepted = options.tokens_a_pass
        drafters = scripted_drafters(texts, accepted, model.target.vocab_size)
        return [EngineRung(f"accepted-{accepted}", model, drafters)]
    asked: tuple[DrafterName, ...] = ("ngram", "text-layer", "auto")
    rungs: list[Rung] = [
        EngineRung(name, model, page_drafters(model.loaded, name)) for name in asked
    ]
    rungs.append(_dflash_rung(model, model.loaded))
    return rungs


def _dflash_rung(model: BenchModel, loaded: LoadedModel) -> Rung:
    if not (loaded.folder / "drafter" / "config.json").is_file():
        return MissingRung("dflash", "the checkpoint has no dflash drafter")
    drafters = page_drafters(loaded, "dflash")
    if next(drafters(model.pages[:1])) is None:
        return MissingRung("dflash", "the pipeline of this version does not drive dflash")
    return EngineRung("dflash", model, drafters)


def _batching_rung(model: BenchModel, options: BenchOptions) -> Rung:
    name = f"batch-{options.sequences_at_once}"
    if options.sequences_at_once == 1:
        return MissingRung(name, "one sequence at a time was asked for")
    drafters = None if model.loaded is None else page_drafters(model.loaded, "auto", alone=True)
    return EngineRung(name, model, drafters, num_slots=options.sequences_at_once)


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
