"""Pages read side by side: kept as those read alone, whatever fails beside them."""

import json
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from ocria.errors import OcriaError, UsageError
from ocria.eval import EvalOptions, evaluate, run
from ocria.eval.drawn_ahead import Waiting, drawn_ahead
from ocria.eval.engines import PageImage, UnreadablePage, register_engine
from ocria.eval.html_report import write_html
from ocria.eval.predictions import FAILED, PagePrediction
from ocria.models.finding import find_checkpoint

SLOTS = 3
SHADES = (10, 20, 30, 40, 50)


class Company:
    """Reads shades of grey; dark ones take the most steps, so that pages end out of order."""

    name = "company"
    version = "1"
    num_ahead = 0

    def __init__(self, *, fails: Container[int] = (), refuses: int = 0, breaks: int = 0) -> None:
        self.num_slots = SLOTS
        self.fails, self.refuses, self.breaks = fails, refuses, breaks
        self.alone: list[int] = []
        self.submitted: list[int] = []
        self.most = self.documents = 0
        self._pages: dict[int, list[int]] = {}

    def read(self, pages: Sequence[PageImage], *, lang: str) -> Iterator[PagePrediction]:
        for page in pages:
            self.alone.append(_shade(page))
            yield self._reading(page.number, _shade(page))

    def begin_document(self) -> None:
        self.documents += 1

    def submit(self, page: PageImage) -> int:
        shade = _shade(page)
        if shade == self.refuses:
            raise RuntimeError("will not have it")
        self.submitted.append(shade)
        key = len(self.submitted)
        self._pages[key] = [page.number, shade, 60 - shade]
        self.most = max(self.most, len(self._pages))
        return key

    def step(self) -> list[tuple[int, PagePrediction]]:
        if self.breaks in [shade for _, shade, _ in self._pages.values()]:
            raise RuntimeError("broke down")
        for page in self._pages.values():
            page[2] -= 10
        ready = [key for key, page in self._pages.items() if page[2] <= 0]
        return [(key, self._reading(*self._pages.pop(key)[:2])) for key in ready]

    def forget_pages(self) -> None:
        self._pages.clear()

    def _reading(self, number: int, shade: int) -> PagePrediction:
        failed = shade in self.fails
        return PagePrediction(
            number=number, markdown="" if failed else f"shade {shade}", tokens=shade,
            status=FAILED if failed else "ok", error="no such shade" if failed else None,
        )  # fmt: skip


