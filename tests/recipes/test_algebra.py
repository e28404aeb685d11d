"""Made-up formulas: both spellings hold together, and found ones keep their meaning."""

import random

import pytest

pytest.importorskip("typst", reason="the page recipes need typst")

from ocria.models.recipes.pages.algebra import (
    aligned,
    made_up,
    sign,
    split_equation,
    steps,
    with_growing_brackets,
)
from ocria.models.recipes.pages.latex import canonical, compiling


def test_made_up_formulas_compile_and_close_their_groups():
    rng = random.Random(0)
    made = [made_up(rng, longest=rng.choice((60, 160, 260))) for _ in range(300)]
    assert all(compiling([formula.typst for formula in made]))
    for formula in made:
        assert formula.latex.count("{") == formula.latex.count("}")
        assert formula.latex.count(r"\begin") == formula.latex.count(r"\end")
        assert len(formula.latex) <= 260


def test_one_line_formulas_are_in_the_canonical_spelling():
    rng = random.Random(1)
    made = [made_up(rng, longest=120, tall=False) for _ in range(200)]
    for formula in made:
        assert r"\begin" not in formula.latex
        assert canonical(formula.latex) == formula.latex


def test_lines_are_aligned_at_their_relations():
    made = aligned([(sign("a"), sign("=") + sign("b")), (None, sign("=") + sign("c"))])
    assert made.latex == r"\begin{aligned}a&=b\\&=c\end{aligned}"
    sides = split_equation(r"\frac{a}{b}=c", "frac(a, b) = c")
    assert sides is not None
    assert steps(random.Random(0), [sides]).latex == r"\begin{aligned}\frac{a}{b}&=c\end{aligned}"
    assert split_equation(r"\sum_{i=1}x", "sum_(i = 1) x") is None


@pytest.mark.parametrize(
    ("typst", "wanted"),
    [
        (r"f \( x \)", "f ( x )"),
        (r"\( x \) \/ 2", r"( x ) \/ 2"),
        (r"x^(\( i \))", "x^(( i ))"),
        (r"\[ a \, b \)", r"\[ a \, b \)"),
    ],
)
def test_brackets_grow_only_in_pairs(typst, wanted):
    assert with_growing_brackets(typst) == wanted
    assert compiling([with_growing_brackets(typst)]) == [True]
