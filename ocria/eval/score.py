"""All figures of one item: its prediction held against its truth."""

from __future__ import annotations

from dataclasses import dataclass

from ocria.eval.confidence import JudgedBlock, judge_block
from ocria.eval.formula_pictures import FormulaPictures
from ocria.eval.formulas import formulas_in, score_formulas
from ocria.eval.honesty import invented_words, is_looping, visible_chars
from ocria.eval.items import Item, Truth
from ocria.eval.normalize import normalise, plain_from_markdown
from ocria.eval.predictions import FAILED, TRUNCATED, Prediction
from ocria.eval.rules import Rule
from ocria.eval.table_scores import score_tables
from ocria.eval.tables import tables_in
from ocria.eval.text_scores import score_text


@dataclass(frozen=True, kw_only=True)
class RuleOutcome:
    """Whether one rule holds."""

    id: str
    type: str
    passed: bool


@dataclass(frozen=True, kw_only=True)
class ItemScore:
    """Figures of one item; None where the item's truth does not say.

    Rates are in 0..1. `invented_chars` counts characters on a page without any. `truth_chars` is
    the length of the normalised truth, `has_text` whether anything was read, `confidence` the mean
    over the characters of all blocks that have one.
    """

    item: Item
    pages: int
    pages_failed: int
    pages_truncated: int
    looping: bool
    has_text: bool
    truth_chars: int = 0
    confidence: float | None = None
    cer: float | None = None
    cer_raw: float | None = None
    wer: float | None = None
    word_f1: float | None = None
    words_in_order: float | None = None
    order_edit: float | None = None
    invented_words: float | None = None
    invented_chars: float | None = None
    teds: float | None = None
    teds_structure: float | None = None
    formula_match: float | None = None
    formula_match_drawn: float | None = None
    formula_similarity: float | None = None
    rules: tuple[RuleOutcome, ...] = ()
    seconds: float | None = None
    cpu_seconds: float | None = None
    threads: tuple[int, ...] = ()
    tokens: int | None = None
    judged: tuple[JudgedBlock, ...] = ()

    @property
    def rules_passed(self) -> float | None:
        """Share of the item's rules that hold."""
        if not self.rules:
            return None
        return sum(outcome.passed for outcome in self.rules) / len(self.rules)

    @property
    def badness(self) -> float:
        """How wrong the item is by its leading figure, 0..1: the order of the report."""
        wrong = [self.cer, _missing(self.teds), _missing(self.rules_passed)]
        wrong.append(None if self.invented_chars is None else min(self.invented_chars / 100, 1.0))
        known = [value for value in wrong if value is not None]
        return max(known, default=0.0) + float(self.looping)


def score_item(
    item: Item, prediction: Prediction, pictures: FormulaPictures | None = None
) -> ItemScore:
    """Hold a prediction against the item's truth; with `pictures` formulas are drawn as well."""
    markdown = prediction.markdown
    truth = item.truth or Truth()
    figures: dict[str, float | None] = {}
    if item.metric == "blank":
        figures["invented_chars"] = float(visible_chars(markdown))
    elif truth.text is not None:
        figures.update(_text_figures(truth, markdown))
    if truth.tables is not None:
        tables = score_tables(truth.tables, tables_in(markdown))
        figures.update(teds=tables.teds, teds_structure=tables.teds_structure)
    if truth.formulas is not None:
        draw = None if pictures is None else pictures.draw
        formulas = score_formulas(truth.formulas, formulas_in(markdown), draw)
        figures.update(
            formula_match=formulas.match,
            formula_match_drawn=formulas.match_drawn,
            formula_similarity=formulas.similarity,
        )
    plain, plain_truth = normalise(plain_from_markdown(markdown)), plain_truth_text(truth)
    seconds = [page.seconds for page in prediction.pages if page.seconds is not None]
    cpu_seconds = [p.cpu_seconds for p in prediction.pages if p.cpu_seconds is not None]
    tokens = [page.tokens for page in prediction.pages if page.tokens is not None]
    return ItemScore(
        item=item,
        pages=len(prediction.pages),
        pages_failed=sum(page.status == FAILED for page in prediction.pages),
        pages_truncated=sum(page.status == TRUNCATED for page in prediction.pages),
        looping=is_looping(plain_truth, plain),
        has_text=bool(plain),
        truth_chars=len(plain_truth or ""),
        confidence=_confidence(prediction),
        rules=_outcomes(truth.rules, markdown, pictures),
        seconds=sum(seconds) if seconds else None,
        cpu_seconds=sum(cpu_seconds) if cpu_seconds else None,
        threads=tuple(sorted({page.threads for page in prediction.pages if page.threads})),
        tokens=sum(tokens) if tokens else None,
        judged=_judged(plain_truth, prediction),
        **figures,
    )


def _outcomes(
    rules: tuple[Rule, ...], markdown: str, pictures: FormulaPictures | None
) -> tuple[RuleOutcome, ...]:
    """What holds; a math rule that does not is tried by picture, where these are there."""
    passed = [rule.holds(markdown) for rule in rules]
    if pictures is not None:
        wanted = {
            place: rule.formula
            for place, rule in enumerate(rules)
            if rule.formula is not None and not passed[place]
        }
        formulas = formulas_in(markdown) if wanted else ()
        pictures.draw([*wanted.values(), *formulas])  # One browser run for the page.
        for place, formula in wanted.items():
            passed[place] = pictures.holds(formula, formulas)
    return tuple(
        RuleOutcome(id=rule.id, type=rule.type, passed=held)
        for rule, held in zip(rules, passed, strict=True)
    )


def plain_truth_text(truth: Truth) -> str | None:
    """The truth as normalised plain text."""
    if truth.text is None:
        return None
    return normalise(plain_from_markdown(truth.text) if truth.is_markdown else truth.text)


def _text_figures(truth: Truth, markdown: str) -> dict[str, float | None]:
    text = score_text(truth.text or "", markdown, truth_is_markdown=truth.is_markdown)
    plain = plain_truth_text(truth) or ""
    return {
        "cer": text.cer,
        "cer_raw": text.cer_raw,
        "wer": text.wer,
        "word_f1": text.word_f1,
        "words_in_order": text.words_in_order,
        "order_edit": text.order_edit,
        "invented_words": invented_words(plain, normalise(plain_from_markdown(markdown))),
    }


def _confidence(prediction: Prediction) -> float | None:
    blocks = [block for page in prediction.pages for block in page.blocks]
    chars = sum(len(block.text) for block in blocks)
    if not chars:
        return None
    return sum(len(block.text) * block.confidence for block in blocks) / chars


def _judged(plain: str | None, prediction: Prediction) -> tuple[JudgedBlock, ...]:
    if not plain:
        return ()
    blocks = (block for page in prediction.pages for block in page.blocks)
    judged = (judge_block(block.text, block.confidence, plain) for block in blocks)
    return tuple(block for block in judged if block is not None)


def _missing(value: float | None) -> float | None:
    return None if value is None else 1.0 - value
