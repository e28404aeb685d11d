"""Formulas: found, normalised, matched."""

import pytest

from ocria.eval.formulas import formulas_in, normalise_latex, score_formulas


def test_all_delimiters_are_found_in_order() -> None:
    markdown = r"in $a$ and \(b\), then $$c$$ and \[d\]; costs \$5 and \$6"
    assert formulas_in(markdown) == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (r"\frac{1}{2}", r"\dfrac 1 2"),
        (r"x^{2}", "x^2"),
        (r"\left( a \right)", "(a)"),
        (r"a \leq b\,.", r"a \le b"),
        (r"\mathrm{sin} x", r"\operatorname{sin}x"),
        (r"$$E = mc^2 \tag{1}$$", "E=mc^{2}"),
        (r"{\big (}\varphi (x){\big )}", r"(\varphi(x))"),
    ],
)
def test_the_same_picture_is_the_same_source(left: str, right: str) -> None:
    assert normalise_latex(left) == normalise_latex(right)


@pytest.mark.parametrize(("left", "right"), [("x^2", "x_2"), (r"\alpha", "a"), ("x^{12}", "x^12")])
def test_other_pictures_stay_apart(left: str, right: str) -> None:
    assert normalise_latex(left) != normalise_latex(right)


def test_match_and_similarity() -> None:
    scores = score_formulas(("x^{2}", r"\alpha+1"), (r"\alpha+2", "x^2", "y"))
    assert scores.match == 0.5
    assert scores.similarity == pytest.approx((1 + 2 / 3) / 2)


def test_empty_sides() -> None:
    assert score_formulas(("a",), ()).match == 0.0
    assert score_formulas((), ("a",)).num_found == 1


def test_prices_are_no_formulas() -> None:
    assert formulas_in("Costs $5 and then $6 in total, not $x^2$.") == ("x^2",)
