"""Formulas as pictures: with a stand-in for the browser, and with a real one where it is there."""

import json
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ocria.errors import UsageError
from ocria.eval import formula_pictures
from ocria.eval.formula_pictures import BROWSERS, FormulaPictures, open_formula_pictures
from ocria.eval.formulas import score_formulas
from ocria.eval.items import Item, Truth
from ocria.eval.predictions import PagePrediction, Prediction
from ocria.eval.rules import read_rule
from ocria.eval.score import score_item

KATEX = os.environ.get("OCRIA_TEST_KATEX")
MakeBrowser = Callable[[str], Path]


@pytest.fixture
def katex(tmp_path: Path) -> Path:
    (tmp_path / "katex/dist").mkdir(parents=True)
    for name in ("katex.min.js", "katex.min.css"):
        (tmp_path / "katex/dist" / name).touch()
    return tmp_path / "katex"


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeBrowser:
    """Puts a program of a browser's name on the path: it prints what it is told."""

    def make(script: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / BROWSERS[0]
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(folder))
        return program

    return make


def page(*pictures: object) -> str:
    data = json.dumps({"version": "0.1", "pictures": pictures})
    return f"echo '<pre id=\"pictures\">{data}</pre>'"


def test_what_is_missing_is_said(katex: Path, tmp_path: Path, browser: MakeBrowser) -> None:
    browser(page(None)).unlink()
    with pytest.raises(UsageError, match="no KaTeX"):
        open_formula_pictures(tmp_path)
    with pytest.raises(UsageError, match="no Chromium"):
        open_formula_pictures(katex)
    for broken in ("exit 3", "echo nothing", "echo '<pre id=\"pictures\">{</pre>'"):
        browser(broken)
        with pytest.raises(UsageError, match="cannot be drawn"):
            open_formula_pictures(katex)


def test_each_formula_is_drawn_once_and_places_are_rounded(
    katex: Path, browser: MakeBrowser
) -> None:
    browser(page([["x", 0, 0, 1]]))
    pictures = open_formula_pictures(katex)
    assert pictures.version == "0.1"
    browser(page([["x", 0, 0.31, 1], ["2", 0.6, 0, 0.5]], [["2", 0.63, 0, 0.5], ["x", 0, 0.33, 1]]))
    first, second = pictures.draw(["x^2", "x^{2}"])
    assert first == second == (("2", 6, 0, 5), ("x", 0, 3, 10))
    browser("exit 1")
    assert pictures.draw(["$x^2$.", r"x^{2}\tag{1}"]) == [first, second]
    assert pictures.num_failed == 0


def test_a_browser_that_fails_costs_pictures_and_is_counted(
    katex: Path, browser: MakeBrowser, caplog: pytest.LogCaptureFixture
) -> None:
    browser(page(None))
    pictures = open_formula_pictures(katex)
    browser("exit 1")
    assert pictures.draw(["a", "b"]) == [None, None]
    assert pictures.num_failed == 2
    assert "were not drawn" in caplog.text


class Shapes:
    """Draws a formula as its letters in order: all that looks the same is the same."""

    def draw(self, formulas: Sequence[str]) -> list[str | None]:
        return [None if "bad" in f else "".join(filter(str.isalnum, f)) for f in formulas]

    def holds(self, wanted: str, formulas: Sequence[str]) -> bool:
        return self.draw([wanted])[0] in self.draw(formulas)


def test_pictures_count_beside_the_source_and_nothing_is_like_what_cannot_be_drawn() -> None:
    truth, found = ("a+b", "c", r"\bad{", r"d\over e"), ("a - b", "c", r"\bad{{", "x")
    assert score_formulas(truth, found).match_drawn is None
    scores = score_formulas(truth, found, Shapes().draw)
    assert (scores.match, scores.match_drawn) == (0.25, 0.5)


def test_math_rules_hold_by_picture() -> None:
    rule = read_rule({"type": "math", "id": "1", "math": "a^{b}"})
    item = Item(
        name="p", path=Path("p"), pages=None, group="g", kind="", lang="", metric="rules",
        truth_origin="human", truth=Truth(rules=(rule,)),
    )  # fmt: skip
    prediction = Prediction(pages=(PagePrediction(number=1, markdown="see $a_b$"),))
    assert score_item(item, prediction).rules_passed == 0.0
    shapes: FormulaPictures = Shapes()  # type: ignore[assignment]
    assert score_item(item, prediction, shapes).rules_passed == 1.0


@pytest.mark.skipif(
    KATEX is None or not any(map(shutil.which, formula_pictures.BROWSERS)),
    reason="OCRIA_TEST_KATEX does not name an npm package katex, or there is no Chromium",
)
def test_a_real_browser_tells_pictures_apart() -> None:
    pictures = open_formula_pictures(Path(str(KATEX)))
    brackets = r"\left(\begin{matrix}1&2\end{matrix}\right)"
    same = [("$a\\ $", "a"),
            (r"\frac{a}{b}", r"{a \over b}"), (r"\sqrt{x}", r"\sqrt x"), ("{x}^{{2}}", "x^2"),
            (r"\begin{pmatrix}1&2\end{pmatrix}", brackets)]  # fmt: skip
    apart = [("x^2", "x_2"), (r"\sqrt{a+b}", r"\sqrt a+b"), ("x", r"\hat{x}"), ("a<b", "a>b"),
             (r"\frac{a}{b}", "a b")]  # fmt: skip
    pictures.draw(formula for pair in [*same, *apart] for formula in pair)
    assert all(pictures.holds(a, [b]) for a, b in same)
    assert not any(pictures.holds(a, [b]) for a, b in apart)
    assert pictures.draw([r"\frac{", "</script><b>", r"\href{x}{y}"])[0] is None
    assert pictures.num_failed == 0
