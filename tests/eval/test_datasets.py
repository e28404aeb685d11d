"""Every layout from a small made-up folder; bad rows are named and the rest is read."""

import json
from pathlib import Path

import pytest
from PIL import Image

from ocria.errors import InputError
from ocria.eval.datasets import load_dataset


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), "white").save(path)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def lines(path: Path, *rows: object) -> None:
    write(path, "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


def test_index(tmp_path: Path) -> None:
    picture(tmp_path / "a/1.png")
    write(tmp_path / "a/1.txt", "text")
    lines(
        tmp_path / "index.jsonl",
        {"file": "a/1.png", "truth": "a/1.txt", "truth_type": "text-lines", "kind": "scan",
         "lang": "en", "pages": "1-2,4"},
        {"file": "a/1.png", "truth": "a/1.txt", "metric": "text"},
        "not json",
        {"truth": "a/1.txt"},
        {"file": "a/missing.png", "truth": "a/1.txt", "metric": "text"},
        {"file": "../outside.png", "metric": "none"},
    )  # fmt: skip
    dataset = load_dataset(tmp_path)
    (item,) = dataset.items
    assert (item.name, item.pages, item.group, item.metric) == ("a/1.png", (1, 2, 4), "a", "text")
    assert item.truth is not None and item.truth.text == "text"
    assert item.truth_origin == "human"
    named = {p.where: p.what for p in dataset.problems}
    assert list(named) == [f"index.jsonl line {n}" for n in (2, 3, 4, 5, 6)]
    assert "twice" in named["index.jsonl line 2"]
    assert "missing" in named["index.jsonl line 5"]
    assert "outside" in named["index.jsonl line 6"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"metric": "text"}, "no truth"),
        ({"metric": "text", "truth": "none.txt"}, "missing"),
        ({"metric": "text", "truth": "bytes.txt"}, "cannot be read"),
        ({"metric": "flavour", "truth": "ok.txt"}, "flavour"),
        ({"metric": "text", "truth": "ok.txt", "truth_origin": "guess"}, "guess"),
        ({"metric": "text", "truth": "ok.txt", "pages": "0"}, "no page"),
        ({"metric": "text", "truth": "ok.txt", "pages": "first"}, "first"),
        ({"metric": "rules", "truth": "ok.txt"}, "ok.txt"),
        ({"metric": "blocks", "truth": "ok.txt"}, "not JSON"),
        ({"metric": "table-xml", "truth": "ok.txt"}, "not table XML"),
        ({"metric": "teds", "truth": "ok.txt"}, "no table"),
    ],
)
def test_bad_truth_is_named(tmp_path: Path, fields: dict[str, str], reason: str) -> None:
    picture(tmp_path / "1.png")
    write(tmp_path / "ok.txt", "fine")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\xff")
    lines(tmp_path / "index.jsonl", {"file": "1.png", **fields})
    dataset = load_dataset(tmp_path)
    assert dataset.items == ()
    assert reason in dataset.problems[0].what


def test_olmocr_bench(tmp_path: Path) -> None:
    picture(tmp_path / "pdfs/a.pdf")
    rule = {"pdf": "a.pdf", "page": 2, "id": "1", "type": "present", "text": "x"}
    absent = {"pdf": "gone.pdf", "page": 1, "id": "3", "type": "present", "text": "x"}
    lines(tmp_path / "tables.jsonl", rule, {**rule, "id": "2", "type": "flavour"}, absent)
    dataset = load_dataset(tmp_path)
    (item,) = dataset.items
    assert (dataset.layout, item.group, item.pages) == ("olmocr-bench", "tables", (2,))
    assert item.truth is not None
    assert [rule.type for rule in item.truth.rules] == ["present", "baseline"]
    assert len(dataset.problems) == 2