def _shade(page: PageImage) -> int:
    return int(page.image.convert("L").tobytes()[0])


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One file a shade, and `doc.png`, which is taken for all of them as five pages."""

    def draw(path: Path, pages: object, *, dpi: int, done: Container[int]) -> Iterator[Any]:
        text = path.read_text()
        if text == "broken":
            raise OcriaError("no picture")
        for number, shade in enumerate(map(int, text.split()), start=1):
            if shade == 0:
                yield UnreadablePage(number=number, reason="torn")
            elif number not in done:
                image = Image.new("RGB", (4, 4), (shade, shade, shade))
                yield PageImage(number=number, image=image, dpi=200.0)

    monkeypatch.setattr(run, "page_images", draw)
    root = tmp_path / "set"
    root.mkdir()
    texts = {"doc": " ".join(map(str, SHADES)), **{str(shade): str(shade) for shade in SHADES}}
    rows = []
    for name, text in texts.items():
        (root / f"{name}.png").write_text(text)
        (root / f"{name}.txt").write_text(f"shade {name}")
        rows.append({"file": f"{name}.png", "truth": f"{name}.txt", "metric": "text"})
    (root / "index.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return root


def options(dataset: Path, work: str = "work", **fields: Any) -> EvalOptions:
    engines = fields.pop("engines", ("company",))
    return EvalOptions(dataset=dataset, engines=engines, work=dataset.parent / work, **fields)


def use(engine: Company) -> Company:
    register_engine("company", lambda options: engine)
    return engine


def kept(folder: Path) -> dict[str, list[dict[str, Any]] | str]:
    """All that a run kept, without what depends on how long it took."""
    timed = {"seconds", "cpu_seconds", "threads", "side_by_side"}
    found: dict[str, list[dict[str, Any]] | str] = {}
    for path in sorted(folder.rglob("*.md")):
        found[path.name] = path.read_text()
    for path in sorted(folder.rglob("*.pages.jsonl")):
        rows = map(json.loads, path.read_text().splitlines())
        found[path.name] = [{k: v for k, v in row.items() if k not in timed} for row in rows]
    return found


def test_readings_are_kept_as_those_read_alone(dataset: Path) -> None:
    alone = use(Company())
    alone.num_slots = 1
    evaluate(options(dataset, "alone"))
    assert len(alone.alone) == 10 and not alone.submitted
    beside = use(Company())
    evaluate(options(dataset))
    assert not beside.alone
    assert (len(beside.submitted), beside.most, beside.documents) == (10, SLOTS, 6)
    assert kept(dataset.parent / "work") == kept(dataset.parent / "alone") != {}


def test_seconds_are_shares_and_the_report_says_so(dataset: Path, tmp_path: Path) -> None:
    use(Company())
    report = evaluate(options(dataset))
    row = json.loads(report.as_json_line())
    assert row["pages_side_by_side"] == 10
    assert row["seconds_per_page"] >= 0
    write_html(report, tmp_path / "report.html")
    assert "shares" in (tmp_path / "report.html").read_text()
    pages = [page for item in report.runs[0].items for page in item.prediction.pages]
    assert {page.side_by_side for page in pages} <= {2, SLOTS}
    kept_only = json.loads(evaluate(options(dataset)).as_json_line())
    assert kept_only == row


def test_what_fails_is_named_and_stops_nothing(dataset: Path) -> None:
    (dataset / "10.png").write_text("broken")
    (dataset / "50.png").write_text("50 0 50")
    engine = use(Company(fails={20}, refuses=30))
    report = evaluate(options(dataset))
    assert {problem.where: problem.what for problem in report.problems} == {
        "10.png": "no picture",
        "50.png": "cannot be rasterised: page 2: torn",
        "20.png page 1": "no such shade",
        "30.png page 1": "RuntimeError: will not have it",
        "doc.png page 2": "no such shade",
        "doc.png page 3": "RuntimeError: will not have it",
    }
    assert engine.alone == []
    doc = json.loads(
        (dataset.parent / "work/company/doc.png.pages.jsonl").read_text().split("\n")[5]
    )
    assert (doc["number"], doc["markdown"]) == (5, "shade 50")


def test_where_the_engine_breaks_down_its_pages_are_read_alone(dataset: Path) -> None:
    engine = use(Company(breaks=40))
    report = evaluate(options(dataset))
    assert not report.problems
    assert 40 in engine.alone
    assert engine.submitted[-1] == 50
    texts = [item.prediction.markdown for item in report.runs[0].items]
    assert texts[1:] == [f"shade {shade}" for shade in SHADES]
    assert texts[0] == "\n\n".join(texts[1:])


def test_a_run_that_was_stopped_goes_on(dataset: Path) -> None:
    class Stopped(Company):
        def step(self) -> list[tuple[int, PagePrediction]]:
            if len(self.submitted) == 4:
                raise KeyboardInterrupt
            return super().step()

    use(Stopped())
    with pytest.raises(KeyboardInterrupt):
        evaluate(options(dataset))
    journal = dataset.parent / "work/company/doc.png.pages.jsonl"
    done = len(journal.read_text().splitlines()) - 1
    assert 0 < done < 5
    assert not journal.with_name("doc.png.md").exists()
    again = use(Company())
    evaluate(options(dataset))
    assert len(again.submitted) == 10 - done
    third = use(Company())
    evaluate(options(dataset))
    assert third.submitted == third.alone == []
    evaluate(options(dataset, rerun=True))
    assert len(third.submitted) == 10 and third.alone == []


def test_shards_read_their_own_items(dataset: Path) -> None:
    parts = [Company(), Company()]
    for index, part in enumerate(parts):
        use(part)
        evaluate(options(dataset, shard=(index, 2)))
    assert sorted(parts[1].submitted) == [10, 30, 50]
    assert len(parts[0].submitted) == 7


def test_less_than_one_page_is_refused() -> None:
    with pytest.raises(UsageError, match="side-by-side"):
        EvalOptions(dataset=Path(), side_by_side=0)


def test_the_shipped_model_reads_the_same_in_company(tmp_path: Path) -> None:
    try:
        find_checkpoint("ocria-nano")
    except OcriaError:
        pytest.skip("the shipped checkpoint is not here")
    root = tmp_path / "set"
    root.mkdir()
    rows = []
    for number, text in enumerate(["Total 42.50", "One line\nand another", "x"]):
        picture = Image.new("RGB", (220, 90), "white")
        ImageDraw.Draw(picture).text((12, 12), text, fill="black", font=ImageFont.load_default(20))
        picture.save(root / f"{number}.png")
        (root / f"{number}.txt").write_text(text)
        rows.append({"file": f"{number}.png", "truth": f"{number}.txt", "metric": "text"})
    (root / "index.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shared = {"engines": ("ocria",), "device": "cpu", "threads": 1}
    alone = evaluate(options(root, "alone", side_by_side=1, **shared))
    beside = evaluate(options(root, "beside", side_by_side=3, **shared))
    assert alone.runs[0].num_in_company == 0
    assert beside.runs[0].num_in_company == 3
    assert not alone.problems and not beside.problems
    found = kept(tmp_path / "beside")
    assert found == kept(tmp_path / "alone")
    assert len(found) == 6 and all(found.values())


def test_pages_drawn_ahead_are_read_the_same(dataset: Path) -> None:
    (dataset / "10.png").write_text("broken")
    (dataset / "50.png").write_text("50 0 50")
    use(Company(refuses=30))
    expected = evaluate(options(dataset, "plain"))
    ahead = use(Company(refuses=30))
    ahead.num_ahead = 2
    report = evaluate(options(dataset))
    assert kept(dataset.parent / "work") == kept(dataset.parent / "plain") != {}
    assert report.problems == expected.problems
    assert ahead.most == SLOTS + 2


def test_documents_are_drawn_while_another_is_read() -> None:
    begun: list[int] = []

    def pictures(number: int) -> Iterator[PageImage]:
        for page in (1, 2, 3, 4, 5):
            begun.append(number)
            yield PageImage(number=page, image=Image.new("RGB", (4, 4)), dpi=200.0)

    def items() -> Iterator[Waiting]:
        for number in range(4):
            yield Waiting(item=None, store=None, kept=(), pictures=pictures(number))  # type: ignore[arg-type]

    drawn = drawn_ahead(items(), 2)
    first = next(drawn)
    assert [page.number for page in first.pictures] == [1, 2, 3, 4, 5]
    assert 3 not in begun
    rest = list(drawn)
    assert len(rest) == 3 and {0, 1, 2} <= set(begun)