def test_omnidocbench(tmp_path: Path) -> None:
    picture(tmp_path / "images/p.jpg")
    page = {
        "page_info": {"image_path": "p.jpg", "page_attribute": {"data_source": "book"}},
        "layout_dets": [
            {"category_type": "text_block", "order": 2, "text": "body"},
            {"category_type": "title", "order": 1, "text": "Head"},
            {"category_type": "header", "order": 0, "text": "running"},
            {"category_type": "equation_isolated", "order": 3, "latex": "x^2"},
            {"category_type": "table", "order": 4, "html": "<table><tr><td>c</td></tr></table>"},
        ],
    }
    write(tmp_path / "OmniDocBench.json", json.dumps([page, {"page_info": {}, "layout_dets": []}]))
    dataset = load_dataset(tmp_path / "OmniDocBench.json")
    (item,) = dataset.items
    assert item.truth is not None and item.truth.text is not None
    assert item.truth.text.startswith("# Head\n\nbody\n\n$$\nx^2\n$$")
    assert "running" not in item.truth.text
    assert item.truth.tables is not None and item.truth.formulas == ("x^2",)
    assert len(dataset.problems) == 1


def test_pdf_parse_bench(tmp_path: Path) -> None:
    picture(tmp_path / "pdfs/001.pdf")
    blocks = [
        {"type": "text", "data": "Words."},
        {"type": "inline-formula", "data": "$a^{2}$"},
        {"type": "table", "data": "<table><tr><td>1</td></tr></table>"},
    ]
    write(tmp_path / "ground_truth/001.json", json.dumps(blocks))
    (item,) = load_dataset(tmp_path).items
    assert item.truth is not None and item.truth.formulas == ("$a^{2}$",)
    assert item.truth.tables is not None and len(item.truth.tables) == 1
    assert item.truth_origin == "exact"


def test_sroie(tmp_path: Path) -> None:
    picture(tmp_path / "img/000.jpg")
    picture(tmp_path / "img/001.jpg")
    write(tmp_path / "box/000.csv", "1,2,3,4,5,6,7,8,SHOP, LTD\n1,2,3,4,5,6,7,8,TOTAL\n")
    dataset = load_dataset(tmp_path)
    assert dataset.items[0].truth is not None
    assert dataset.items[0].truth.text == "SHOP, LTD\nTOTAL"
    assert dataset.problems[0].where == "img/001.jpg"


def test_pubtabnet(tmp_path: Path) -> None:
    picture(tmp_path / "val/t.png")
    html = {
        "structure": {
            "tokens": ["<tr>", "<td>", "</td>", "<td", ' colspan="2"', ">", "</td>", "</tr>"]
        },
        "cells": [{"tokens": ["<b>", "a", "</b>"]}, {"tokens": ["b", "c"]}],
    }
    lines(
        tmp_path / "PubTabNet_2.0.0.jsonl",
        {"filename": "t.png", "split": "val", "html": html},
        {"filename": "gone.png", "split": "val", "html": html},
    )
    dataset = load_dataset(tmp_path)
    (item,) = dataset.items
    assert item.truth is not None and item.truth.tables is not None
    assert [(c.text, c.colspan) for c in item.truth.tables[0].cells] == [("a", 1), ("bc", 2)]
    assert len(dataset.problems) == 1


def test_icdar2013(tmp_path: Path) -> None:
    picture(tmp_path / "eu-001.pdf")
    write(
        tmp_path / "eu-001-str.xml",
        '<document><table><region row-increment="0"><cell start-row="0" start-col="0" end-col="1">'
        '<content>head</content></cell><cell start-row="1" start-col="0"><content>a</content>'
        '</cell></region><region row-increment="2"><cell start-row="0" start-col="0">'
        "<content>b</content></cell></region></table></document>",
    )
    (item,) = load_dataset(tmp_path).items
    assert item.truth is not None and item.truth.tables is not None
    (table,) = item.truth.tables
    assert [(c.text, c.row, c.colspan) for c in table.cells] == [
        ("head", 0, 2), ("a", 1, 1), ("b", 2, 1)
    ]  # fmt: skip


def test_plain(tmp_path: Path) -> None:
    picture(tmp_path / "page.png")
    picture(tmp_path / "other.png")
    write(tmp_path / "page.txt", "one\ftwo")
    dataset = load_dataset(tmp_path)
    assert dataset.items[0].truth is not None and dataset.items[0].truth.text == "one\ntwo"
    assert dataset.problems[0].where == "other.png"


def test_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        load_dataset(tmp_path / "nowhere")
    with pytest.raises(InputError) as caught:
        load_dataset(tmp_path)
    assert caught.value.hint is not None and "index.jsonl" in caught.value.hint


@pytest.mark.parametrize(
    "row",
    [
        '{"file": "a.png", "truth": "a.txt", "metric": ["text"]}',
        '{"file": "a\\u0000.png", "truth": "a.txt", "metric": "text"}',
        '{"file": "a.png", "truth": "a\\u0000.txt", "metric": "text"}',
        '{"file": "\\ud800.png", "truth": "a.txt", "metric": "text"}',
        "[" * 100_000,
        '{"file": "%s.png", "truth": "a.txt", "metric": "text"}' % ("n" * 300),
        '{"file": "a.png", "truth": "a.txt", "metric": "text", "pages": "1-3000000000"}',
        '{"file": "a.png", "truth": "a.txt", "metric": "text", "pages": "%s"}' % ("9" * 5000),
        '{"file": "a.png", "truth": "../a.txt", "metric": "text"}',
        '{"file": "ROOT/a.png", "truth": "a.txt", "metric": "text"}',
        '{"file": "./b.png", "truth": "a.txt", "metric": "text"}',
        '{"file": "a.png", "truth": "a.txt", "truth_type": "klingon"}',
        '{"file": "a.png", "truth": "a.txt"}',
        '{"file": "a.png", "truth": "a.txt", "truth_type": "text", "pages": "2-"}',
        b"\xff\xfe",
    ],
    ids=range(15),
)
def test_a_hostile_row_is_named_and_the_rest_is_used(tmp_path: Path, row: str | bytes) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "a.txt").write_text("text")
    good = b'{"file": "b.png", "truth": "a.txt", "metric": "text", "kind": "\xe2\x80\xa8"}'
    bad = row if isinstance(row, bytes) else row.replace("ROOT", str(tmp_path)).encode()
    (tmp_path / "index.jsonl").write_bytes(b"\xef\xbb\xbf" + good + b"\n" + bad + b"\n")
    dataset = load_dataset(tmp_path)
    assert [item.name for item in dataset.items] == ["b.png"]
    assert [problem.where for problem in dataset.problems] == ["index.jsonl line 2"]


def test_odd_records_of_other_layouts_are_named_too(tmp_path: Path) -> None:
    picture(tmp_path / "omni/images/p.png")
    right = {"page_info": {"image_path": "p.png"}, "layout_dets": []}
    no_attributes = {"image_path": "p.png", "page_attribute": None}
    odd = [{**right, "layout_dets": ["x"]}, {**right, "layout_dets": None}, 7,
           {**right, "page_info": no_attributes}]  # fmt: skip
    write(tmp_path / "omni/a.json", json.dumps([right, *odd]))
    rule = {"pdf": "a.pdf", "page": 1, "type": "present", "text": "x"}
    picture(tmp_path / "bench/pdfs/a.pdf")
    lines(tmp_path / "bench/r.jsonl", rule, {**rule, "page": float("inf")}, "[]", "null",
          {**rule, "pdf": None})  # fmt: skip
    picture(tmp_path / "tables/t.png")
    html = {"structure": {"tokens": ["<td>", "</td>"]}, "cells": [{"tokens": ["a"]}]}
    table = {"filename": "t.png", "html": html}
    lines(tmp_path / "tables/a.jsonl", table, {**table, "html": "x"}, "[]", "5",
          {**table, "html": {"structure": None, "cells": []}})  # fmt: skip
    for name in ("omni", "bench", "tables"):
        dataset = load_dataset(tmp_path / name)
        assert len(dataset.items) == 1
        assert len(dataset.problems) == 4


def test_boxes_of_sroie_can_be_text_files(tmp_path: Path) -> None:
    picture(tmp_path / "img/000.jpg")
    write(tmp_path / "box/000.txt", "1,2,3,4,5,6,7,8,TOTAL\n")
    (item,) = load_dataset(tmp_path).items
    assert item.truth is not None and item.truth.text == "TOTAL"
